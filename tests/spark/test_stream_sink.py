"""The sink of a stream: every batch once, whatever others do to the dataset in between."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import lance_nb
from tests.spark.data import MARKS, ids_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = MARKS
FOREIGN_VERSIONS = 1_100


class Feed:
    """A folder of files as a stream, one file a batch, and a query that writes it."""

    def __init__(self, session: SparkSession, folder: Path) -> None:
        self.session = session
        self.folder = folder
        self.target = str(folder / "stream.lance")
        self.checkpoint = folder / "checkpoint"
        (folder / "in").mkdir()

    def arrive(self, at: int) -> None:
        """Put the file of a batch into the folder: three rows."""
        rows = pa.table({"id": pa.array(range(10 * at, 10 * at + 3), pa.int64())})
        parquet.write_table(rows, self.folder / "in" / f"{at}.parquet")

    def frame(self) -> DataFrame:
        stream = self.session.readStream.schema("id long").option("maxFilesPerTrigger", 1)
        return stream.parquet(str(self.folder / "in"))

    def run(self, source: str = "lance_nb", **options: Any) -> Any:
        """Write what has arrived; return the query, which is over."""
        writer = self.frame().writeStream.format(source).options(**options)
        writer = writer.option("checkpointLocation", str(self.checkpoint))
        query = writer.trigger(availableNow=True).start(self.target)
        query.awaitTermination()
        return query

    def forget_last_commit(self) -> None:
        """Make the checkpoint one of a query that died between the commit and its note of it."""
        commits = self.checkpoint / "commits"
        last = max(int(one.name) for one in commits.iterdir() if one.name.isdecimal())
        (commits / str(last)).unlink()
        (commits / f".{last}.crc").unlink(missing_ok=True)

    def marks(self) -> dict[str, str]:
        """The marks of the newest version, by the id of their query."""
        config = lance_nb.dataset(self.target).config()
        return {key.removeprefix("lance_nb.stream."): one for key, one in config.items()}


@pytest.fixture
def feed(session: SparkSession, tmp_path: Path) -> Feed:
    found = Feed(session, tmp_path)
    for at in range(3):
        found.arrive(at)
    return found


def ids(*batches: int) -> list[int]:
    return sorted(10 * at + one for at in batches for one in range(3))


def test_a_replay_after_the_commit_is_skipped_and_the_stream_goes_on(feed: Feed) -> None:
    query = feed.run()
    assert ids_of(feed.target) == ids(0, 1, 2)
    assert feed.marks() == {query.id: "2"}
    assert json.loads((feed.checkpoint / "metadata").read_text()) == {"id": query.id}
    feed.forget_last_commit()
    feed.arrive(3)
    feed.run()
    assert ids_of(feed.target) == ids(0, 1, 2, 3)
    assert feed.marks() == {query.id: "3"}
    assert lance_nb.dataset(feed.target).version == 4


def test_a_batch_whose_committer_is_killed_is_there_once(feed: Feed) -> None:
    from pyspark.errors import StreamingQueryException

    from tests.spark.dying_source import DiesAfterCommit

    feed.session.dataSource.register(DiesAfterCommit)
    with pytest.raises(StreamingQueryException):
        feed.run("dies_after_commit")
    assert (len(ids_of(feed.target)), list(feed.marks().values())) == (3, ["0"])
    feed.run("dies_after_commit")
    assert (ids_of(feed.target), list(feed.marks().values())) == (ids(0, 1, 2), ["2"])
    assert lance_nb.dataset(feed.target).version == 3


def test_a_replay_after_foreign_commits_and_a_cleanup_is_skipped(feed: Feed) -> None:
    feed.run()
    feed.forget_last_commit()
    other = lance_nb.dataset(feed.target)
    for at in range(3):
        other.update_config({"foreign": str(at)})
    other.cleanup_old_versions(older_than=timedelta(0))
    assert len(other.versions()) == 1
    feed.run()
    assert ids_of(feed.target) == ids(0, 1, 2)


def test_a_replay_after_many_foreign_versions_is_skipped(feed: Feed) -> None:
    feed.run()
    feed.forget_last_commit()
    other = lance_nb.dataset(feed.target)
    for at in range(FOREIGN_VERSIONS):
        other.update_config({"foreign": str(at)})
    feed.run()
    assert ids_of(feed.target) == ids(0, 1, 2)
    assert lance_nb.dataset(feed.target).version == 3 + FOREIGN_VERSIONS


def test_a_fresh_checkpoint_is_a_new_stream(feed: Feed) -> None:
    first = feed.run(queryId="q")
    shutil.rmtree(feed.checkpoint)
    shutil.rmtree(feed.folder / "in")
    (feed.folder / "in").mkdir()
    feed.arrive(7)
    second = feed.run(queryId="q")
    assert ids_of(feed.target) == ids(0, 1, 2, 7)
    assert feed.marks() == {first.id: "2", second.id: "0"}


def test_a_query_has_a_name_and_a_checkpoint_by_configuration(
    feed: Feed, session: SparkSession
) -> None:
    session.conf.set("spark.sql.streaming.checkpointLocation", str(feed.checkpoint))
    try:
        writer = feed.frame().writeStream.format("lance_nb").queryName("named")
        query = writer.trigger(availableNow=True).start(feed.target)
        query.awaitTermination()
    finally:
        session.conf.unset("spark.sql.streaming.checkpointLocation")
    assert feed.marks() == {query.id: "2"}


def test_complete_output_overwrites_and_is_marked(feed: Feed) -> None:
    counts = feed.frame().groupBy().count().writeStream.format("lance_nb").outputMode("complete")
    counts = counts.option("checkpointLocation", str(feed.checkpoint)).trigger(availableNow=True)
    query = counts.start(feed.target)
    query.awaitTermination()
    assert lance_nb.dataset(feed.target).to_table()["count"].to_pylist() == [9]
    feed.forget_last_commit()
    counts.start(feed.target).awaitTermination()
    newest = lance_nb.dataset(feed.target)
    assert (newest.version, feed.marks()) == (3, {query.id: "2"})


def test_foreach_batch_writes_once_by_application_and_number(feed: Feed) -> None:
    def write(frame: DataFrame, number: int) -> None:
        known = (
            frame.write.format("lance_nb").option("txnAppId", "app").option("txnVersion", number)
        )
        known.mode("append").save(feed.target)

    writer = feed.frame().writeStream.foreachBatch(write).trigger(availableNow=True)
    writer = writer.option("checkpointLocation", str(feed.checkpoint))
    writer.start().awaitTermination()
    feed.forget_last_commit()
    feed.arrive(3)
    writer.start().awaitTermination()
    assert ids_of(feed.target) == ids(0, 1, 2, 3)
    assert feed.marks() == {"app": "3"}


def test_a_mark_that_is_no_number_ends_the_query(feed: Feed) -> None:
    from pyspark.errors import StreamingQueryException

    query = feed.run()
    lance_nb.dataset(feed.target).update_config({f"lance_nb.stream.{query.id}": "x"})
    feed.arrive(3)
    with pytest.raises(StreamingQueryException, match="is not the number of a batch"):
        feed.run()
    assert ids_of(feed.target) == ids(0, 1, 2)
