"""FrozenList: an immutable list that compares equal to lists and tuples.

Values of this package are immutable, so their lists are tuples; code written for pylance compares
them with lists: ``fragment.files[0].fields == [0, 1]``.
"""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

from lance_nb.errors import ArgumentError

T = TypeVar("T")


class FrozenList(tuple[T, ...]):
    """A list that cannot be changed. Equals a list or tuple with the same elements."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return tuple.__eq__(self, tuple(other) if isinstance(other, list) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    def __repr__(self) -> str:
        return repr(list(self))

    def append(self, *_values: Any) -> NoReturn:
        """Raise ArgumentError: the list belongs to an immutable value."""
        raise ArgumentError(
            "this list belongs to a value that does not change; make another value, for example "
            "dataclasses.replace(fragment, files=[*fragment.files, file])"
        )

    extend = insert = remove = append
