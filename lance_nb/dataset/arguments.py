"""Small values that methods of a dataset take, and constants, under pylance's names.

Source: ``lance.dataset``, ``lance.fragment`` and ``lance.util`` of pylance 14.0.2.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, TypedDict

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lance_nb.errors import ArgumentError, InvalidInputError
from lance_nb.format.transaction_summary import MESSAGE_PROPERTY

DEFAULT_MAX_BYTES_PER_FILE = 90 * 1024**3
LANCE_COMMIT_MESSAGE_KEY = MESSAGE_PROPERTY


class AlterColumn(TypedDict, total=False):
    """What ``LanceDataset.alter_columns`` takes for a column; all but ``path`` may be left out.

    >>> from lance_nb import AlterColumn
    >>> AlterColumn(path="a", name="b")
    {'path': 'a', 'name': 'b'}
    """

    path: str
    name: str | None
    nullable: bool | None
    data_type: pa.DataType | None


class AutoCleanupConfig(TypedDict, total=False):
    """``auto_cleanup_options`` of ``write_dataset``: every how many versions old ones are deleted.

    ``older_than_seconds``: how old a version must be to go.

    >>> from lance_nb import AutoCleanupConfig
    >>> AutoCleanupConfig(interval=20, older_than_seconds=3600)
    {'interval': 20, 'older_than_seconds': 3600}
    """

    interval: int
    older_than_seconds: int


def sanitize_ts(ts: Any) -> datetime:
    """Return a moment as a datetime.

    Args:
        ts: a datetime, a pandas Timestamp or text (ISO 8601).

    Raises InvalidInputError for other text, ArgumentError for other values.

    Example:
        >>> lance_nb.sanitize_ts("2024-01-02 03:04:05")
        datetime.datetime(2024, 1, 2, 3, 4, 5)
    """
    if isinstance(ts, str):
        try:
            return datetime.fromisoformat(ts)
        except ValueError as error:
            raise InvalidInputError(
                f"{ts!r:.60} is not a timestamp; write it as 2024-01-02 03:04:05"
            ) from error
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(ts, pandas.Timestamp):
        return ts.to_pydatetime()  # type: ignore[no-any-return]
    if not isinstance(ts, datetime):
        raise ArgumentError(f"the timestamp must be a datetime or text, not {type(ts).__name__}")
    return ts


def td_to_micros(td: timedelta) -> int:
    """Return a time span in microseconds.

    Args:
        td: the time span.

    Example:
        >>> from datetime import timedelta
        >>> lance_nb.td_to_micros(timedelta(seconds=1.5))
        1500000
    """
    return round(td / timedelta(microseconds=1))


def serialize_row_addrs(addrs: Iterable[int]) -> bytes:
    """Return row addresses as the bytes of a Roaring treemap, as pylance passes them around.

    Layout: the number of fragments, then for each its id, the number of bytes and the Roaring
    bitmap of row offsets; numbers are little-endian uint32.

    Args:
        addrs: row addresses (``fragment id << 32 | offset``).

    Raises ArgumentError for what is no number of 64 bits.

    Example:
        >>> len(lance_nb.serialize_row_addrs([0, 1 << 32]))
        56
    """
    try:
        known = np.array(list(addrs), np.uint64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentError(f"row addresses must be unsigned 64-bit integers: {error}") from error
    known = np.unique(known)
    fragments, starts = np.unique(known >> np.uint64(32), return_index=True)
    parts = [struct.pack("<I", len(fragments))]
    stops = [*starts[1:], len(known)] if len(known) else []
    for fragment, start, stop in zip(fragments, starts, stops, strict=True):
        offsets = BitMap(known[start:stop].astype(np.uint32)).serialize()
        parts += [struct.pack("<II", int(fragment), len(offsets)), offsets]
    return b"".join(parts)
