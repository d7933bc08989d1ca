"""Sources and targets on S3: files, folders and Hive trees are read, a dataset there is written."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import lance_nb
from lance_nb import spark
from lance_nb.errors import LanceError
from lance_nb.spark.plan import Plan
from lance_nb.spark.row_writer import WriteSettings
from lance_nb.spark.run import RunOptions, run_once
from lance_nb.spark.tasks.files import SourceSettings, plan_write
from tests.spark.data import MARKS
from tests.support.requirements import require_package, require_pylance
from tests.support.servers import moto_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = MARKS
KEY, SECRET = "s3-key-7f1c", "s3-secret-9b2e"
LINES = "id,name\n200,u\n201,v\nx,w\n"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """The address of an S3 server with a bucket of files."""
    boto3 = require_package("boto3")
    require_package("s3fs")
    require_package("obstore")
    with moto_server() as address:
        store = boto3.client(
            "s3", endpoint_url=address, region_name="us-east-1",
            aws_access_key_id=KEY, aws_secret_access_key=SECRET,
        )  # fmt: skip
        store.create_bucket(Bucket="lake")
        for name, data in files().items():
            store.put_object(Bucket="lake", Key=name, Body=data)
        yield address


def files() -> dict[str, bytes]:
    """A Parquet file, a folder of them, a Hive tree, and lines of CSV and JSON."""
    return {
        "one.parquet": packed(0, 50),
        "folder/part-0.parquet": packed(50, 60),
        "folder/part-1.parquet": packed(60, 70),
        "folder/_SUCCESS": b"",
        "tree/day=2026-11-27/part-0.parquet": packed(0, 3),
        "tree/day=2026-11-28/part-0.parquet": packed(3, 5),
        "lines.csv": LINES.encode(),
        "lines.json": b'{"id": 300, "name": "j"}\n{"id": \n',
    }


def packed(start: int, stop: int) -> bytes:
    ids = pa.array(range(start, stop), pa.int64())
    sink = io.BytesIO()
    table = pa.table({"id": ids, "name": [f"n{one}" for one in range(start, stop)]})
    parquet.write_table(table, sink, row_group_size=25)
    return sink.getvalue()


def of_files(endpoint: str) -> dict[str, Any]:
    """The options of fsspec for files."""
    region = {"region_name": "us-east-1"}
    return {"key": KEY, "secret": SECRET, "endpoint_url": endpoint, "client_kwargs": region}


def by_pylance(uri: str, endpoint: str) -> pa.Table:
    options = {
        "aws_access_key_id": KEY, "aws_secret_access_key": SECRET, "aws_endpoint": endpoint,
        "aws_region": "us-east-1", "allow_http": "true",
    }  # fmt: skip
    dataset = require_pylance().dataset(uri, storage_options=options)
    dataset.validate()
    return dataset.to_table().sort_by("id")


@pytest.fixture(autouse=True)
def no_ambient_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Credentials come by options only: neither this process nor the workers have others."""
    for name in [one for one in os.environ if one.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_parquet_csv_and_json_on_s3_are_written_to_a_dataset_on_s3(
    session: SparkSession, endpoint: str
) -> None:
    uri, options = "s3://lake/flow.lance", of_files(endpoint)
    on: dict[str, Any] = {"engine": "spark", "spark": session, "source_options": options}
    made = spark.write("s3://lake/one.parquet", uri, storage_options=options, **on)
    made = spark.append(made, "s3://lake/folder", **on)
    with pytest.warns(UserWarning, match="bad records, 1 in files: 1"):
        made = spark.append(made, "s3://lake/lines.csv", bad_records="drop", **on)
    with pytest.warns(UserWarning, match="bad records, 1 in files: 1"):
        made = spark.append(made, ["s3://lake/lines.j*"], bad_records="drop", **on)
    made = spark.delete(made, "id < 5", engine="spark", spark=session)
    assert made.version == 5
    said: dict[str, Any]
    expected = [*range(5, 70), 200, 201, 300]
    found = by_pylance(uri, endpoint)
    assert found["id"].to_pylist() == expected
    for said in ({"storage_options": options}, {"storageOptions": json.dumps(options)}):
        frame = spark.read(uri, spark=session, columns=["id"], **said)
        assert sorted(row["id"] for row in frame.collect()) == expected


def test_a_hive_tree_on_s3_gives_a_column(
    session: SparkSession, endpoint: str, tmp_path: Path
) -> None:
    made = spark.write(
        "s3://lake/tree", tmp_path / "t.lance", engine="spark", spark=session,
        source_options=of_files(endpoint),
    )  # fmt: skip
    days = made.to_table().sort_by("id")["day"].to_pylist()
    assert [str(one) for one in days] == ["2026-11-27"] * 3 + ["2026-11-28"] * 2


def test_a_dataframe_is_appended_to_a_dataset_on_s3(session: SparkSession, endpoint: str) -> None:
    uri, options = "s3://lake/frames.lance", of_files(endpoint)
    rows = pa.table({"id": pa.array(range(100), pa.int64()), "name": ["a"] * 100})
    lance_nb.write_dataset(rows, uri, storage_options=options)
    frame = session.createDataFrame(pa.table({"id": [100, 101], "name": ["b", "b"]}))
    spark.write(frame, uri, "append", storage_options=options)
    assert by_pylance(uri, endpoint)["id"].to_pylist() == list(range(102))


def test_a_job_with_files_on_s3_is_resumed_without_stored_credentials(
    session: SparkSession, endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri, options = "s3://lake/resumed.lance", of_files(endpoint)
    first = pa.table({"id": pa.array([-1], pa.int64()), "name": ["first"]})
    made = lance_nb.write_dataset(first, uri, storage_options=options)
    how = SourceSettings(options=options)
    plan = plan_write(made, "s3://lake/one.parquet", WriteSettings(), how, task_bytes=1)
    assert len(plan.tasks) == 2

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Plan, "commit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_once(plan, RunOptions(engine="spark", spark=session, journal=True))
    kept = [one for one in (tmp_path / "cache").rglob("*") if one.is_file()]
    assert kept
    for one in kept:
        data = one.read_bytes()
        assert SECRET.encode() not in data
        assert KEY.encode() not in data
    (entry,) = spark.unfinished()
    with pytest.raises(LanceError, match="storage_options"):
        spark.resume(entry.operation_id, engine="local")
    spark.resume(entry.operation_id, options, engine="local")
    assert by_pylance(uri, endpoint)["id"].to_pylist() == [-1, *range(50)]
