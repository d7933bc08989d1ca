"""Makes ``format("lance_nb")`` known to a session, and reads through it in one line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.spark import source
from lance_nb.spark.sessions import find_session, is_connect, start_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def register(spark: SparkSession) -> None:
    """Make ``spark.read.format("lance_nb")`` and ``df.write.format("lance_nb")`` work."""
    spark.dataSource.register(source.data_source.LanceSource)


def read(
    uri: str,
    *,
    spark: SparkSession | None = None,
    columns: list[str] | None = None,
    filter: str | None = None,
    **options: Any,
) -> DataFrame:
    """Read a dataset as a DataFrame; other options as ``lance_nb.spark.source.options`` lists them.

    Without ``spark``, the session that is there; a local one is started when there is none.
    """
    session = spark or find_session() or start_session()
    register(session)
    reader = session.read.format("lance_nb")
    wanted: Mapping[str, Any] = {
        "columns": None if columns is None else ",".join(columns),
        "filter": filter,
        **options,
    }
    for name, value in wanted.items():
        if value is not None:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            reader = reader.option(name, text)
    return reader.load(uri)


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
