"""The tables of ``space()``: files, versions, refs and kinds; see space.py for what they say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from lance_nb.format.layout import branch_root
from lance_nb.format.manifest_files import TRANSACTION
from lance_nb.table.file_references import Ints, Mask
from lance_nb.table.space_account import SpaceAccount, moment_of
from lance_nb.table.stored_files import KINDS, MANIFEST, OTHER, REF, TEMPORARY_MANIFEST

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
    known = account.references.known([one.identity for one in account.survey.files])
    current = account.held(dict(_newest_masks(account)))
    current = np.append(current, False)
    files = account.survey.files
    unnamed = times[known] == 0
    branches = {folder: line.branch for folder, line in account.survey.lines.items()}
    states = [
        _state(one.kind, is_current, is_unnamed)
        for one, is_current, is_unnamed in zip(
            files, current[known].tolist(), unnamed.tolist(), strict=True
        )
    ]
    columns = [
        pa.array([one.path for one in files], pa.string()),
        pa.array([one.kind for one in files], pa.string()),
        pa.array([one.size_bytes for one in files], pa.int64()),
        pa.array([branches[one.home] for one in files], pa.string()),
        pa.array(states, pa.string()),
        pa.array(times[known]),
        pa.array(oldest[known].astype(np.uint64), mask=unnamed),
        pa.array(newest[known].astype(np.uint64), mask=unnamed),
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
    for one in sums.to_pylist():
        row = rows[one["kind"]]
        row[0] += one["path_count"]
        row[1] += one["size_bytes_sum"]
        row[2] += one["size_bytes_sum"] if one["state"] == "orphan" else 0
    arrays = [list(rows), *zip(*rows.values(), strict=True)]
    return pa.Table.from_arrays(
        [pa.array(one, field.type) for one, field in zip(arrays, KIND_TOTALS, strict=True)],
        schema=KIND_TOTALS,
    )


def version_table(account: SpaceAccount) -> pa.Table:
    """One row per version of every branch."""
    alone = _single_owner(account)
    rows: dict[str, list[Any]] = {name: [] for name in VERSIONS.names}
    for folder, line in account.references.lines.items():
        numbers = [one.version for one in line.versions]
        tags = account.survey.tagged_versions(account.survey.lines[folder].branch)
        manifests = np.fromiter((one.size_bytes for one in line.versions), np.int64, len(numbers))
        referenced, exclusive = _sums_by_version(account, folder, alone)
        rows["branch"] += [account.survey.lines[folder].branch] * len(numbers)
        rows["version"] += numbers
        rows["timestamp"] += [moment_of(one.timestamp_ns) for one in line.versions]
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
        forks = survey.fork_versions(survey.lines[folder].branch)
        fixed[folder] = newest | np.isin(account.references.lines[folder].numbers(), list(forks))
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
        others = {one: mask for one, mask in everything.items() if one != folder}
        needed = account.held(others)
        mine = (
            account.held({folder: everything[folder]}) if folder in everything else needed & False
        )
        own = [one for one in account.survey.files if one.home == folder]
        unshared = account.references.known([one.identity for one in own])
        exclusive = sum(
            one.size_bytes
            for one, key in zip(own, unshared.tolist(), strict=True)
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
