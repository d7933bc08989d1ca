from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell

from lance_nb.explorer.app import Explorer
from lance_nb.magic.registry import VERBS
from lance_nb.magic.shell import load_ipython_extension, unload_ipython_extension
from lance_nb.magic.verb import Result
from tests.unit.magic.conftest import Lance


def test_open_shows_the_dataset_and_names_it(
    shell: InteractiveShell, lance: Lance, uri: str
) -> None:
    explorer = lance(f"open {uri} as photos")
    assert isinstance(explorer, Explorer)
    assert explorer.screen["label"] == "main:7"
    assert shell.user_ns["photos"].version == 7


def test_at_moves_and_the_variable_follows(shell: InteractiveShell, lance: Lance, uri: str) -> None:
    lance(f"open {uri} as ds")
    journey = [("2", "main:2"), ("dev:3", "dev:3"), ("tag:v1", "main:3"), ("HEAD~1", "main:6"),
               ("dev", "dev:4"), ("main", "main:7")]  # fmt: skip
    for ref, label in journey:
        assert lance(f"at {ref}").screen["label"] == label
        assert shell.user_ns["ds"].version == int(label.partition(":")[2])
    assert lance("show").screen["label"] == "main:7"


def test_open_takes_a_variable_that_holds_a_dataset(
    shell: InteractiveShell, lance: Lance, uri: str
) -> None:
    lance(f"open {uri} as ds")
    shell.user_ns["old"] = shell.user_ns["ds"].checkout_version(2)
    assert lance("open old").screen["label"] == "main:2"


def test_an_answer_goes_to_a_variable_to_json_or_nowhere(
    shell: InteractiveShell, lance: Lance, uri: str
) -> None:
    lance(f"open {uri}")
    assert len(lance("log -n 2 -o newest").value) == 2
    assert [one.version for one in shell.user_ns["newest"]] == [7, 6]
    lance("other << log -n 1")
    assert [one.version for one in shell.user_ns["other"]] == [7]
    said = json.loads(str(lance("log -n 2 --json")))
    assert [one["version"] for one in said] == [7, 6]
    assert lance("log --no-display") is None


def test_a_variable_becomes_one_word_whatever_it_holds(
    shell: InteractiveShell, lance: Lance, uri: str, tmp_path: Path
) -> None:
    lance(f"open {uri} as ds")
    shell.user_ns.update(
        where="label = 'l1' AND id < 5", minus="-1 < id", flag="--really", out=tmp_path / "a b.csv",
        three=np.int64(3), braces="id = 1 -- {x} $x",
    )  # fmt: skip
    assert lance("head --where {where}").value["id"].to_pylist() == [1, 4]
    assert lance('head -n {three} --where "$minus AND id > {three}"').value.num_rows == 3
    assert lance("export {out} v1").value == tmp_path / "a b.csv"
    assert lance("head --where {braces}").value["id"].to_pylist() == [1]
    assert lance("open {ds} --no-display") is None
    shell.run_cell("found = get_ipython().run_line_magic('lance', 'head -n $three')")
    assert shell.user_ns["found"].value.num_rows == 3
    with pytest.raises(UsageError, match="unrecognized arguments: --really"):
        lance("clean {flag}")


def test_text_in_single_quotes_and_doubled_marks_stay_as_they_are(
    shell: InteractiveShell, lance: Lance, uri: str
) -> None:
    lance(f"open {uri} as ds")
    shell.user_ns.update(x="id")
    for written, meant in [
        ("'{x} $x {1}'", "{x} $x {1}"),
        ('"{{x}} $$x $1 {} }{"', "{x} $x $1 {} }{"),
        ("U&'\\007Bx\\007D'", "{x}"),
    ]:
        with pytest.raises(UsageError) as caught:
            lance(f"at {written}")
        assert repr(meant) in str(caught.value)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("head --where {x + 1}", "{x + 1} is not filled in: only the name of a variable"),
        ("head --where {x.y}", "only the name of a variable"),
        ("head --where {missing}", "variable missing is not defined"),
        ("head --where \"a = '$missing'\"", "quotes or {{missing}}"),
        ("head --where {rows}", "cannot substitute rows of type Table"),
        ("at U&'\\00'", "is no character: write"),
        ("at U&'\\+FFFFFF'", "is no character"),
        ("at U&'x", "a quote is not closed: 'x"),
    ],
)
def test_what_cannot_be_filled_in_is_reported(
    shell: InteractiveShell, lance: Lance, uri: str, line: str, words: str
) -> None:
    lance(f"open {uri} as ds")
    shell.user_ns.update(x=1, rows=pa.table({"a": [1]}))
    with pytest.raises(UsageError) as caught:
        lance(line)
    assert words in str(caught.value)


def test_sql_is_not_filled_in_and_no_expression_is_evaluated(
    shell: InteractiveShell, lance: Lance, uri: str
) -> None:
    lance(f"open {uri} as ds")
    shell.user_ns.update(n=1, fired=[])
    found = lance("sql SELECT '{n} $n {fired.append(1)}' AS a, {'b': 2}.b AS b")
    assert found.value.to_pylist() == [{"a": "{n} $n {fired.append(1)}", "b": 2}]
    shell.run_cell("%%lance kept << --no-display {fired.append(1)}\nSELECT 1")
    shell.run_cell("%%lance -o kept\nSELECT '{fired.append(1)}' AS a")
    assert shell.user_ns["kept"].to_pylist() == [{"a": "{fired.append(1)}"}]
    assert shell.user_ns["fired"] == []


def test_words_in_quotes_are_no_options(lance: Lance, uri: str) -> None:
    lance(f"open {uri} as ds")
    assert isinstance(lance("tag create '--json' v1"), Result)
    assert "--json" in lance("tag").picture.text
    assert isinstance(lance("tag create 'help' v1"), Result)
    assert isinstance(lance("tag delete 'help'"), Result)
    found = lance("head --where \"label <> ' --debug '\" -n 1")
    assert found.value.num_rows == 1
    with pytest.raises(UsageError, match="'-9' is not a version"):
        lance("at '-9'")


def test_python_values_are_filled_in(shell: InteractiveShell, uri: str) -> None:
    shell.user_ns.update(path=uri, count=2)
    shell.run_cell("a = get_ipython().run_cell('%lance open {path}').result")
    shell.run_cell("%lance open $path as ds")
    shell.run_cell("%lance x << log -n {count}")
    assert shell.user_ns["ds"].version == 7
    assert len(shell.user_ns["x"]) == 2


def test_settings_are_traitlets(lance: Lance, shell: InteractiveShell, uri: str) -> None:
    lance(f"open {uri}")
    shell.run_line_magic("config", "LanceMagics.versions_shown = 1")
    assert len(lance("log").value) == 1
    shell.run_line_magic("config", "LanceMagics.rows_shown = 2")
    assert "more rows" in lance("sql SELECT * FROM dataset").picture.text


def test_help_lists_every_verb(lance: Lance) -> None:
    for line in ("", "help"):
        text = lance(line).picture.text
        assert all(f"%lance {name}" in text for name in VERBS)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("opne fake", "did you mean 'open'"),
        ("xyzzy", "verbs: open, tables, show"),
        ("open", "usage: %lance open URI"),
        ("open fake as", "usage: %lance open URI"),
        ("open fake as 3x", "'3x' is not a variable name"),
        ("open nowhere", "no Lance dataset at"),
        ("at", "usage: %lance at REF"),
        ("at v2", "tag or branch 'v2' does not exist; names that exist: 'v1', 'HEAD', 'main'"),
        ("at 99", "version 99"),
        ("at 2001-01-01", "is the oldest"),
        ("log -n x", "usage: %lance log"),
        ("show now", "unrecognized arguments: now"),
        ("open 'fake", "a quote is not closed"),
        ("help nothing", "no verb 'nothing'"),
        ("log -o 3x", "'3x' is not a variable name"),
        # What people write who know git, SQL or pandas, or forget the quotes.
        ("fake.lance", "did you mean 'open fake.lance'?"),
        ("ds", "did you mean 'open ds'?"),
        ("undo", "did you mean 'revert HEAD'?"),
        ("delete id=3", "did you mean 'stage delete'?"),
        ("open fake ds", "did you mean: as ds?"),
        ("at -1", "'-1' is not a version; write a number (12)"),
        ("at HEAD^", "HEAD~2"),
        ("at 2026-11-21 12:00", "quote arguments that contain spaces"),
        ("log -5", "use -n 5"),
        ("log --no-dispaly", "did you mean --no-display?"),
        ("spark start", "did you mean --start?"),
        ("tag v2", "did you mean 'create v2'?"),
        ("tag -d v1", "did you mean 'delete v1'?"),
        ("tag crate v2", "did you mean 'create'?"),
        ("merge nope", "tag or branch 'nope' does not exist"),
        ("diff v1...dev --rows --key nope", "no column named 'nope'"),
        ("bisect label IS NOT NULL", "quote arguments that contain spaces"),
        ("bisect 'id > 1' --nulls maybe", "[--nulls pass|fail]"),
        ("merge dev --strategy --dry-run", "[--strategy auto|fast-forward|replay]"),
        ("bisect 'label ='", "is not SQL: an operand is missing"),
        ("bisect 'labl > 1'", "its columns: 'id', 'label', 'price'"),
        ("head --where id > 3", "quote arguments"),
        ("head --columns id, label", "without spaces"),
        ("stage delete id = 3", "quote it if it has spaces"),
        ("stage update price = 3", "price='price * 2'"),
        ("commit 'my message'", "did you mean -m 'my message'?"),
        ("SELECT * FROM photos", "unknown table 'photos'; open datasets: ds, dataset"),
        ("sql SELEC 1", "near '1'"),
        ("sql DELETE FROM ds", "use %lance stage"),
        ("export nowhere/x.csv", "nowhere/x.csv"),
        ("x <<", "must be followed by a verb"),
        ("3x << log", "'3x' is not a variable name"),
        ("x << lgo", "%lance lgo: there is no verb 'lgo'; did you mean 'log'"),
    ],
)
def test_an_error_is_one_line_that_helps(lance: Lance, uri: str, line: str, words: str) -> None:
    lance(f"open {uri} as ds")
    with pytest.raises(UsageError) as caught:
        lance(line)
    assert words in str(caught.value)
    assert str(caught.value).startswith("%lance ")
    assert not {"\n", "\x1b"} & set(str(caught.value))


def test_statements_need_neither_the_verb_nor_a_shell_that_takes_quotes_away(
    lance: Lance, uri: str
) -> None:
    lance(f"open {uri} as ds")
    for line in ("SELECT max(id) AS m FROM ds", "sql 'SELECT max(id) AS m FROM ds'",
                 "with x as (select 49 AS m) select m from x"):  # fmt: skip
        assert lance(line).value.to_pylist() == [{"m": 49}]


def test_a_dataset_that_is_named_like_a_verb_hides_no_verb(
    shell: InteractiveShell, lance: Lance, uri: str
) -> None:
    lance(f"open {uri} as at")
    assert lance("at v1").screen["label"] == "main:3"
    assert shell.user_ns["at"].version == 3


def test_help_has_a_json_form(lance: Lance) -> None:
    assert {one["verb"] for one in json.loads(str(lance("help --json")))} == set(VERBS)
    assert json.loads(str(lance("help log --json")))["verb"] == "log"


def test_an_error_is_shown_without_a_trace_unless_asked_for(
    shell: InteractiveShell, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell("%lance open nowhere")
    captured = capsys.readouterr()
    assert "Traceback" not in captured.out + captured.err
    assert "no Lance dataset" in captured.out + captured.err
    shell.run_cell("%lance open nowhere --debug")
    captured = capsys.readouterr()
    assert "Traceback" in captured.out + captured.err


def test_the_extension_can_be_unloaded_and_loaded_again(shell: InteractiveShell) -> None:
    unload_ipython_extension(shell)
    assert shell.find_line_magic("lance") is None
    assert shell.find_cell_magic("lance") is None
    load_ipython_extension(shell)
    assert shell.find_line_magic("lance") is not None
    unload_ipython_extension(shell)
    unload_ipython_extension(shell)


@pytest.mark.slow
@pytest.mark.parametrize("wanted", [True, False])
def test_importing_lance_nb_adds_the_magic_where_that_is_configured(*, wanted: bool) -> None:
    script = (
        "from traitlets.config import Config\n"
        "from IPython.core.interactiveshell import InteractiveShell\n"
        f"config = Config({{'LanceMagics': {{'autoload': {wanted}}}}})\n"
        "shell = InteractiveShell.instance(config=config)\n"
        "import lance_nb\n"
        "print(shell.find_line_magic('lance') is not None)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=300
    )
    assert done.stdout.split() == [str(wanted)]


def test_a_dataset_says_what_it_is_in_json(lance: Lance, uri: str) -> None:
    for line in (f"open {uri} --json", "show --json", "at 7 --json"):
        assert json.loads(str(lance(line))) == {"branch": "main", "version": 7, "rows": 49}
