"""Rules about size and shape: a reader must be able to hold one unit in mind."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.house.source import Source, only_functions

FILE_LINES_MAX = 500
TEST_FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70
PARAMETERS_MAX = 6
NESTING_MAX = 4
FACADE_BODY_LINES_MAX = 15
BANNED_NAMES = frozenset(
    {"common", "core", "helper", "helpers", "misc", "util", "utilities", "utils"}
)
BLOCKS = (
    ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar,
    ast.Match,
)  # fmt: skip


def file_size(source: Source) -> Iterator[str]:
    """Files stay short."""
    if not source.path.endswith((".py", ".js", ".css")):
        return
    limit = TEST_FILE_LINES_MAX if source.path.startswith("tests/") else FILE_LINES_MAX
    count = source.text.count("\n")
    if count > limit:
        yield source.at(count, f"{count} lines, at most {limit}")


def function_size(source: Source) -> Iterator[str]:
    """Functions stay short."""
    if not source.is_product_code:
        return
    for node in source.functions:
        count = (node.end_lineno or node.lineno) - node.lineno + 1
        if count > FUNCTION_LINES_MAX:
            yield source.at(node, f"{node.name} has {count} lines, at most {FUNCTION_LINES_MAX}")


def parameters(source: Source) -> Iterator[str]:
    """A call with many positions cannot be read: options are keyword-only or one dataclass."""
    if not source.is_product_code:
        return
    for node in source.functions:
        names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
        count = len(names) - (names[:1] in (["self"], ["cls"]))
        if count > PARAMETERS_MAX:
            yield source.at(node, f"{node.name} takes {count} parameters, at most {PARAMETERS_MAX}")


def nesting(source: Source) -> Iterator[str]:
    """Code that is nested deeply wants to be two functions."""
    if not source.is_product_code:
        return
    for node in source.functions:
        depth = max((_depth(child) for child in node.body), default=0)
        if depth > NESTING_MAX:
            yield source.at(node, f"{node.name} nests {depth} deep, at most {NESTING_MAX}")


def _depth(node: ast.AST) -> int:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return 0  # measured on its own
    if isinstance(node, ast.If) and len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        # `elif` is no deeper than its `if`.
        inside = max(map(_depth, node.body), default=0)
        return max(1 + inside, _depth(node.orelse[0]))
    deepest = max((_depth(child) for child in ast.iter_child_nodes(node)), default=0)
    return deepest + isinstance(node, BLOCKS)


def facade_methods(source: Source) -> Iterator[str]:
    """The façade delegates: signature and docstring apart, a method is a few lines."""
    if not source.is_in("lance_nb/dataset.py", "lance_nb/dataset/"):
        return
    classes = (node for node in source.nodes if isinstance(node, ast.ClassDef))
    for method in (method for node in classes for method in only_functions(ast.walk(node))):
        body = method.body[1:] if ast.get_docstring(method) else method.body
        count = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
        if count > FACADE_BODY_LINES_MAX:
            yield source.at(
                method, f"{method.name} has {count} body lines, at most {FACADE_BODY_LINES_MAX}"
            )


def module_names(source: Source) -> Iterator[str]:
    """A module is named for what it holds, not for being left over."""
    if not source.path.endswith((".py", ".js")):
        return
    for part in source.path.split("/"):
        if part.split(".")[0] in BANNED_NAMES:
            yield source.at(1, f"'{part}' says nothing; name it for what it holds")


SIZE_RULES = (
    file_size, function_size, parameters, nesting, facade_methods, module_names,
)  # fmt: skip
