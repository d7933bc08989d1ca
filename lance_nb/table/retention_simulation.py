"""Simulate clean-ups of one branch: what each rule removes, what it frees, what keeps a file alive.

The sets of references are computed once. A rule is then a mask over the versions of the branch, and
what it frees a few operations on arrays, so that a control can be moved while the numbers follow.
The rules, the protection of versions and the files are those of a real clean-up
(``table.retention``, ``table.cleanup_plan``), so both give the same result.

Limits: nothing is read again; a commit after the survey is not seen. With writers whose clocks
differ, versions near the age of a rule may be judged otherwise. Times grow with the spans and
files of the dataset: 1,000 versions of 3,000 files take some milliseconds.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np

from lance_nb.errors import RefNotFoundError
from lance_nb.format.layout import branch_root
from lance_nb.format.manifest_history import DATA, INDEX, identity_of
from lance_nb.table.cleanup_plan import DELETED_KINDS, Rule, is_left_over
from lance_nb.table.file_references import Mask
from lance_nb.table.retention import Protection, RetentionPolicy
from lance_nb.table.survey import TEMPORARY_MANIFEST, StoredFile
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from lance_nb.table.space_usage import SpaceAccount

MAX_KEEPERS = 4


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """Which versions go: those that are older and not among the newest, and have no tag.

    ``drop_tags`` count as deleted.
    """

    retain_versions: int | None = None
    older_than: timedelta | None = None
    drop_tags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Simulated:
    """What a rule removes. ``numbers`` are the versions, oldest first."""

    numbers: tuple[int, ...]
    num_files: int
    size_bytes: int
    removed: Mask


@dataclass(frozen=True, slots=True)
class FileFate:
    """A file of a version: whether it goes, and who keeps it.

    ``keepers`` are up to ``MAX_KEEPERS`` (branch, version); ``num_keepers`` counts all of them.
    """

    path: str
    size_bytes: int
    goes: bool
    keepers: tuple[tuple[str | None, int], ...]
    num_keepers: int


class RetentionSimulator:
    """Clean-ups of one branch of a dataset that was surveyed. Raises RefNotFoundError."""

    def __init__(self, account: SpaceAccount, branch: str | None = None) -> None:
        survey = account.survey
        folder = "" if branch is None else branch_root(branch)
        if folder not in survey.lines:
            raise RefNotFoundError("branch", str(branch), tuple(survey.branches))
        self.branch = branch
        self.numbers = survey.lines[folder].numbers
        self.tags = {name: tag.version for name, tag in survey.tags.items() if tag.branch == branch}
        self._account, self._folder = account, folder
        self._merged = account.merged_versions(survey, branch)
        self._line = account.references.lines[folder]
        self._names = survey.lines[folder].names
        timestamps = {version.version: version.timestamp_ns for version in self._line.versions}
        stored = [survey.manifest(folder, name) for name in self._names]
        self._moments = np.array(
            [_nanoseconds(timestamps.get(name.version), file)
             for name, file in zip(self._names, stored, strict=True)], np.int64
        )  # fmt: skip
        self._manifest_bytes = np.array(
            [0 if file is None else file.size_bytes for file in stored], np.int64
        )
        everything = {
            home: np.ones(len(line.versions), np.bool_)
            for home, line in account.references.lines.items()
            if home != folder
        }
        self._needed_elsewhere = account.held(everything)
        self._place_files()

    def _place_files(self) -> None:
        """Bring the files that a clean-up may delete into arrays."""
        references, rule = self._account.references, Rule(self._account.now)
        mine = [file for file in self._account.survey.files if file.home == self._folder]
        named = [file for file in mine if file.kind in DELETED_KINDS]
        identities = references.numbers_of([file.identity for file in named])
        sizes = np.fromiter((file.size_bytes for file in named), np.int64, len(named))
        around = [(position, name) for position, file in enumerate(named) for name in _around(file)]
        inside = references.numbers_of([name for _, name in around])
        places = np.fromiter((position for position, _ in around), np.int64, len(around))
        self._inside, self._places = inside[inside >= 0], places[inside >= 0]
        self._identities, self._sizes = identities, sizes
        self._strays = np.fromiter((rule.allows(file) for file in named), np.bool_, len(named))
        left = [
            file
            for file in mine
            if file.kind == TEMPORARY_MANIFEST
            and rule.allows(file)
            and is_left_over(self._account.survey, file)
        ]
        self._left_files, self._left_bytes = len(left), sum(file.size_bytes for file in left)

    @property
    def oldest(self) -> timedelta:
        """The age of the oldest version."""
        if not len(self._moments):
            return timedelta(0)
        return timedelta(seconds=max(0.0, (self._now_ns - int(self._moments.min())) / 1e9))

    @property
    def _now_ns(self) -> int:
        return int(self._account.now.timestamp() * 1e9)

    def protection(self, drop_tags: Collection[str] = ()) -> Protection:
        """Return the versions that are kept whatever the rule, without these tags."""
        survey = self._account.survey.without(drop_tags, ())
        return Protection(
            survey.tagged_versions(self.branch), survey.fork_versions(self.branch), self._merged
        )

    def simulate(self, rule: RetentionRule) -> Simulated:
        """Tell what a clean-up by the rule removes. Raises CleanupError."""
        policy = RetentionPolicy.of(rule.older_than, rule.retain_versions, None)
        count = len(self._names)
        is_removed = np.zeros(count, np.bool_)
        retained = 1 if policy.retain_versions is None else policy.retain_versions
        is_removed[: max(0, count - max(retained, 1))] = True  # never the newest one
        if policy.older_than is not None:
            cutoff = self._now_ns - int(policy.older_than / timedelta(microseconds=1)) * 1000
            is_removed &= self._moments < cutoff
        protection = self.protection(rule.drop_tags)
        stay = {*protection.tags, *protection.forks, *protection.merged}
        is_removed &= ~np.isin(np.array(self.numbers, np.int64), list(stay))
        numbers = tuple(np.array(self.numbers, np.int64)[is_removed].tolist())
        files = self._going(numbers)
        size = int(self._manifest_bytes[is_removed].sum()) + int(self._sizes[files].sum())
        num_files = len(numbers) + int(files.sum()) + self._left_files
        return Simulated(numbers, num_files, size + self._left_bytes, is_removed)

    def _needed(self, numbers: Sequence[int]) -> Mask:
        """Tell which identities are needed once these versions are deleted."""
        stays = ~np.isin(self._line.numbers(), list(numbers))
        return self._needed_elsewhere | self._account.held({self._folder: stays})

    def _going(self, numbers: Sequence[int]) -> Mask:
        needed = np.append(self._needed(numbers), False)  # what nobody refers to is at -1
        keeps = needed[self._identities]
        np.logical_or.at(keeps, self._places, needed[self._inside])
        going: Mask = ~keeps & ((self._identities >= 0) | self._strays)
        return going

    def files_of(self, version: int, removed: Collection[int], limit: int) -> list[FileFate]:
        """Return the largest files that a version refers to, with who keeps each."""
        positions = np.flatnonzero(self._line.numbers() == version)
        if not len(positions):
            return []
        spans, position = self._account.spans[self._folder], int(positions[0])
        mine = spans.identity[(spans.start <= position) & (position < spans.stop)]
        chosen = np.zeros(len(self._account.references) + 1, np.bool_)
        chosen[mine] = True
        files = self._account.survey.files
        identities = self._account.references.numbers_of([file.identity for file in files])
        referenced = [files[index] for index in np.flatnonzero(chosen[identities]).tolist()]
        largest = sorted(referenced, key=lambda file: (-file.size_bytes, file.path))[:limit]
        return [self._fate(file, removed) for file in largest]

    def _fate(self, file: StoredFile, removed: Collection[int]) -> FileFate:
        (identity,) = self._account.references.numbers_of([file.identity]).tolist()
        keepers: list[tuple[str | None, int]] = []
        count = 0
        for folder, line in self._account.references.lines.items():
            spans, numbers = self._account.spans[folder], line.numbers()
            holds = np.zeros(len(numbers), np.bool_)
            for start, stop in zip(
                spans.start[spans.identity == identity].tolist(),
                spans.stop[spans.identity == identity].tolist(),
                strict=True,
            ):
                holds[start:stop] = True
            if folder == self._folder:
                holds &= ~np.isin(numbers, list(removed))
            staying = numbers[holds]
            count += len(staying)
            surveyed = self._account.survey.lines.get(folder)
            branch = None if surveyed is None else surveyed.branch
            keepers += [(branch, int(number)) for number in staying[::-1][:MAX_KEEPERS]]
        return FileFate(
            file.path,
            file.size_bytes,
            not count,
            keepers=tuple(keepers[:MAX_KEEPERS]),
            num_keepers=count,
        )


def _nanoseconds(committed_ns: int | None, file: StoredFile | None) -> int:
    """Return when a version was committed, else stored; one that is not known counts as new."""
    if committed_ns is not None:
        return committed_ns
    if file is None or file.modified is None:
        return int(np.iinfo(np.int64).max)
    return int(file.modified.timestamp() * 1e9)


def _around(file: StoredFile) -> list[str]:
    """Return the identities of the folders that a file lies in: of an index, of blobs."""
    inside = file.path.removeprefix(f"{file.home}/") if file.home else file.path
    if inside.count("/") < 2:
        return []
    return [identity_of(kind, part) for part in inside.split("/")[1:-1] for kind in (INDEX, DATA)]
