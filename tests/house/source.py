"""A source file of the repository, and where to find them all.

A rule takes a ``Source`` and yields ``Offence`` lines; it never reads the disk itself, so a test
can hand it a planted text under any path.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OLDEST_PYTHON = (3, 11)

# Ours to judge. What is not in these folders, or not text, is nobody's style.
FOLDERS = (".ci", "binder", "lance_nb", "notebooks", "protos", "tests")
SUFFIXES = frozenset(
    {
        "",
        ".css",
        ".ipynb",
        ".js",
        ".md",
        ".proto",
        ".py",
        ".pyi",
        ".sh",
        ".toml",
        ".ts",
        ".txt",
        ".yml",
    }
)
# Written by runs, generated, or data of others.
SKIPPED_PARTS = frozenset(
    {"__pycache__", ".ipynb_checkpoints", "artifacts", "golden", "node_modules"}
)
SKIPPED_PREFIXES = ("notebooks/data/", "notebooks/out/")
GENERATED_PREFIX = "lance_nb/_pb/"


@dataclass(frozen=True)
class Source:
    """One file: its path from the repository's root, with ``/``, and its text."""

    path: str
    text: str

    @cached_property
    def parsed(self) -> ast.Module | SyntaxError:
        """The module as the oldest Python that we support reads it, or why it does not."""
        try:
            return ast.parse(self.text, self.path, feature_version=OLDEST_PYTHON)
        except SyntaxError as error:
            return error

    @property
    def tree(self) -> ast.Module:
        """The parsed module; an empty one if it does not parse, which is one rule's matter."""
        return self.parsed if isinstance(self.parsed, ast.Module) else ast.Module([], [])

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of the tree: many rules look at all of them, and walking takes long."""
        return tuple(ast.walk(self.tree))

    @cached_property
    def functions(self) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef, ...]:
        """All functions and methods, nested ones as well."""
        return tuple(only_functions(self.nodes))

    @property
    def name(self) -> str:
        """The file's name without folder and suffix."""
        return self.path.rsplit("/", 1)[-1].split(".")[0]

    @property
    def is_package_code(self) -> bool:
        """True for hand-written Python of ``lance_nb``."""
        return self.path.startswith("lance_nb/") and self.path.endswith(".py")

    @property
    def is_product_code(self) -> bool:
        """True for Python that is not a test: the package, the notebooks' and protos' scripts."""
        return self.path.endswith(".py") and not self.path.startswith("tests/")

    def is_in(self, *places: str) -> bool:
        """Tell whether this is one of the named files, or below one of the folders (``x/``)."""
        return any(
            self.path.startswith(place) if place.endswith("/") else self.path == place
            for place in places
        )

    def at(self, node: ast.AST | int, message: str) -> str:
        """Write an offence the way editors make it clickable."""
        line = node if isinstance(node, int) else getattr(node, "lineno", 1)
        return f"{self.path}:{line}: {message}"


def repository_sources() -> list[Source]:
    """Read every text file that is ours, in order of path."""
    # In a linked worktree .git is a file.
    paths = [path for path in ROOT.iterdir() if path.is_file() and path.name != ".git"]
    for folder in FOLDERS:
        # Unlike rglob, this passes over folders that a benchmark beside it removes.
        for parent, _, names in os.walk(ROOT / folder):
            paths.extend(path for name in names if (path := Path(parent, name)).is_file())
    return [
        Source(relative, path.read_text(encoding="utf-8"))
        for relative, path in sorted((path.relative_to(ROOT).as_posix(), path) for path in paths)
        if is_ours(relative)
    ]


def is_ours(relative: str) -> bool:
    """Tell whether the file at this path from the root is text that we wrote."""
    if SKIPPED_PARTS & set(relative.split("/")) or relative.startswith(SKIPPED_PREFIXES):
        return False
    if relative.startswith(GENERATED_PREFIX) and not relative.endswith(".py"):
        return False
    return Path(relative).suffix in SUFFIXES


def only_functions(
    nodes: Iterable[ast.AST],
) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Leave out all nodes but functions and methods."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
