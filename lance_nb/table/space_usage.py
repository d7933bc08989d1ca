"""Account for the bytes of a dataset by version, tag, branch and kind of file, and find orphans.

Tables (sizes in bytes; every byte of the folder is in ``files`` once)::

    files     path, kind, size_bytes, branch, state, num_versions, oldest, newest
    versions  branch, version, timestamp, tags, manifest_bytes, referenced_bytes, exclusive_bytes
    refs      kind (tag or branch), name, branch, version, referenced_bytes, exclusive_bytes
    kinds     kind, num_files, size_bytes, orphan_bytes

``state`` of a file: *current* (the newest version of a branch refers to it), *old* (only older ones
do), *orphan* (none does), *bookkeeping* (manifests, transactions, refs, hints), *other*.
``exclusive_bytes`` of a version: what only this version refers to, with its manifest and
transaction. Of a tag: what deleting it would free if only the newest version of each branch and the
versions that other tags and branches refer to were kept. Of a branch: what only versions of this
branch refer to, with its own folder.

A simulated clean-up uses the survey, references, retention rules and plan of a real one, so both
give the same result.

Limits: manifests and one listing are read, nothing else. Files under other base paths are not part
of the folder. A manifest that cannot be read is listed in ``damaged``; what only it refers to looks
like an orphan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lance_nb.errors import RefNotFoundError
from lance_nb.format.layout import ManifestName, branch_path, branch_root, tag_path
from lance_nb.format.manifest_history import TRANSACTION
from lance_nb.table.cleanup_plan import Rule, make_plan
from lance_nb.table.file_references import Ints, Mask, References, Spans
from lance_nb.table.merge_bases import Marks, merged_versions, newest_marks
from lance_nb.table.retention import Age, Protection, RetentionPolicy, removable
from lance_nb.table.survey import (
    KINDS,
    MANIFEST,
    OTHER,
    REF,
    TEMPORARY_MANIFEST,
    LineOfVersions,
    Survey,
)
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from lance_nb.table.retention_simulation import RetentionSimulator

__all__ = ["Freed", "Space", "space_of"]


@dataclass(frozen=True, slots=True, repr=False)
class Space:
    """The bytes of one dataset; see the module for its tables."""

    uri: str
    num_files: int
    total_bytes: int
    current_bytes: int
    old_bytes: int
    orphan_bytes: int
    bookkeeping_bytes: int
    other_bytes: int
    files: pa.Table
    versions: pa.Table
    refs: pa.Table
    kinds: pa.Table
    damaged: tuple[str, ...]
    _account: SpaceAccount = field(compare=False)

    def freed_if(
        self,
        *,
        older_than: timedelta | None = None,
        retain_versions: int | None = None,
        versions: Collection[int] | None = None,
        drop_tags: Collection[str] = (),
        drop_branches: Collection[str] = (),
        branch: str | None = None,
        delete_unverified: bool = False,
    ) -> Freed:
        """Return what would be freed by deleting these refs and then cleaning up ``branch``.

        The rules are those of ``cleanup_old_versions``; without any, only what the dropped
        branches and old orphans take is counted. Reads nothing again. Raises RefNotFoundError,
        CleanupError.
        """
        rules = (older_than, retain_versions, versions)
        policy = None
        if any(rule is not None for rule in rules):
            policy = RetentionPolicy.of(
                *rules, delete_unverified=delete_unverified, error_if_tagged_old_versions=False
            )
        what_if = WhatIf(frozenset(drop_tags), frozenset(drop_branches), branch, delete_unverified)
        return self._account.freed(policy, what_if)

    def simulator(self, branch: str | None = None) -> RetentionSimulator:
        """Return simulated clean-ups of a branch, for many rules one after the other.

        Raises RefNotFoundError.
        """
        from lance_nb.table.retention_simulation import RetentionSimulator

        return RetentionSimulator(self._account, branch)

    def __repr__(self) -> str:
        lines = [f"{self.uri}: {self.total_bytes:,} bytes in {self.num_files:,} files"]
        for name in ("current", "old", "orphan", "bookkeeping", "other"):
            size = getattr(self, f"{name}_bytes")
            share = size / self.total_bytes if self.total_bytes else 0.0
            lines.append(f"  {name:<12}{size:>18,}  {share:>6.1%}")
        for row in self.refs.to_pylist():
            place = f"{row['branch'] or 'main'}:{row['version']}"
            held = f"{row['exclusive_bytes']:,} bytes of its own"
            lines.append(f"  {row['kind']} {row['name']!r} at {place} holds {held}")
        lines += [f"  damaged: {text}" for text in self.damaged]
        return "\n".join(lines)


def space_of(survey: Survey, references: References, now: datetime) -> Space:
    """Account for every byte. ``references`` are of all versions of all branches."""
    account = SpaceAccount.of(survey, references, now)
    files = file_table(account)
    sums = totals(files)
    damaged = tuple(str(damage.error) for damage in survey.unusable)
    damaged += tuple(
        f"{survey.store(line.home).uri}/{name.path}: {error}"
        for line in references.lines.values()
        for name, error in line.damaged
    )
    return Space(
        uri=survey.root.uri,
        num_files=len(survey.files),
        total_bytes=sum(sums.values()),
        current_bytes=sums["current"],
        old_bytes=sums["old"],
        orphan_bytes=sums["orphan"],
        bookkeeping_bytes=sums["bookkeeping"],
        other_bytes=sums["other"],
        files=files,
        versions=version_table(account),
        refs=ref_table(account),
        kinds=kind_table(files),
        damaged=damaged,
        _account=account,
    )


@dataclass(frozen=True, slots=True)
class Freed:
    """What a clean-up would free. ``paths`` are the files that it would delete."""

    size_bytes: int
    num_versions: int
    num_files: int
    paths: tuple[str, ...] = field(repr=False, default=())


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Refs that count as deleted, the branch to clean up, and whether recent orphans go too."""

    tags: frozenset[str] = frozenset()
    branches: frozenset[str] = frozenset()
    branch: str | None = None
    delete_unverified: bool = False


@dataclass(frozen=True, slots=True)
class SpaceAccount:
    """The survey and the references that all numbers are computed from, and simulated clean-ups.

    ``sizes``: of each identity, all its files together. ``spans``: of each line, by folder;
    ``marks``: the merges that its newest version names, by folder.
    """

    survey: Survey
    references: References
    now: datetime
    sizes: Ints
    spans: Mapping[str, Spans]
    marks: Mapping[str, Marks]

    @classmethod
    def of(cls, survey: Survey, references: References, now: datetime) -> SpaceAccount:
        """Add up the files of each identity."""
        identities = references.numbers_of([file.identity for file in survey.files])
        size_bytes = (file.size_bytes for file in survey.files)
        bytes_each = np.fromiter(size_bytes, np.int64, len(survey.files))
        sizes = np.zeros(len(references), np.int64)
        np.add.at(sizes, identities[identities >= 0], bytes_each[identities >= 0])
        spans = {folder: line.spans() for folder, line in references.lines.items()}
        has_branches = len(survey.lines) > 1
        marks = {folder: newest_marks(survey, folder) for folder in survey.lines if has_branches}
        return cls(survey, references, now, sizes=sizes, spans=spans, marks=marks)

    def merged_versions(self, survey: Survey, branch: str | None) -> frozenset[int]:
        """Return the versions of a branch from which the merges into branches of a survey start."""
        return merged_versions(survey, branch, self.marks.__getitem__)

    def freed(self, policy: RetentionPolicy | None, what_if: WhatIf) -> Freed:
        """Simulate; see ``Space.freed_if``."""
        survey = self._without_refs(what_if)
        removed = {
            branch_root(name): {0, *survey.lines[branch_root(name)].numbers}  # 0: detached ones
            for name in what_if.branches
            if branch_root(name) in survey.lines
        }
        folder = "" if what_if.branch is None else branch_root(what_if.branch)
        if folder not in survey.lines or folder in removed:
            raise RefNotFoundError("branch", str(what_if.branch), tuple(self.survey.branches))
        line = survey.lines[folder]
        names = [] if policy is None else self._removable(survey, line, policy)
        rule = Rule(self.now, what_if.delete_unverified)
        plan = make_plan(survey, self.references, folder, names=names, rule=rule, also_gone=removed)
        records = {*map(tag_path, what_if.tags), *map(branch_path, what_if.branches)}
        dropped = [
            file for file in self.survey.files if file.home in removed or file.path in records
        ]
        files = [*(candidate.file for candidate in plan.candidates), *dropped]
        num_versions = len(names) + sum(len(versions) - 1 for versions in removed.values())
        size = sum(file.size_bytes for file in files)
        return Freed(size, num_versions, len(files), tuple(file.path for file in files))

    def _without_refs(self, what_if: WhatIf) -> Survey:
        for kind, names, existing in (
            ("tag", what_if.tags, self.survey.tags),
            ("branch", what_if.branches, self.survey.branches),
        ):
            for name in sorted(names - existing.keys()):
                raise RefNotFoundError(kind, name, tuple(existing))
        return self.survey.without(what_if.tags, what_if.branches)

    def _removable(
        self, survey: Survey, line: LineOfVersions, policy: RetentionPolicy
    ) -> list[ManifestName]:
        times = {
            version.version: _commit_time(version.timestamp_ns)
            for version in self.references.lines[line.folder].versions
        }
        age = Age(
            self.now,
            lambda name: times.get(name.version),
            lambda name: (manifest := survey.manifest(line.folder, name)) and manifest.modified,
        )
        protection = Protection(
            survey.tagged_versions(line.branch),
            survey.fork_versions(line.branch),
            self.merged_versions(survey, line.branch),
        )
        newest = line.numbers[-1] if line.names else 0
        return removable(policy, line.names, newest, age=age, protection=protection)

    def held(self, chosen: dict[str, Mask]) -> Mask:
        """Tell which identities the chosen versions (folder -> one item per version) refer to."""
        is_held = np.zeros(len(self.references), np.bool_)
        for folder, mask in chosen.items():
            spans = self.spans[folder]
            is_held[spans.identity[spans.touching(mask)]] = True
        return is_held

    def bytes_of(self, identities: Mask) -> int:
        """Add up the files of identities."""
        return int(self.sizes[: len(identities)][identities].sum())


def _commit_time(timestamp_ns: int | None) -> datetime | None:
    """Return a commit time as an aware datetime (microseconds)."""
    if timestamp_ns is None:
        return None
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=timestamp_ns // 1000)


_TIME = pa.timestamp("us", "UTC")
FILES = pa.schema(
    [
        ("path", pa.string()),
        ("kind", pa.string()),
        ("size_bytes", pa.int64()),
        ("branch", pa.string()),
        ("state", pa.string()),
        ("num_versions", pa.int64()),
        ("oldest", pa.uint64()),
        ("newest", pa.uint64()),
    ]
)
VERSIONS = pa.schema(
    [
        ("branch", pa.string()),
        ("version", pa.uint64()),
        ("timestamp", _TIME),
        ("tags", pa.list_(pa.string())),
        ("manifest_bytes", pa.int64()),
        ("referenced_bytes", pa.int64()),
        ("exclusive_bytes", pa.int64()),
    ]
)
REFS = pa.schema(
    [
        ("kind", pa.string()),
        ("name", pa.string()),
        ("branch", pa.string()),
        ("version", pa.uint64()),
        ("referenced_bytes", pa.int64()),
        ("exclusive_bytes", pa.int64()),
    ]
)
KIND_TOTALS = pa.schema(
    [
        ("kind", pa.string()),
        ("num_files", pa.int64()),
        ("size_bytes", pa.int64()),
        ("orphan_bytes", pa.int64()),
    ]
)
_BOOKKEEPING = (MANIFEST, TEMPORARY_MANIFEST, TRANSACTION, REF)


def file_table(account: SpaceAccount) -> pa.Table:
    """One row per file of the folder."""
    count = len(account.references)
    times, oldest = np.zeros(count + 1, np.int64), np.full(count + 1, 2**62, np.int64)
    newest = np.zeros(count + 1, np.int64)
    for folder, line in account.references.lines.items():
        if line.versions:
            spans, numbers = account.spans[folder], line.numbers()
            np.add.at(times, spans.identity, spans.stop - spans.start)
            np.minimum.at(oldest, spans.identity, numbers[spans.start])
            np.maximum.at(newest, spans.identity, numbers[spans.stop - 1])
    identities = account.references.numbers_of([file.identity for file in account.survey.files])
    current = account.held(dict(_newest_masks(account)))
    current = np.append(current, False)
    files = account.survey.files
    unnamed = times[identities] == 0
    branches = {folder: line.branch for folder, line in account.survey.lines.items()}
    states = [
        _state(file.kind, is_current, is_unnamed)
        for file, is_current, is_unnamed in zip(
            files, current[identities].tolist(), unnamed.tolist(), strict=True
        )
    ]
    columns = [
        pa.array([file.path for file in files], pa.string()),
        pa.array([file.kind for file in files], pa.string()),
        pa.array([file.size_bytes for file in files], pa.int64()),
        pa.array([branches[file.home] for file in files], pa.string()),
        pa.array(states, pa.string()),
        pa.array(times[identities]),
        pa.array(oldest[identities].astype(np.uint64), mask=unnamed),
        pa.array(newest[identities].astype(np.uint64), mask=unnamed),
    ]
    return pa.Table.from_arrays(columns, schema=FILES)


def _newest_masks(account: SpaceAccount) -> Iterator[tuple[str, Mask]]:
    for folder, line in account.references.lines.items():
        numbers = line.numbers()
        yield folder, numbers == (numbers.max() if len(numbers) else 0)


def _state(kind: str, is_current: bool, is_unnamed: bool) -> str:
    if kind == OTHER:
        return "other"
    if kind in _BOOKKEEPING:
        return "bookkeeping"
    if is_unnamed:
        return "orphan"
    return "current" if is_current else "old"


def totals(files: pa.Table) -> Counter[str]:
    """Return the bytes of each state; 0 for a state that no file is in."""
    sums = files.group_by("state").aggregate([("size_bytes", "sum")])
    sizes = zip(sums["state"].to_pylist(), sums["size_bytes_sum"].to_pylist(), strict=True)
    return Counter(dict(sizes))


def kind_table(files: pa.Table) -> pa.Table:
    """One row per kind of file."""
    rows = {kind: [0, 0, 0] for kind in KINDS}
    sums = files.group_by(["kind", "state"]).aggregate([("size_bytes", "sum"), ("path", "count")])
    for file_sum in sums.to_pylist():
        row = rows[file_sum["kind"]]
        row[0] += file_sum["path_count"]
        row[1] += file_sum["size_bytes_sum"]
        row[2] += file_sum["size_bytes_sum"] if file_sum["state"] == "orphan" else 0
    arrays = [list(rows), *zip(*rows.values(), strict=True)]
    return pa.Table.from_arrays(
        [pa.array(array, field.type) for array, field in zip(arrays, KIND_TOTALS, strict=True)],
        schema=KIND_TOTALS,
    )


def version_table(account: SpaceAccount) -> pa.Table:
    """One row per version of every branch."""
    alone = _single_owner(account)
    rows: dict[str, list[Any]] = {name: [] for name in VERSIONS.names}
    for folder, line in account.references.lines.items():
        numbers = [version.version for version in line.versions]
        tags = account.survey.tagged_versions(account.survey.lines[folder].branch)
        manifests = np.fromiter(
            (version.size_bytes for version in line.versions), np.int64, len(numbers)
        )
        referenced, exclusive = _sums_by_version(account, folder, alone)
        rows["branch"] += [account.survey.lines[folder].branch] * len(numbers)
        rows["version"] += numbers
        rows["timestamp"] += [_commit_time(version.timestamp_ns) for version in line.versions]
        rows["tags"] += [sorted(tags.get(number, ())) for number in numbers]
        rows["manifest_bytes"] += manifests.tolist()
        rows["referenced_bytes"] += (referenced + manifests).tolist()
        rows["exclusive_bytes"] += (exclusive + manifests).tolist()
    return pa.Table.from_pydict(rows, schema=VERSIONS)


def _single_owner(account: SpaceAccount) -> Mask:
    """Tell which identities exactly one version of all refers to."""
    times = np.zeros(len(account.references), np.int64)
    for spans in account.spans.values():
        np.add.at(times, spans.identity, spans.stop - spans.start)
    alone: Mask = times == 1
    return alone


def _sums_by_version(account: SpaceAccount, folder: str, alone: Mask) -> tuple[Ints, Ints]:
    """Return the bytes each version refers to, and those that it alone refers to."""
    spans, count = account.spans[folder], len(account.references.lines[folder].versions)
    sizes = account.sizes[spans.identity]
    change = np.zeros(count + 1, np.int64)
    np.add.at(change, spans.start, sizes)
    np.subtract.at(change, spans.stop, sizes)
    exclusive = np.zeros(count, np.int64)
    mine = alone[spans.identity]
    np.add.at(exclusive, spans.start[mine], sizes[mine])
    return np.cumsum(change)[:count], exclusive


def ref_table(account: SpaceAccount) -> pa.Table:
    """One row per tag and branch."""
    rows = [*_tag_rows(account), *_branch_rows(account)]
    return pa.Table.from_pylist(rows, schema=REFS)


def _tag_rows(account: SpaceAccount) -> Iterator[dict[str, Any]]:
    survey = account.survey
    fixed: dict[str, Mask] = {}
    for folder, newest in _newest_masks(account):
        branch = survey.lines[folder].branch
        bases = [*survey.fork_versions(branch), *account.merged_versions(survey, branch)]
        fixed[folder] = newest | np.isin(account.references.lines[folder].numbers(), bases)
    pinned: dict[tuple[str, int], list[str]] = {}
    for name, tag in survey.tags.items():
        folder = "" if tag.branch is None else branch_root(tag.branch)
        pinned.setdefault((folder, tag.version), []).append(name)
    stays = account.held(fixed)
    times = np.zeros(len(stays), np.int64)
    for place in pinned:
        times += account.held(_only(account, *place))
    for (folder, version), names in sorted(pinned.items()):
        mine = account.held(_only(account, folder, version))
        alone = mine & ~stays & (times == 1)
        exclusive = account.bytes_of(alone) if len(names) == 1 else 0
        for name in sorted(names):
            yield {
                "kind": "tag",
                "name": name,
                "branch": survey.tags[name].branch,
                "version": version,
                "referenced_bytes": account.bytes_of(mine),
                "exclusive_bytes": exclusive,
            }


def _only(account: SpaceAccount, folder: str, version: int) -> dict[str, Mask]:
    line = account.references.lines.get(folder)
    return {} if line is None else {folder: line.numbers() == version}


def _branch_rows(account: SpaceAccount) -> Iterator[dict[str, Any]]:
    lines = account.references.lines
    everything = {folder: np.ones(len(line.versions), np.bool_) for folder, line in lines.items()}
    for name, branch in account.survey.branches.items():
        folder = branch_root(name)
        other_masks = {
            branch_folder: mask
            for branch_folder, mask in everything.items()
            if branch_folder != folder
        }
        needed = account.held(other_masks)
        mine = (
            account.held({folder: everything[folder]}) if folder in everything else needed & False
        )
        own = [file for file in account.survey.files if file.home == folder]
        identities = account.references.numbers_of([file.identity for file in own])
        exclusive = sum(
            file.size_bytes
            for file, key in zip(own, identities.tolist(), strict=True)
            if key < 0 or not needed[key]
        )
        yield {
            "kind": "branch",
            "name": name,
            "branch": branch.parent_branch,
            "version": branch.parent_version,
            "referenced_bytes": account.bytes_of(mine),
            "exclusive_bytes": exclusive,
        }
