"""Makes ``format("lance_nb")`` known to a session, and reads through it in one line."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.spark import source
from lance_nb.spark.frames import frame_of_parts
from lance_nb.spark.new_rows import Destination
from lance_nb.spark.place import Place
from lance_nb.spark.sessions import find_session, is_connect, start_session
from lance_nb.spark.source.options import SourceOptions
from lance_nb.spark.source.rows import ReadPart, ReadPlan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


ALIAS = "lance"
_REFS = ("version", "versionasof", "timestampasof", "branch", "tag")
# What was found out about the alias, by session: asking costs a query.
_ALIASES: WeakKeyDictionary[SparkSession, str | None] = WeakKeyDictionary()


def register(spark: SparkSession) -> str | None:
    """Make ``format("lance_nb")`` work, and ``format("lance")`` where nobody has that name.

    Returns "lance" if that name is ours, None if another source (lance-spark's, for example) has
    it. Where Spark has found ``lance_nb`` by itself there is nothing to do for that name.
    """
    _register(spark, source.data_source.LanceSource)
    if spark not in _ALIASES:
        answer = _answer_of(spark, ALIAS)
        if "DATA_SOURCE_NOT_FOUND" in answer:
            _register(spark, source.data_source.LanceAlias)
            answer = source.__name__
        _ALIASES[spark] = ALIAS if source.__name__ in answer else None
    return _ALIASES[spark]


def _register(spark: SparkSession, kind: Any) -> None:
    from pyspark.errors import AnalysisException

    try:
        spark.dataSource.register(kind)
    except AnalysisException as error:  # found by Spark itself, which is as good
        if "ALREADY_EXISTS" not in (error.getCondition() or ""):
            raise


def _answer_of(spark: SparkSession, name: str) -> str:
    """Return what the source of a name says to a path that does not exist; ours names itself."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        return str(spark.read.format(name).load("nowhere").columns)
    except (PySparkException, Py4JJavaError) as error:  # the latter on a classic session
        return str(error).replace("/", ".")


def read(
    target: Destination,
    *,
    spark: SparkSession | None = None,
    columns: list[str] | None = None,
    filter: str | None = None,
    **options: Any,
) -> DataFrame:
    """Read a dataset as a DataFrame; other options as ``lance_nb.spark.source.options`` lists them.

    Without ``spark``, the session that is there; a local one is started when there is none. The
    version is pinned here. ``lance_nb.spark.count`` counts from the manifest; ``count()`` of this
    DataFrame reads all of its columns.

    Rows come by ``mapInArrow``: the JVM spends a third less on a batch than for a data source. On
    Connect, and for metadata tables and change feeds, by ``format("lance_nb")``.
    """
    session = spark or find_session() or start_session()
    wanted: Mapping[str, Any] = {
        "columns": None if columns is None else ",".join(columns),
        "filter": filter,
        **options,
    }
    said = {name.lower(): _text(value) for name, value in wanted.items() if value is not None}
    if isinstance(target, LanceDataset):
        said = _pinned(said, target)
        said["path"] = Place.of(target).uri
    else:
        said["path"] = os.fspath(target)
    if is_connect(session) or not {"table", "readchangefeed"}.isdisjoint(said):
        _register(session, source.data_source.LanceSource)
        return session.read.format("lance_nb").options(**said).load()
    plan = ReadPlan.of(SourceOptions.of(said))
    return frame_of_parts([ReadPart(plan, ids) for ids in plan.parts()], session)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _pinned(said: dict[str, str], dataset: LanceDataset) -> dict[str, str]:
    """Add the version that a dataset stands at. Raises InvalidInputError for another one."""
    if given := [name for name in _REFS if name in said]:
        raise InvalidInputError(f"an open dataset is at a version already: leave out {given[0]!r}")
    place = Place.of(dataset)
    ref = {"branch": place.branch, "version": str(place.version)}
    stored = {"storageoptions": place.options_text, "allowbases": place.bases_text}
    return {key: text for key, text in {**stored, **said, **ref}.items() if text}


def register_views(spark: SparkSession, root: str) -> list[str]:
    """Make a temporary view of every dataset in a local folder; return their names.

    ``photos.lance`` becomes the view ``photos``. Raises InvalidInputError for what is no folder,
    NotSupportedError on Spark Connect, whose server may not see it.
    """
    if is_connect(spark):
        raise NotSupportedError("register_views lists a local folder; on Connect name datasets")
    folder = Path(root)
    if not folder.is_dir():
        raise InvalidInputError(f"{root!r} is not a folder")
    names = []
    for path in sorted(folder.iterdir()):
        if (path / "_versions").is_dir():
            name = path.name.removesuffix(".lance").replace("-", "_").replace(".", "_")
            read(str(path), spark=spark).createOrReplaceTempView(name)
            names.append(name)
    return names
