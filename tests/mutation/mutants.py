"""Mutants of the engine: small changes of one expression each, made by cosmic-ray's operators.

A *place* is a stretch of source that at least one operator can change. Places are drawn at random,
files weighted by their number of places, then one operator of the place: so an arithmetic sign with
ten replacements counts no more than a constant with one.

Left out are places whose change no test should see: annotations, decorators, what is imported for
type checkers only, arguments that only forbid what cannot happen (``strict=``, ``zero_copy_only=``,
``assume_unique=``), and the text of error messages.
"""

from __future__ import annotations

import ast
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PACKAGES = ("format", "encodings", "file", "table", "transactions", "writing", "merging")

# Arguments that turn a broken assumption into an error, and change no result where it holds.
GUARDS = frozenset({"strict", "zero_copy_only", "assume_unique"})

# Replacements by a sibling: they give a program that runs and decides otherwise. Cosmic-ray has one
# operator for each ordered pair; most of the others fail on import and prove nothing.
OPERATORS = (
    "AddNot", "NumberReplacer", "ReplaceAndWithOr", "ReplaceOrWithAnd", "ReplaceTrueWithFalse",
    "ReplaceFalseWithTrue", "ReplaceBreakWithContinue", "ReplaceContinueWithBreak",
    "ZeroIterationForLoop", "ReplaceUnaryOperator_USub_UAdd", "ReplaceUnaryOperator_Delete_Not",
    "ReplaceComparisonOperator_Eq_NotEq", "ReplaceComparisonOperator_NotEq_Eq",
    "ReplaceComparisonOperator_Lt_LtE", "ReplaceComparisonOperator_LtE_Lt",
    "ReplaceComparisonOperator_Lt_GtE", "ReplaceComparisonOperator_LtE_Gt",
    "ReplaceComparisonOperator_Gt_GtE", "ReplaceComparisonOperator_GtE_Gt",
    "ReplaceComparisonOperator_Gt_LtE", "ReplaceComparisonOperator_GtE_Lt",
    "ReplaceComparisonOperator_Is_IsNot", "ReplaceComparisonOperator_IsNot_Is",
    "ReplaceBinaryOperator_Add_Sub", "ReplaceBinaryOperator_Sub_Add",
    "ReplaceBinaryOperator_Mul_Add", "ReplaceBinaryOperator_FloorDiv_Mul",
    "ReplaceBinaryOperator_Div_Mul", "ReplaceBinaryOperator_Mod_FloorDiv",
    "ReplaceBinaryOperator_LShift_RShift", "ReplaceBinaryOperator_RShift_LShift",
    "ReplaceBinaryOperator_BitAnd_BitOr", "ReplaceBinaryOperator_BitOr_BitAnd",
    "ReplaceBinaryOperator_BitXor_BitAnd",
)  # fmt: skip

Position = tuple[int, int]  # line from 1, column from 0


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file. ``path`` is relative to the repository's root."""

    path: str
    operator: str
    line: int
    before: str
    after: str
    source: str

    @property
    def package(self) -> str:
        """The package of lance_nb that the file is in."""
        return self.path.split("/")[1]

    @property
    def key(self) -> tuple[str, str, str]:
        """What identifies the mutant although lines above it move."""
        return self.path, self.before, self.after


def sample(root: Path, count: int, seed: int, packages: tuple[str, ...] = PACKAGES) -> list[Mutant]:
    """Draw ``count`` different mutants of the packages, the same for the same seed and source."""
    generator = random.Random(seed)
    files = [
        path.relative_to(root).as_posix()
        for package in packages
        for path in sorted((root / "lance_nb" / package).rglob("*.py"))
        if path.name != "__init__.py"
    ]
    weights = [(root / path).stat().st_size for path in files]
    drawn: dict[tuple[str, str, str], Mutant] = {}
    while len(drawn) < count:
        path = generator.choices(files, weights)[0]
        places = _places(str(root / path))
        if not places:
            continue
        operator, occurrence = generator.choice(generator.choice(places))
        mutant = _mutant(root, path, operator, occurrence)
        if mutant is not None:
            drawn.setdefault(mutant.key, mutant)
    return list(drawn.values())


def restored(root: Path, path: str, line: int, before: str, after: str) -> Mutant | None:
    """Make a mutant of an earlier run again; None where the line is not there any more.

    ``line`` tells lines of the same text apart: the nearest is taken.
    """
    lines = (root / path).read_text().splitlines(keepends=True) if (root / path).exists() else []
    found = [number for number, text in enumerate(lines, 1) if text.strip() == before]
    if not found:
        return None
    nearest = min(found, key=lambda number: abs(number - line))
    lines[nearest - 1] = lines[nearest - 1].replace(before, after)
    return Mutant(path, "again", nearest, before, after, "".join(lines))


def statement_lines(path: Path, line: int) -> range | None:
    """Return the lines of the innermost statement at ``line``; None outside of functions.

    Of a statement with a body it is the head. What runs outside of functions runs on import, for
    every test.
    """
    innermost: tuple[int, int] | None = None
    for function in ast.walk(_tree(str(path))):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in (part for one in function.body for part in ast.walk(one)):
            if not isinstance(node, ast.stmt):
                continue
            if isinstance(node, ast.Break | ast.Continue):  # jumps leave no line of their own
                if node.lineno == line:
                    return range(line - 1, line + 1)
                continue
            body = getattr(node, "body", None)
            end = body[0].lineno - 1 if body else node.end_lineno or node.lineno
            if node.lineno <= line <= max(end, node.lineno):
                innermost = max(innermost or (0, 0), (node.lineno, max(end, node.lineno)))
    return range(innermost[0], innermost[1] + 1) if innermost else None


@cache
def _tree(path: str) -> ast.Module:
    return ast.parse(Path(path).read_text())


@cache
def _operators() -> dict[str, object]:
    from cosmic_ray.plugins import get_operator

    return {name: get_operator(f"core/{name}")() for name in OPERATORS}


@cache
def _places(path: str) -> list[list[tuple[str, int]]]:
    """Return, for each place of a file, the operators and their occurrences there."""
    from cosmic_ray.ast import ast_nodes, get_ast

    text = Path(path).read_text()
    excluded = list(_excluded(ast.parse(text)))
    found: dict[tuple[Position, Position], list[tuple[str, int]]] = defaultdict(list)
    nodes = list(ast_nodes(get_ast(text)))
    for name, operator in _operators().items():
        occurrence = 0
        for node in nodes:
            for start, stop in operator.mutation_positions(node):
                if not any(low <= start and stop <= high for low, high in excluded):
                    found[start, stop].append((name, occurrence))
                occurrence += 1
    return list(found.values())


def _excluded(tree: ast.Module) -> Iterator[tuple[Position, Position]]:
    """Yield the stretches whose change is not counted."""
    for node in ast.walk(tree):
        parts: list[ast.AST | None] = []
        if isinstance(node, ast.arg | ast.AnnAssign):
            parts.append(node.annotation)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            parts.append(node.returns)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            parts += node.decorator_list
        if isinstance(node, ast.keyword) and node.arg in GUARDS:
            parts.append(node.value)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            parts.append(node.test)
        if isinstance(node, ast.Raise):
            parts.append(node.exc)
        if isinstance(node, ast.Assign) and _is_type_alias(node):
            parts.append(node.value)
        for part in parts:
            if part is not None:
                yield (
                    (part.lineno, part.col_offset),
                    (part.end_lineno or part.lineno, part.end_col_offset or 0),
                )


def _is_type_alias(node: ast.Assign) -> bool:
    """Tell whether a module-level name in CamelCase is set to a union of types."""
    return (
        node.col_offset == 0
        and isinstance(node.targets[0], ast.Name)
        and not node.targets[0].id.isupper()
        and isinstance(node.value, ast.BinOp)
        and isinstance(node.value.op, ast.BitOr)
    )


def _mutant(root: Path, path: str, operator: str, occurrence: int) -> Mutant | None:
    """Apply an operator; None where the source stays as it was."""
    from cosmic_ray.mutating import mutate_code

    text = (root / path).read_text()
    mutated = mutate_code(text, _operators()[operator], occurrence)
    if mutated is None or mutated == text:
        return None
    pairs = zip(text.splitlines(), mutated.splitlines(), strict=False)
    for number, (before, after) in enumerate(pairs, 1):
        if before != after:
            return Mutant(path, operator, number, before.strip(), after.strip(), mutated)
    return None
