"""What a staged write would do, before it does it.

The operation is applied to the manifest that was read, which costs no write and gives the version
that would be made; rows before and after are read through it, deletion vectors from memory. What
others have committed since is judged as the commit will judge it, row by row where both change the
same fragment.

Limits: a few rows of each kind; added rows are read from the files that were written for them. At
most ``NAMED_ROWS`` rows that both change are named.
Source: lance_nb.writing.staged, commit_forecast.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from lance_nb.encodings.base import Ints
from lance_nb.encodings.kernels.memory import from_integers
from lance_nb.errors import RetryableCommitConflictError
from lance_nb.format.feature_flags import STABLE_ROW_IDS
from lance_nb.session.session import Session
from lance_nb.shown_text import visible
from lance_nb.table.filtered_scan import Selected, selected_table
from lance_nb.table.projection import project
from lance_nb.table.scan import scan_table
from lance_nb.table.scan_tasks import counts_of, live_counts, plan_tasks
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.commit_forecast import CommitForecast, Encounter
from lance_nb.transactions.conflict_rules import Verdict
from lance_nb.transactions.new_version import build
from lance_nb.transactions.operation import ApplyContext, operation_name
from lance_nb.transactions.operations.merge import Merge
from lance_nb.transactions.operations.rewrite import Rewrite
from lance_nb.transactions.row_lineage import all_row_ids
from lance_nb.transactions.side_effects import dropped_parts
from lance_nb.transactions.transaction import Transaction
from lance_nb.transactions.version_slots import VersionSource
from lance_nb.value_classes import dataclass
from lance_nb.writing.progress import Progress
from lance_nb.writing.staged import StagedWrite

FRAGMENTS_SCHEMA = pa.schema(
    [
        ("fragment_id", pa.uint64()),
        ("change", pa.string()),
        ("rows_before", pa.uint64()),
        ("rows_after", pa.uint64()),
    ]
)


NAMED_ROWS = 10


@dataclass(frozen=True, slots=True)
class Meeting:
    """A transaction that others committed since, and how ours gets along with it.

    ``verdict`` is what a commit would find: "compatible", "rebasable", "retryable" or
    "incompatible". ``num_rows`` counts the rows that both change; ``rows`` names the first of them,
    by primary key, else by row id.
    """

    version: int
    operation: str
    verdict: str
    overlap: str
    num_rows: int = 0
    rows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class StagePreview:
    """What a commit would change.

    ``removed`` and ``added`` are some of the rows. Updated rows move, so that they are counted
    among the added and the deleted ones too; the others of these are inserted and removed for good.
    Where only columns change, ``removed`` and ``added`` are the first rows before and after.
    ``size_bytes`` are those of data files; deletion files are counted by themselves.
    ``fragments`` has one row per fragment that changes: id, change ("new", "changed", "dropped"),
    rows before, rows after. ``dropped`` names indices, keys and metadata that the change drops
    besides.
    """

    operation: str
    description: str
    read_version: int
    num_rows_before: int
    num_rows_after: int
    num_added_rows: int
    num_deleted_rows: int
    num_updated_rows: int
    num_files: int
    size_bytes: int
    num_deletion_files: int
    deletion_bytes: int
    fragments: pa.Table
    removed: pa.Table
    added: pa.Table
    meetings: tuple[Meeting, ...]
    dropped: tuple[str, ...] = ()

    @property
    def num_inserted_rows(self) -> int:
        """Rows that nobody had before."""
        return self.num_added_rows - self.num_updated_rows

    @property
    def num_removed_rows(self) -> int:
        """Rows that go without being replaced."""
        return self.num_deleted_rows - self.num_updated_rows

    @property
    def num_bytes_written(self) -> int:
        """Bytes of all data and deletion files, exactly; a commit that is rebased may add some."""
        return self.size_bytes + self.deletion_bytes

    @property
    def conflicts(self) -> tuple[Meeting, ...]:
        """The transactions that a commit now would fail on."""
        failing = (Verdict.RETRYABLE.name.lower(), Verdict.INCOMPATIBLE.name.lower())
        return tuple(meeting for meeting in self.meetings if meeting.verdict in failing)

    def __str__(self) -> str:
        change = f"+{self.num_added_rows:,} -{self.num_deleted_rows:,}"
        written = f"{self.num_bytes_written:,} bytes written"
        lines = [
            f"{self.operation} on version {self.read_version}: {self.description}",
            f"rows: {self.num_rows_before:,} -> {self.num_rows_after:,} ({change})",
            *self._counts(),
            f"fragments: {self.fragments.num_rows} touched, {written}",
        ]
        lines += [f"drops {part}" for part in self.dropped]
        for meeting in self.meetings:
            about = f" ({meeting.overlap}{_named(meeting)})" if meeting.overlap else ""
            lines.append(
                f"since then: version {meeting.version} {meeting.operation}: "
                f"{meeting.verdict}{about}"
            )
        return "\n".join(lines)

    __repr__ = __str__

    def _counts(self) -> list[str]:
        """Tell updates from insertions and deletions, where there are updates."""
        if not self.num_updated_rows:
            return []
        inserted, removed = self.num_inserted_rows, self.num_removed_rows
        counts = f"{inserted:,} inserted, {self.num_updated_rows:,} updated, {removed:,} deleted"
        return [f"of these: {counts}"]


def _named(meeting: Meeting) -> str:
    """List the rows that both change, as far as they are named."""
    if not meeting.rows:
        return ""
    more = meeting.num_rows - len(meeting.rows)
    return f": {', '.join(meeting.rows)}" + (f" and {more:,} more" if more else "")


def preview_of(
    session: Session, snapshot: Snapshot, staged: StagedWrite, num_rows: int
) -> StagePreview:
    """Apply a staged write in memory and describe the difference.

    Raises what the operation raises when it cannot be applied.
    """
    source = source_of(session, snapshot)
    after, dropped = _applied(session, snapshot, staged, source)
    fragments = changed_fragments(snapshot, after, _rewritten(staged))
    before_rows = fragments["rows_before"].to_numpy()
    after_rows = fragments["rows_after"].to_numpy()
    is_rows = bool((before_rows != after_rows).any())
    return StagePreview(
        operation=operation_name(staged.operation.arm),
        description=staged.operation.describe(),
        read_version=staged.read_version,
        num_rows_before=int(live_counts(snapshot).sum()),
        num_rows_after=int(live_counts(after).sum()),
        num_added_rows=int(np.maximum(after_rows.astype(np.int64) - before_rows, 0).sum()),
        num_deleted_rows=int(np.maximum(before_rows.astype(np.int64) - after_rows, 0).sum()),
        num_updated_rows=staged.num_updated_rows,
        num_files=len(staged.data_files),
        size_bytes=staged.size_bytes,
        num_deletion_files=staged.num_deletion_files,
        deletion_bytes=staged.deletion_bytes,
        fragments=fragments,
        removed=_removed_rows(snapshot, staged, fragments, num_rows)
        if is_rows
        else _head(snapshot, num_rows),
        added=_first_rows(after, fragments, "new", num_rows) if is_rows else _head(after, num_rows),
        meetings=meetings_of(session, snapshot, staged),
        dropped=dropped,
    )


def source_of(session: Session, snapshot: Snapshot) -> VersionSource:
    """Return the versions of a branch as a commit sees them."""
    place = session.place(snapshot.branch)
    return VersionSource(place.slots, place.locations)


def meetings_of(
    session: Session, snapshot: Snapshot, staged: StagedWrite, progress: Progress | None = None
) -> tuple[Meeting, ...]:
    """Judge what others have committed since a staged write was made.

    ``progress`` may raise CancelledError.
    """
    transaction = Transaction(staged.read_version, staged.operation, "forecast")
    place = session.place(snapshot.branch)
    is_compaction = isinstance(staged.operation, Rewrite)
    forecast = CommitForecast(
        place, transaction, staged.affected_rows, progress, is_replanned=is_compaction
    )
    return tuple(_meeting(snapshot, encounter) for encounter in forecast.run())


def _meeting(snapshot: Snapshot, encounter: Encounter) -> Meeting:
    operation = (
        "unknown" if encounter.operation is None else operation_name(encounter.operation.arm)
    )
    verdict, overlap = encounter.verdict.name.lower(), encounter.conflict.overlap
    number = sum(rows.size for rows in encounter.rows.values())
    return Meeting(
        encounter.version,
        operation,
        verdict,
        overlap=overlap,
        num_rows=number,
        rows=_row_names(snapshot, encounter.rows),
    )


def _row_names(snapshot: Snapshot, rows: Mapping[int, Ints]) -> tuple[str, ...]:
    """Name some rows of a version, given by fragment and offset: by primary key, else row id."""
    keys = [field for field in snapshot.manifest.schema.fields if field.keys.primary]
    names = [key.name for key in sorted(keys, key=lambda key: key.keys.primary_position)]
    row_names: list[str] = []
    fragments = snapshot.manifest.fragments.with_ids(rows)
    for number, fragment in sorted(fragments.items()):
        offsets = rows[number][: NAMED_ROWS - len(row_names)]
        if names and offsets.size:
            projection = project(snapshot.manifest.schema, names)
            chosen = Selected(fragment, offsets, offsets, {})
            values = selected_table(snapshot, projection, chosen).to_pylist()
            row_names += [
                ", ".join(f"{name} = {visible(repr(row[name]))}" for name in names)
                for row in values
            ]
        elif snapshot.manifest.reader_feature_flags & STABLE_ROW_IDS:
            row_names += [f"row id {row_id}" for row_id in all_row_ids(fragment)[offsets].tolist()]
        else:
            row_names += [f"row id {(number << 32) | offset}" for offset in offsets.tolist()]
    return tuple(row_names)


def landed(source: VersionSource, read_version: int, uuid: str) -> int | None:
    """Return the version after ``read_version`` that a transaction made, None if none is its."""
    head = source.head(read_version)
    for version in range(read_version + 1, (read_version if head is None else head.version) + 1):
        try:
            if source.transaction(version).uuid == uuid:
                return version
        except RetryableCommitConflictError:
            continue  # no transaction is recorded: ours always is
    return None


def applied(session: Session, snapshot: Snapshot, staged: StagedWrite) -> Snapshot:
    """Return the version that a commit would make if nobody else had committed."""
    return _applied(session, snapshot, staged, source_of(session, snapshot))[0]


def _applied(
    session: Session, snapshot: Snapshot, staged: StagedWrite, source: VersionSource
) -> tuple[Snapshot, tuple[str, ...]]:
    """Return the version that a commit would make, and what it would drop besides."""
    base = source.load(snapshot.version)
    context = ApplyContext(
        base.manifest,
        base.indices,
        source.snapshotted,
        time.time_ns(),
        open_snapshot=lambda manifest: session.snapshot(manifest, snapshot.branch),
    )
    transaction = Transaction(staged.read_version, staged.operation, "preview")
    built = build(transaction, context)
    dropped = dropped_parts(transaction, base.manifest, base.indices, built)
    staged.pending.remember(snapshot.locations.home, snapshot.deletions)
    return session.snapshot(built.manifest, snapshot.branch), dropped


def _rewritten(staged: StagedWrite) -> list[int]:
    """Return the ids of fragments that get other files, or other deletions."""
    is_columns = isinstance(staged.operation, Merge)
    return [
        *staged.touched_fragments,
        *(new_fragment.id for new_fragment in staged.new_fragments if is_columns),
    ]


def changed_fragments(before: Snapshot, after: Snapshot, also: Sequence[int] = ()) -> pa.Table:
    """List fragments that are new, dropped, or have other rows or columns (FRAGMENTS_SCHEMA).

    Other rows are told by their number, other columns by ``also``: ids of fragments.
    """
    old, new = counts_of(before), counts_of(after)
    ids = np.union1d(old.ids, new.ids)
    rows = []
    for counts in (old, new):
        num_rows = np.zeros(len(ids), np.int64)
        num_rows[np.searchsorted(ids, counts.ids)] = counts.num_rows
        rows.append(num_rows)
    is_old, is_new = np.isin(ids, old.ids), np.isin(ids, new.ids)
    kind = np.where(is_old & is_new, 1, np.where(is_new, 0, 2))
    touched = np.isin(ids, np.array(also, ids.dtype))
    keep = (kind != 1) | (rows[0] != rows[1]) | touched
    names = pa.array(["new", "changed", "dropped"]).take(from_integers(kind[keep].astype(np.int64)))
    columns = [
        from_integers(ids[keep].astype(np.uint64)),
        names,
        from_integers(rows[0][keep].astype(np.uint64)),
        from_integers(rows[1][keep].astype(np.uint64)),
    ]
    return pa.Table.from_arrays(columns, schema=FRAGMENTS_SCHEMA)


def _removed_rows(
    snapshot: Snapshot, staged: StagedWrite, fragments: pa.Table, num_rows: int
) -> pa.Table:
    projection = project(snapshot.manifest.schema, None)
    affected = staged.affected_rows
    if affected is None:
        return _first_rows(snapshot, fragments, "dropped", num_rows)
    parts, left = [pa.Table.from_batches([], projection.schema)], num_rows
    for fragment_id, vector in affected.items():
        physical = vector.offsets()[:left].astype(np.int64)
        place = snapshot.manifest.fragments.position_of(fragment_id)
        if not physical.size or place is None:
            continue
        fragment = snapshot.manifest.fragments[place]
        parts.append(
            selected_table(snapshot, projection, Selected(fragment, physical, physical, {}))
        )
        left -= physical.size
    return pa.concat_tables(parts)


def _head(snapshot: Snapshot, num_rows: int) -> pa.Table:
    tasks = plan_tasks(snapshot, num_rows, None, tuple(snapshot.manifest.fragments[:1]))
    return scan_table(snapshot, project(snapshot.manifest.schema, None), tasks)


def _first_rows(snapshot: Snapshot, fragments: pa.Table, change: str, num_rows: int) -> pa.Table:
    """Read the first rows of the fragments that changed in that way."""
    kinds, ids = fragments["change"].to_pylist(), fragments["fragment_id"].to_pylist()
    every = snapshot.manifest.fragments
    places = (
        every.position_of(fragment_id)
        for fragment_id, kind in zip(ids, kinds, strict=True)
        if kind == change
    )
    chosen = [every[place] for place in places if place is not None]
    tasks = plan_tasks(snapshot, num_rows, None, tuple(chosen))
    return scan_table(snapshot, project(snapshot.manifest.schema, None), tasks)
