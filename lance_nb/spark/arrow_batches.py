"""How many rows of a DataFrame go to a Python worker in one Arrow batch.

Since 4.1 Spark asks after every single row how many bytes the batch has by now, which is 40 % of
what it spends on sending a narrow row. Rows whose width is known, or that hold nothing longer than
text, are counted instead, as Spark did before; a batch is small enough for text of 32 KB a row.

===========================================  ==========================================
columns                                      batches
===========================================  ==========================================
numbers, times, text, vectors by their hint  of ``ROWS``, not weighed
that, but together wider than ``ROW_BYTES``  as the session says
anything else: binary, lists, maps           as the session says
a session whose user chose a limit of bytes  as the session says
===========================================  ==========================================

Limits: the settings are those of the session: while a job of ours runs, jobs of others in the same
session are cut in the same way. Spark Connect and sessions before 4.1 are left as they are.
Source: PySpark 4.3: ``spark.sql.execution.arrow.maxBytesPerBatch``, ``maxRecordsPerBatch``.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_nb.spark.sessions import is_connect
from lance_nb.spark.types import new_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROWS = 2048
ROW_BYTES = 32 << 10  # times ROWS: 64 MB, Spark's own limit of a batch
TEXT_BYTES = 1 << 10
_BYTES_KEY = "spark.sql.execution.arrow.maxBytesPerBatch"
_ROWS_KEY = "spark.sql.execution.arrow.maxRecordsPerBatch"
_SPARKS_OWN = "67108864b"
_UNLIMITED = str(2**31 - 1)

_lock = threading.Lock()
_counting: dict[int, tuple[int, str]] = {}  # session -> jobs under way, rows that it said before


@contextmanager
def counted_rows(frame: DataFrame) -> Iterator[None]:
    """Let the rows of a DataFrame be counted, not weighed, while a job sends them."""
    session = frame.sparkSession
    width = sum(_width(one.type) for one in new_schema(frame.schema))
    begun = width <= ROW_BYTES and not is_connect(session) and _begin(session)
    try:
        yield
    finally:
        if begun:
            _end(session)


def _begin(session: Any) -> bool:
    with _lock:
        jobs, rows = _counting.get(id(session), (0, ""))
        if not jobs:
            if _limit(session) != _SPARKS_OWN:
                return False
            rows = session.conf.get(_ROWS_KEY)
            session.conf.set(_BYTES_KEY, _UNLIMITED)
            session.conf.set(_ROWS_KEY, str(min(ROWS, int(rows)) if int(rows) > 0 else ROWS))
        _counting[id(session)] = jobs + 1, rows
    return True


def _limit(session: Any) -> str | None:
    from pyspark.errors import PySparkException

    try:
        return str(session.conf.get(_BYTES_KEY))  # with a default it forgets Spark's own
    except PySparkException:  # before 4.1
        return None


def _end(session: Any) -> None:
    with _lock:
        jobs, rows = _counting.pop(id(session))
        if jobs > 1:
            _counting[id(session)] = jobs - 1, rows
            return
        session.conf.set(_BYTES_KEY, _SPARKS_OWN)
        session.conf.set(_ROWS_KEY, rows)


def _width(kind: pa.DataType) -> float:
    """Return the bytes of a value, text taken for ``TEXT_BYTES``; infinite where nobody knows."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return TEXT_BYTES
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size) * _width(kind.value_type)
    if pa.types.is_struct(kind):
        return sum(_width(one.type) for one in kind.fields)
    if pa.types.is_primitive(kind) or pa.types.is_decimal(kind):
        return float(max(8, kind.bit_width)) / 8
    return 0 if pa.types.is_null(kind) else math.inf
