"""Read what changed after a version: as a stream, or as a batch of the change feed.

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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa

from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError, NotSupportedError, VersionNotFoundError
from lance_nb.spark.plan import TASK_BYTES, PinnedVersion, group_fragments
from lance_nb.spark.source.options import SourceOptions
from lance_nb.spark.types import readable_schema, to_spark
from lance_nb.table.diff.feed import INSERT, QUIET, TIME, TYPE, VERSION
from lance_nb.table.projection import ROW_ID

# The offset before the first version.
WHOLE = -1
# Operations that change no rows; they may change columns.
_NO_ROWS = QUIET | {"Merge", "Project"}
_FEED = (TYPE, VERSION, TIME)


@dataclass(frozen=True, slots=True)
class ChangePart:
    """The part of one task: some fragments of a version, or (None) its row changes."""

    version: int
    fragment_ids: tuple[int, ...] | None


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
        known = dataset.schema.names
        for name in (*names, *key):
            if name not in known:
                raise InvalidInputError(f"no column {name!r}; columns: {', '.join(known)}")
        fields = [dataset.schema.field(name) for name in names]
        if is_feed:
            found = dataset.changes(dataset.version, None, names, key=list(key) or None)
            fields = list(found.schema)
        schema = readable_schema(pa.schema(fields))
        skips = options.is_set("skipchangecommits")
        return cls(PinnedVersion.of(dataset), tuple(names), schema, is_feed, key, skips)

    def select(self, names: list[str]) -> ChangePlan:
        """Select columns. Raises InvalidInputError for an unknown column."""
        missing = [name for name in names if name not in self.schema.names]
        if missing:
            known = ", ".join(self.schema.names)
            raise InvalidInputError(f"no column {missing[0]!r}; columns: {known}")
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
            return list(self._of_fragments(end, None))
        known = set(self.numbers())
        gone = [one for one in range(start + 1, end + 1) if one not in known]
        if gone:
            raise VersionNotFoundError(
                self.pinned.uri, gone[0], f"{min(known)} to {max(known)}; the version was "
                "cleaned up before this stream read it; restart it with startingVersion, or with "
                "all rows",
            )  # fmt: skip
        return [part for one in range(start + 1, end + 1) for part in self._of_version(one)]

    def _of_version(self, version: int) -> Iterator[ChangePart]:
        done = self.pinned.session().log(self.pinned.branch).transaction(version)
        name = "an unknown operation" if done is None else done.operation
        if name in _NO_ROWS:
            return
        if version == 1:
            yield from self._of_fragments(version, None)
        elif self.is_feed:
            yield ChangePart(version, None)
        elif name == "Append":
            yield from self._of_fragments(version, _ids(self._dataset(version - 1)))
        elif not self.skips_changes:
            raise NotSupportedError(
                f"version {version} ({name}) changed existing rows, but this stream reads appended "
                "rows only: set option skipChangeCommits to skip such versions, or "
                "readChangeFeed to read the changes"
            )

    def _of_fragments(self, version: int, known: frozenset[int] | None) -> Iterator[ChangePart]:
        _, snapshot = replace(self.pinned, version=version).open()
        fragments = [
            one for one in snapshot.manifest.fragments if known is None or one.id not in known
        ]
        for ids, _ in group_fragments(fragments, TASK_BYTES):
            yield ChangePart(version, ids)

    def batches(self, part: ChangePart) -> Iterator[pa.RecordBatch]:
        """Read one part in the types of Spark."""
        for batch in self._batches(part):
            yield to_spark(_shaped(batch, self.schema.names, self.schema), self.schema)

    def _batches(self, part: ChangePart) -> Iterator[pa.RecordBatch]:
        dataset = self._dataset(part.version)
        if part.fragment_ids is None:
            key = list(self.key) or None
            yield from dataset.changes(part.version - 1, None, self._stored(dataset), key=key)
            return
        pinned = replace(self.pinned, version=part.version)
        rows = dataset.scanner(
            columns=self._stored(dataset),
            fragments=pinned.fragments(set(part.fragment_ids)),
            with_row_id=ROW_ID in self.schema.names,
        )
        made = dataset.version_info(part.version).timestamp if self.is_feed else None
        for batch in rows.to_batches():
            yield _as_inserts(batch, part.version, made) if self.is_feed else batch

    def _stored(self, dataset: LanceDataset) -> list[str]:
        known = dataset.schema.names
        return [one for one in self.columns if one in known and one in self.schema.names]

    def _dataset(self, version: int) -> LanceDataset:
        return replace(self.pinned, version=version).dataset()


def _ids(dataset: LanceDataset) -> frozenset[int]:
    counts = dataset.opened[1].manifest.fragments.counts()
    return frozenset(counts.ids.tolist())


def _as_inserts(batch: pa.RecordBatch, version: int, made: datetime | None) -> pa.RecordBatch:
    count = batch.num_rows
    feed = (
        pa.repeat(INSERT, count),
        pa.repeat(pa.scalar(version, pa.uint64()), count),
        pa.repeat(pa.scalar(made, pa.timestamp("us", "UTC")), count),
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
