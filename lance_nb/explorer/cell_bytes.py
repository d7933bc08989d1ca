"""The bytes of one cell in pieces: of a binary value, or of a blob that lies elsewhere.

A blob is read only as far as its pieces are asked for. A binary value is read with its row once;
the last one stays for the next piece.

Limits: a value of more than ``media.MAX_BYTES`` is described, not read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.explorer.models import cells
from lance_nb.explorer.models.media import HEAD_BYTES, Media, media_of
from lance_nb.explorer.models.row_query import RowQuery
from lance_nb.explorer.models.source import Source, is_blob_column, scanned_source
from lance_nb.explorer.session import Session

Spot = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class CellBytes:
    """One value: how long it is, what it is, and reading ``(offset, length)`` of it."""

    size_bytes: int
    media: Media
    read: Callable[[int, int], bytes]


class CellDesk:
    """Opens values; remembers the last one."""

    def __init__(self, _session: Session) -> None:
        self._last: tuple[Spot, CellBytes | None] | None = None

    def open(self, dataset: Source, lens: RowQuery, row: int, column: int) -> CellBytes | None:
        """Return a value's bytes, None for null. Raises NotSupportedError, InvalidInputError."""
        spot = (dataset, lens.arranged, lens.filter, row, column)
        if self._last is None or not _same(self._last[0], spot):
            self._last = (spot, _opened(dataset, lens, row, column))
        return self._last[1]


def _same(one: Spot, other: Spot) -> bool:
    (dataset, arranged, *rest), (other_dataset, other_arranged, *other_rest) = one, other
    return dataset is other_dataset and arranged is other_arranged and rest == other_rest


def _opened(dataset: Source, lens: RowQuery, row: int, column: int) -> CellBytes | None:
    names = lens.names(dataset)
    if column >= len(names):
        raise InvalidInputError(f"there is no column {column}")
    name = names[column]
    read, size = (
        _blob(dataset, lens, row, name)
        if is_blob_column(dataset, name)
        else (_value(dataset, lens, row, name))
    )
    if read is None:
        return None
    return CellBytes(size, media_of(read(0, HEAD_BYTES), size), read)


Reader = Callable[[int, int], bytes]


def _blob(dataset: Source, lens: RowQuery, row: int, name: str) -> tuple[Reader | None, int]:
    ids = lens.rows(dataset, ["_rowid"], row, 1)["_rowid"]
    if not len(ids):
        raise InvalidInputError(f"there is no row {row:,}")
    file = scanned_source(dataset).take_blobs(name, ids=ids.to_numpy())[0]
    return (None, 0) if file is None else (file.read_range, file.size())


def _value(dataset: Source, lens: RowQuery, row: int, name: str) -> tuple[Reader | None, int]:
    found = lens.rows(dataset, [name], row, 1).column(0)
    if not len(found):
        raise InvalidInputError(f"there is no row {row:,}")
    scalar = cells.plain(found)[0]
    if not cells.is_binary(scalar.type):
        raise NotSupportedError(f"values of {name!r} are no bytes")
    if not scalar.is_valid:
        return None, 0
    data = memoryview(scalar.as_buffer())
    return lambda offset, length: data[offset : offset + length].tobytes(), len(data)
