from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lance_nb
from lance_nb import spark
from lance_nb.dataset import LanceDataset
from lance_nb.errors import (
    InvalidInputError,
    MergeInsertError,
    RunCancelledError,
    SchemaMismatchError,
)
from lance_nb.spark import merge_insert
from lance_nb.spark.merge_insert import BUCKET_BYTES, bucket_count, plan_merge
from lance_nb.spark.run import RunOptions
from tests.unit.spark.conftest import rows


def changed(start: int, stop: int) -> pa.Table:
    ids = pa.array(range(start, stop), pa.int64())
    return pa.table({"id": ids, "name": ["new"] * (stop - start)})


def test_an_upsert_is_one_version(dataset: LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(plan_merge.__kwdefaults__, "task_bytes", 1)  # a task for each fragment
    made = spark.upsert(dataset, changed(95, 110), "id", engine="local", message="more")
    assert (made.version, made.count_rows()) == (2, 110)
    assert made.count_rows("name = 'new'") == 15
    assert made.history(1)[0].message == "more"
    made.validate()


def test_clauses_and_counts_are_those_of_merge_insert(dataset: LanceDataset) -> None:
    begun = spark.merge(dataset, changed(90, 105), "id")
    begun.when_matched_update_all("source.id < 95").when_not_matched_by_source_delete("id < 50")
    assert "merge_insert 15 rows on id" in spark.explain(begun.plan())
    stats = begun.execute(engine="local")
    assert stats == {"num_inserted_rows": 0, "num_updated_rows": 5, "num_deleted_rows": 50}
    assert begun.dataset.count_rows() == 50


def test_nothing_changed_makes_a_version_as_merge_insert_does(dataset: LanceDataset) -> None:
    begun = spark.merge(dataset, changed(500, 510), "id").when_matched_update_all()
    assert set(begun.execute().values()) == {0}
    assert begun.dataset.version == 2


def test_what_is_wrong_changes_nothing(dataset: LanceDataset) -> None:
    twice = pa.concat_tables([changed(3, 4)] * 2)
    with pytest.raises(MergeInsertError, match="multiple source rows"):
        spark.upsert(dataset, twice, "id")
    with pytest.raises(InvalidInputError, match="has no clause"):
        spark.merge(dataset, changed(1, 2), "id").execute()
    with pytest.raises(SchemaMismatchError):
        spark.upsert(dataset, pa.table({"name": ["x"]}), "id")
    with pytest.raises(InvalidInputError, match="form 'x' is not one of"):
        spark.upsert(dataset, changed(1, 2), "id", form="x")
    with pytest.raises(RunCancelledError):
        spark.upsert(dataset, changed(1, 2), "id", stop=lambda: True)
    assert lance_nb.dataset(dataset.uri).version == 1


def test_edits_of_tasks_go_to_a_stage(dataset: LanceDataset, tmp_path: Path) -> None:
    edits = spark.run_edits(spark.plan_delete(dataset, "id < 10", task_bytes=1))
    assert sum(one.num_rows for one in edits) == 10
    assert lance_nb.dataset(dataset.uri).version == 1


def test_rows_are_created_and_overwritten_by_tasks(dataset: LanceDataset, tmp_path: Path) -> None:
    uri = str(tmp_path / "copy.lance")
    made = spark.write(dataset, uri, engine="local", message="a copy")
    assert (made.version, made.to_table()) == (1, rows(0, 100))
    with pytest.raises(lance_nb.errors.DatasetAlreadyExistsError):
        spark.write(dataset, uri)
    dataset.delete("id >= 10")
    made = spark.write(lance_nb.dataset(dataset.uri), made, "overwrite")
    assert (made.version, made.to_table()) == (2, rows(0, 10))
    other = spark.write(made, str(tmp_path / "other.lance"), "append")
    assert (other.version, other.count_rows()) == (1, 10)


class Session:
    """A session that only turns a table into a frame."""

    def createDataFrame(self, table: pa.Table) -> tuple[str, int]:
        return "frame", table.num_rows


def test_the_form_decides_whether_a_small_table_is_shuffled(dataset: LanceDataset) -> None:
    def shuffled(form: str, engine: str) -> object:
        how = RunOptions(engine, Session())
        return spark.merge(dataset, changed(0, 5), "id", form=form)._source_to_shuffle(how)

    assert shuffled("shuffle", "spark") == ("frame", 5)
    assert shuffled("shuffle", "auto") == ("frame", 5)
    assert shuffled("auto", "spark") is None
    assert shuffled("broadcast", "spark") is None
    assert shuffled("shuffle", "local") is None  # nothing to shuffle with


def test_the_form_decides_whether_a_small_frame_is_shuffled(
    dataset: LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = object()
    monkeypatch.setattr(merge_insert, "is_dataframe", lambda value: value is frame)
    monkeypatch.setattr(merge_insert, "source_bytes", lambda _: merge_insert.SOURCE_BYTES)

    def shuffled(form: str) -> object:
        return spark.merge(dataset, frame, "id", form=form)._source_to_shuffle(RunOptions("spark"))

    assert shuffled("shuffle") is frame
    assert shuffled("auto") is None
    assert shuffled("broadcast") is None
    monkeypatch.setattr(merge_insert, "source_bytes", lambda _: merge_insert.SOURCE_BYTES + 1)
    assert shuffled("auto") is frame
    monkeypatch.setattr(merge_insert, "source_bytes", lambda _: None)  # Spark does not say
    assert shuffled("auto") is frame


@pytest.mark.parametrize(
    ("num_rows", "num_bytes", "cores", "wanted"),
    [
        (0, 0, 2, 1),
        (5_000_000, 10 * BUCKET_BYTES, 2, 10),
        (5_000_000, 1, 2, 3),  # rows of the target
        (1_000_000, 1, 16, 16),  # all cores
        (1_000_000, 1, 1024, 21),  # nobody knows how many cores: not too few rows for each
        (10, 1, 64, 1),
        (10, 1 << 49, 2, 200),  # what Spark expects of a join
        (10, None, 2, 200),
        (10**9, None, 2, 500),
    ],
)
def test_memory_is_bounded_and_fragments_are_few(
    num_rows: int, num_bytes: int | None, cores: int, wanted: int
) -> None:
    assert bucket_count(num_rows, num_bytes, 200, cores) == wanted
