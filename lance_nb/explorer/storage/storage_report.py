"""Report what would improve the storage of a version, and what the files of a dataset occupy.

Layout of ``storage_health``, a list of ``{key, title, text, python, stage, fragment}``: ``python``
is the line that does it, or opens what it is about, or is empty; ``stage`` is the edit that the
Stage tab offers for it (``{verb, ...}`` or null), ``fragment`` the worst one, -1 for none. All of
it comes from the manifest.

================ =====================================================================
``key``          when
================ =====================================================================
``deletions``    fragments with a share of deleted rows of ``DELETED_SHARE`` or more: reads skip the
                 rows but their bytes remain
``small``        two or more neighboring fragments with fewer rows than compaction aims at
``files``        fragments with more than ``MANY_FILES`` data files: one read per file
``index <name>`` fragments that an index does not cover: they are searched without it
``log``          rows of a write-ahead log that are not merged; its files are read, too
================ =====================================================================

Layout of ``SpaceUse.to_json``: ``total``, ``files``, ``states`` ``[{name, bytes, title}]``,
``kinds`` ``[{name, files, bytes, orphans}]``, ``refs`` ``[{kind, name, place, held, own}]`` and
``versions`` ``[{place, branch, version, held, own}]`` with the largest exclusive bytes first,
``damaged`` (texts), ``hidden_refs``, ``hidden_versions``.

Limits: ``MAX_INDICES`` indices, ``MAX_REFS`` refs, ``MAX_VERSIONS`` versions, ``MAX_DAMAGED``
texts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.code_lines import Python
from lance_nb.dataset.advice import PENDING_REMEDY, pending_reason
from lance_nb.explorer import text
from lance_nb.explorer.json_fields import JsonFields
from lance_nb.explorer.source import StoredSource
from lance_nb.explorer.storage.fragments import covered_ids
from lance_nb.format.fragment_list import FragmentCounts
from lance_nb.table.pending_logs import pending_rows
from lance_nb.table.scan_tasks import counts_of
from lance_nb.table.space_usage import Space
from lance_nb.value_classes import dataclass

DELETED_SHARE = 0.1
TARGET_ROWS = 1024 * 1024
MANY_FILES = 8
MAX_INDICES = 20

Mask = npt.NDArray[np.bool_]
MAX_REFS = 40
MAX_VERSIONS = 12
MAX_DAMAGED = 10

_STATES = (
    ("current", "files that the newest version of a branch refers to"),
    ("old", "files that only older versions refer to: a clean-up can delete them"),
    ("orphan", "files that no version refers to, left by writers that did not finish"),
    ("bookkeeping", "manifests, transactions, refs and hints"),
    ("other", "files that are not part of the dataset"),
)


@dataclass(frozen=True, slots=True)
class Advice(JsonFields):
    """One thing that could be done."""

    key: str
    title: str
    text: str
    python: str
    stage: dict[str, Any] | None
    fragment: int


def storage_health(dataset: StoredSource) -> tuple[Advice, ...]:
    """Return what would do good, the most useful first; empty when all is well."""
    counts = counts_of(dataset.opened[1])
    pending = _pending(dataset)
    if not len(counts.ids):
        return () if pending is None else (pending,)
    advice = [
        pending,
        _deletions(dataset, counts),
        _small(dataset, counts),
        _files(dataset, counts),
    ]
    advice += [
        _unindexed(dataset, counts, name, ids)
        for name, ids in list(covered_ids(dataset).items())[:MAX_INDICES]
        if not name.startswith("__")
    ]
    return tuple(entry for entry in advice if entry is not None)


def _pending(dataset: StoredSource) -> Advice | None:
    pending = pending_rows(dataset.opened[1])
    if pending is None or (pending.is_exact and not pending.num_rows):
        return None
    tables = [f"{dataset.opened[1].locations.home.uri}/{table}" for table in pending.tables]
    return Advice(
        key="log",
        title="Rows wait in a write-ahead log",
        text=f"{text.line(pending_reason(pending))}: {PENDING_REMEDY}.",
        python=Python("lance_nb.dataset").call(tables[0]).line() if tables else "",
        stage=None,
        fragment=-1,
    )


def compacts(dataset: StoredSource, **options: object) -> str:
    """Return the line that compacts the newest version of the branch."""
    place = {} if dataset.branch is None else {"version": (dataset.branch, None)}
    opened = Python("lance_nb.dataset").call(dataset.uri, **place)
    return opened.attribute("optimize.compact_files").call(**options).line()


def _deletions(dataset: StoredSource, counts: FragmentCounts) -> Advice | None:
    share = counts.num_deleted_rows / np.maximum(counts.physical_rows, 1)
    has_many = share >= DELETED_SHARE
    if not has_many.any():
        return None
    rows = int(counts.num_deleted_rows[has_many].sum())
    freed = int((counts.size_bytes * share)[has_many].sum())
    return Advice(
        key="deletions",
        title="Deleted rows still use space",
        text=(
            f"{text.plural(rows, 'deleted row')} in {text.plural(int(has_many.sum()), 'fragment')} "
            f"with {100 * DELETED_SHARE:.0f} % deleted rows or more. After a compaction, reads "
            f"need about {text.size(freed)} less; the next clean-up removes the old files."
        ),
        python=compacts(dataset, materialize_deletions_threshold=DELETED_SHARE),
        stage={"verb": "compact", "materialize_deletions_threshold": DELETED_SHARE},
        fragment=int(counts.ids[int(share.argmax())]),
    )


def _small(dataset: StoredSource, counts: FragmentCounts) -> Advice | None:
    small = counts.num_rows < TARGET_ROWS
    neighbours = np.zeros(len(small), np.bool_)
    neighbours[:-1] |= small[:-1] & small[1:]
    neighbours[1:] |= small[1:] & small[:-1]
    if not neighbours.any():
        return None
    rows = int(counts.num_rows[neighbours].sum())
    left = max(1, -(-rows // TARGET_ROWS))
    least = int(counts.ids[int(np.where(neighbours, counts.num_rows, TARGET_ROWS).argmin())])
    return Advice(
        key="small",
        title="Small fragments",
        text=(
            f"{text.plural(rows, 'row')} in {text.plural(int(neighbours.sum()), 'fragment')} "
            f"could be merged; compaction would leave about {text.plural(left, 'fragment')} of "
            f"up to {text.count(TARGET_ROWS)} rows."
        ),
        python=compacts(dataset),
        stage={"verb": "compact"},
        fragment=least,
    )


def _files(dataset: StoredSource, counts: FragmentCounts) -> Advice | None:
    has_many = counts.num_data_files > MANY_FILES
    if not has_many.any():
        return None
    worst = int(counts.num_data_files.argmax())
    return Advice(
        key="files",
        title="Many files per fragment",
        text=(
            f"More than {MANY_FILES} data files in {text.plural(int(has_many.sum()), 'fragment')} "
            f"(up to {int(counts.num_data_files[worst])}): each column that was added or "
            "rewritten separately adds a file. Compaction merges them into one."
        ),
        python=compacts(dataset, target_rows_per_fragment=TARGET_ROWS),
        stage={"verb": "compact", "target_rows_per_fragment": TARGET_ROWS},
        fragment=int(counts.ids[worst]),
    )


def _unindexed(
    dataset: StoredSource, counts: FragmentCounts, name: str, covered: set[int]
) -> Advice | None:
    missing: Mask = ~np.isin(counts.ids, np.fromiter(covered, np.int64, len(covered)))
    if not missing.any():
        return None
    rows = int(counts.num_rows[missing].sum())
    place = {} if dataset.branch is None else {"version": (dataset.branch, None)}
    opened = Python("lance_nb.dataset").call(dataset.uri, **place)
    line = opened.attribute("optimize.optimize_indices").call(index_names=[name]).line()
    return Advice(
        key=f"index {text.name(name)}",
        title=f"Index {text.name(name)} does not cover all rows",
        text=(
            f"Searches scan {text.plural(rows, 'row')} in "
            f"{text.plural(int(missing.sum()), 'fragment')} without it."
        ),
        python=line,
        stage=None,
        fragment=int(counts.ids[int(missing.argmax())]),
    )


@dataclass(frozen=True, slots=True)
class SpaceUse(JsonFields):
    """The bytes of a dataset, bounded for showing."""

    total: int
    files: int
    states: tuple[dict[str, Any], ...]
    kinds: tuple[dict[str, Any], ...]
    refs: tuple[dict[str, Any], ...]
    hidden_refs: int
    versions: tuple[dict[str, Any], ...]
    hidden_versions: int
    damaged: tuple[str, ...]


def space_use(space: Space) -> SpaceUse:
    """Cut an account to what is shown."""
    return SpaceUse(
        total=space.total_bytes,
        files=space.num_files,
        states=tuple(
            {"name": name, "bytes": getattr(space, f"{name}_bytes"), "title": title}
            for name, title in _STATES
        ),
        kinds=tuple(
            {
                "name": row["kind"].replace("_", " "),
                "files": row["num_files"],
                "bytes": row["size_bytes"],
                "orphans": row["orphan_bytes"],
            }
            for row in space.kinds.to_pylist()
            if row["num_files"]
        ),
        refs=tuple(
            {"kind": row["kind"], "name": text.name(row["name"]), **_place(row)}
            for row in _largest(space.refs, MAX_REFS)
        ),
        hidden_refs=max(0, space.refs.num_rows - MAX_REFS),
        versions=tuple(_place(row) for row in _largest(space.versions, MAX_VERSIONS)),
        hidden_versions=max(0, space.versions.num_rows - MAX_VERSIONS),
        damaged=tuple(text.line(damage) for damage in space.damaged[:MAX_DAMAGED]),
    )


def _largest(table: pa.Table, limit: int) -> list[dict[str, Any]]:
    """Return the rows that hold most by themselves."""
    order = [("exclusive_bytes", "descending"), ("version", "descending")]
    rows: list[dict[str, Any]] = table.sort_by(order).slice(0, limit).to_pylist()
    return rows


def _place(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "place": text.ref_label(row["branch"], row["version"]),
        "branch": row["branch"],
        "version": row["version"],
        "held": row["referenced_bytes"],
        "own": row["exclusive_bytes"],
    }
