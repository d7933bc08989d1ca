"""What came after a version: the rows of a stream, or of a batch that reads the change feed.

Offsets are versions: offset ``v`` means that everything up to version ``v`` has been read. Offset
-1 is where a stream begins: what comes after it is the whole dataset as it is then. Compactions,
indices, settings and new columns change no row and are passed over.

======================  ==========================================================================
read                    rows
======================  ==========================================================================
appended rows           those of fragments that an Append added, as they were in that version; any
                        other change of rows is an error, or passed over with ``skipChangeCommits``
change feed             every change, with ``_change_type``, ``_commit_version`` and
                        ``_commit_timestamp``; needs stable row ids, or a key
======================  ==========================================================================

Limits: the columns are those of the version that was newest when the stream began; a column that a
version does not have is null. Versions must not have been cleaned up before they are read.
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
from lance_nb.spark.packing import TASK_BYTES, pack_fragments
from lance_nb.spark.place import Place
from lance_nb.spark.source.options import SourceOptions
from lance_nb.spark.types import readable_schema, to_spark
from lance_nb.table.diff.feed import INSERT, QUIET, TIME, TYPE, VERSION
from lance_nb.table.projection import ROW_ID

# The offset before everything.
WHOLE = -1
# Operations that leave the rows as they are, those that change columns included.
_NO_ROWS = QUIET | {"Merge", "Project"}
_FEED = (TYPE, VERSION, TIME)


@dataclass(frozen=True, slots=True)
class ChangePart:
    """What one task reads: fragments of one version (all that it has in them), or its changes."""

    version: int
    fragment_ids: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """How changes are read. ``schema`` is what Spark sees; ``place`` was the newest version."""

    place: Place
    columns: tuple[str, ...]
    schema: pa.Schema
    is_feed: bool
    key: tuple[str, ...]
    skips_changes: bool

    @classmethod
    def of(cls, options: SourceOptions) -> ChangePlan:
        """Look at the newest version. Raises InvalidInputError, NotSupportedError."""
        dataset = options.open()
        if options.get("filter") is not None:
            raise InvalidInputError("option filter does not go with changes: filter in Spark")
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
        return cls(Place.of(dataset), tuple(names), schema, is_feed, key, skips)

    def only(self, names: list[str]) -> ChangePlan:
        """Read only these columns. Raises InvalidInputError for one that is not there."""
        missing = [name for name in names if name not in self.schema.names]
        if missing:
            known = ", ".join(self.schema.names)
            raise InvalidInputError(f"no column {missing[0]!r}; columns: {known}")
        schema = pa.schema([self.schema.field(name) for name in names])
        return replace(self, schema=schema)

    def numbers(self) -> list[int]:
        """List the versions that exist now."""
        return self.place.session().log(self.place.branch).numbers()

    def parts(self, start: int, end: int) -> list[ChangePart]:
        """Say what tasks read for the versions after ``start`` up to ``end``.

        Raises VersionNotFoundError for one that was cleaned up, NotSupportedError for a change of
        rows that are there already.
        """
        if start >= end:
            return []
        if start < 0:
            return list(self._of_fragments(end, None))
        known = set(self.numbers())
        gone = [one for one in range(start + 1, end + 1) if one not in known]
        if gone:
            raise VersionNotFoundError(
                self.place.uri, gone[0], f"{min(known)} to {max(known)}; it was cleaned up before "
                "this stream has read it: begin again with startingVersion, or with all rows",
            )  # fmt: skip
        return [part for one in range(start + 1, end + 1) for part in self._of_version(one)]

    def _of_version(self, version: int) -> Iterator[ChangePart]:
        done = self.place.session().log(self.place.branch).transaction(version)
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
                f"version {version} ({name}) changed rows that were there, and this stream reads "
                "appended rows only: set option skipChangeCommits to pass over such versions, or "
                "readChangeFeed to read changes"
            )

    def _of_fragments(self, version: int, known: frozenset[int] | None) -> Iterator[ChangePart]:
        _, snapshot = replace(self.place, version=version).open()
        fragments = [
            one for one in snapshot.manifest.fragments if known is None or one.id not in known
        ]
        for ids, _ in pack_fragments(fragments, TASK_BYTES):
            yield ChangePart(version, ids)

    def batches(self, part: ChangePart) -> Iterator[pa.RecordBatch]:
        """Read one part, as Spark wants it."""
        for batch in self._batches(part):
            yield to_spark(_shaped(batch, self.schema.names, self.schema), self.schema)

    def _batches(self, part: ChangePart) -> Iterator[pa.RecordBatch]:
        dataset = self._dataset(part.version)
        if part.fragment_ids is None:
            key = list(self.key) or None
            yield from dataset.changes(part.version - 1, None, self._stored(dataset), key=key)
            return
        place = replace(self.place, version=part.version)
        rows = dataset.scanner(
            columns=self._stored(dataset),
            fragments=place.fragments(set(part.fragment_ids)),
            with_row_id=ROW_ID in self.schema.names,
        )
        made = dataset.version_info(part.version).timestamp if self.is_feed else None
        for batch in rows.to_batches():
            yield _as_inserts(batch, part.version, made) if self.is_feed else batch

    def _stored(self, dataset: LanceDataset) -> list[str]:
        known = dataset.schema.names
        return [one for one in self.columns if one in known and one in self.schema.names]

    def _dataset(self, version: int) -> LanceDataset:
        return replace(self.place, version=version).dataset()


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
    """Return the columns that are wanted; those that the version did not have are null."""
    have = batch.schema.names
    arrays: list[Any] = [
        batch.column(have.index(name))
        if name in have
        else pa.nulls(batch.num_rows, schema.field(name).type)
        for name in names
    ]
    return pa.RecordBatch.from_arrays(arrays, names=list(names))
