"""Plan reads for Spark: of one version, and of what changed after a version.

A scan has a pinned version, columns, a filter, and the fragments of each partition. Changes are
read as a stream, or as a batch of the change feed.

Offsets are versions: offset ``v`` means that everything up to version ``v`` was read. A stream
starts at offset -1; its first batch is the whole dataset as it is then. Compactions, indices,
settings and new columns change no rows and are skipped.

======================  ==========================================================================
read                    rows
======================  ==========================================================================
appended rows           the rows of fragments that an Append added, as of that version; any other
                        change of rows is an error, or skipped with ``skipChangeCommits``
change feed             every change, with ``_change_type``, ``_commit_version`` and
                        ``_commit_timestamp``; needs stable row ids, or a key
======================  ==========================================================================

Limits: the columns are those of the newest version when the stream started; a column that a version
does not have is null. A version must not be cleaned up before it was read.
Source: lance_nb.table.diff.feed; streams of other table formats (``startingVersion``,
``skipChangeCommits``, ``readChangeFeed``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError, NotSupportedError, VersionNotFoundError
from lance_nb.spark.plan import (
    TASK_BYTES,
    PinnedVersion,
    group_fragments,
    group_tasks,
    may_pass,
)
from lance_nb.spark.source.options import TABLES, SourceOptions
from lance_nb.spark.types import fixed_width, readable_schema, to_spark
from lance_nb.table.diff.feed import INSERT, QUIET, TIME, TYPE, VERSION, make_feed
from lance_nb.table.index_search import Ids, among
from lance_nb.table.projection import ROW_ADDRESS, ROW_ID
from lance_nb.table.scan import DEFAULT_BATCH_ROWS
from lance_nb.table.scan_tasks import live_counts
from lance_nb.table.snapshot import Snapshot
from lance_nb.value_classes import dataclass
from lance_nb.writing import deleting

CORES = 8
"""How many cores a data source reads for: PySpark does not tell it how many there are."""
_OPEN_BYTES = 1024**2  # what opening a fragment costs, in bytes of rows
_VALUE_BYTES = 16  # the least bytes of a value whose size varies
_BATCH_ROWS = 65_536
_BATCH_BYTES = 8 * 1024**2


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """A scan of one version. ``stored`` are the columns as Arrow, ``schema`` as Spark has them.

    ``batch_rows`` is computed once: tasks do not look at the other fragments of the version.
    """

    pinned: PinnedVersion
    columns: tuple[str, ...] | None
    filter: str | None
    with_row_id: bool
    with_row_address: bool
    stored: pa.Schema
    schema: pa.Schema
    batch_rows: int

    @classmethod
    def of(cls, options: SourceOptions) -> ReadPlan:
        """Pin the version, and check columns and filter."""
        dataset = options.open()
        columns = options.columns
        plan = cls(
            pinned=PinnedVersion.of(dataset),
            columns=None if columns is None else tuple(columns),
            filter=options.get("filter"),
            with_row_id=options.is_set("withrowid"),
            with_row_address=options.is_set("withrowaddress"),
            stored=pa.schema([]),
            schema=pa.schema([]),
            batch_rows=_batch_rows(dataset.opened[1]),
        )
        stored = plan._scanner(dataset, None).projected_schema
        return replace(plan, stored=stored, schema=readable_schema(stored))

    def select(self, names: list[str]) -> ReadPlan:
        """Select columns. Raises InvalidInputError for an unknown column."""
        known_names = self.schema.names
        if names == known_names:
            return self
        missing = [name for name in names if name not in known_names]
        if missing:
            raise InvalidInputError(f"no column {missing[0]!r}; columns: {', '.join(known_names)}")
        return replace(
            self, columns=tuple(name for name in names if name not in (ROW_ID, ROW_ADDRESS)),
            with_row_id=ROW_ID in names, with_row_address=ROW_ADDRESS in names,
            stored=pa.schema([self.stored.field(name) for name in names]),
            schema=pa.schema([self.schema.field(name) for name in names]),
        )  # fmt: skip

    @property
    def size_bytes(self) -> int:
        """The bytes of all rows if every value has a fixed size, else those of all data files."""
        _, snapshot = self.pinned.open()
        row_bytes, is_fixed = _width(self.stored)
        return row_bytes * self.num_rows if is_fixed else _total_bytes(snapshot)

    @property
    def num_rows(self) -> int:
        """The rows of the version without those that are deleted, whatever passes the filter."""
        return int(live_counts(self.pinned.open()[1]).sum())

    def parts(self, num_cores: int = CORES) -> list[tuple[int, ...]]:
        """Group the fragments into partitions by the bytes that are read of them.

        Partitions have up to about 128 MB; each core gets the same number of them, unless they
        would be very small. Fragments without rows that pass the filter are left out as far as
        indices tell. There is always at least one partition, because Spark requires it.
        """
        _, snapshot = self.pinned.open()
        condition = None if self.filter is None else deleting.check(snapshot, self.filter)
        ids = snapshot.manifest.fragments.counts().ids
        is_wanted = may_pass(snapshot, condition)(ids)
        if not is_wanted.any():
            return [()]
        names = set() if condition is None else {path[0] for path in condition.paths}
        ids, sizes = ids[is_wanted], self._read_bytes(snapshot, names)[is_wanted]
        groups = group_tasks(sizes, num_cores, _OPEN_BYTES)
        return [tuple(ids[group[0] : group[-1] + 1].tolist()) for group in groups]

    def _read_bytes(self, snapshot: Snapshot, filtered: set[str]) -> npt.NDArray[np.int64]:
        """Estimate the bytes that are read of each fragment, for columns and for a filter."""
        counts = snapshot.manifest.fragments.counts()
        stored = snapshot.manifest.schema.to_arrow()
        unprojected = [field for field in stored if field.name not in self.stored.names]
        read = [*self.stored, *(field for field in unprojected if field.name in filtered)]
        row_bytes, is_fixed = _width(read)
        rows: npt.NDArray[np.int64] = counts.physical_rows.astype(np.int64)
        if is_fixed:
            return rows * row_bytes
        left_bytes = _width(field for field in unprojected if field.name not in filtered)[0]
        size_bytes: npt.NDArray[np.int64] = counts.size_bytes.astype(np.int64)
        np.maximum(rows * row_bytes, size_bytes - rows * left_bytes, out=size_bytes)
        return size_bytes

    def batches(self, fragment_ids: tuple[int, ...]) -> Iterator[pa.RecordBatch]:
        """Read some fragments in the types of Spark."""
        if not fragment_ids:
            return
        for batch in self._scanner(self.pinned.dataset(), fragment_ids).to_batches():
            yield to_spark(batch.select(self.schema.names), self.schema)

    def _scanner(self, dataset: LanceDataset, fragment_ids: tuple[int, ...] | None) -> Any:
        ids = None if fragment_ids is None else set(fragment_ids)
        fragments = None if ids is None else self.pinned.fragments(ids)
        return dataset.scanner(
            columns=None if self.columns is None else list(self.columns),
            filter=self.filter,
            fragments=fragments,
            with_row_id=self.with_row_id,
            with_row_address=self.with_row_address,
            batch_size=self.batch_rows,
        )


@dataclass(frozen=True, slots=True)
class ReadPart:
    """One partition of a scan: the rows of some fragments."""

    plan: ReadPlan
    fragment_ids: tuple[int, ...]

    def schema(self) -> pa.Schema:
        """Return the columns."""
        return self.plan.stored

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read the rows."""
        return self.plan.batches(self.fragment_ids)


@dataclass(frozen=True, slots=True)
class ReadParts:
    """The function that a Python worker runs to read parts, given by their numbers."""

    parts: tuple[Any, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of each part in the types of Spark."""
        schema = readable_schema(self.parts[0].schema())
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for rows in self.parts[number].batches():
                    yield to_spark(rows, schema)


def _width(fields: Iterable[pa.Field]) -> tuple[int, bool]:
    """Return the least bytes of a row, and whether all values have a fixed size."""
    widths = [fixed_width(field.type) for field in fields]
    return sum(_VALUE_BYTES if width is None else width for width in widths), None not in widths


def _total_bytes(snapshot: Snapshot) -> int:
    return int(snapshot.manifest.fragments.counts().size_bytes.sum())


def _batch_rows(snapshot: Snapshot) -> int:
    """Return the rows per batch: many, because every batch has a fixed cost in the JVM."""
    num_rows = int(live_counts(snapshot).sum())
    row_bytes = max(1, _total_bytes(snapshot) // max(1, num_rows))
    return min(_BATCH_ROWS, max(DEFAULT_BATCH_ROWS, _BATCH_BYTES // row_bytes))


@dataclass(frozen=True, slots=True)
class MetadataTable:
    """A metadata table as a plan: it is in memory, and read by one task."""

    table: pa.Table

    @classmethod
    def of(cls, dataset: LanceDataset, name: str) -> MetadataTable:
        """Read a table in the types of Spark. Raises InvalidInputError for an unknown name."""
        table = metadata_table(dataset, name)
        schema = readable_schema(table.schema)
        batches = [to_spark(batch, schema) for batch in table.combine_chunks().to_batches()]
        return cls(pa.Table.from_batches(batches, schema))

    @property
    def schema(self) -> pa.Schema:
        """The columns in the types of Spark."""
        return self.table.schema

    def select(self, names: list[str]) -> MetadataTable:
        """Select columns."""
        return MetadataTable(self.table.select(names))

    def parts(self) -> list[None]:
        """Return the only part."""
        return [None]

    def batches(self, _part: None) -> list[pa.RecordBatch]:
        """Return the rows."""
        batches: list[pa.RecordBatch] = self.table.to_batches()
        return batches


def metadata_table(dataset: LanceDataset, name: str) -> pa.Table:
    """Return a metadata table. Raises InvalidInputError for a name that does not exist."""
    inspected = {
        "history": dataset.inspect.versions,
        "fragments": dataset.inspect.fragments,
        "files": dataset.inspect.data_files,
        "columns": dataset.inspect.columns,
    }
    if name in inspected:
        return inspected[name]()
    if name == "tags":
        return _refs(dataset.tags.list(), ("branch", "version"))
    if name == "branches":
        return _refs(dataset.branches.list(), ("parent_branch", "parent_version"))
    if name == "indices":
        rows = [
            {"name": index["name"], "type": index["type"], "fields": list(index["fields"])}
            for index in dataset.list_indices()
        ]
        return pa.Table.from_pylist(rows, _INDICES)
    if name == "transactions":
        return _transactions(dataset)
    raise InvalidInputError(f"table {name!r} is not one of {', '.join(TABLES)}")


_INDICES = pa.schema(
    [("name", pa.string()), ("type", pa.string()), ("fields", pa.list_(pa.string()))]
)


_TRANSACTIONS = pa.schema(
    [
        ("version", pa.int64()), ("read_version", pa.int64()), ("uuid", pa.string()),
        ("operation", pa.string()), ("description", pa.string()), ("details", pa.string()),
        ("properties", pa.map_(pa.string(), pa.string())),
    ]
)  # fmt: skip


def _transactions(dataset: LanceDataset) -> pa.Table:
    rows = []
    for version in dataset.version_numbers():
        done = dataset.transaction(version)
        if done is not None:
            rows.append(
                {
                    "version": version, "read_version": done.read_version, "uuid": done.uuid,
                    "operation": done.operation, "description": done.description,
                    "details": json.dumps(done.details), "properties": dict(done.properties),
                }
            )  # fmt: skip
    return pa.Table.from_pylist(rows, _TRANSACTIONS)


def _refs(records: dict[str, dict[str, Any]], keys: tuple[str, str]) -> pa.Table:
    branch, version = keys
    return pa.table(
        {
            "name": pa.array(list(records), pa.string()),
            branch: pa.array([record[branch] for record in records.values()], pa.string()),
            version: pa.array([record[version] for record in records.values()], pa.int64()),
        }
    )


# Operations that change no rows; they may change columns.
_NO_ROWS = QUIET | {"Merge", "Project"}
_FEED = (TYPE, VERSION, TIME)
_NO_IDS: Ids = np.zeros(0, np.int64)
CHANGED_ROWS = 500_000
"""The most rows that may have changed, of a share of a version's changes."""


@dataclass(frozen=True, slots=True)
class ChangePart:
    """The part of one task: new fragments of a version, or (None) a share of its row changes.

    ``share``: its number, and how many there are.
    """

    version: int
    fragment_ids: tuple[int, ...] | None
    share: tuple[int, int] = (0, 1)


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """How changes are read. ``schema`` is that of Spark; ``pinned`` was the newest version."""

    pinned: PinnedVersion
    columns: tuple[str, ...]
    schema: pa.Schema
    is_feed: bool
    key: tuple[str, ...]
    skips_changes: bool

    @classmethod
    def of(cls, options: SourceOptions) -> ChangePlan:
        """Plan from the newest version. Raises InvalidInputError, NotSupportedError."""
        dataset = options.open()
        if options.get("filter") is not None:
            raise InvalidInputError(
                "option filter is not supported for changes: filter the DataFrame in Spark"
            )
        names = options.columns or dataset.schema.names
        key, is_feed = options.names("key"), options.is_set("readchangefeed")
        all_names = dataset.schema.names
        for name in (*names, *key):
            if name not in all_names:
                raise InvalidInputError(f"no column {name!r}; columns: {', '.join(all_names)}")
        fields = [dataset.schema.field(name) for name in names]
        if is_feed:
            changes = dataset.changes(dataset.version, None, names, key=list(key) or None)
            fields = list(changes.schema)
        schema = readable_schema(pa.schema(fields))
        skips = options.is_set("skipchangecommits")
        return cls(
            PinnedVersion.of(dataset),
            tuple(names),
            schema,
            is_feed=is_feed,
            key=key,
            skips_changes=skips,
        )

    def select(self, names: list[str]) -> ChangePlan:
        """Select columns. Raises InvalidInputError for an unknown column."""
        missing = [name for name in names if name not in self.schema.names]
        if missing:
            known_names = ", ".join(self.schema.names)
            raise InvalidInputError(f"no column {missing[0]!r}; columns: {known_names}")
        schema = pa.schema([self.schema.field(name) for name in names])
        return replace(self, schema=schema)

    def numbers(self) -> list[int]:
        """List the existing versions."""
        return self.pinned.session().log(self.pinned.branch).numbers()

    def parts(self, start: int, end: int) -> list[ChangePart]:
        """Return the parts to read for the versions after ``start`` up to ``end``.

        Raises VersionNotFoundError for a version that was cleaned up, NotSupportedError for a
        change of existing rows.
        """
        if start >= end:
            return []
        if start < 0:
            return list(self._of_fragments(end, _NO_IDS))
        numbers = set(self.numbers())
        missing = [number for number in range(start + 1, end + 1) if number not in numbers]
        if missing:
            raise VersionNotFoundError(
                self.pinned.uri, missing[0], f"{min(numbers)} to {max(numbers)}; the version was "
                "cleaned up before this stream read it; restart it with startingVersion, or with "
                "all rows",
            )  # fmt: skip
        return [part for number in range(start + 1, end + 1) for part in self._of_version(number)]

    def _of_version(self, version: int) -> Iterator[ChangePart]:
        done = self.pinned.session().log(self.pinned.branch).transaction(version)
        name = "an unknown operation" if done is None else done.operation
        if name in _NO_ROWS:
            return
        if version == 1:
            yield from self._of_fragments(version, _NO_IDS)
        elif self.is_feed and name != "Append":
            of = self._num_shares(version)
            yield from (ChangePart(version, None, (number, of)) for number in range(of))
        elif name == "Append":
            before = self._dataset(version - 1).opened[1].manifest.fragments.counts().ids
            yield from self._of_fragments(version, np.sort(before))
        elif not self.skips_changes:
            raise NotSupportedError(
                f"version {version} ({name}) changed existing rows, but this stream reads appended "
                "rows only: set option skipChangeCommits to skip such versions, or "
                "readChangeFeed to read the changes"
            )

    def _num_shares(self, version: int) -> int:
        """Return into how many shares the row changes of a version are split."""
        after, before = self._dataset(version), self._dataset(version - 1)
        counts = after.diff(before, key=list(self.key) or None).counts
        num_rows = counts.rows_in + counts.rows_out + counts.rows_deleted
        return max(1, -(-num_rows // CHANGED_ROWS))

    def _of_fragments(self, version: int, ids_before: Ids) -> Iterator[ChangePart]:
        _, snapshot = replace(self.pinned, version=version).open()
        for ids, _ in group_fragments(snapshot, TASK_BYTES, lambda ids: ~among(ids, ids_before)):
            yield ChangePart(version, ids)

    def batches(self, part: ChangePart) -> Iterator[pa.RecordBatch]:
        """Read one part in the types of Spark."""
        for batch in self._batches(part):
            yield to_spark(_shaped(batch, self.schema.names, self.schema), self.schema)

    def _batches(self, part: ChangePart) -> Iterator[pa.RecordBatch]:
        dataset = self._dataset(part.version)
        if part.fragment_ids is None:
            session, after = dataset.opened
            before = self._dataset(part.version - 1).opened[1]
            columns, key = self._stored(dataset), list(self.key) or None
            feed = make_feed(
                session,
                (before, after),
                columns,
                key=key,
                batch_size=DEFAULT_BATCH_ROWS,
                share=part.share,
            )
            yield from feed.reader()
            return
        pinned = replace(self.pinned, version=part.version)
        rows = dataset.scanner(
            columns=self._stored(dataset),
            fragments=pinned.fragments(set(part.fragment_ids)),
            with_row_id=ROW_ID in self.schema.names,
        )
        commit_time = dataset.version_info(part.version).timestamp if self.is_feed else None
        for batch in rows.to_batches():
            yield _as_inserts(batch, part.version, commit_time) if self.is_feed else batch

    def _stored(self, dataset: LanceDataset) -> list[str]:
        names = dataset.schema.names
        return [
            column for column in self.columns if column in names and column in self.schema.names
        ]

    def _dataset(self, version: int) -> LanceDataset:
        return replace(self.pinned, version=version).dataset()


@dataclass(frozen=True, slots=True)
class ChangeRange:
    """The change feed after version ``start`` up to ``end``, as a plan."""

    plan: ChangePlan
    start: int
    end: int

    @classmethod
    def of(cls, options: SourceOptions) -> ChangeRange:
        """Plan the versions of the options. Raises InvalidInputError, NotSupportedError."""
        plan = ChangePlan.of(options)
        start = options.starting_version or 1
        end = options.number("endingversion") or plan.pinned.version
        return cls(plan, start - 1 if start > 0 else end, end)

    @property
    def schema(self) -> pa.Schema:
        """The columns in the types of Spark."""
        return self.plan.schema

    def select(self, names: list[str]) -> ChangeRange:
        """Select columns. Raises InvalidInputError for an unknown column."""
        return replace(self, plan=self.plan.select(names))

    def parts(self) -> list[ChangePart]:
        """Return the parts of all versions; raises as ``ChangePlan.parts`` does."""
        return self.plan.parts(self.start, self.end)

    def batches(self, part: ChangePart) -> Iterator[pa.RecordBatch]:
        """Read one part."""
        return self.plan.batches(part)


def _as_inserts(
    batch: pa.RecordBatch, version: int, commit_time: datetime | None
) -> pa.RecordBatch:
    count = batch.num_rows
    feed = (
        pa.repeat(INSERT, count),
        pa.repeat(pa.scalar(version, pa.uint64()), count),
        pa.repeat(pa.scalar(commit_time, pa.timestamp("us", "UTC")), count),
    )
    arrays = [*feed, *batch.columns]
    return pa.RecordBatch.from_arrays(arrays, names=[*_FEED, *batch.schema.names])


def _shaped(batch: pa.RecordBatch, names: Sequence[str], schema: pa.Schema) -> pa.RecordBatch:
    """Select columns; a column that the version does not have is null."""
    have = batch.schema.names
    arrays: list[Any] = [
        batch.column(have.index(name))
        if name in have
        else pa.nulls(batch.num_rows, schema.field(name).type)
        for name in names
    ]
    return pa.RecordBatch.from_arrays(arrays, names=list(names))
