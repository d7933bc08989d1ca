"""Which test files a tier can leave unread: importing all of them takes longer than many tests.

A tier is an expression over markers (``pytest -m``). A file is left out when no choice of the
markers that are written in it fulfils the expression; markers may also stand in modules of ours
that it imports (a shared suite, a folder's list of marks), one step away.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from itertools import combinations
from pathlib import Path

ROOT = Path(__file__).parents[2]
MARKERS = ("interop", "slow", "spark", "ui")
MARK = re.compile(rf"\bmark\.({'|'.join(MARKERS)})\b")
# What a module says of all its tests, up to the next line that begins at its margin; a folder's
# list has the name MARKS.
OF_ALL = re.compile(r"^(?:pytestmark|MARKS) = (.*(?:\n[ )\]].*)*)", re.MULTILINE)
IMPORTED = re.compile(r"^from (tests\.[\w.]+) import", re.MULTILINE)


def left_out(path: Path, tier: str) -> bool:
    """Tell whether the tier needs nothing of this file, or of any test file in this folder.

    A folder that is left out keeps its ``conftest.py`` unread as well.
    """
    if path.is_dir():
        files = [*path.rglob("test_*.py")]
        return bool(files) and all(_file_left_out(file, tier) for file in files)
    return path.name.startswith("test_") and path.is_file() and _file_left_out(path, tier)


@cache
def _file_left_out(path: Path, tier: str) -> bool:
    return not may_hold(path.read_text(encoding="utf-8"), tier)


def in_part(path: Path, tier: str, part: str) -> bool:
    """Tell whether a test file belongs to a part of the tier's files, "2/3": the second of three.

    Every third file of the sorted list: large folders are spread over the parts.
    """
    number, count = map(int, part.split("/"))
    return path in _files_of(tier)[number - 1 :: count]


@cache
def _files_of(tier: str) -> tuple[Path, ...]:
    return tuple(
        path for path in sorted((ROOT / "tests").rglob("test_*.py")) if not left_out(path, tier)
    )


def may_hold(text: str, tier: str) -> bool:
    """Tell whether a test of a file with this text can belong to the tier."""
    expression = _parsed(tier)
    if expression is None:
        return True
    near = [_text_of(module) for module in IMPORTED.findall(text)]
    said = [text, *(near if "\npytestmark = MARKS\n" in text else ())]
    always = frozenset().union(*(_markers("\n".join(OF_ALL.findall(one))) for one in said))
    sometimes = frozenset().union(*map(_markers, [text, *near])) - always
    return any(
        _holds(expression, always.union(some))
        for count in range(len(sometimes) + 1)
        for some in combinations(sorted(sometimes), count)
    )


@cache
def _parsed(tier: str) -> ast.expr | None:
    """Return the expression if it is about our markers alone; what others mean, pytest knows."""
    try:
        parsed = ast.parse(tier, mode="eval").body
    except SyntaxError:
        return None
    names = {node.id for node in ast.walk(parsed) if isinstance(node, ast.Name)}
    known = (ast.BoolOp, ast.UnaryOp, ast.Name, ast.boolop, ast.Not, ast.Load)
    simple = all(isinstance(node, known) for node in ast.walk(parsed))
    return parsed if simple and names <= set(MARKERS) else None


def _holds(expression: ast.expr, chosen: frozenset[str]) -> bool:
    if isinstance(expression, ast.Name):
        return expression.id in chosen
    if isinstance(expression, ast.UnaryOp):
        return not _holds(expression.operand, chosen)
    assert isinstance(expression, ast.BoolOp)
    every = all if isinstance(expression.op, ast.And) else any
    return every(_holds(one, chosen) for one in expression.values)


def _markers(text: str) -> frozenset[str]:
    return frozenset(MARK.findall(text))


@cache
def _text_of(module: str) -> str:
    path = ROOT / f"{module.replace('.', '/')}.py"
    return path.read_text(encoding="utf-8") if path.is_file() else ""
