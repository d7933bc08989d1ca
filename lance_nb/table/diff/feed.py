"""The change feed: every change of every version between two, as one Arrow stream.

Columns: ``_change_type`` ("insert", "update_preimage", "update_postimage", "delete"),
``_commit_version``, ``_commit_timestamp``, ``_rowid`` (where row ids are stable), then the columns
of the newest version, under the names that they have there; where a version had no such column, or
in a type that cannot be cast, it is null. In a version deletes come first, then updates (each
batch of old values followed by its new ones), then inserts.

Limits: rows must be identified by stable row ids or a key; versions between must still exist.
Versions whose operation changes no row are not opened.
Source: the change data feeds of other table formats; the diff does the work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from lance_nb.arrow_casts import cast_array
from lance_nb.errors import InvalidInputError
from lance_nb.table.diff.columns import choose_columns, find_renames, pair_columns
from lance_nb.table.diff.compare_plan import BY_ADDRESS, Identity, choose_identity, has_row_ids
from lance_nb.table.diff.merge_base import Ends, Source, find_ends
from lance_nb.table.diff.row_level import Compared, Page, RowLevel
from lance_nb.table.diff.version_diff import Diff
from lance_nb.table.projection import ROW_ADDRESS, ROW_ID, project
from lance_nb.table.refs import Target
from lance_nb.table.snapshot import Snapshot
from lance_nb.value_classes import dataclass

TYPE, VERSION, TIME = "_change_type", "_commit_version", "_commit_timestamp"
INSERT, BEFORE, AFTER, DELETE = "insert", "update_preimage", "update_postimage", "delete"
# Operations that leave every row as it is.
QUIET = frozenset({
    "Clone", "CreateIndex", "ReserveFragments", "Rewrite", "UpdateBases", "UpdateConfig",
    "UpdateMemWalState",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Feed:
    """The changes between two versions; ``label`` says by what rows are told apart.

    ``share``: number ``share[0]`` of ``share[1]`` parts of about the same size, which together are
    all changes.
    """

    ends: Ends
    identity: Identity
    columns: tuple[str, ...]
    batch_size: int
    share: tuple[int, int] = (0, 1)

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the stream."""
        fields = [
            pa.field(TYPE, pa.string()),
            pa.field(VERSION, pa.uint64()),
            pa.field(TIME, pa.timestamp("us", "UTC")),
        ]
        if has_row_ids(self.ends.a) and has_row_ids(self.ends.b):
            fields.append(pa.field(ROW_ID, pa.uint64()))
        values = project(self.ends.b.manifest.schema, list(self.columns)).schema
        return pa.schema([*fields, *(field.with_nullable(True) for field in values)])

    def reader(self) -> pa.RecordBatchReader:
        """Return the stream; each version is read when it is its turn."""
        return pa.RecordBatchReader.from_batches(self.schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        before = self.ends.a
        for stretch in self.ends.between:
            log = self.ends.source.log(stretch.branch)
            for version in range(stretch.after + 1, stretch.upto + 1):
                done = log.transaction(version)
                if done is not None and done.operation in QUIET:
                    continue
                target = Target(stretch.branch, version)
                last = self._previous(before, target)
                after = self.ends.source.load(target)
                diff = Diff(find_ends(self.ends.source, last, after), self.identity)
                yield from self._changes(diff)
                before = after

    def _previous(self, before: Snapshot, target: Target) -> Snapshot:
        """Return the version before, which may be one that was skipped."""
        version = (target.version or 0) - 1
        if (before.branch, before.version) == (target.branch, version):
            return before
        if before.version == version:  # the one that the branch was forked from
            return before
        return self.ends.source.load(Target(target.branch, version))

    def _changes(self, diff: Diff) -> Iterator[pa.RecordBatch]:
        then = find_renames(find_ends(self.ends.source, diff.ends.b, self.ends.b))
        have = {column_pair.name for column_pair in diff.column_pairs}
        names = [then.get(name, name) for name in self.columns]
        names = [name for name in names if name in have]
        number, of = self.share
        level = RowLevel(diff.ends, diff.match, diff.column_pairs, diff.matched_by)
        level = level if of == 1 else level.share(number, of)
        page = Page(batch_size=self.batch_size)
        for kind, type_ in (("removed", DELETE), ("changed", AFTER), ("added", INSERT)):
            if kind == "changed":
                for before, after in level.both_sides(names, page):
                    yield self._shown(diff, before, BEFORE, then)
                    yield self._shown(diff, after, AFTER, then)
                continue
            for batch in level.rows(Compared(names, new_columns=False), [kind], page):
                yield self._shown(diff, batch, type_, then)

    def _shown(
        self, diff: Diff, batch: pa.RecordBatch, type_: str, then: Mapping[str, str]
    ) -> pa.RecordBatch:
        count, manifest = batch.num_rows, diff.ends.b.manifest
        commit_time = pa.scalar(manifest.timestamp, pa.timestamp("us", "UTC"))
        arrays = [
            pa.repeat(type_, count),
            pa.repeat(pa.scalar(manifest.version, pa.uint64()), count),
            pa.repeat(commit_time, count),
        ]
        schema = self.schema
        arrays += [
            _column(batch, field, then.get(field.name, field.name))
            for field in list(schema)[len(arrays) :]
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _column(batch: pa.RecordBatch, field: pa.Field, name: str) -> pa.Array:
    place = batch.schema.get_field_index(name)
    if place < 0:
        return pa.nulls(batch.num_rows, field.type)
    values = batch.column(place)
    if values.type == field.type:
        return values
    try:
        return cast_array(values, field.type)
    except pa.ArrowException:
        return pa.nulls(batch.num_rows, field.type)


def make_feed(
    source: Source,
    versions: tuple[Snapshot, Snapshot],
    columns: Sequence[str] | None,
    key: Sequence[str] | str | None,
    batch_size: int,
    *,
    share: tuple[int, int] = (0, 1),
) -> Feed:
    """Check what is asked for. Raises InvalidInputError, ColumnNotFoundError."""
    begin, end = versions
    identity = choose_identity(begin, end, key)
    if identity.label == BY_ADDRESS and key is None:
        raise InvalidInputError(
            "a change feed needs to know which row is which: the dataset has no stable row ids "
            "(write it with enable_stable_row_ids=True) and no unenforced primary key; give "
            f"key=[columns], or key={ROW_ADDRESS!r} to see updates as a delete and an insert"
        )
    if batch_size <= 0:
        raise InvalidInputError(f"batch_size must be positive, got {batch_size}")
    ends = find_ends(source, begin, end)
    if ends.ancestor is None or any(stretch.side == "a" for stretch in ends.between):
        raise InvalidInputError(
            f"version {begin.version} of {begin.branch or 'main'} is not in the past of version "
            f"{end.version} of {end.branch or 'main'}; a change feed goes forward"
        )
    pairs = pair_columns(begin.manifest.schema, end.manifest.schema, {})
    have = [pair for pair in pairs if pair.b is not None]
    names = tuple(pair.name for pair in choose_columns(have, columns))
    return Feed(ends, identity, names, batch_size=batch_size, share=share)
