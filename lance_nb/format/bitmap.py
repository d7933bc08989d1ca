"""Bitmap: a set of unsigned 64-bit integers, pylance's type for fragment ids and row offsets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from lance_nb.errors import ArgumentError, InvalidInputError

_SHOWN_MAX = 20


class Bitmap(MutableSet[int]):
    """A mutable set of integers from 0 to 2**64 - 1, in ascending order; like ``set`` otherwise.

    Args:
        values: integers, or an Arrow array of them.

    Raises ArgumentError for values that are no integers or do not fit.

    Examples:
        >>> ids = lance_nb.Bitmap([3, 1])
        >>> ids.add(2), ids.discard(9), ids.update([7]), list(ids.copy())
        (None, None, None, [1, 2, 3, 7])
        >>> list(ids.union({5})), list(ids.intersection({2, 3})), list(ids.difference({7}))
        ([1, 2, 3, 5, 7], [2, 3], [1, 2, 3])
        >>> list(ids.symmetric_difference({1, 8})), ids.issubset(range(9)), ids.issuperset({1})
        ([2, 3, 7, 8], True, True)
    """

    __slots__ = ("_bits",)

    def __init__(self, values: Iterable[int] | pa.Array | pa.ChunkedArray | None = None) -> None:
        """Add the values. Raises ArgumentError for values that are no integers or do not fit."""
        self._bits = BitMap64()
        if values is not None:
            self.update(values)

    def __len__(self) -> int:
        return len(self._bits)

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int) and 0 <= value < 1 << 64 and value in self._bits

    def __iter__(self) -> Iterator[int]:
        return iter(self._bits)

    __hash__ = None  # type: ignore[assignment]

    def add(self, value: int) -> None:
        """Add a value.

        Args:
            value: the integer.

        Raises ArgumentError.
        """
        self._bits.add(_checked(value))

    def discard(self, value: int) -> None:
        """Remove a value if it is there.

        Args:
            value: the integer.
        """
        if value in self:
            self._bits.discard(value)

    def update(self, values: Iterable[int] | pa.Array | pa.ChunkedArray) -> None:
        """Add several values. Raises ArgumentError."""
        if isinstance(values, Bitmap):
            self._bits |= values._bits  # noqa: SLF001 - its own class
            return
        numbers = values.to_pylist() if isinstance(values, pa.Array | pa.ChunkedArray) else values
        self._bits.update(_checked(value) for value in numbers)

    def copy(self) -> Bitmap:
        """Return another set of the same values."""
        return Bitmap(self)

    def intersection(self, other: Iterable[int]) -> Bitmap:
        """Return the values that are in both.

        Args:
            other: integers.
        """
        return Bitmap(self & Bitmap(other))

    def union(self, other: Iterable[int]) -> Bitmap:
        """Return the values that are in either.

        Args:
            other: integers.
        """
        return Bitmap(self | Bitmap(other))

    def difference(self, other: Iterable[int]) -> Bitmap:
        """Return the values that are not in the other.

        Args:
            other: integers.
        """
        return Bitmap(self - Bitmap(other))

    def symmetric_difference(self, other: Iterable[int]) -> Bitmap:
        """Return the values that are in one of both.

        Args:
            other: integers.
        """
        return Bitmap(self ^ Bitmap(other))

    def issubset(self, other: Iterable[int]) -> bool:
        """Return whether every value is in the other.

        Args:
            other: integers.
        """
        return self <= Bitmap(other)

    def issuperset(self, other: Iterable[int]) -> bool:
        """Return whether every value of the other is here.

        Args:
            other: integers.
        """
        return self >= Bitmap(other)

    def __repr__(self) -> str:
        shown = ", ".join(str(value) for value, _ in zip(self, range(_SHOWN_MAX), strict=False))
        more = ", ..." if len(self) > _SHOWN_MAX else ""
        return f"Bitmap({{{shown}{more}}})"


def _checked(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        if not hasattr(value, "__index__") or isinstance(value, bool | np.bool_):
            raise ArgumentError(f"a bitmap holds integers, not {type(value).__name__}")
        value = int(value.__index__())
    if not 0 <= value < 1 << 64:
        raise InvalidInputError(f"a bitmap holds integers from 0 to 2**64 - 1, not {value}")
    return value
