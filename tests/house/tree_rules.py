"""Rules about the tree of files as a whole: its folders, who imports leaves."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from tests.house.source import Source

TOP_FOLDERS = frozenset({".ci", ".github", "binder", "lance_nb", "notebooks", "protos", "tests"})
# Folders that hold leaves only: a new one is one file here and one line in the registry above.
LEAF_FOLDERS = (
    "lance_nb/encodings/compression/",
    "lance_nb/encodings/layouts/",
    "lance_nb/transactions/external/stores/",
    "lance_nb/transactions/operations/",
)
# Leaves that are values: whoever writes makes them, so they are imported by name.
VALUE_FOLDERS = ("lance_nb/transactions/operations/",)


def only_registries_import_leaves(sources: Iterable[Source]) -> Iterator[str]:
    """A leaf is reached through its registry, so that adding one changes one line."""
    for source in sources:
        if not source.is_package_code or source.name == "registry":
            continue
        for node in source.nodes:
            for name in _imports(node):
                folder = _leaf_folder(name)
                if folder in VALUE_FOLDERS:
                    continue
                if folder and not source.path.startswith(folder):
                    yield source.at(node, f"imports {name}; only the registry does")


def top_folders(paths: Iterable[str]) -> Iterator[str]:
    """The top level is fixed; a new folder there is an owner's decision."""
    for folder in sorted({path.split("/")[0] for path in paths if "/" in path}):
        if folder not in TOP_FOLDERS:
            yield f"{folder}/: not one of the top folders {', '.join(sorted(TOP_FOLDERS))}"


def _leaf_folder(module: str) -> str:
    """Return the folder of leaves that a module is in, or nothing."""
    path = module.replace(".", "/") + "/"
    return next((folder for folder in LEAF_FOLDERS if path.startswith(folder)), "")


def _imports(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        # `from package import leaf` names the leaf in its second half.
        return [f"{node.module}.{alias.name}" for alias in node.names][:1]
    return []
