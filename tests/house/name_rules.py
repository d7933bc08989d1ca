"""Rules about names: of modules, and of what functions hold and do."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from tests.house.source import GENERATED_PREFIX, Source, repository_sources

BANNED_NAMES = frozenset(
    {"common", "core", "helper", "helpers", "misc", "util", "utilities", "utils"}
)
# Names that do not say what the thing is in the domain. ``*rest`` is the usual name of the rest
# of an argument list and is not one of them.
VAGUE_NAMES = frozenset(
    {
        "one",
        "found",
        "made",
        "known",
        "wanted",
        "gone",
        "said",
        "there",
        "here",
        "at",
        "many",
        "both",
        "others",
        "rest",
        "what",
        "which",
        "how",
        "is_",
        "it",
        "this",
        "them",
        "given",
        "asked",
        "told",
        "kept",
        "lens",
        "wish",
    }
)
# Functions and fields (Python) and declarations (JavaScript) with a vague name, by folder. A count
# may only fall: lower it here when it fell, so that it cannot rise again.
VAGUE_NAMES_MAX = {
    ".": 2,  # ``found`` of an error stands beside ``expected``
    "magic": 1,  # named as its verb, ``%lance at``
    "table": 2,  # ``Diff.found`` is public; nodes have sqlglot's ``this``
    "writing": 1,  # ``RepairStep.what`` is public
}
_JS_DECLARATION = re.compile(
    r"\b(?:const|let|var|function)\s+(" + "|".join(sorted(VAGUE_NAMES - {"this"})) + r")\b"
)


def module_names(source: Source) -> Iterator[str]:
    """A module is named for what it holds, not for being left over."""
    if not source.path.endswith((".py", ".js")):
        return
    for part in source.path.split("/"):
        if part.split(".")[0] in BANNED_NAMES:
            yield source.at(1, f"'{part}' says nothing; name it for what it holds")


def vague_functions(source: Source) -> Iterator[str]:
    """List functions of a Python file that have a vague name or bind one themselves."""
    for function in source.functions:
        names = sorted(_bound_names(function) & VAGUE_NAMES)
        if names:
            yield source.at(function, f"{function.name} has the vague names {', '.join(names)}")


def vague_fields(source: Source) -> Iterator[str]:
    """List fields of classes and attributes of ``self`` with a vague name, underscores aside."""
    for node in source.nodes:
        if not isinstance(node, ast.ClassDef):
            continue
        fields = {
            statement.target.id
            for statement in node.body
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
        }
        fields |= {
            child.attr
            for child in ast.walk(node)
            if isinstance(child, ast.Attribute)
            and isinstance(child.ctx, ast.Store)
            and ast.unparse(child.value) == "self"
        }
        names = sorted(name for name in fields if name.strip("_") in VAGUE_NAMES)
        if names:
            yield source.at(node, f"{node.name} has the vague fields {', '.join(names)}")


def vague_declarations(source: Source) -> Iterator[str]:
    """List declarations of a browser module with a vague name."""
    for number, line in enumerate(source.text.splitlines(), 1):
        for match in _JS_DECLARATION.finditer(line.split("//")[0]):
            yield source.at(number, f"declares {match.group(1)}")


def count_vague_names(sources: Iterable[Source]) -> Counter[str]:
    """Count functions, fields (Python) and declarations (JavaScript) with vague names, by folder.

    A folder is the first below ``lance_nb``; browser modules count for ``<folder> (js)``.
    """
    counts: Counter[str] = Counter()
    for source in sources:
        if source.is_package_code and not source.is_in(GENERATED_PREFIX):
            counts[_folder(source)] += sum(1 for _ in vague_functions(source))
            counts[_folder(source)] += sum(1 for _ in vague_fields(source))
        elif source.path.startswith("lance_nb/") and source.path.endswith(".js"):
            counts[f"{_folder(source)} (js)"] += sum(1 for _ in vague_declarations(source))
    return counts


def risen_counts(counts: Mapping[str, int]) -> Iterator[str]:
    """A folder has no more vague names than it had."""
    for folder, count in sorted(counts.items()):
        most = VAGUE_NAMES_MAX.get(folder, 0)
        if count > most:
            yield (
                f"lance_nb/{folder}: {count} functions have vague names, at most {most} may; "
                "`python -m tests.house.name_rules` lists them"
            )


def _folder(source: Source) -> str:
    parts = source.path.split("/")
    return parts[1] if len(parts) > 2 else "."


def _bound_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Return the function's own name, its parameters and the locals that its body binds."""
    arguments = function.args
    names = {function.name}
    names.update(
        argument.arg
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    )
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue  # counted by itself
        if isinstance(node, ast.Starred) and isinstance(node.ctx, ast.Store):
            continue  # first, *rest = ...
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
        elif isinstance(node, ast.Lambda):
            names.update(argument.arg for argument in node.args.args)
        pending.extend(ast.iter_child_nodes(node))
    return names


NAME_RULES = (module_names,)


def main() -> None:
    """List every vague name of the package."""
    for source in repository_sources():
        if source.path.startswith("lance_nb/") and source.path.endswith(".js"):
            offences = vague_declarations(source)
        elif source.is_package_code and not source.is_in(GENERATED_PREFIX):
            offences = chain(vague_functions(source), vague_fields(source))
        else:
            continue
        for offence in offences:
            print(offence)


if __name__ == "__main__":
    main()
