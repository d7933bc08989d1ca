"""The table of ``security_places.md``: places where foreign text could act, guards and tests.

A place is a module, a guard words, a test ``file::function``. Places are found in the code by what
they call (``SINKS``): a module that reaches one of them and is not in the table is an offence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tests.house.source import Source

TABLE = "tests/house/security_places.md"
# What a module does with text when one of these is in it.
SINKS = {
    "html": re.compile(r"_repr_html_|text/html|\bescape\("),
    "sql": re.compile(r"(?:connection|at|spark)\.(?:sql|execute)\(|sqlglot\.parse\("),
    "terminal": re.compile(r"sys\.std(?:out|err)\b|print_exc|print_exception"),
    "log": re.compile(r"\b_log\.\w+\(|warnings\.warn\("),
    "code": re.compile(
        r"pickle\.loads?\(|(?<![\w.])(?:exec|eval)\(|_client\.eval\(|subprocess|os\.system"
    ),
    "line": re.compile(r"shlex\.|from lance_nb\.code_lines import"),
    "file": re.compile(
        r"write_text\(|write_bytes\(|\.open\(\"[wxab]+\"|os\.open\(|os\.fdopen\(|os\.link\(|mkstemp"
        r"|mkdtemp|sqlite3\.connect|TemporaryDirectory|urlopen\(|FileSystem\.from_uri"
    ),
    "javascript": re.compile(r"\b(?:src|href|srcset|style): |createObjectURL|\.(?:src|href) = "),
}
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
_MODULE = re.compile(r"`(lance_nb/[\w/]+\.(?:py|js))`")
_FUNCTION = re.compile(r"^\s*(?:async )?def (\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    line: int
    modules: tuple[str, ...]
    guard: str
    tests: tuple[tuple[str, str], ...]


def rows_of(text: str) -> list[Row]:
    """Read the rows of the table of places: those that name a module or a test."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        cells = [one.strip() for one in line.strip().strip("|").split(" | ")]
        if not line.startswith("|") or not (_MODULE.search(line) or _TEST.search(line)):
            continue
        modules, tests = tuple(_MODULE.findall(line)), tuple(_TEST.findall(line))
        found.append(Row(number, modules, cells[2] if len(cells) == 4 else "", tests))
    return found


def wrong_rows(rows: Iterable[Row], sources: Iterable[Source]) -> Iterator[str]:
    """A row names modules and tests that exist, and says what guards the place."""
    texts = {source.path: source.text for source in sources}
    for row in rows:
        place = f"{TABLE}:{row.line}"
        if not row.modules or not row.guard or not row.tests:
            yield f"{place}: a row is | place | modules | guard | tests |"
        for module in row.modules:
            if module not in texts:
                yield f"{place}: there is no {module}"
        for path, name in row.tests:
            if name not in _FUNCTION.findall(texts.get(path, "")):
                yield f"{place}: there is no test {path}::{name}"
            elif not name.startswith("test_"):
                yield f"{place}: {name} is no test"


def missing_places(rows: Iterable[Row], sources: Iterable[Source]) -> Iterator[str]:
    """A module that hands text to something that could act on it is in the table."""
    listed = {module for row in rows for module in row.modules}
    for source in sources:
        if not source.path.startswith("lance_nb/") or source.path in listed:
            continue
        if not source.path.endswith((".py", ".js")):
            continue
        for kind, pattern in SINKS.items():
            if (kind == "javascript") != source.path.endswith(".js"):
                continue
            found = pattern.search(source.text)
            if found is not None:
                yield f"{source.path}: {found.group()!r} ({kind}) is in no row of {TABLE}"
                break
