"""The versions of a branch that other branches have merged last: the next merges start from them.

They are named by the configuration of the newest version of each other branch (see
``format.merge_record``), so that a clean-up keeps them although no ref names them.

Limits: one manifest of each other branch is read. A newest version that cannot be read names none.
Source: our own; clean-ups of pylance keep what tags and branches name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from lance_nb.errors import FormatError, NotFoundError, NotSupportedError
from lance_nb.format.manifest import parse_manifest
from lance_nb.format.merge_record import MergeRecord, marks_in
from lance_nb.table.survey import Survey

Marks = tuple[MergeRecord, ...]


def merged_versions(
    survey: Survey, branch: str | None, marks_of: Callable[[str], Marks] | None = None
) -> frozenset[int]:
    """Return the versions of a branch that another one has merged last. Raises StorageError.

    ``marks_of`` returns what ``newest_marks`` found for a folder of the survey; None: read it now.
    """
    marks_of = marks_of or partial(newest_marks, survey)
    return frozenset(
        mark.source_version
        for folder, line in survey.lines.items()
        if line.branch != branch and (line.branch is None or line.branch in survey.branches)
        for mark in marks_of(folder)
        if mark.source_branch == branch
    )


def newest_marks(survey: Survey, folder: str) -> Marks:
    """Read the merges that the newest version in a folder names. Raises StorageError."""
    names = survey.lines[folder].names
    if not names:
        return ()
    newest = max(names, key=lambda name: name.version)
    home = survey.store(folder)
    try:
        config = parse_manifest(home.read(newest.path), f"{home.uri}/{newest.path}").config
    except (FormatError, NotFoundError, NotSupportedError):
        return ()
    return marks_in(config)
