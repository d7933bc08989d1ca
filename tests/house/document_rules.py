"""Rules about the documents: what they name exists.

Links lead to files, ``make`` targets stand in the Makefile, and paths in backticks are there, from
the root or below ``lance_nb``; of a bare file name one is somewhere. ``<name>`` in a path stands
for any name.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import PurePosixPath

from tests.house.source import Source

# Documents whose every path in backticks is checked; others have examples of users' files.
WITH_PATHS = frozenset({"ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"})
_LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[\w-]*)?\)")
_TARGET = re.compile(r"`make ([a-z][\w-]*)")
_RULE = re.compile(r"^([a-z][\w-]*):", re.MULTILINE)
_PATH = re.compile(r"`([\w.-]+(?:/[\w.<>-]*)+|[\w<>-]+\.(?:py|js|md|pyx|sh|toml|txt|json))[`:]")


def makefile_targets(makefile: str) -> frozenset[str]:
    """Return the targets of a Makefile."""
    return frozenset(_RULE.findall(makefile))


def missing_references(
    source: Source, paths: Iterable[str], targets: frozenset[str]
) -> Iterator[str]:
    """What a document links to, runs by ``make`` or names as a path exists."""
    if not source.path.endswith(".md"):
        return
    tree = _with_folders(paths)
    folder = posixpath.dirname(source.path)
    for number, line in enumerate(source.text.splitlines(), 1):
        for link in _LINK.findall(line):
            if posixpath.normpath(posixpath.join(folder, link)) not in tree:
                yield f"{source.path}:{number}: no file {link}"
        for target in _TARGET.findall(line):
            if target not in targets:
                yield f"{source.path}:{number}: no target {target!r} in the Makefile"
        if source.path in WITH_PATHS:
            yield from _missing_paths(source.path, number, line, tree)


def _missing_paths(document: str, number: int, line: str, tree: frozenset[str]) -> Iterator[str]:
    for path in _PATH.findall(line):
        pattern = re.sub(r"<[\w ]+>", "*", path.rstrip("/"))
        below = f"lance_nb/{pattern}" if "/" in pattern else f"*/{pattern}"
        if not any(fnmatch(name, pattern) or fnmatch(name, below) for name in tree):
            yield f"{document}:{number}: no file or folder {path}"


def _with_folders(paths: Iterable[str]) -> frozenset[str]:
    return frozenset(
        part
        for path in paths
        for part in (path, *(str(folder) for folder in PurePosixPath(path).parents))
    )
