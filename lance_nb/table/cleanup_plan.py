"""What a clean-up of a branch would delete: every file, with its bytes and the reason.

A file is deleted when no version that is kept refers to it, of any branch, and either a deleted
version refers to it ("verified": no other version can need it) or no version that was read does and
it is older than seven days ("unverified": a running write may have just created it). Only files in
the folders of the branch itself are considered: nothing under another base path is ever deleted.

A reference protects by name, whatever base it goes through: names hold random ids, and a base may
be spelled in many ways. Files of unknown purpose (``other``, ``ref``) are kept.

Limits: a clone outside of the dataset that refers to its files is not known.
Source: ``cleanup_old_versions`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

import numpy as np

from lance_nb.format.layout import ManifestName
from lance_nb.format.manifest_history import DATA, DELETION, INDEX, TRANSACTION, identity_of
from lance_nb.table.file_references import Ints, Mask, References
from lance_nb.table.retention import is_settled
from lance_nb.table.survey import MANIFEST, TEMPORARY_MANIFEST, StoredFile, Survey, staged_version
from lance_nb.value_classes import dataclass

DELETED_KINDS = (DATA, DELETION, INDEX, TRANSACTION)
_DEEP = 2  # slashes in "data/<stem>/<bits>.blob"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One file to delete. ``version``: the newest version that refers to it, None if none does."""

    file: StoredFile
    unverified: bool
    version: int | None

    @property
    def reason(self) -> str:
        """Why it is deleted, as text."""
        if self.file.kind == MANIFEST:
            return f"version {self.version} is deleted"
        if self.version is not None:
            return f"only deleted versions refer to it, the newest is {self.version}"
        if self.file.kind == TEMPORARY_MANIFEST:
            return "left behind by a commit that was interrupted"
        return "no version refers to it"


@dataclass(frozen=True, slots=True)
class CleanupPlan:
    """What a clean-up deletes: ``names`` are the versions, the rest are files."""

    folder: str
    names: tuple[ManifestName, ...]
    manifests: tuple[Candidate, ...]
    other_files: tuple[Candidate, ...]

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """All files, in the order in which they are deleted."""
        return (*self.manifests, *self.other_files)


@dataclass(frozen=True, slots=True)
class Rule:
    """When a file that no version refers to may be deleted."""

    now: datetime
    delete_unverified: bool = False

    def allows(self, file: StoredFile) -> bool:
        """Tell whether it may."""
        return self.delete_unverified or is_settled(file.modified, self.now)


def make_plan(
    survey: Survey,
    references: References,
    folder: str,
    names: Sequence[ManifestName],
    rule: Rule,
    *,
    also_gone: Mapping[str, Collection[int]] = MappingProxyType({}),
) -> CleanupPlan:
    """Plan the deletion of versions of the branch in ``folder``.

    ``also_gone`` are versions of other branches that count as deleted (folder -> numbers).
    """
    removed = {**also_gone, folder: {name.version for name in names}}
    manifests = []
    for name in names:
        file = survey.manifest(folder, name)
        if file is not None:
            manifests.append(Candidate(file, False, name.version))
    files = [file for file in survey.files if file.home == folder]
    other_files = tuple(_others(survey, references, files, removed=removed, rule=rule))
    return CleanupPlan(folder, tuple(names), tuple(manifests), other_files)


def _others(
    survey: Survey,
    references: References,
    files: Sequence[StoredFile],
    removed: Mapping[str, Collection[int]],
    rule: Rule,
) -> Iterator[Candidate]:
    needed = needed_identities(references, removed)
    newest = _newest(references, removed)
    identities = references.numbers_of([file.identity for file in files])
    for file, identity in zip(files, identities.tolist(), strict=True):
        if file.kind == TEMPORARY_MANIFEST:
            if rule.allows(file) and is_left_over(survey, file):
                yield Candidate(file, True, None)
        elif file.kind not in DELETED_KINDS or _is_needed(file, identity, references, needed):
            continue
        elif identity >= 0:
            yield Candidate(file, False, int(newest[identity]))
        elif rule.allows(file):
            yield Candidate(file, True, None)


def needed_identities(references: References, removed: Mapping[str, Collection[int]]) -> Mask:
    """Tell which identities versions refer to that are not ``removed`` (folder -> numbers)."""
    needed = np.zeros(len(references), np.bool_)
    for line in references.lines.values():
        spans = line.spans()
        stays = ~np.isin(line.numbers(), list(removed.get(line.home, ())))
        needed[spans.identity[spans.touching(stays)]] = True
    return needed


def _newest(references: References, removed: Mapping[str, Collection[int]]) -> Ints:
    """Return the newest version, of those that are gone, that refers to each identity."""
    newest = np.zeros(len(references), np.int64)
    for line in references.lines.values():
        if line.home in removed and line.versions:
            spans = line.spans()
            np.maximum.at(newest, spans.identity, line.numbers()[spans.stop - 1])
    return newest


def _is_needed(file: StoredFile, identity: int, references: References, needed: Mask) -> bool:
    """Tell whether a file is needed, or a folder that it lies in: of an index, of blobs."""
    if identity >= 0 and needed[identity]:
        return True
    inside = file.path.removeprefix(f"{file.home}/") if file.home else file.path
    if inside.count("/") < _DEEP:
        return False
    parts = inside.split("/")[1:-1]
    around = [identity_of(kind, part) for part in parts for kind in (INDEX, DATA)]
    identities = references.numbers_of(around)
    return bool(needed[identities[identities >= 0]].any())


def is_left_over(survey: Survey, file: StoredFile) -> bool:
    """Tell whether a manifest that is not under its final name can be deleted.

    An external manifest store may still point to a staged one, if it is of the newest version.
    """
    name = file.path.rpartition("/")[2]
    version = staged_version(name)
    if version is None or ".manifest#" in name:
        return True
    return version <= max(survey.lines[file.home].numbers, default=0)
