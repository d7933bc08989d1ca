"""The versions of a branch that other branches have merged last: the next merges start from them.

They are named by the configuration of the newest version of each other branch (see
``format.merge_record``), so that a clean-up keeps them although no ref names them.

Limits: one manifest per branch is read. A newest version that cannot be read names none.
Source: our own; clean-ups of pylance keep what tags and branches name.
"""

from __future__ import annotations

from lance_nb.errors import FormatError, NotFoundError, NotSupportedError
from lance_nb.format.manifest import parse_manifest
from lance_nb.format.merge_record import marks_in
from lance_nb.table.survey import Survey


def merged_versions(survey: Survey, branch: str | None) -> frozenset[int]:
    """Return the versions of a branch that another one has merged last. Raises StorageError."""
    versions: set[int] = set()
    for folder, line in survey.lines.items():
        is_branch = line.branch is None or line.branch in survey.branches
        if line.branch == branch or not line.names or not is_branch:
            continue
        newest = max(line.names, key=lambda name: name.version)
        home = survey.store(folder)
        try:
            config = parse_manifest(home.read(newest.path), f"{home.uri}/{newest.path}").config
        except (FormatError, NotFoundError, NotSupportedError):
            continue
        versions |= {
            mark.source_version for mark in marks_in(config) if mark.source_branch == branch
        }
    return frozenset(versions)
