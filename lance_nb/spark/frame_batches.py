"""Send the rows of a DataFrame to Python in batches of bounded size, without measuring each row.

Spark ends a batch at a number of rows or of bytes (``maxRecordsPerBatch``, ``maxBytesPerBatch``).
To know the bytes it adds up all columns of the batch again for every row, which is two thirds of
the time that narrow rows take (Spark 4.3). Here a batch ends at a number of rows alone, and every
row has a share of ``BATCH_BYTES``. A row that is larger is followed by filler rows, one for each
further share that it takes; the worker removes them (``rows_sent``). So rows of any size are
sent in batches of at most ``BATCH_BYTES`` and one row.

==============================  ==================================================================
column                          bytes of a value
==============================  ==================================================================
numbers, times, booleans        those of its type
strings, binary                 ``octet_length``
arrays of values of fixed size  the number of elements times their size
structs                         the sum of the fields
maps, arrays of strings,        unknown: Spark measures the batches of this DataFrame, as it does
variants                        if more than ``_MANY`` columns vary
==============================  ==================================================================

Both numbers are local properties of the thread that runs the job: the settings of the session stay
as they are, and what the user has set in it comes first.

Limits: classic sessions; Connect has no local properties, and Spark measures there.
Source: ``BatchedPythonArrowInput`` of Spark 4.3; ``SQLConf`` of a task, which reads local
properties.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name of PySpark's documentation
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import ArrayType, BinaryType, DataType, StringType, StructType

from lance_nb.spark.sessions import is_connect
from lance_nb.spark.types import fixed_width
from lance_nb.value_classes import dataclass

BATCH_BYTES = 64 * 1024**2
"""The bytes of a batch, as Spark's own limit."""
MAX_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
MAX_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
# Enough that a batch costs little, and so few that the rows of most tables need no fillers.
_BATCH_ROWS = 8_192
_UNMEASURED = f"{2**31 - 1}b"  # the value with which Spark does not add up bytes
_OFFSET_BYTES = 4
_MANY = 256  # the code of more sizes would not be compiled
_IS_ROW = "is_row"


@dataclass(frozen=True, slots=True)
class FrameBatches:
    """The rows of a DataFrame, and how they are sent.

    ``frame`` has columns named by their number, since ``mapInArrow`` finds columns by name and
    takes a dot for a field of a struct; after them it may have one that is false for fillers.
    ``properties``: local properties of the job.
    """

    frame: DataFrame
    properties: Mapping[str, str]

    @classmethod
    def of(cls, frame: DataFrame) -> FrameBatches:
        """Choose how the rows of a DataFrame are sent."""
        session: Any = frame.sparkSession
        frame = frame.toDF(*(f"c{index}" for index in range(len(frame.columns))))
        if is_connect(session):
            return cls(frame, {})
        java: Any = session._jsparkSession  # noqa: SLF001 - asks whether the user has set it
        configuration = java.sessionState().conf()
        if configuration.contains(MAX_BYTES):
            return cls(frame, {})
        sets_rows = bool(configuration.contains(MAX_ROWS))
        num_rows = int(session.conf.get(MAX_ROWS)) if sets_rows else _BATCH_ROWS
        sizes = [_size(F.col(field.name), field.dataType) for field in frame.schema]
        known_sizes = [size for size in sizes if size is not None]
        varying = [part for size in known_sizes for part in size.varying]
        if len(known_sizes) < len(sizes) or len(varying) > _MANY or num_rows <= 0:
            return cls(frame, {})
        fixed_bytes = max(1, sum(size.fixed for size in known_sizes))
        least_bytes = 2 * fixed_bytes if varying else fixed_bytes
        if not sets_rows:
            num_rows = max(1, min(num_rows, BATCH_BYTES // least_bytes))
        row_bytes = BATCH_BYTES // num_rows
        if row_bytes < least_bytes:  # a batch of as many rows as the user has set is larger
            return cls(frame, {})
        properties = {MAX_ROWS: str(num_rows), MAX_BYTES: _UNMEASURED}
        if not varying:
            return cls(frame, properties)
        return cls(_with_fillers(frame, known_sizes, row_bytes - fixed_bytes), properties)


class Size(NamedTuple):
    """The bytes of a value: what all values have, and expressions to be added to it."""

    fixed: int
    varying: tuple[Column, ...] = ()


def _size(column: Column, kind: DataType) -> Size | None:
    """Return the size of the values of a column, None if it is unknown."""
    if isinstance(kind, StringType | BinaryType):
        return Size(_OFFSET_BYTES, (_or_zero(F.octet_length(column)),))
    if isinstance(kind, ArrayType):
        width = fixed_width(to_arrow_type(kind.elementType, timezone="UTC"))
        length = _or_zero(F.array_size(column))
        return None if width is None else Size(_OFFSET_BYTES, (length * width,))
    if isinstance(kind, StructType):
        parts = [_size(column.getField(field.name), field.dataType) for field in kind]
        known_sizes = [part for part in parts if part is not None]
        if len(known_sizes) < len(parts) or len(set(kind.names)) < len(parts):
            return None
        varying = tuple(part for size in known_sizes for part in size.varying)
        return Size(sum(size.fixed for size in known_sizes), varying)
    width = fixed_width(to_arrow_type(kind, timezone="UTC"))
    return None if width is None else Size(width)


def _or_zero(length: Column) -> Column:
    return F.coalesce(length.cast("long"), F.lit(0))


def _with_fillers(frame: DataFrame, sizes: list[Size], share: int) -> DataFrame:
    """Add the fillers, and a last column that is true for rows.

    ``share``: how many of the bytes that vary a row may have without fillers.
    """
    total = _sum([part for size in sizes for part in size.varying])
    row = F.array(F.lit(True))
    fillers = F.array_repeat(F.lit(False), (total / share).cast("int"))
    marks = F.when(total <= share, row).otherwise(F.concat(row, fillers))
    padded = frame.select("*", F.explode(marks).alias(_IS_ROW))
    is_row = F.col(_IS_ROW)
    columns = [
        F.when(is_row, F.col(name)).alias(name) if size.varying else F.col(name)
        for name, size in zip(frame.columns, sizes, strict=True)
    ]
    return padded.select(*columns, is_row)


def _sum(parts: list[Column]) -> Column:
    """Add columns in pairs: Spark visits the tree of an expression by recursion."""
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        unpaired = parts[-1:] if len(parts) % 2 else []
        parts = [left + right for left, right in pairs] + unpaired
    return parts[0]
