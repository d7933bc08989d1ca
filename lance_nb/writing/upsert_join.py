"""TODO."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_nb import arrow_compute as pc
from lance_nb.arrow_casts import cast_table
from lance_nb.encodings.arrow_parts import nulls_of, one_array, taken_rows
from lance_nb.encodings.base import Ints
from lance_nb.encodings.kernels.memory import from_integers, to_integers
from lance_nb.errors import MergeInsertError, NotSupportedError, PredicateError
from lance_nb.format.fragment import Fragment
from lance_nb.format.schema import Schema
from lance_nb.indices.search import row_choice
from lance_nb.table.filtered_scan import (
    RowChoice,
    Selected,
    quoted,
    read_columns,
    selected_table,
    windows_of,
)
from lance_nb.table.fragment_reader import read_rows
from lance_nb.table.predicate import Columns, Filter, compile_filter
from lance_nb.table.predicate.comparison import in_set
from lance_nb.table.predicate.expression import Column, call
from lance_nb.table.projection import ROW_ADDRESS, ROW_COLUMNS, ROW_ID, project, result_table
from lance_nb.table.row_selection import select_rows
from lance_nb.table.scan_tasks import live_counts
from lance_nb.table.snapshot import Snapshot
from lance_nb.value_classes import dataclass
from lance_nb.writing.upsert_source import MergeClauses, SourceRows, WhenMatched

_TABLE_SIZE_MAX = 1 << 24
_DENSE = 16
_SPARSE = 256
_TOGETHER_ROWS = 1 << 17
_WINDOW_ROWS = 1 << 16
_BLOCK_ROWS = 1 << 14
INDEXED_KEYS_MAX = 10_000


# Types whose equal values are the same for filters and for keys: not so NaN and 0.0.
_INDEXED = (
    pt.is_integer, pt.is_string, pt.is_large_string, pt.is_binary, pt.is_large_binary, pt.is_date,
    pt.is_timestamp,
)  # fmt: skip
_ROW_FIELDS = [pa.field(ROW_ID, pa.uint64()), pa.field(ROW_ADDRESS, pa.uint64())]
Path = tuple[str, ...]
NOTHING: Ints = np.zeros(0, np.int64)


# --- numbers for keys -----------------------------------------------------------------------------


class KeyNumbers:
    """The distinct keys of the source."""

    def __init__(self, keys: pa.Table) -> None:
        parts = list(_parts(keys))
        self.num_rows = keys.num_rows
        self._columns = [_Column.of(part) for part in parts]
        self._pairs: list[Ints] = []
        numbers = self._columns[0].find(parts[0])
        for column, part in zip(self._columns[1:], parts[1:], strict=True):
            combined = _combined(numbers, column.find(part), column.size)
            pairs_present = np.unique(combined[combined >= 0])
            self._pairs.append(pairs_present)
            numbers = _positions(pairs_present, combined)
        order = np.argsort(numbers, kind="stable")
        # Source rows by number, rows without a key left out.
        self._order = order[np.searchsorted(numbers[order], 0) :]
        size = int(numbers.max(initial=-1)) + 1
        counts = np.bincount(numbers[numbers >= 0], minlength=size)
        self._starts = np.concatenate([[0], np.cumsum(counts)])

    def find(self, keys: pa.Table) -> tuple[Ints, Ints]:
        """Return the rows whose key the source has, ascending, and the numbers of their keys."""
        parts = list(_parts(keys))
        if len(parts) == 1:
            return self._columns[0].matches(parts[0])
        numbers = self._columns[0].find(parts[0])
        later_columns = zip(self._columns[1:], parts[1:], self._pairs, strict=True)
        for column, part, pair_values in later_columns:
            numbers = _positions(pair_values, _combined(numbers, column.find(part), column.size))
        return _known(numbers)

    def pairs(self, places: Ints, numbers: Ints) -> tuple[Ints, Ints]:
        """Return places and the source row of each partner, all of them, of ``numbers`` there."""
        first = self._starts[numbers]
        counts = self._starts[numbers + 1] - first
        if (counts == 1).all():
            return places, self._order[first]
        ends = np.cumsum(counts)
        within = np.arange(int(ends[-1])) - np.repeat(ends - counts, counts)
        return np.repeat(places, counts), self._order[np.repeat(first, counts) + within]


def _known(numbers: Ints) -> tuple[Ints, Ints]:
    """Return where numbers are not -1, and these."""
    places = np.flatnonzero(numbers >= 0)
    return places, numbers[places]


def _combined(left: Ints, right: Ints, size: int) -> Ints:
    """Return numbers of pairs, -1 where either has none; both stay below the number of rows."""
    combinations = left * size + right
    combinations[(left < 0) | (right < 0)] = -1
    return combinations


def _positions(present: Ints, values: Ints) -> Ints:
    """Return where each value lies in the ascending ``present``, -1 if it does not."""
    if not present.size:
        return np.full(values.shape, -1, np.int64)
    place = np.searchsorted(present, values)
    place[place == present.size] = 0
    return np.where(present[place] == values, place, -1)


@dataclass(frozen=True, slots=True)
class _Part:
    """A column that Arrow can hash; ``nulls_match``: its nulls equal each other."""

    values: pa.ChunkedArray
    nulls_match: bool = False


@dataclass(frozen=True, slots=True)
class _Column:
    """The distinct values of one part of the key: ``values``, or how far they lie above ``lowest``.

    Distances begin at 1. ``is_there`` tells of each distance whether it is a value's; its first and
    last place stand for all below and beyond, and are none. ``ranks`` are the numbers by distance
    where the values are dense, else ``distances`` has them in ascending order.
    """

    count: int
    values: Any = None
    lowest: int = 0
    is_there: Any = None
    ranks: Any = None
    distances: Any = None

    @property
    def size(self) -> int:
        """Numbers in use: one more than the values, for null."""
        return self.count + 1

    @classmethod
    def of(cls, part: _Part) -> _Column:
        if pt.is_integer(part.values.type) and part.values.null_count < len(part.values):
            bounds = pc.min_max(part.values)
            lowest, highest = bounds["min"].as_py(), bounds["max"].as_py()
            if highest - lowest < min(_TABLE_SIZE_MAX, len(part.values) * _SPARSE + (1 << 16)):
                return cls._near(to_integers(one_array(pc.drop_null(part.values))), lowest, highest)
        values = pc.drop_null(pc.unique(part.values))
        return cls(len(values), values)

    @classmethod
    def _near(cls, values: np.ndarray, lowest: int, highest: int) -> _Column:
        is_there = np.zeros(highest - lowest + 3, np.bool_)
        is_there[_distances(values, lowest)] = True
        if len(is_there) < len(values) * _DENSE:
            ranks = np.cumsum(is_there) - 1
            return cls(int(ranks[-1]) + 1, None, lowest, is_there=is_there, ranks=ranks)
        distances = np.flatnonzero(is_there)
        return cls(len(distances), None, lowest, is_there=is_there, ranks=None, distances=distances)

    def find(self, part: _Part) -> Ints:
        """Return the number of each value, -1 for others and for nulls that match nothing."""
        column = part.values
        if self.is_there is None:
            numbers = self._hashed(column)
        else:
            numbers = np.full(len(column), -1, np.int64)
            places, positions = self._looked_up(column)
            numbers[places] = positions
        if column.null_count:
            is_null = [
                np.zeros(len(chunk), np.bool_) if (nulls := nulls_of(chunk)) is None else nulls
                for chunk in column.chunks
            ]
            numbers[np.concatenate(is_null)] = self.count if part.nulls_match else -1
        return numbers

    def matches(self, part: _Part) -> tuple[Ints, Ints]:
        """Return where the values are that have a number, ascending, and these numbers."""
        if self.is_there is None or part.values.null_count:
            return _known(self.find(part))
        return self._looked_up(part.values)

    def _hashed(self, column: pa.ChunkedArray) -> Ints:
        if not self.count:
            return np.full(len(column), -1, np.int64)
        positions = one_array(pc.index_in(column, value_set=self.values, skip_nulls=True))
        numbers: Ints = to_integers(positions).astype(np.int64)
        if positions.null_count:
            numbers[nulls_of(positions)] = -1
        return numbers

    def _looked_up(self, column: pa.ChunkedArray) -> tuple[Ints, Ints]:
        """Do the same for integers; nulls count as ``lowest``. A block stays in the cache."""
        plain = pc.fill_null(column, self.lowest) if column.null_count else column
        places, distances = [NOTHING], [NOTHING]
        before = 0
        for chunk in plain.chunks:
            values = to_integers(chunk)
            for start in range(0, len(values), _BLOCK_ROWS):
                every = _distances(values[start : start + _BLOCK_ROWS], self.lowest)
                matches = np.flatnonzero(self.is_there.take(every, mode="clip"))
                distances.append(every[matches])
                matches += before + start
                places.append(matches)
            before += len(values)
        all_distances = np.concatenate(distances)
        if self.ranks is None:
            numbers: Ints = np.searchsorted(self.distances, all_distances)
        else:
            numbers = self.ranks[all_distances]
        return np.concatenate(places), numbers


def _distances(values: np.ndarray, lowest: int) -> Ints:
    """Return how far values lie above the one before ``lowest``.

    Those below are not positive; whichever wraps around is far on either side.
    """
    unsigned = values if values.dtype == np.uint64 else values.astype(np.int64, copy=False)
    distances: Ints = (unsigned.view(np.uint64) - np.uint64((lowest - 1) % 2**64)).view(np.int64)
    return distances


def _parts(keys: pa.Table) -> Iterator[_Part]:
    for name in keys.column_names:
        yield from _plain(_Part(keys[name]), name)


def _plain(part: _Part, name: str) -> Iterator[_Part]:
    """Yield columns that Arrow can hash, which are equal where the keys are."""
    column, type_ = part.values, part.values.type

    def changed(change: Any, to: pa.DataType) -> _Part:
        return _Part(_mapped(column, change, to), part.nulls_match)

    if isinstance(type_, pa.BaseExtensionType):
        yield from _plain(changed(lambda array: array.storage, type_.storage_type), name)
    elif pt.is_dictionary(type_):
        yield from _plain(_Part(pc.cast(column, type_.value_type), part.nulls_match), name)
    elif pt.is_struct(type_) or pt.is_fixed_size_list(type_):
        yield changed(_presence, pa.uint8())
        for child in _children(column):
            yield from _plain(_Part(child, nulls_match=True), name)
    elif pt.is_floating(type_):
        yield changed(_bits, pa.uint64())
    elif pt.is_nested(type_):
        raise NotSupportedError(f"the key {name!r} is a {type_}: rows are not matched by lists")
    else:
        yield part


def _children(column: pa.ChunkedArray) -> Iterator[pa.ChunkedArray]:
    """Yield the fields of structs, the items of vectors; null where the whole is."""
    type_ = column.type
    if pt.is_struct(type_):
        for number, field in enumerate(type_):
            yield _mapped(column, lambda array, index=number: array.flatten()[index], field.type)
    else:
        for number in range(type_.list_size):
            yield _mapped(
                column, lambda array, index=number: pc.list_element(array, index), type_.value_type
            )


def _presence(values: pa.Array) -> pa.Array:
    """Return 1 where there is a value, else null."""
    return pc.if_else(values.is_valid(), pa.scalar(1, pa.uint8()), pa.scalar(None, pa.uint8()))


def _mapped(column: pa.ChunkedArray, change: Any, type_: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([change(chunk) for chunk in column.chunks], type_)


def _bits(values: pa.Array) -> pa.Array:
    """Return the bits of floating-point numbers, one form of NaN only."""
    numbers = pc.fill_null(values, 0).to_numpy(zero_copy_only=False)
    wide = numbers.astype(np.float64)
    wide[np.isnan(wide)] = np.nan
    bits = from_integers(wide.view(np.uint64))
    if not values.null_count:
        return bits
    return pc.if_else(values.is_valid(), bits, pa.scalar(None, pa.uint64()))


# --- the join -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Matches:
    """Rows of one fragment and their partners.

    ``physical``: offsets of matched rows, ascending, once per partner; ``source``: the partner's
    row number. ``unmatched``: offsets of live rows without a partner, ascending; none unless asked
    for.
    """

    fragment: Fragment
    physical: Ints
    source: Ints
    unmatched: Ints

    def only(self, keep: np.ndarray) -> Matches:
        """Return some of the matches, with all the unmatched rows."""
        return Matches(self.fragment, self.physical[keep], self.source[keep], self.unmatched)


@dataclass(frozen=True, slots=True)
class KeyWindow:
    """Live rows of one fragment: their offsets, ascending, and their keys."""

    fragment: Fragment
    physical: Ints | range
    keys: pa.Table

    def offsets(self, places: Ints) -> Ints:
        """Return the offsets in the fragment of some of the rows."""
        if isinstance(self.physical, range):
            return places + self.physical.start
        return self.physical[places]


def read_keys(
    snapshot: Snapshot, names: Sequence[str], fragments: Sequence[Fragment] | None = None
) -> Iterator[KeyWindow]:
    """Read the key columns of all fragments, or of some.

    Raises CorruptFileError, StorageError.
    """
    projection = project(snapshot.manifest.schema, [quoted([name]) for name in names])
    for window in windows_of(snapshot, fragments, projection, include_deleted=False):
        live = window.read
        stored = live.filter(read_rows(snapshot, window.fragment, projection.columns, live.rows))
        table = result_table(projection, stored, {}, window.num_rows).rename_columns(list(names))
        physical = live.physical if live.mask is not None else live.span
        yield KeyWindow(window.fragment, physical, table.replace_schema_metadata(None))


def join(
    windows: Iterable[KeyWindow],
    keys: KeyNumbers,
    seen: Callable[[int], None] | None = None,
    *,
    with_unmatched: bool = True,
) -> Iterator[Matches]:
    """Yield the matches of every fragment, in the order given; ``seen`` counts rows read."""
    parts = _looked_up(windows, keys, seen, with_unmatched=with_unmatched)
    for _, fragment_parts in groupby(parts, key=lambda part: part.fragment.id):
        together = list(fragment_parts)
        if len(together) == 1:
            yield together[0]
            continue
        yield Matches(
            together[0].fragment,
            np.concatenate([part.physical for part in together]),
            np.concatenate([part.source for part in together]),
            np.concatenate([part.unmatched for part in together]),
        )


def _looked_up(
    windows: Iterable[KeyWindow],
    keys: KeyNumbers,
    seen: Callable[[int], None] | None,
    *,
    with_unmatched: bool,
) -> Iterator[Matches]:
    waiting: list[KeyWindow] = []
    num_rows = 0
    for window in windows:
        waiting.append(window)
        num_rows += window.keys.num_rows
        if num_rows >= max(_TOGETHER_ROWS, keys.num_rows):
            yield from _split(keys, waiting, with_unmatched=with_unmatched)
            if seen is not None:
                seen(num_rows)
            waiting, num_rows = [], 0
    yield from _split(keys, waiting, with_unmatched=with_unmatched)
    if seen is not None and num_rows:
        seen(num_rows)


def _split(
    keys: KeyNumbers, windows: Sequence[KeyWindow], *, with_unmatched: bool
) -> Iterator[Matches]:
    if not windows:
        return
    every, numbers = keys.find(pa.concat_tables(window.keys for window in windows))
    ends = np.cumsum([window.keys.num_rows for window in windows])
    first = 0
    for window, end, last in zip(windows, ends, np.searchsorted(every, ends), strict=True):
        positions = every[first:last] - (end - window.keys.num_rows)
        places, source = keys.pairs(positions, numbers[first:last])
        unmatched = NOTHING
        if with_unmatched:
            is_unmatched = np.ones(window.keys.num_rows, np.bool_)
            is_unmatched[positions] = False
            unmatched = window.offsets(np.flatnonzero(is_unmatched))
        yield Matches(window.fragment, window.offsets(places), source, unmatched)
        first = last


SOURCE, TARGET = "source", "target"


# --- the condition on matched pairs ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MatchCondition:
    """A condition bound to both sides."""

    snapshot: Snapshot
    source: SourceRows
    filter: Filter

    @classmethod
    def of(cls, text: object, snapshot: Snapshot, source: SourceRows) -> MatchCondition:
        """Bind the text. Raises PredicateError."""
        if not isinstance(text, str):
            raise PredicateError(
                f"the condition of when_matched_update_all is SQL text, not {type(text).__name__}"
            )
        theirs = list(project(snapshot.manifest.schema, None).schema)
        ours = list(source.schema)
        taken = {field.name for field in ours} | {SOURCE, TARGET}
        fields = [
            pa.field(SOURCE, pa.struct(ours)),
            pa.field(TARGET, pa.struct([*theirs, *_ROW_FIELDS])),
            *(field for field in theirs if field.name not in taken),
        ]
        try:
            return cls(snapshot, source, compile_filter(text, pa.schema(fields)))
        except PredicateError as exc:
            names = ", ".join(repr(field.name) for field in ours[:12])
            raise PredicateError(
                f"{exc}. Say which side is meant where both have the column ({names}): "
                "source.column or target.column"
            ) from exc

    def passing(self, matches: Matches) -> Matches:
        """Return the pairs that pass. Raises PredicateError for a pair's values."""
        masks = [
            self._mask(matches, start, start + _WINDOW_ROWS)
            for start in range(0, matches.source.size, _WINDOW_ROWS)
        ]
        return matches.only(np.concatenate(masks)) if masks else matches

    def _mask(self, matches: Matches, start: int, stop: int) -> np.ndarray:
        physical, source = matches.physical[start:stop], matches.source[start:stop]
        columns: dict[Path, pa.ChunkedArray] = {}
        ours = [path for path in self.filter.paths if path[0] == SOURCE and len(path) > 1]
        rows = self.source.take(source, list(dict.fromkeys(path[1] for path in ours)))
        for path in ours:
            columns[path] = _inner(rows[path[1]], path[2:])
        theirs = [path for path in self.filter.paths if path not in columns]
        if theirs:
            columns |= self._target_columns(theirs, matches, physical)
        mask_values: Columns = columns
        return self.filter.mask(mask_values, int(source.size))

    def _target_columns(
        self, paths: list[Path], matches: Matches, physical: np.ndarray
    ) -> dict[Path, pa.ChunkedArray]:
        names = {path: path[1:] if path[0] == TARGET else path for path in paths}
        columns = list(dict.fromkeys(quoted(name) for name in names.values()))
        stored = [column for column in columns if column not in ROW_COLUMNS]
        projection = project(
            self.snapshot.manifest.schema,
            stored,
            [column for column in columns if column in ROW_COLUMNS],
        )
        distinct, place = np.unique(physical, return_inverse=True)
        rows = Selected(matches.fragment, distinct, distinct, {})
        table = selected_table(self.snapshot, projection, rows)
        if distinct.size != physical.size:
            table = taken_rows(table, from_integers(place))
        order = [*stored, *(column for column in columns if column in ROW_COLUMNS)]
        return {
            path: table.column(order.index(quoted(target_path)))
            for path, target_path in names.items()
        }


def _inner(column: pa.ChunkedArray, path: Path) -> pa.ChunkedArray:
    """Return a nested field, null where a struct around it is."""
    for name in path:
        place = column.type.get_field_index(name)
        chunks = [chunk.flatten()[place] for chunk in column.chunks]
        column = pa.chunked_array(chunks, column.type.field(place).type)
    return column


# --- what becomes of the rows ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JoinResult:
    """Matches that change rows, rows that are deleted, source rows that are inserted."""

    changes: tuple[Matches, ...]
    deleted: tuple[tuple[Fragment, Ints], ...]
    new: Ints

    @property
    def num_updated_rows(self) -> int:
        """Target rows that get new values."""
        return sum(change.source.size for change in self.changes)


def find_rows(
    snapshot: Snapshot,
    source: SourceRows,
    clauses: MergeClauses,
    seen: Callable[[int], None] | None = None,
    windows: Iterable[KeyWindow] | None = None,
) -> JoinResult:
    """Join, and sort the matches by what becomes of them; ``seen`` counts target rows.

    ``windows`` are a part of the target, None is all of it.

    Raises MergeInsertError, PredicateError, NotSupportedError, StorageError.
    """
    condition = None
    if clauses.condition is not None:
        condition = MatchCondition.of(clauses.condition, snapshot, source)
    names = list(clauses.on)
    keys = KeyNumbers(typed(source.columns(names), snapshot.manifest.schema))
    is_matched = np.zeros(source.num_rows, np.bool_)
    changes: list[Matches] = []
    deleted: list[tuple[Fragment, Ints]] = []
    parts = windows
    if parts is None and not clauses.deletes_unmatched:
        parts = _read_indexed(snapshot, names, source, seen)
    if parts is None:
        parts = read_keys(snapshot, names)
    for every in join(parts, keys, seen, with_unmatched=clauses.deletes_unmatched):
        is_matched[every.source] = True
        rows = _unmatched(snapshot, clauses, every)
        if clauses.matched is WhenMatched.FAIL and every.source.size:
            raise MergeInsertError(
                f"Merge insert failed: found matching row with key values: "
                f"{_key_text(source, names, every.source[0])}"
            )
        matches = every if condition is None else condition.passing(every)
        if clauses.matched in (WhenMatched.UPDATE, WhenMatched.DELETE):
            _check_unambiguous(source, names, matches)
        if clauses.matched is WhenMatched.UPDATE and matches.source.size:
            changes.append(replace(matches, unmatched=NOTHING))
        elif clauses.matched is WhenMatched.DELETE:
            rows = np.union1d(rows, matches.physical)
        if rows.size:
            deleted.append((matches.fragment, rows))
    new = np.flatnonzero(~is_matched) if clauses.inserts else NOTHING
    return JoinResult(tuple(changes), tuple(deleted), new)


def _read_indexed(
    snapshot: Snapshot,
    names: Sequence[str],
    source: SourceRows,
    seen: Callable[[int], None] | None,
) -> Iterator[KeyWindow] | None:
    """Read the keys of rows that may have a partner, as indices say; None if none helps."""
    if snapshot.manifest.index_section is None or source.num_rows > INDEXED_KEYS_MAX:
        return None
    schema = project(snapshot.manifest.schema, None).schema
    keys = typed(source.columns(list(names)), snapshot.manifest.schema)
    for name in names:
        kind = schema.field(name).type
        if not any(fits(kind) for fits in _INDEXED):
            continue
        choice = row_choice(snapshot, _is_among(name, keys.column(name)))
        if choice.answer is not None:
            return _key_windows(snapshot, names, choice, seen)
    return None


def _is_among(name: str, values: pa.ChunkedArray) -> Filter:
    members = pc.unique(pc.drop_null(values))
    condition = call(
        "IN", partial(in_set, members=members, has_null=False), Column((name,), values.type)
    )
    return Filter(f"{quoted([name])} IN (...)", ((name,),), condition)


def _key_windows(
    snapshot: Snapshot,
    names: Sequence[str],
    choice: RowChoice,
    seen: Callable[[int], None] | None,
) -> Iterator[KeyWindow]:
    projection = project(snapshot.manifest.schema, [quoted([name]) for name in names])
    num_read = 0
    for rows in select_rows(snapshot, choice, projection):
        stored = read_columns(snapshot, projection.columns, rows)
        table = selected_table(snapshot, projection, rows, stored).rename_columns(list(names))
        num_read += rows.num_rows
        yield KeyWindow(rows.fragment, rows.physical, table.replace_schema_metadata(None))
    if seen is not None:  # the other rows need not be read
        seen(int(live_counts(snapshot).sum()) - num_read)


def typed(keys: pa.Table, schema: Schema) -> pa.Table:
    """Return keys of the source in the types of the dataset."""
    arrow = schema.to_arrow()
    target_schema = pa.schema(
        [pa.field(name, arrow.field(name).type) for name in keys.column_names]
    )
    return cast_table(keys.replace_schema_metadata(None), target_schema)


def _unmatched(snapshot: Snapshot, clauses: MergeClauses, matches: Matches) -> Ints:
    """Return the offsets of rows without a partner that shall be deleted."""
    if not clauses.deletes_unmatched or not matches.unmatched.size:
        return NOTHING
    if clauses.unmatched_filter is None:
        return matches.unmatched
    choice = RowChoice(clauses.unmatched_filter, (matches.fragment,))
    nothing = project(snapshot.manifest.schema, [])
    passing = [selection.physical for selection in select_rows(snapshot, choice, nothing)]
    return np.intersect1d(
        matches.unmatched, np.concatenate([NOTHING, *passing]), assume_unique=True
    )


def _check_unambiguous(source: SourceRows, names: Sequence[str], matches: Matches) -> None:
    again = np.flatnonzero(np.diff(matches.physical) == 0)
    if again.size:
        raise MergeInsertError(
            "Ambiguous merge inserts are prohibited: multiple source rows match the same target "
            f"row on ({_key_text(source, names, matches.source[again[0]])}). Leave one source row "
            "per key"
        )


def _key_text(source: SourceRows, names: Sequence[str], row: int) -> str:
    values = source.take(np.array([row], np.int64), names).to_pylist()[0]
    return ", ".join(f"{name} = {value!r:.80}" for name, value in values.items())
