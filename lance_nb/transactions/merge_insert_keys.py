"""Keys of two sides made comparable: every distinct key of the source becomes a number.

Each column of a key is numbered by Arrow's hash tables, integers of a narrow range by a plain
table; several columns are then numbered together. A target row has the number of its key, or -1: no
partner. No value is touched by Python.

Rules: a key with a null in it equals nothing, nulls included; inside of a struct or vector, nulls
equal each other. NaN equals NaN, 0.0 and -0.0 differ.

Limits: memory holds the source's distinct keys and one number per source row.
Not supported: keys with lists in them.
Source: joins of pylance 14.0.2, measured type by type.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from lance_nb.encodings.base import Ints
from lance_nb.encodings.kernels.memory import from_integers
from lance_nb.errors import NotSupportedError

_TABLE_SIZE_MAX = 1 << 24
_NARROW = 16


class KeyNumbers:
    """The distinct keys of the source."""

    def __init__(self, keys: pa.Table) -> None:
        parts = list(_parts(keys))
        self.num_rows = keys.num_rows
        self._columns = [_Column.of(one) for one in parts]
        self._pairs: list[Ints] = []
        numbers = self._columns[0].find(parts[0])
        for column, part in zip(self._columns[1:], parts[1:], strict=True):
            combined = _combined(numbers, column.find(part), column.size)
            known = np.unique(combined[combined >= 0])
            self._pairs.append(known)
            numbers = _positions(known, combined)
        order = np.argsort(numbers, kind="stable")
        # Source rows by number, rows without a key left out.
        self._order = order[np.searchsorted(numbers[order], 0) :]
        size = int(numbers.max(initial=-1)) + 1
        counts = np.bincount(numbers[numbers >= 0], minlength=size)
        self._starts = np.concatenate([[0], np.cumsum(counts)])

    def find(self, keys: pa.Table) -> Ints:
        """Return the number of each row's key, -1 if the source does not have it."""
        parts = list(_parts(keys))
        numbers = self._columns[0].find(parts[0])
        rest = zip(self._columns[1:], parts[1:], self._pairs, strict=True)
        for column, part, known in rest:
            numbers = _positions(known, _combined(numbers, column.find(part), column.size))
        return numbers

    def pairs(self, numbers: Ints) -> tuple[Ints, Ints]:
        """Return positions in ``numbers`` and the source row of each partner, all of them."""
        places = np.flatnonzero(numbers >= 0)
        found = numbers[places]
        first = self._starts[found]
        counts = self._starts[found + 1] - first
        if (counts == 1).all():
            return places, self._order[first]
        ends = np.cumsum(counts)
        within = np.arange(int(ends[-1])) - np.repeat(ends - counts, counts)
        return np.repeat(places, counts), self._order[np.repeat(first, counts) + within]


def _combined(left: Ints, right: Ints, size: int) -> Ints:
    """Return numbers of pairs, -1 where either has none; both stay below the number of rows."""
    made = left * size + right
    made[(left < 0) | (right < 0)] = -1
    return made


def _positions(known: Ints, values: Ints) -> Ints:
    """Return where each value lies in the ascending ``known``, -1 if it does not."""
    if not known.size:
        return np.full(values.shape, -1, np.int64)
    place = np.searchsorted(known, values)
    place[place == known.size] = 0
    return np.where(known[place] == values, place, -1)


@dataclass(frozen=True, slots=True)
class _Part:
    """A column that Arrow can hash; ``nulls_match``: its nulls equal each other."""

    values: pa.ChunkedArray
    nulls_match: bool = False


@dataclass(frozen=True, slots=True)
class _Column:
    """The distinct values of one part of the key: ``values``, or a ``table`` from ``lowest`` on."""

    count: int
    values: Any = None
    lowest: int = 0
    table: Any = None

    @property
    def size(self) -> int:
        """Numbers in use: one more than the values, for null."""
        return self.count + 1

    @classmethod
    def of(cls, part: _Part) -> _Column:
        import pyarrow.compute as pc

        if pt.is_integer(part.values.type) and part.values.null_count < len(part.values):
            bounds = pc.min_max(part.values)
            lowest, highest = bounds["min"].as_py(), bounds["max"].as_py()
            if highest - lowest < min(_TABLE_SIZE_MAX, max(len(part.values) * _NARROW, 1 << 16)):
                return cls._narrow(part.values.drop_null().to_numpy(), lowest, highest)
        values = pc.unique(part.values).drop_null()
        return cls(len(values), values)

    @classmethod
    def _narrow(cls, values: np.ndarray, lowest: int, highest: int) -> _Column:
        is_there = np.zeros(highest - lowest + 1, np.bool_)
        is_there[_distances(values, lowest)] = True
        table = np.cumsum(is_there) - 1
        table[~is_there] = -1
        return cls(int(table.max()) + 1, None, lowest, table)

    def find(self, part: _Part) -> Ints:
        """Return the number of each value, -1 for others and for nulls that match nothing."""
        column = part.values
        numbers = self._hashed(column) if self.table is None else self._looked_up(column)
        if column.null_count:
            numbers[column.is_null().to_numpy()] = self.count if part.nulls_match else -1
        return numbers

    def _hashed(self, column: pa.ChunkedArray) -> Ints:
        import pyarrow.compute as pc

        if not self.count:
            return np.full(len(column), -1, np.int64)
        found = pc.index_in(column, value_set=self.values, skip_nulls=True)
        numbers: Ints = pc.fill_null(found, -1).to_numpy().astype(np.int64)
        return numbers

    def _looked_up(self, column: pa.ChunkedArray) -> Ints:
        plain = column.fill_null(self.lowest) if column.null_count else column
        place = _distances(plain.to_numpy(), self.lowest)
        inside = np.flatnonzero(place < np.uint64(len(self.table)))
        numbers: Ints
        if inside.size == place.size:
            numbers = self.table[place]
            return numbers
        numbers = np.full(place.shape, -1, np.int64)
        numbers[inside] = self.table[place[inside]]
        return numbers


def _distances(values: np.ndarray, lowest: int) -> np.ndarray:
    """Return how far values lie above ``lowest``; those below it wrap around and are far."""
    if values.dtype == np.uint64:
        return values - np.uint64(lowest)
    return (values.astype(np.int64, copy=False) - np.int64(lowest)).view(np.uint64)


def _parts(keys: pa.Table) -> Iterator[_Part]:
    for name in keys.column_names:
        yield from _plain(_Part(keys[name]), name)


def _plain(part: _Part, name: str) -> Iterator[_Part]:
    """Yield columns that Arrow can hash, which are equal where the keys are."""
    column, type_ = part.values, part.values.type

    def changed(change: Any, to: pa.DataType) -> _Part:
        return _Part(_mapped(column, change, to), part.nulls_match)

    if isinstance(type_, pa.BaseExtensionType):
        yield from _plain(changed(lambda one: one.storage, type_.storage_type), name)
    elif pt.is_dictionary(type_):
        yield from _plain(_Part(column.cast(type_.value_type), part.nulls_match), name)
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
    import pyarrow.compute as pc

    type_ = column.type
    if pt.is_struct(type_):
        for number, field in enumerate(type_):
            yield _mapped(column, lambda one, at=number: one.flatten()[at], field.type)
    else:
        for number in range(type_.list_size):
            yield _mapped(column, lambda one, at=number: pc.list_element(one, at), type_.value_type)


def _presence(values: pa.Array) -> pa.Array:
    """Return 1 where there is a value, else null."""
    import pyarrow.compute as pc

    return pc.if_else(values.is_valid(), pa.scalar(1, pa.uint8()), pa.scalar(None, pa.uint8()))


def _mapped(column: pa.ChunkedArray, change: Any, type_: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([change(one) for one in column.chunks], type_)


def _bits(values: pa.Array) -> pa.Array:
    """Return the bits of floating-point numbers, one form of NaN only."""
    numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
    wide = numbers.astype(np.float64)
    wide[np.isnan(wide)] = np.nan
    bits = from_integers(wide.view(np.uint64))
    if not values.null_count:
        return bits
    import pyarrow.compute as pc

    return pc.if_else(values.is_valid(), bits, pa.scalar(None, pa.uint64()))
