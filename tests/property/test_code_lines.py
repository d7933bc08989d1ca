"""No text can become code in a line that is offered, whatever IPython does with the line."""

from __future__ import annotations

import ast
import contextlib
import io
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from IPython.core.interactiveshell import InteractiveShell

from lance_nb.code_lines import MAGIC, PYTHON_ONLY, TOO_LONG, Python, literal, magic, split
from lance_nb.explorer.refs.merge_preview import merge_code
from lance_nb.explorer.refs.ref_preview import change_code
from lance_nb.explorer.rows.filter_conditions import value_condition
from lance_nb.explorer.rows.row_query import RowQuery, query_code
from lance_nb.explorer.stage.card_view import stage_code
from lance_nb.explorer.stage.edit_forms import EditForm
from lance_nb.magic.registry import Request, parse
from lance_nb.magic.shell import LanceMagics
from lance_nb.shown_text import INVISIBLE
from tests.support.examples import examples

# What means something to a magic's line, to the words of a line, to a shell, to Python or to SQL.
PARTS = (
    "{fired.append(1)}", "{open('x', 'w').write('x')}", "{n}", "$n", "$$n", "{{n}}", "$n.real", "{",
    "}", "$", "'", '"', "'''", '"""', "\\", "\\\n", "?", "??", "!ls", "!!", "%run x", "x=%x", "=%",
    "= !", "--json", "--debug", "-o", "--", "-", "-m", "--where=", "help", "-h", "U&'", 'U&"',
    "\\007B", "\\+00007B", "<<", "#", ";", "`", ",", "=", ":", "..", "~", "\n", "\r",
    "\t", " ", "\0", "\x0b", "\x1b[31m", "\x85", "\u2028", "\u202e", "\u3164", "\ud800",
    "\U0001f642", "é", "n", "a b", "0x",
)  # fmt: skip
TEXTS = st.one_of(
    st.text(st.characters(), max_size=30),
    st.lists(st.sampled_from(PARTS), min_size=1, max_size=6).map("".join),
)
SETTINGS = settings(examples(300), suppress_health_check=[HealthCheck.function_scoped_fixture])
INJECTION = '{open("x","w").write("x")}'


def texts_of(line: str) -> list[str]:
    """Return the words of a line behind ``%lance``."""
    assert line.startswith(f"{MAGIC} ")
    return [one.text for one in split(line.removeprefix(f"{MAGIC} "), filled)]


def filled(name: str) -> str:
    raise AssertionError(f"{name} was filled in")


@pytest.fixture(scope="module")
def ipython(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InteractiveShell]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
        shell = InteractiveShell()
        shell.history_manager.enabled = False
        yield shell
        shell.history_manager.end_session()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which code of a line would write its file."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(shell: InteractiveShell, line: str, here: Path) -> None:
    """Run a cell of this line and another behind it; no code of the line's texts runs."""
    fired: list[int] = []
    behind: list[str] = []
    shell.user_ns.update(fired=fired, n="N", x="X", a="A", name="NAME")
    shell.register_magic_function(behind.append, "line", "behind")
    shell.register_magic_function(fired.append, "line", "x")
    with contextlib.redirect_stdout(io.StringIO()) as said:
        done = shell.run_cell(f"{line}\n%behind 1")
    assert done.success, said.getvalue()
    assert (behind, fired) == (["1"], [])
    assert list(here.iterdir()) == []


# --- words and lines ------------------------------------------------------------------------------


@SETTINGS
@given(st.lists(TEXTS, min_size=1, max_size=5), st.dictionaries(st.just("--where"), TEXTS))
@example(["a\\"], {})
@example(["''"], {"--where": ""})
def test_words_come_back_as_they_were(words: list[str], options: dict[str, str]) -> None:
    line = magic(*words, options=options)
    assert texts_of(line) == [*words, *(one for pair in options.items() for one in pair)]
    assert line.isprintable()
    assert not INVISIBLE.search(line)
    assert not set("{}$") & set(line)
    # Only flags of ours are plain words that begin with a dash.
    dashes = [one.text for one in split(line) if one.is_plain and one.text.startswith("-")]
    assert dashes == list(options)


@SETTINGS
@given(st.lists(TEXTS, min_size=1, max_size=3))
@example([INJECTION, "$n", "{n}"])
@example(["x=%x"])
@example(["a\\", "'''"])
def test_ipython_that_fills_in_everything_finds_nothing_to_fill_in(
    ipython: InteractiveShell, here: Path, words: list[str]
) -> None:
    got: list[str] = []
    ipython.register_magic_function(got.append, "line", "lance")
    run(ipython, magic("head", *words), here)
    assert len(got) == 1
    assert [one.text for one in split(got[0])] == ["head", *words]


# --- the lines of the explorer --------------------------------------------------------------------

DATASET: Any = SimpleNamespace(uri="data/x.lance", branch=None, version=3)


def heads(text: str) -> tuple[dict[str, str], dict[str, Any]]:
    return query_code(DATASET, RowQuery(text)), {"ref": "main:3", "where": text}


def values(text: str) -> tuple[dict[str, str], dict[str, Any]]:
    where = value_condition(
        text.replace("\0", ""), pa.scalar(text.encode("utf-8", "replace").decode())
    )
    return query_code(DATASET, RowQuery(where)), {"where": where}


def deletes(text: str) -> tuple[dict[str, str], dict[str, Any]]:
    form = EditForm("delete", {"where": text})
    return stage_code(form), {"edit": "delete", "words": [text], "where": None}


def updates(text: str) -> tuple[dict[str, str], dict[str, Any]]:
    form = EditForm("update", {"set": {"price": text, text: "1"}, "where": text})
    said = {"edit": "update", "words": [f"price={text}", f"{text}=1"], "where": text}
    return stage_code(form), said


def appends(text: str) -> tuple[dict[str, str], dict[str, Any]]:
    return stage_code(EditForm("append", {"source": text})), {"edit": "append", "words": [text]}


def tags(text: str) -> tuple[dict[str, str], dict[str, Any]]:
    code = change_code(DATASET, "tag", "create", text, (text, 3))
    return code, {"action": "create", "name": text, "ref": f"{text or 'main'}:3"}


def branches(text: str) -> tuple[dict[str, str], dict[str, Any]]:
    return change_code(DATASET, "branch", "delete", text, None), {"name": text, "ref": None}


def merges(text: str) -> tuple[dict[str, str], dict[str, Any]]:
    options = {"on_conflict": "theirs", "key": [text]}
    code = merge_code(DATASET, "merge", text, text, options, message=text, dry_run=True)
    said = {"branch": text, "into": text or "main", "on_conflict": "theirs", "key": text,
            "dry_run": True, "message": [text] if text else None}  # fmt: skip
    return code, said


LINES = (heads, values, deletes, updates, appends, tags, branches, merges)


@pytest.mark.parametrize("make", LINES)
@settings(SETTINGS, max_examples=examples(120).max_examples)
@given(TEXTS)
@example(INJECTION)
@example("--json")
@example("-x")
@example("help")
def test_the_verb_gets_the_texts_that_were_meant(
    make: Callable[[str], tuple[dict[str, str], dict[str, Any]]], text: str
) -> None:
    code, meant = make(text)
    if code["magic"] in (PYTHON_ONLY, TOO_LONG):
        return
    found = parse(code["magic"].removeprefix(f"{MAGIC} "), fill=filled)
    assert {name: getattr(found.arguments, name) for name in meant} == meant
    assert (found.output, found.as_json, found.is_silent) == (None, False, False)


@pytest.fixture(scope="module")
def asked(ipython: InteractiveShell) -> Iterator[list[Namespace]]:
    """What the real ``%lance`` was asked for, in place of doing it."""
    got: list[Namespace] = []

    def keep(self: LanceMagics, request: Request) -> None:
        got.append(request.arguments)

    ipython.run_line_magic("load_ext", "lance_nb")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LanceMagics, "_value_of", keep)
        yield got


@pytest.mark.parametrize("make", LINES)
@settings(SETTINGS, max_examples=examples(40).max_examples)
@given(text=TEXTS)
@example(text=INJECTION)
@example(text="$n {n} $$n {{n}} ${n}")
@example(text="help")
def test_both_lines_do_in_a_real_shell_what_was_meant(
    make: Callable[[str], tuple[dict[str, str], dict[str, Any]]],
    ipython: InteractiveShell,
    asked: list[Namespace],
    here: Path,
    text: str,
) -> None:
    code, meant = make(text)
    assert ipython.transform_cell(code["python"]) == f"{code['python']}\n"
    asked.clear()
    run(ipython, code["magic"], here)
    if code["magic"] in (PYTHON_ONLY, TOO_LONG):
        assert asked == []
    else:
        assert [{name: getattr(one, name) for name in meant} for one in asked] == [meant]


# --- Python ---------------------------------------------------------------------------------------

CONSTANTS = st.recursive(
    st.one_of(
        TEXTS, st.none(), st.booleans(), st.integers(), st.binary(max_size=9),
        st.floats(allow_nan=False, allow_infinity=False),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(TEXTS, inner, max_size=3),
    ),
    max_leaves=6,
)  # fmt: skip


@settings(SETTINGS, max_examples=examples(200).max_examples)
@given(st.lists(CONSTANTS, max_size=3), st.fixed_dictionaries({"filter": CONSTANTS}))
@example(["\ud800\0\u2028\u202e\u3164'\"\\"], {"filter": "x" * 5000})
def test_a_call_has_the_constants_that_were_meant(
    given_values: list[object], named: dict[str, object]
) -> None:
    line = Python("lance_nb.dataset").call(*given_values, **named).line()
    assert line.isprintable()
    assert not INVISIBLE.search(line)
    body = ast.parse(line).body
    assert len(body) == 1
    assert isinstance(body[0], ast.Expr)
    call = body[0].value
    assert isinstance(call, ast.Call)
    assert ast.unparse(call.func) == "lance_nb.dataset"
    assert [ast.literal_eval(one) for one in call.args] == given_values
    assert {one.arg: ast.literal_eval(one.value) for one in call.keywords} == named


@settings(SETTINGS, max_examples=examples(100).max_examples)
@given(TEXTS)
def test_every_part_of_a_line_is_a_name_of_ours_or_a_constant(text: str) -> None:
    for make in LINES:
        line = make(text)[0]["python"]
        if make is appends and text.isidentifier():
            continue  # the variable that a person has named
        assert line.isprintable()
        if line == TOO_LONG:
            continue
        names = {one.id for one in ast.walk(ast.parse(line)) if isinstance(one, ast.Name)}
        assert names <= {"lance_nb", "ds", "pyarrow"}
        assert literal(text)[0] in "'\""
