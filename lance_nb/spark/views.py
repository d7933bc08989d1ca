"""Temporary views of Spark that show the newest version of a dataset, whenever they are queried.

::

    spark.register_views(session, "datasets/")                 # datasets/photos.lance is photos
    session.sql("SELECT label, count(*) FROM photos GROUP BY label")

Spark plans the rows of a Python data source once for the life of a view, whatever is committed
later. A view of SQL text is analysed again for every query, and so is a table function in it. So a
view is a query of two table functions:

==================  ==============================================================================
function            what it does
==================  ==============================================================================
its parts           pins the newest version while Spark analyses the query, and returns the
                    fragments of each part, one row a part
its rows            reads parts as Arrow batches; Spark has spread them over its cores
==================  ==============================================================================

Limits: classic sessions. The columns are those that the dataset had when the view was made; a
column that was removed or has another type since is an error. All of them are read, whatever a
query names. A query that names a view twice pins its version twice. ``lance_nb.spark.sql`` knows
the names of the views too, reads what a query needs, and one version for all of it.
Source: ``udtf`` with ``analyze``, and ``arrow_udtf`` with a TABLE argument, of PySpark 4.3.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.functions import arrow_udtf, udtf
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType
from pyspark.sql.udtf import AnalyzeResult

from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.spark.scan_frames import without_statistics
from lance_nb.spark.sessions import is_connect, num_cores
from lance_nb.spark.source.options import SourceOptions
from lance_nb.spark.source.scan import ReadPlan
from lance_nb.spark.types import spark_schema
from lance_nb.value_classes import dataclass

Part = tuple[int, str, list[int]]
"""A version, its stamp, and ids of fragments."""
_PART = StructType(
    [
        StructField("version", LongType()),
        StructField("stamp", StringType()),
        StructField("fragment_ids", ArrayType(LongType())),
    ]
)
_ONE_ROW = "lance_nb_one_row"
# The datasets of the views of each session.
_VIEWS: WeakKeyDictionary[SparkSession, dict[str, str]] = WeakKeyDictionary()


@dataclass(frozen=False, slots=False)  # as its base: PySpark makes a copy with other fields
class PinnedParts(AnalyzeResult):
    """What the analysis of a query has pinned."""

    parts: tuple[Part, ...] = ()


def find_parts(options: SourceOptions, num_cores: int) -> PinnedParts:
    """Pin the newest version, and divide its fragments. Raises DatasetNotFoundError."""
    plan = ReadPlan.of(options)
    pinned = plan.pinned
    parts = [(pinned.version, pinned.stamp, list(ids)) for ids in plan.parts(num_cores)]
    return PinnedParts(_PART, parts=tuple(parts))


def read_part(
    options: SourceOptions, schema: pa.Schema, part: Mapping[str, Any]
) -> Iterator[pa.RecordBatch]:
    """Read a part in the types of Spark. Raises InvalidInputError if the columns have changed."""
    options_of_version = SourceOptions.of({**dict(options.values), "version": str(part["version"])})
    plan = ReadPlan.of(options_of_version)
    types = {field.name: field.type for field in plan.schema}
    for field in schema:
        if types.get(field.name) != field.type:
            raise InvalidInputError(
                f"column {field.name!r} of version {part['version']} is "
                f"{types.get(field.name, 'missing')}, and was {field.type} when the view of "
                f"{options.path} was made: call register_views() again"
            )
    plan = replace(plan.select(schema.names), pinned=replace(plan.pinned, stamp=part["stamp"]))
    return plan.batches(tuple(part["fragment_ids"]))


def _parts_function(options: SourceOptions, num_cores: int) -> type:
    class Parts:
        """Return the parts of the newest version."""

        def __init__(self, pinned: PinnedParts) -> None:
            self._parts = pinned.parts

        @staticmethod
        def analyze() -> PinnedParts:
            return find_parts(options, num_cores)

        def eval(self) -> Iterator[Part]:
            yield from self._parts

    return Parts


def _rows_function(options: SourceOptions, schema: pa.Schema) -> type:
    class Rows:
        """Read parts."""

        def eval(self, parts: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
            for part in parts.to_pylist():
                yield from read_part(options, schema, part)

    return Rows


def register_views(spark: SparkSession, root: str) -> list[str]:
    """Create a temporary view for every dataset in a local folder; return their names.

    ``photos.lance`` becomes the view ``photos``. Every query of a view reads the newest version at
    the time of the query. The views use temporary functions of the session, whose names begin with
    ``lance_nb_``.

    Raises InvalidInputError if ``root`` is not a folder, NotSupportedError on Spark Connect, whose
    server may not see the folder.
    """
    if is_connect(spark):
        raise NotSupportedError(
            "register_views() lists a local folder, which a Spark Connect server may not see; "
            "use read() for each dataset"
        )
    folder = Path(root)
    if not folder.is_dir():
        raise InvalidInputError(f"{root!r} is not a folder")
    without_statistics(spark.range(1)).createOrReplaceTempView(_ONE_ROW)
    names = []
    for path in sorted(folder.iterdir()):
        if (path / "_versions").is_dir():
            name = path.name.removesuffix(".lance").replace("-", "_").replace(".", "_")
            _create_view(spark, name, str(path.absolute()))
            names.append(name)
            _VIEWS.setdefault(spark, {})[name] = str(path)
    return names


def _create_view(spark: SparkSession, name: str, path: str) -> None:
    """Create one view.

    The parts come from a table of which Spark does not know the size: it would take the view for as
    small as its parts, and broadcast it in joins.
    """
    options = SourceOptions.of({"path": path})
    plan, cores = ReadPlan.of(options), num_cores(spark)
    suffix = hashlib.sha256(name.encode()).hexdigest()[:16]
    parts, rows = f"lance_nb_parts_{suffix}", f"lance_nb_rows_{suffix}"
    find: Any = udtf(_parts_function(options, cores))
    read: Any = arrow_udtf(
        _rows_function(options, plan.schema), returnType=spark_schema(plan.stored)
    )
    spark.udtf.register(parts, find)
    spark.udtf.register(rows, read)
    quoted = name.replace("`", "``")
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW `{quoted}` AS SELECT * FROM {rows}(TABLE("  # noqa: S608
        f"SELECT /*+ REPARTITION({cores}) */ part.* FROM {_ONE_ROW}, LATERAL {parts}() AS part))"
    )


def registered_views(spark: SparkSession) -> Mapping[str, str]:
    """Return the datasets that have views of ``register_views``, by the names of the views."""
    return _VIEWS.get(spark, {})
