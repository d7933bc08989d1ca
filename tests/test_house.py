"""The house rules, held against every file of the repository.

Each rule is also shown a planted offence and a clean twin: a rule that cannot fail is no rule.
The import floors are import-linter's (see pyproject.toml) and run with ``make lint``.
"""

from __future__ import annotations

import gc
import subprocess
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

import lance_nb
from lance_nb import spark
from tests.house import (
    asset_rules,
    code_rules,
    dead_names,
    document_rules,
    measures,
    name_rules,
    safety_rules,
    security_table,
    text_rules,
    tree_rules,
)
from tests.house.source import ROOT, Source, is_ours, repository_sources

Rule = Callable[[Source], Iterator[str]]
RULES: tuple[Rule, ...] = (
    *name_rules.NAME_RULES,
    *code_rules.CODE_RULES,
    *asset_rules.ASSET_RULES,
    *safety_rules.SAFETY_RULES,
    *text_rules.TEXT_RULES,
)

MODULE = "lance_nb/table/scan.py"
CALLS_BY_POSITION_MAX = 142  # of drawing, loops and errors, most of them; may only fall
IN_MEMORY = safety_rules.PICKLES_IN_MEMORY[0]
WIDGET = "lance_nb/explorer/rows/rows.js"
DOC = '"""A module."""\n'


# rule, path of the planted file, offending text, clean text under the same path
PLANTED = [
    (code_rules.parses, MODULE, "def f(:", "def f(): ..."),
    (code_rules.no_assert, MODULE, "assert x", "if not x: raise y"),
    (code_rules.no_broad_except, MODULE, "try: x\nexcept Exception: y", "try: x\nexcept Odd: y"),
    (code_rules.no_broad_except, MODULE, "try: x\nexcept: y", "try: x\nfinally: y"),
    (
        code_rules.no_broad_except,
        MODULE,
        "try: x\nexcept (KeyError, BaseException): y",
        "try: x\nexcept (KeyError, ValueError): y",
    ),
    (code_rules.no_broad_except, MODULE, "with suppress(Exception): x", "with suppress(Error): x"),
    (code_rules.no_print, MODULE, "print('x')", "printer.print('x')"),
    (code_rules.no_environment, MODULE, "import os\nos.environ['HOME']", "import os\nos.getpid()"),
    (code_rules.no_environment, MODULE, "from os import getenv", "from os import fsync"),
    (code_rules.no_markers, MODULE, "# TO" + "DO: later", "# to do: nothing"),
    (code_rules.no_markers, WIDGET, "// FIX" + "ME(me)", "// fixed"),
    (
        code_rules.lazy_packages,
        MODULE,
        "import pyarrow.dataset",
        "def f():\n    import pyarrow.dataset",
    ),
    (
        code_rules.lazy_packages,
        MODULE,
        "try:\n    from pyarrow import compute\nfinally: pass",
        "import pyarrow as pa\nif TYPE_CHECKING:\n    from pyarrow import compute",
    ),
    (code_rules.own_errors_only, MODULE, "raise ValueError('x')", "raise InvalidInputError('x')"),
    (
        code_rules.own_errors_only,
        MODULE,
        "def f(): raise KeyError(k)",
        "def __getitem__(self, k): raise KeyError(k)",
    ),
    (
        code_rules.found_is_said,
        MODULE,
        "raise CorruptFileError(path, None, 'values in order', 'others')",
        "raise CorruptFileError(path, None, 'values in order', describe_order(values))",
    ),
    (
        code_rules.frozen_values,
        "lance_nb/format/fragment.py",
        "@dataclass(frozen=True)\nclass C: pass",
        "@dataclass(frozen=True, slots=True)\nclass C: pass",
    ),
    (code_rules.frozen_values, MODULE, "@dataclass\nclass C: pass", "class C: pass"),
    (
        code_rules.frozen_values,
        "lance_nb/explorer/app.py",
        "from dataclasses import dataclass, field",
        "from dataclasses import field\nfrom lance_nb.value_classes import dataclass",
    ),
    (
        code_rules.frozen_values,
        MODULE,
        "@dataclasses.dataclass(frozen=True, slots=True)\nclass C: pass",
        "class C: x = dataclasses.field()",
    ),
    (code_rules.docstrings, MODULE, "x = 1", DOC),
    (code_rules.docstrings, MODULE, f"{DOC}def f(): ...", f"{DOC}def _f(): ..."),
    (
        code_rules.docstrings,
        MODULE,
        f"{DOC}class C:\n    '''Hold.'''\n    def m(self): ...",
        f"{DOC}class C:\n    '''Hold.'''\n    @m.setter\n    def m(self, x): ...",
    ),
    (
        code_rules.docstrings,
        MODULE,
        f"{DOC}class C(Protocol):\n    def m(self): ...",
        f"{DOC}class C(Protocol):\n    '''Hold.'''\n    def m(self): ...",
    ),
    (safety_rules.one_duckdb, MODULE, "def f():\n    import duckdb", "import duckling"),
    (
        text_rules.lines_in_one_place,
        MODULE,
        "f'open it with lance_nb.dataset({uri!r}, version=3)'",
        "f'{uri!r}: see lance_nb.dataset(uri) and ds.tags.list()'",
    ),
    (
        text_rules.lines_in_one_place,
        MODULE,
        "f'run %lance head --where {shlex.quote(text)}'",
        "f'{text!r}: run %lance head'",
    ),
    (
        text_rules.logs_are_shown_text,
        MODULE,
        "_log.warning('%d of %s', 3, uri)",
        "_log.warning('%d of %s, %r: %s', 3, visible(uri), uri, type(error).__name__)",
    ),
    (text_rules.logs_are_shown_text, MODULE, "_log.info(f'{uri}')", "_log.info('100 %% done')"),
    (
        text_rules.logs_are_shown_text,
        MODULE,
        "_log.warning('failed', exc_info=error)",
        "_log.warning('failed: %s', visible_lines(trace))",
    ),
    (
        text_rules.warnings_are_shown_text,
        MODULE,
        "warnings.warn(f'column {name} is old', stacklevel=2)",
        "warnings.warn(f'{VARIABLE} is {text!r}', stacklevel=2)",
    ),
    (safety_rules.one_duckdb, MODULE, "from duckdb import connect", "from .duckdb import x"),
    (safety_rules.no_stored_code, MODULE, "import pickle", "import pickletools_of_ours"),
    (safety_rules.no_stored_code, MODULE, "from pickle import loads", "from json import loads"),
    (safety_rules.no_stored_code, MODULE, "def f():\n    import dill", "def f():\n    import zlib"),
    (
        safety_rules.no_stored_code,
        MODULE,
        "from pyspark import cloudpickle",
        "from pyspark import x",
    ),
    (safety_rules.no_stored_code, MODULE, "import_module('marshal')", "import_module('zlib')"),
    (safety_rules.no_stored_code, MODULE, "pd.read_pickle(p)", "pd.read_parquet(p)"),
    (
        safety_rules.no_stored_code,
        MODULE,
        "np.load(p, allow_pickle=True)",
        "np.load(p, allow_pickle=False)",
    ),
    (
        safety_rules.no_stored_code,
        IN_MEMORY,
        "import pickle\npickle.load(file)",
        "import pickle\npickle.loads(row)",
    ),
    (
        safety_rules.no_stored_code,
        IN_MEMORY,
        "import pickle\npickle.loads(path.read_bytes())",
        "import pickle\npickle.loads(bytes(row['made']))",
    ),
    (
        safety_rules.no_stored_code,
        IN_MEMORY,
        "import pickle\npickle.loads(store.read('x'))",
        "import pickle\npickle.dumps(tasks)",
    ),
    (safety_rules.one_duckdb, MODULE, "import_module('duckdb')", "import_module('decimal')"),
    (asset_rules.no_injection, WIDGET, "cell.innerHTML = text", "cell.textContent = text"),
    (asset_rules.no_injection, WIDGET, "cell.insertAdjacentHTML('x', t)", "cell.append(t)"),
    (asset_rules.no_injection, WIDGET, "cell.outerHTML = text", "cell.replaceWith(other)"),
    (asset_rules.no_injection, WIDGET, "eval (text)", "retrieval(text)"),
    (asset_rules.no_injection, WIDGET, "new Function(text)", "new Formatter(text)"),
    (asset_rules.no_injection, WIDGET, "document.write(text)", "document.body"),
    (
        asset_rules.no_address,
        WIDGET,
        "fetch('https://example.org')",
        "const SVG = 'http://www.w3.org/2000/svg'",
    ),
    (asset_rules.no_address, WIDGET, "await import('./x.js')", "import x from './x.js'"),
    (asset_rules.no_address, WIDGET, "await import(y)", "/** @type {import('./x.js').X} */ (y)"),
    (asset_rules.no_address, WIDGET, "importScripts('x')", " * @param {import('./x.js').X} x"),
    (asset_rules.no_address, "lance_nb/explorer/x.css", "@import 'x'", ".important { top: 0 }"),
    (asset_rules.short_lines, WIDGET, f"// {'x' * 98}", f"// {'é' * 97}"),
    (asset_rules.no_machine_words, "README.md", "see /wo" + "rk/notes", "see /works/notes"),
    (asset_rules.no_machine_words, MODULE, "# on the Fa" + "rm", "# on the platfo" + "rm"),
    (asset_rules.no_machine_words, "Makefile", "cd /tmp/" + "dev/x", "cd /tmp/x"),
    *(
        (name_rules.module_names, f"lance_nb/table/{name}.py", "", "")
        for name in sorted(name_rules.BANNED_NAMES)
    ),
]


@pytest.fixture(scope="module")
def sources() -> Iterator[list[Source]]:
    """Read the repository; Python's collector would look for cycles in the million nodes of it."""
    gc.disable()
    yield repository_sources()
    gc.enable()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_repository_keeps_the_rule(rule: Rule, sources: list[Source]) -> None:
    offences = [offence for source in sources for offence in rule(source)]

    assert not offences, f"{rule.__doc__}\n" + "\n".join(offences)


@pytest.mark.parametrize(("rule", "path", "bad", "good"), PLANTED)
def test_rule_sees_a_planted_offence_and_passes_its_clean_twin(
    rule: Rule, path: str, bad: str, good: str
) -> None:
    clean_path = MODULE if rule is name_rules.module_names else path

    assert list(rule(Source(path, bad)))
    assert not list(rule(Source(clean_path, good)))


def test_every_rule_has_a_planted_offence() -> None:
    assert {rule for rule, *_ in PLANTED} == set(RULES)


@pytest.mark.parametrize(
    ("rule", "path", "text"),
    [
        (code_rules.no_print, "notebooks/demo_data.py", "print('x')"),
        (
            code_rules.no_broad_except,
            "lance_nb/explorer/messages.py",
            "try: x\nexcept Exception: y",
        ),
        (code_rules.no_environment, "lance_nb/explorer/app.py", "os.environ['HOME']"),
        (code_rules.no_environment, "lance_nb/magic/command_line.py", "os.environ['HOME']"),
        (code_rules.no_assert, "tests/unit/test_x.py", "assert x"),
        (safety_rules.one_duckdb, "lance_nb/dataset/sql.py", "import duckdb"),
        (text_rules.lines_in_one_place, "lance_nb/code_lines.py", "f'ds.{names}({x!r})'"),
    ],
)
def test_rule_leaves_its_named_exceptions_alone(rule: Rule, path: str, text: str) -> None:
    assert not list(rule(Source(path, text)))


def test_no_modules_of_the_package_import_each_other(sources: list[Source]) -> None:
    package = [source for source in sources if source.is_package_code]

    assert measures.import_circles(package) == []


def test_modules_that_import_each_other_are_seen() -> None:
    circle = [
        Source("lance_nb/table/scan.py", "def f():\n    from lance_nb.table import take"),
        Source("lance_nb/table/take.py", "from lance_nb.table.scan import f"),
    ]

    assert measures.import_circles(circle) == [["lance_nb.table.scan", "lance_nb.table.take"]]


def test_calls_that_pass_many_arguments_by_position_become_fewer(sources: list[Source]) -> None:
    package = [source for source in sources if source.is_package_code]

    assert measures.calls_by_position(package) <= CALLS_BY_POSITION_MAX


def test_calls_that_pass_many_arguments_by_position_are_counted() -> None:
    calls = Source(MODULE, "f(1, 2, 3, 4, 5)\nf(1, 2, 3, 4, e=5)\nf(1, 2, 3, 4, *x)")

    assert measures.calls_by_position([calls]) == 1


def test_vague_names_become_fewer(sources: list[Source]) -> None:
    assert not list(name_rules.risen_counts(name_rules.count_vague_names(sources)))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("def f(one): ...", 1),
        ("def found(): ...", 1),
        ("def f():\n    known = 1", 1),
        ("def f(): return [one for one in x]", 1),
        ("def f():\n    def g():\n        made = 1", 1),
        ("def f():\n    with x as here:\n        if (gone := y): pass", 1),
        ("class A:\n    known: int\n    def f(self): self._kept = 1", 1),
        ("class A:\n    fragments: int\n    def f(self): x.known = self.known[0]", 0),
        ("def f(fragment):\n    first, *rest = fragment\n    return first.one, x(found=1)", 0),
    ],
)
def test_functions_and_fields_with_vague_names_are_counted(text: str, count: int) -> None:
    assert name_rules.count_vague_names([Source(MODULE, text)]) == Counter(table=count)


def test_browser_modules_with_vague_names_are_counted() -> None:
    view = Source(WIDGET, "const one = 1 // const found\nfunction made() {}\nlet onlyOne")

    assert name_rules.count_vague_names([view]) == Counter({"explorer (js)": 2})


def test_a_count_of_vague_names_that_rose_is_seen() -> None:
    most = name_rules.VAGUE_NAMES_MAX["table"]

    assert not list(name_rules.risen_counts({"table": most}))
    assert list(name_rules.risen_counts({"table": most + 1}))
    assert list(name_rules.risen_counts({"new_folder": 1}))


def test_views_weigh_little(sources: list[Source]) -> None:
    assert asset_rules.asset_bytes(sources) <= asset_rules.JS_GZIP_BYTES_MAX


def test_weight_counts_compressed_assets_of_the_package_only() -> None:
    view = Source(WIDGET, "export default {}" * 1000)

    assert 0 < asset_rules.asset_bytes([view]) < 1000
    assert asset_rules.asset_bytes([Source("tests/x.js", view.text)]) == 0


def test_files_that_comments_of_browser_modules_name_exist(sources: list[Source]) -> None:
    offences = list(asset_rules.files_in_comments(sources))

    assert not offences, "\n".join(offences)


@pytest.mark.parametrize(
    ("text", "offences"),
    [
        ("// see models/scan.py", 1),
        ("/** @type {X} see models/scan.py */", 1),
        (" * see gone.py and table/scan.py", 1),
        ("f(); // see gone.js", 1),
        ("// see table/scan.py, scan.py and rows.js", 0),
        ('load("gone.js");', 0),
    ],
)
def test_a_comment_that_names_a_file_that_is_not_there_is_seen(text: str, offences: int) -> None:
    found = list(asset_rules.files_in_comments([Source(MODULE, ""), Source(WIDGET, text)]))
    assert len(found) == offences


def test_leaves_are_imported_by_their_registry_alone(sources: list[Source]) -> None:
    offences = list(tree_rules.only_registries_import_leaves(sources))

    assert not offences, "\n".join(offences)


@pytest.mark.parametrize(
    "text",
    [
        "from lance_nb.encodings.compression import rle",
        "from lance_nb.encodings.compression.rle import Rle",
        "import lance_nb.encodings.compression.rle",
    ],
)
def test_import_of_a_leaf_past_its_registry_is_seen(text: str) -> None:
    assert list(tree_rules.only_registries_import_leaves([Source(MODULE, text)]))
    registry = Source("lance_nb/encodings/registry.py", text)
    assert not list(tree_rules.only_registries_import_leaves([registry]))


def test_every_name_of_the_package_is_used(sources: list[Source]) -> None:
    public_names = [*lance_nb.__all__, *spark.__all__]
    offences = list(dead_names.dead_names(sources, public_names))

    assert not offences, "\n".join(offences)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("def f(): return f()", 1),
        ("def f(): 'See f.'", 1),
        ("LIMIT = 3", 1),
        ("class C:\n    def m(self): ...\nc = C()\nc", 1),
        ("class C:\n    def do_GET(self): ...\nC", 0),
        ("def f(): ...\nf()", 0),
        ("def read(): ...\nclass LanceDataset:\n    def m(self): read()", 0),
        ("class C:\n    def _bind_x(self): ...\nC[f'_bind_{z}']()", 0),
        ("@register('x')\ndef f(): ...", 0),
        ("def used(): ...\ndef exported(): ...\ndef lost(): ...", 1),
    ],
)
def test_a_name_that_nothing_uses_is_seen(text: str, number: int) -> None:
    sources = [
        Source(MODULE, text),
        Source("lance_nb/table/other.py", "from lance_nb.table.scan import used"),
        Source("tests/test_scan.py", "from lance_nb.table.scan import f, LIMIT\nf().m(LIMIT)"),
    ]
    offences = list(dead_names.dead_names(sources, {"LanceDataset", "exported"}))
    assert len(offences) == number


def test_the_security_table_names_every_place_and_what_exists(sources: list[Source]) -> None:
    rows = security_table.rows_of((ROOT / security_table.TABLE).read_text())

    assert len(rows) > 20
    offences = [
        *security_table.wrong_rows(rows, sources),
        *security_table.missing_places(rows, sources),
    ]
    assert not offences, "\n".join(offences)


@pytest.mark.parametrize(
    ("row", "offence"),
    [
        ("| a | `lance_nb/x.py` | g | `tests/t.py::test_a` |", ""),
        ("| a | `lance_nb/gone.py` | g | `tests/t.py::test_a` |", "there is no lance_nb/gone.py"),
        (
            "| a | `lance_nb/x.py` | g | `tests/t.py::test_b` |",
            "there is no test tests/t.py::test_b",
        ),
        ("| a | `lance_nb/x.py` | g | `tests/u.py::test_a` |", "there is no test tests/u.py"),
        ("| a | `lance_nb/x.py` | g | `tests/t.py::helper` |", "helper is no test"),
        ("| a | `lance_nb/x.py` |  | `tests/t.py::test_a` |", "a row is | place"),
        ("| a | `lance_nb/x.py` | g | none |", "a row is | place"),
    ],
)
def test_a_wrong_row_of_the_security_table_is_seen(row: str, offence: str) -> None:
    sources = [
        Source("lance_nb/x.py", ""),
        Source("tests/t.py", "def test_a(): ...\ndef helper(): ..."),
    ]
    found = list(security_table.wrong_rows(security_table.rows_of(row), sources))
    assert len(found) == (1 if offence else 0)
    assert offence in "".join(found)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("lance_nb/x.py", "return f'<b>{escape(name)}</b>'"),
        ("lance_nb/x.py", "connection.execute(text)"),
        ("lance_nb/x.py", "sys.stderr.write(text)"),
        ("lance_nb/x.py", "_log.warning(text)"),
        ("lance_nb/x.py", "pickle.loads(data)"),
        ("lance_nb/x.py", "shlex.quote(text)"),
        ("lance_nb/x.py", "Path(name).write_text(text)"),
        ("lance_nb/x.js", "h('img', { src: text })"),
    ],
)
def test_a_place_that_the_security_table_lacks_is_seen(path: str, text: str) -> None:
    assert list(security_table.missing_places([], [Source(path, text)]))
    rows = security_table.rows_of(f"| a | `{path}` | g | `tests/t.py::test_a` |")
    assert not list(security_table.missing_places(rows, [Source(path, text)]))


def test_mutants_that_no_test_can_kill_are_lines_of_the_package() -> None:
    listed = tomllib.loads((ROOT / "tests/mutation/equivalent.toml").read_text())
    assert list(listed) == ["mutant"]
    entries = listed["mutant"]
    keys = [(one["path"], one["before"], one["after"]) for one in entries if one["reason"]]
    assert len(set(keys)) == len(entries)
    for path, before, after in keys:
        lines = [line.strip() for line in (ROOT / path).read_text().splitlines()]
        assert before in lines, f"remove or correct the entry of {path}: {before}"
        assert after != before


@pytest.fixture(scope="module")
def files() -> list[str]:
    """Return the paths of all files that are not ignored."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: ignored folders cannot be told from ours")
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [path for path in listed.stdout.splitlines() if (ROOT / path).exists()]


def test_top_level_has_no_folder_of_its_own_making(files: list[str]) -> None:
    assert list(tree_rules.top_folders(files)) == []
    assert list(tree_rules.top_folders(["docs/index.md", "README.md"]))


def test_documents_name_files_and_targets_that_exist(
    sources: list[Source], files: list[str]
) -> None:
    targets = document_rules.makefile_targets((ROOT / "Makefile").read_text("utf-8"))
    offences = [
        offence
        for source in sources
        for offence in document_rules.missing_references(source, files, targets)
    ]
    assert not offences, "\n".join(offences)


@pytest.mark.parametrize(
    ("path", "line", "offence"),
    [
        ("README.md", "[a](notebooks/gone.md)", "no file notebooks/gone.md"),
        ("README.md", "[a](notebooks/a.md#x), [b](https://x.org/y), [c](#z)", ""),
        ("notebooks/a.md", "[a](../README.md) and [b](a.md)", ""),
        ("notebooks/a.md", "[a](README.md)", "no file README.md"),
        ("notebooks/a.md", "`lance_nb/gone.py` of a user", ""),
        ("README.md", "`make lab` and `make labs ROWS=1`", "no target 'labs'"),
        ("ARCHITECTURE.md", "`table/scan.py`, `lance_nb/table`, `plan.py`", "folder plan.py"),
        ("ARCHITECTURE.md", "`table/scan.py`, `model.py`: rows; `table`", ""),
        ("ARCHITECTURE.md", "`table/<name>.py`, `tests/<name>_test.py`", "folder tests/<name>_te"),
    ],
)
def test_a_reference_to_what_does_not_exist_is_seen(path: str, line: str, offence: str) -> None:
    files = ["README.md", "notebooks/a.md", "lance_nb/table/scan.py", "lance_nb/table/model.py"]
    targets = document_rules.makefile_targets("lab: x  ## y\n\techo a: b\n")
    offences = list(document_rules.missing_references(Source(path, line), files, targets))
    assert len(offences) == bool(offence)
    assert offence in "".join(offences)


def test_house_reads_what_people_write_and_nothing_else(sources: list[Source]) -> None:
    paths = {source.path for source in sources}

    assert {"Makefile", "pyproject.toml", "lance_nb/__init__.py", "tests/test_house.py"} <= paths
    assert is_ours("lance_nb/_pb/__init__.py")
    assert not is_ours("lance_nb/_pb/table.pyi")
    assert not is_ours("notebooks/data/demo.lance/x.txt")
    assert not is_ours("tests/golden/broken.py")
