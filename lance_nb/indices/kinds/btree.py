"""B-tree: all values in order, in pages, and the first and last value of each page.

====================  ==========================================================================
``page_data.lance``   ``values``, ``ids``: nulls first, NaN at the ends
``page_lookup.lance`` a row per page: ``min``, ``max``, ``null_count``, ``page_idx``; ``min`` is
                      null in a page that begins with nulls
====================  ==========================================================================

Page i is rows ``[i * batch_size, (i + 1) * batch_size)`` of the data. Pages that may hold a value
are read, and the condition itself is computed for their values. A page that ends in NaN is always
read for a comparison, because NaN has its own place in the order. Pages of small reads are kept in
memory. ``ids`` are row addresses; in
version 0, where row ids are stable, row ids. Version 1 is written there.

Limits: ``PAGES_MAX`` pages; a segment that is partitioned by range is not read. What is sorted to
build a segment is bounded, see ``sorted_rows``.
Source: files that pylance 14.0.2 writes; message ``BTreeIndexDetails`` of lance.table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from lance_nb import arrow_compute as pc
from lance_nb.encodings.base import Ints
from lance_nb.encodings.kernels.memory import from_integers, to_integers
from lance_nb.errors import (
    CorruptFileError,
    NotSupportedError,
    describe_order,
    describe_repeated,
    describe_value,
)
from lance_nb.format.feature_flags import STABLE_ROW_IDS
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.indices.index_file import IndexFile
from lance_nb.indices.leaf import Between, IsNull, Leaf, OneOf
from lance_nb.indices.reader import Found
from lance_nb.indices.row_sets import NO_ROWS, ROWS_MAX, U64s, joined
from lance_nb.table.index_search import different, numbers
from lance_nb.table.predicate.comparison import as_mask

if TYPE_CHECKING:
    from lance_nb.indices.building import (
        Parameters,
        SegmentDetails,
        SegmentFiles,
        SegmentRows,
    )

FILES = ("page_lookup.lance", "page_data.lance")
DETAILS_URL = "/lance.table.BTreeIndexDetails"
PAGE_ROWS = 4096
PAGES_MAX = 1 << 20
_PAGE_ROWS_MAX = 1 << 20
_MEMBERS_MAX = 10_000
_FEW = 16  # pages that are kept in memory when they were read
_KEPT_BYTES = 1 << 25  # of a segment
Mask = npt.NDArray[np.bool_]


def statistics(lookup: IndexFile, _data: IndexFile) -> dict[str, Any]:
    """Return pylance's statistics of a segment, without reading values. Raises CorruptFileError."""
    summary: dict[str, Any] = {"num_pages": lookup.num_rows, "min": "N/A", "max": "N/A"}
    if not lookup.num_rows:
        return summary
    ends = np.array([0, lookup.num_rows - 1], np.int64)
    (low,) = lookup.read_rows(["min"], ends[:1])
    (high,) = lookup.read_rows(["max"], ends[1:])
    if high.null_count:  # no value but nulls
        return summary
    return {**summary, "min": _shown(low[0]), "max": _shown(high[0])}


def _shown(value: pa.Scalar) -> str:
    """Return a bound as text; times as numbers, bytes as digits, as pylance does."""
    if not value.is_valid:
        return "NULL"
    kind = value.type
    if pt.is_boolean(kind):
        return "true" if value.as_py() else "false"
    if pt.is_floating(kind):
        narrow = {2: np.float16, 4: np.float32}.get(kind.bit_width // 8, np.float64)
        number = float(value.as_py())
        if not np.isfinite(number):
            return {"nan": "NaN"}.get(str(number), str(number))
        text = format(Decimal(str(narrow(number))), "f")
        return text.rstrip("0").rstrip(".") if "." in text else text
    if pt.is_timestamp(kind) or pt.is_time(kind) or pt.is_duration(kind):
        return str(value.value)
    python_value = value.as_py()
    return python_value.hex().upper() if isinstance(python_value, bytes) else str(python_value)


class BTree:
    """One segment of a B-tree."""

    def __init__(self, lookup: IndexFile, data: IndexFile) -> None:
        if lookup.setting("range_partitioned", "false") != "false":
            raise NotSupportedError(f"{lookup.path}: partitioned by range")
        lookup.check_rows(PAGES_MAX)
        self._data = data
        self._page_rows = lookup.number("batch_size", 4096, _PAGE_ROWS_MAX)
        if "row_ids" in data.names:  # of releases before 2025, whose order of nulls is not known
            raise NotSupportedError(f"{data.path}: values with row_ids")
        self._type = data.type_of("values")
        low, high, nulls, pages = lookup.read_all("min", "max", "null_count", "page_idx")
        if low.type != self._type or high.type != self._type:
            raise CorruptFileError(lookup.path, None, f"bounds of {self._type}", str(low.type))
        self._low, self._high = low, high
        self._nulls = numbers(nulls, lookup.path, np.int64)
        self._pages: Ints = numbers(pages, lookup.path, np.int64)
        self._bounds = _integer_bounds(low, high)
        self._cached_pages: dict[int, tuple[pa.Array, U64s]] = {}
        self._kept_bytes = 0
        count = -(-data.num_rows // self._page_rows)
        if not np.array_equal(np.sort(self._pages), np.arange(count)):
            numbered = f"{count} pages, numbered from 0 on"
            actual = describe_order(np.sort(self._pages))
            raise CorruptFileError(lookup.path, None, numbered, actual)
        self._check_bounds(lookup.path)
        self._places = np.argsort(self._pages)  # of each page in the lookup

    def _check_bounds(self, path: str) -> None:
        """Refuse pages whose bounds do not ascend. Raises CorruptFileError.

        Fractions are left out, as NaN is at either end; of null bounds nothing is known.
        """
        if pt.is_floating(self._type):
            return
        order = from_integers(np.argsort(self._pages))
        low, high = pc.take(self._low, order), pc.take(self._high, order)
        crossed = pc.indices_nonzero(pc.greater(low, high))
        if len(crossed):
            page = crossed[0].as_py()
            actual = f"page {page} from {describe_value(low, page)} to {describe_value(high, page)}"
            raise CorruptFileError(path, None, "pages from their least value on", actual)
        crossed = pc.indices_nonzero(pc.greater(high[:-1], low[1:]))
        if len(crossed):
            page = crossed[0].as_py() + 1
            end = describe_value(high, page - 1)
            actual = f"page {page} starts at {describe_value(low, page)} after {end}"
            raise CorruptFileError(path, None, "page bounds in ascending order", actual)

    def _check_page(self, page: int, values: pa.Array, rows: U64s) -> None:
        """Refuse a page that is not what the lookup says of it. Raises CorruptFileError."""
        place = int(self._places[page])
        in_page = f"in page {page}, as in the lookup"
        if values.null_count != int(self._nulls[place]):
            expected = f"{int(self._nulls[place])} nulls {in_page}"
            raise CorruptFileError(self._data.path, None, expected, f"{values.null_count}")
        ends = ((0, self._low, "first"), (len(values) - 1, self._high, "last"))
        for index, bounds, word in ends if not pt.is_floating(self._type) else ():
            if not bounds[place].equals(values[index]):
                expected = f"{describe_value(bounds, place)} as the {word} value {in_page}"
                actual = describe_value(values, index)
                raise CorruptFileError(self._data.path, None, expected, actual)
        if different(rows).size != rows.size:
            actual = f"row {describe_repeated(rows)}"
            raise CorruptFileError(self._data.path, None, f"each row once in page {page}", actual)

    def understands(self, leaf: Leaf) -> bool:
        """Comparisons, IN, IS NULL and the beginning of texts."""
        if leaf.column.type != self._type:
            return False
        question = leaf.asks(Between, OneOf, IsNull)
        return question is not None and not (
            isinstance(question, OneOf) and len(question.members) > _MEMBERS_MAX
        )

    def estimate(self, leaf: Leaf) -> int:
        """Count the rows of the pages."""
        return min(int(self._matching(leaf).sum()) * self._page_rows, self._data.num_rows)

    def search(self, leaf: Leaf, *, with_nulls: bool) -> Found:
        """Read the pages, and compute the condition for their values."""
        pages = self._matching(leaf)
        knows_nulls = with_nulls and leaf.is_null_of_null
        if knows_nulls:
            pages = pages | (self._nulls > 0)
        values, rows = self._read(np.sort(self._pages[pages]))
        true, _ = leaf.test(values)
        nulls = None
        if knows_nulls:
            nulls = joined([rows[_true(pc.is_null(values))]])
        elif with_nulls and isinstance(leaf.asks(IsNull), IsNull):
            nulls = rows[:0]
        return Found(joined([rows[true]]), nulls)

    def _read(self, pages: Ints) -> tuple[pa.Array, U64s]:
        """Return values and rows of pages, ascending; few pages are kept for the next search."""
        is_few = pages.size <= _FEW
        # The dict is replaced, never changed: another thread may read it.
        kept_pages = self._cached_pages if is_few else {}
        missing = np.array([page for page in pages.tolist() if page not in kept_pages], np.int64)
        starts = missing * self._page_rows
        stops = np.minimum(starts + self._page_rows, self._data.num_rows)
        if int((stops - starts).sum()) > ROWS_MAX:
            raise NotSupportedError(f"{self._data.path}: more than {ROWS_MAX:,} values to read")
        if starts.size:
            gaps = np.flatnonzero(starts[1:] != stops[:-1])
            starts = starts[np.concatenate(([0], gaps + 1))]
            stops = stops[np.concatenate((gaps, [stops.size - 1]))]
        pages_read: dict[int, tuple[pa.Array, U64s]] = {}
        if missing.size or not is_few:
            values, ids = self._data.read(("values", "ids"), starts, stops)
            rows: U64s = numbers(ids, self._data.path)
            if not is_few:
                return values, rows
            _check_order(values, self._data.path)
            for place, page in enumerate(missing.tolist()):
                part = slice(place * self._page_rows, (place + 1) * self._page_rows)
                pages_read[page] = values[part], rows[part]
                self._check_page(page, *pages_read[page])
            self._keep(pages_read)
        parts = [pages_read.get(page) or kept_pages[page] for page in pages.tolist()]
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return pa.nulls(0, self._type), NO_ROWS
        return pa.concat_arrays([keys for keys, _ in parts]), np.concatenate(
            [rows for _, rows in parts]
        )

    def _keep(self, pages_read: dict[int, tuple[pa.Array, U64s]]) -> None:
        """Keep pages that were read together, and at most ``_KEPT_BYTES`` of all."""
        size = sum(
            values.get_total_buffer_size() + rows.nbytes for values, rows in pages_read.values()
        )
        if self._kept_bytes + size > _KEPT_BYTES:
            self._cached_pages, self._kept_bytes = {}, 0
        if size <= _KEPT_BYTES:
            self._cached_pages = self._cached_pages | pages_read
            self._kept_bytes += size

    def _matching(self, leaf: Leaf) -> Mask:
        """Tell which pages may hold rows that pass."""
        question = leaf.asks(Between, OneOf, IsNull)
        if isinstance(question, IsNull):
            with_nulls: Mask = self._nulls > 0
            return with_nulls
        if isinstance(question, OneOf) and self._bounds is not None:
            members = np.sort(to_integers(question.members))
            lows, highs = self._bounds
            before, until = members.searchsorted(lows), members.searchsorted(highs, "right")
            with_member: Mask = (before < until) & (highs >= lows)
            return with_member
        low, high = _ordered(self._low), _ordered(self._high)
        if isinstance(question, OneOf):
            if len(question.members) != 1:
                return self._with_member(question, low, high)
            question = Between(question.members[0], question.members[0])
        is_candidate = _true(pc.is_valid(high))
        if isinstance(question, Between) and question.low is not None:
            is_candidate &= _true(pc.greater_equal(high, _ordered_scalar(question.low))) | _nan(
                high
            )
        if isinstance(question, Between) and question.high is not None:
            before = _true(pc.less_equal(low, _ordered_scalar(question.high))) | _nan(low)
            is_candidate &= before | _true(pc.is_null(low))
        return is_candidate

    def _with_member(self, question: OneOf, low: pa.Array, high: pa.Array) -> Mask:
        """Tell which pages have a member between their bounds; ranks compare what numpy cannot."""
        members = _ordered(question.members)
        everything = pa.concat_arrays([members, low, high])
        ranks = numbers(pc.rank(everything, tiebreaker="dense"), "", np.int64)
        member_ranks = different(ranks[: len(members)])
        lows = ranks[len(members) : len(members) + len(low)].copy()
        lows[_true(pc.is_null(low))] = 0
        highs = ranks[len(members) + len(low) :]
        inside = np.searchsorted(member_ranks, lows) < np.searchsorted(member_ranks, highs, "right")
        is_candidate: Mask = (inside | _nan(low) | _nan(high)) & _true(pc.is_valid(high))
        return is_candidate


def _check_order(values: pa.Array, path: str) -> None:
    """Refuse values that do not ascend. Raises CorruptFileError.

    A changed value mostly breaks the order. Fractions are left out, as NaN is at either end.
    """
    filled = pc.drop_null(values)
    if pt.is_floating(filled.type) or len(filled) < 2:
        return
    is_ordered = pc.all(pc.less_equal(filled[:-1], filled[1:])).as_py()
    if not is_ordered:
        actual = describe_order(filled, repeats=True)
        raise CorruptFileError(path, None, "values in ascending order", actual)


def _integer_bounds(low: pa.Array, high: pa.Array) -> tuple[Any, Any] | None:
    """Return the bounds of pages of integers; where a page has no value, none is in between."""
    if not pt.is_integer(low.type):
        return None
    lows, highs = to_integers(low).copy(), to_integers(high).copy()
    limits = np.iinfo(lows.dtype)
    lows[_true(pc.is_null(low))] = limits.min
    is_empty = _true(pc.is_null(high))
    lows[is_empty], highs[is_empty] = limits.max, limits.min
    return lows, highs


def _ordered(values: pa.Array) -> pa.Array:
    """Return the values in a type that Arrow can order."""
    return pc.cast(values, pa.float32()) if pt.is_float16(values.type) else values


def _ordered_scalar(value: pa.Scalar) -> pa.Scalar:
    return pc.cast(value, pa.float32()) if pt.is_float16(value.type) else value


def _true(answers: Any) -> Mask:
    return as_mask(answers, len(answers))


def _nan(values: pa.Array) -> Mask:
    if not pt.is_floating(values.type):
        return np.zeros(len(values), np.bool_)
    return _true(pc.is_nan(values))


# --- building -------------------------------------------------------------------------------------


def write(
    rows: SegmentRows,
    files: SegmentFiles,
    _parameters: Parameters,
    _existing: Sequence[IndexMetadata],
) -> SegmentDetails:
    """Write the pages in order, and their first and last values."""
    from lance_nb.indices.building import SegmentDetails
    from lance_nb.indices.sorted_rows import sorted_rows

    kind = rows.field.type
    schema = pa.schema([pa.field("values", kind), pa.field("ids", pa.uint64(), nullable=False)])
    pages: list[pa.RecordBatch] = []
    with files.create("page_data.lance", schema) as file:
        ordered = sorted_rows(rows.batches(), rows.schema)
        first = next(ordered, None)  # the values are read before the first of them is known
        ordered = iter(()) if first is None else chain([first], ordered)
        with rows.progress.stage("write_pages", rows.num_rows, "rows") as add:
            for batch in _whole_pages(ordered):
                file.write(pa.RecordBatch.from_arrays(batch.columns, schema=schema))
                first_page = sum(page.num_rows for page in pages)
                pages.append(_bounds(batch.column(0), first_page))
                add(batch.num_rows)
    bounds = _bounds_schema(kind)
    files.write("page_lookup.lance", pages, bounds)
    is_stable = bool(rows.snapshot.manifest.reader_feature_flags & STABLE_ROW_IDS)
    return SegmentDetails(index_version=int(is_stable))


def _whole_pages(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows in batches of whole pages; only the last page may be short."""
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        waiting.append(batch)
        count += batch.num_rows
        if count >= PAGE_ROWS:
            joined_rows = pa.concat_batches(waiting)
            whole = count - count % PAGE_ROWS
            yield joined_rows.slice(0, whole)
            count -= whole
            waiting = [joined_rows.slice(whole)] if count else []
    if count:
        yield pa.concat_batches(waiting)


def _bounds_schema(kind: pa.DataType) -> pa.Schema:
    return pa.schema(
        [
            pa.field("min", kind),
            pa.field("max", kind),
            pa.field("null_count", pa.uint32(), nullable=False),
            pa.field("page_idx", pa.uint32(), nullable=False),
        ],
        {"batch_size": str(PAGE_ROWS), "range_partitioned": "false"},
    )


def _bounds(values: pa.Array, first_page: int) -> pa.RecordBatch:
    """Return what the lookup says of pages of sorted values, nulls first."""
    starts = np.arange(0, len(values), PAGE_ROWS)
    ends = np.minimum(starts + PAGE_ROWS, len(values))
    num_nulls = np.clip(values.null_count - starts, 0, ends - starts)
    pages = np.arange(first_page, first_page + starts.size)
    counts = [from_integers(integers.astype(np.uint32)) for integers in (num_nulls, pages)]
    first_last = [pc.take(values, from_integers(positions)) for positions in (starts, ends - 1)]
    columns = [*first_last, *counts]
    return pa.RecordBatch.from_arrays(columns, schema=_bounds_schema(values.type))
