"""Sort and group the values of a segment with their rows, in bounded memory.

Nulls come first, then values in ascending order; texts and bytes by unsigned bytes. Floats are in
their total order, as pylance searches them: NaN with the sign bit (the NaN of 0.0 / 0.0 on x86)
before all numbers, other NaN after them, and -0.0 before 0.0, which is another value. Up to
``RUN_BYTES`` are sorted in memory. More are sorted in runs, which wait in temporary files and are
merged: values that divide the runs into parts of at most a run are chosen from a sample, each part
is cut out of all runs by binary search and sorted again. Rows of one value that fill a part of
their own need no sort.

``grouped_rows`` makes sets of rows of them, one for each different value.

Limits: memory holds about three runs, and all rows of one value.
"""

from __future__ import annotations

import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pt

from lance_nb import arrow_compute as pc
from lance_nb.encodings.kernels.memory import from_integers
from lance_nb.errors import InvalidInputError
from lance_nb.indices.row_sets import U64s, sets_64, tree_maps

RUN_BYTES = 256 << 20
_SORTABLE = (
    pt.is_integer, pt.is_floating, pt.is_boolean, pt.is_string, pt.is_large_string, pt.is_binary,
    pt.is_large_binary, pt.is_fixed_size_binary, pt.is_temporal, pt.is_decimal,
)  # fmt: skip
_SAMPLES = 256  # of each run
_PIECE_ROWS = 1 << 20
_TEXTS = (pt.is_string, pt.is_binary, pt.is_large_string, pt.is_large_binary)
Order = npt.NDArray[np.int64]


def check_sortable(field: pa.Field, kind: str) -> None:
    """Refuse a column that cannot be sorted for an index of a kind. Raises InvalidInputError."""
    if not any(fits(field.type) for fits in _SORTABLE):
        raise InvalidInputError(
            f"a {kind} index holds numbers, texts, bytes, times and decimals: column "
            f"{field.name!r} is {field.type}"
        )


def check_sorted(kind: str, field: pa.Field, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Check a column for a kind whose segments are sorted values, without parameters.

    Raises InvalidInputError.
    """
    check_sortable(field, kind)
    if parameters:
        raise InvalidInputError(f"a {kind} index has no parameter {min(parameters)!r}")
    return {}


def sorted_rows(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, run_bytes: int | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield batches of two columns, values and rows, in the order of the values.

    ``run_bytes`` is ``RUN_BYTES`` by default.
    """
    limit = RUN_BYTES if run_bytes is None else run_bytes
    waiting: list[pa.RecordBatch] = []
    size = 0
    folder: tempfile.TemporaryDirectory[str] | None = None
    try:
        runs: list[Path] = []
        for batch in batches:
            waiting.append(batch)
            size += batch.nbytes
            if size >= limit:
                if folder is None:
                    folder = tempfile.TemporaryDirectory(prefix="lance_nb_sort_")
                runs.append(_spill(_sorted(waiting, schema), Path(folder.name) / f"{len(runs)}"))
                waiting, size = [], 0
        if folder is None:
            if waiting:
                yield _sorted(waiting, schema)
            return
        if waiting:
            runs.append(_spill(_sorted(waiting, schema), Path(folder.name) / f"{len(runs)}"))
        del waiting
        yield from _merged(runs, schema)
    finally:
        if folder is not None:
            folder.cleanup()


def _sorted(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    table = pa.Table.from_batches(batches, schema).combine_chunks()
    values = table.column(0).combine_chunks()
    if isinstance(values, pa.ChunkedArray):  # texts of more than 2 GB
        values = pa.concat_arrays(values.chunks)
    order = from_integers(order_of(values))
    rows = table.column(1).combine_chunks()
    return pa.RecordBatch.from_arrays([pc.take(values, order), pc.take(rows, order)], schema=schema)


def order_of(values: pa.Array) -> Order:
    """Return the positions of the values in their order: nulls first, floats in total order."""
    if not values.null_count:
        return _order_of_valid(values)
    is_null = _mask(pc.is_null(values))
    nulls, valid = np.flatnonzero(is_null), np.flatnonzero(~is_null)
    order = _order_of_valid(pc.take(values, from_integers(valid)))
    return np.concatenate([nulls, valid[order]]).astype(np.int64, copy=False)


def _order_of_valid(values: pa.Array) -> Order:
    keys = _integers(values)
    if keys is not None:
        return _argsort(keys)
    if pt.is_boolean(values.type):
        return np.argsort(_mask(values), kind="stable")
    if any(fits(values.type) for fits in _TEXTS):
        return _order_of_bytes(values)
    return _arrow_order(values)


def _arrow_order(values: pa.Array) -> Order:
    order = pc.array_sort_indices(values)
    return np.frombuffer(order.buffers()[1], np.uint64, len(order)).astype(np.int64)


def _argsort(keys: npt.NDArray[Any]) -> Order:
    """Sort whole numbers; equal ones keep their order."""
    if keys.size < 2:
        return np.zeros(keys.size, np.int64)
    least, most = int(keys.min()), int(keys.max())
    if most - least < 1 << 16:
        return np.argsort((keys - keys.dtype.type(least)).astype(np.uint16), kind="stable")
    bits = (keys.size - 1).bit_length()
    if (most - least).bit_length() + bits > 64:
        return np.argsort(keys, kind="stable")
    # Key and position in one number are sorted in half the time.
    wide = keys.astype(np.int64 if keys.dtype.kind == "i" else np.uint64).view(np.uint64)
    packed = (wide - np.uint64(least % (1 << 64))) << np.uint64(bits)
    packed |= np.arange(keys.size, dtype=np.uint64)
    packed.sort()
    return (packed & np.uint64((1 << bits) - 1)).astype(np.int64)


def _integers(values: pa.Array) -> npt.NDArray[Any] | None:
    """Return whole numbers in the order of the values, None for values of variable length."""
    kind = values.type
    is_fixed = pt.is_integer(kind) or pt.is_floating(kind) or pt.is_temporal(kind)
    if not is_fixed or pt.is_interval(kind):
        return None
    width = kind.bit_width // 8
    sign = "u" if pt.is_unsigned_integer(kind) else "i"
    content = values.buffers()[1]
    data: npt.NDArray[Any] = np.frombuffer(
        content, f"<{sign}{width}", len(values), values.offset * width
    )
    if not pt.is_floating(kind):
        return data
    # Among negative floats the greater bits are the smaller number.
    keys: npt.NDArray[Any] = data ^ ((data >> (8 * width - 1)) & np.iinfo(data.dtype).max)
    return keys


def _order_of_bytes(values: pa.Array) -> Order:
    """Sort by eight bytes behind the common prefix, and by all bytes where these are equal."""
    count = len(values)
    width = 8 if pt.is_large_string(values.type) or pt.is_large_binary(values.type) else 4
    offsets = np.frombuffer(values.buffers()[1], f"<i{width}", count + 1, values.offset * width)
    data = values.buffers()[2]
    content = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    starts, lengths = offsets[:-1].astype(np.int64), np.diff(offsets).astype(np.int64)
    shared = _common_prefix(content, starts, lengths)
    keys = _eight_bytes(content, starts + shared, lengths - shared)
    order = _argsort(keys)
    ordered = keys[order]
    is_tied = np.zeros(count, np.bool_)
    same = ordered[1:] == ordered[:-1]
    is_tied[1:] |= same
    is_tied[:-1] |= same
    tied = np.flatnonzero(is_tied)
    if not tied.size:
        return order
    if tied.size > count // 2:
        return _order_of_repeated(values)
    rows = order[tied]
    order[tied] = rows[_arrow_order(pc.take(values, from_integers(rows)))]
    return order


def _eight_bytes(
    content: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint64]:
    """Return up to eight bytes of each value as one number, filled with zeros at the end."""
    if content.size < 8:
        content = np.concatenate([content, np.zeros(8 - content.size, np.uint8)])
    last = content.size - 8
    positions = np.minimum(starts, last)
    windows = np.lib.stride_tricks.sliding_window_view(content, 8)[positions]
    keys = windows.view(">u8").reshape(-1).astype(np.uint64)
    keys <<= (8 * np.minimum(starts - positions, 7)).astype(np.uint64)
    missing = np.clip(8 - lengths, 0, 8)
    cut = (8 * np.minimum(missing, 7)).astype(np.uint64)
    keys = (keys >> cut) << cut
    keys[lengths <= 0] = 0
    return keys


def _order_of_repeated(values: pa.Array) -> Order:
    """Sort the different values, then their numbers."""
    encoded = pc.dictionary_encode(values)
    order = _arrow_order(encoded.dictionary)
    ranks = np.empty(order.size, np.int64)
    ranks[order] = np.arange(order.size)
    codes = encoded.indices
    value_codes = np.frombuffer(codes.buffers()[1], np.int32, len(codes), codes.offset * 4)
    return _argsort(ranks[value_codes])


def _common_prefix(
    content: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> int:
    """Return how many bytes all values have in common at their beginning, up to 64."""
    if not starts.size:
        return 0
    shared = 0
    most = min(int(lengths.min()), 64)
    while shared < most:
        column = content[starts + shared]
        if not bool((column == column[0]).all()):
            break
        shared += 1
    return shared


def grouped_rows(
    ordered: Iterable[pa.RecordBatch], *, is_wide: bool = False
) -> Iterator[tuple[pa.Array, pa.Array]]:
    """Yield different values and their sets of rows (binary), from values in order.

    The sets are tree maps, or 64-bit sets if ``is_wide``. Nulls are one value; floats are the same
    value if their bits are.
    """
    serialize = sets_64 if is_wide else tree_maps
    key: pa.Array | None = None
    waiting: list[U64s] = []

    def last() -> Iterator[tuple[pa.Array, pa.Array]]:
        if key is not None:
            rows = np.concatenate(waiting)
            yield key, serialize(*_different(np.zeros(rows.size, np.int64), rows), 1)

    for batch in ordered:
        values = batch.column(0)
        numbers = batch.column(1)
        rows = np.frombuffer(numbers.buffers()[1], np.uint64, len(numbers), numbers.offset * 8)
        starts = _group_starts(values)
        ends = np.append(starts[1:], rows.size)
        first = 0
        if key is not None and _is_same(key, values.slice(0, 1)):
            waiting.append(rows[: int(ends[0])])
            first = 1
        if first < starts.size:
            yield from last()
            begin, end = int(starts[first]), int(starts[-1])
            if end > begin:
                lengths = np.diff(starts[first:])
                sets = np.repeat(np.arange(lengths.size), lengths)
                keys = pc.take(values, from_integers(starts[first:-1]))
                yield keys, serialize(*_different(sets, rows[begin:end]), lengths.size)
            key, waiting = values.slice(end, 1), [rows[end:]]
    yield from last()


def _different(sets: Order, rows: U64s) -> tuple[Order, U64s]:
    """Return the rows of each set ascending and different."""
    is_same_set = sets[1:] == sets[:-1]
    if bool((is_same_set & (rows[1:] < rows[:-1])).any()):
        order = np.lexsort((rows, sets))
        sets, rows = sets[order], rows[order]
    keep = np.ones(rows.size, np.bool_)
    keep[1:] = ~(is_same_set & (rows[1:] == rows[:-1]))
    return (sets, rows) if keep.all() else (sets[keep], rows[keep])


def _group_starts(values: pa.Array) -> Order:
    """Return where runs of equal values begin, given nulls first."""
    first = values.null_count
    valid = values.slice(first)
    starts: Order = np.zeros(0, np.int64)
    if len(valid):
        keys = _integers(valid)
        if keys is not None:
            differs = keys[1:] != keys[:-1]
        else:
            differs = _mask(pc.not_equal(valid.slice(1), valid.slice(0, len(valid) - 1)))
        starts = np.concatenate([[0], np.flatnonzero(differs) + 1]) + first
    return (np.append(0, starts) if first else starts).astype(np.int64)


def _is_same(array: pa.Array, other: pa.Array) -> bool:
    if array.null_count or other.null_count:
        return bool(array.null_count == other.null_count)
    return _group_starts(pa.concat_arrays([array, other])).size == 1


def _mask(values: pa.Array) -> npt.NDArray[np.bool_]:
    from lance_nb.table.predicate.comparison import as_mask

    return as_mask(values, len(values))


# --- runs in files --------------------------------------------------------------------------------


def _spill(batch: pa.RecordBatch, path: Path) -> Path:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)
    return path


class _Run:
    """A sorted run in a mapped file: nulls, then values."""

    def __init__(self, path: Path) -> None:
        self.batch: pa.RecordBatch = pa.ipc.open_file(pa.memory_map(str(path))).get_batch(0)
        self.values: pa.Array = self.batch.column(0)
        self.first = self.values.null_count
        self.last = len(self.values)
        keys = _integers(self.values)
        # Decimals and bytes compare in Python as they do in the order; numbers are much faster.
        self._keys: Any = _Scalars(self.values) if keys is None else keys

    def samples(self) -> list[Any]:
        """Return keys from all over the run."""
        places = np.linspace(self.first, self.last - 1, _SAMPLES).astype(np.int64).tolist()
        return [self._keys[place] for place in places] if self.last > self.first else []

    def low(self, key: Any) -> int:
        """Return where values of this key begin."""
        return bisect_left(self._keys, key, self.first, self.last)

    def high(self, key: Any) -> int:
        """Return where values of this key end."""
        return bisect_right(self._keys, key, self.first, self.last)


class _Scalars:
    """Values as a sequence of Python objects, each made when it is asked for."""

    def __init__(self, values: pa.Array) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, place: int) -> Any:
        return self._values[place].as_py()


def _merged(paths: list[Path], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    runs = [_Run(path) for path in paths]
    yield from _pieces((run, 0, run.first) for run in runs)
    samples = sorted(key for run in runs for key in run.samples())
    # A part between neighbours of every third run's worth of samples stays below a run.
    step = max(_SAMPLES // 3, 1)
    bounds = sorted(set(samples[step::step]))
    begins = [run.first for run in runs]
    for key in bounds:
        lows = [run.low(key) for run in runs]
        yield from _part(runs, begins, lows, schema)
        highs = [run.high(key) for run in runs]
        yield from _pieces(zip(runs, lows, highs, strict=True))
        begins = highs
    yield from _part(runs, begins, [run.last for run in runs], schema)


def _part(
    runs: list[_Run], begins: list[int], ends: list[int], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    parts = [
        run.batch.slice(begin, end - begin)
        for run, begin, end in zip(runs, begins, ends, strict=True)
        if end > begin
    ]
    if len(parts) == 1:
        yield parts[0]
    elif parts:
        yield _sorted(parts, schema)


def _pieces(parts: Iterable[tuple[_Run, int, int]]) -> Iterator[pa.RecordBatch]:
    for run, begin, end in parts:
        for start in range(begin, end, _PIECE_ROWS):
            yield run.batch.slice(start, min(_PIECE_ROWS, end - start))
