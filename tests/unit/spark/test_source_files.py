"""Where files of a source are found, and which columns their folders give them."""

from __future__ import annotations

import gzip
from datetime import date
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from lance_nb import LanceDataset, spark, write_dataset
from lance_nb.errors import InvalidInputError, MissingPackageError, SchemaMismatchError
from lance_nb.spark.tasks.source_files import find_files

ROWS = pa.table({"id": [1, 2], "text": ["a", None]})


def put(path: Path, table: pa.Table = ROWS) -> Path:
    """Write a Parquet file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(table, path)
    return path


def created(source: Any, to: Path, **options: Any) -> pa.Table:
    """Write a new dataset in this process and return its rows, in the order of their files."""
    return spark.write(source, str(to), engine="local", **options).to_table()


@pytest.fixture
def hive(tmp_path: Path) -> Path:
    """A folder as Spark writes it, partitioned by three columns."""
    root = tmp_path / "hive"
    put(root / "day=2026-01-02" / "n=7" / "who=a%2Fb" / "part-0.parquet")
    put(root / "day=2026-01-03" / "n=-8" / "who=__HIVE_DEFAULT_PARTITION__" / "part-1.parquet")
    (root / "_SUCCESS").write_bytes(b"")
    (root / "day=2026-01-02" / ".part-0.parquet.crc").write_bytes(b"x")
    put(root / "_temporary" / "part-9.parquet")
    return root


@pytest.mark.parametrize("form", ["folder", "path", "url", "pattern", "folders"])
def test_folders_give_columns(hive: Path, tmp_path: Path, form: str) -> None:
    source: dict[str, Any] = {
        "folder": str(hive),
        "path": hive,
        "url": hive.as_uri(),
        "pattern": f"{hive}/*/*/*/*.parquet",
        "folders": f"{hive}/day=*",
    }
    found = created(source[form], tmp_path / "new.lance")
    assert found.column_names == ["id", "text", "day", "n", "who"]
    assert found.schema.field("day").type == pa.date32()
    assert found.schema.field("n").type == pa.int64()
    assert found.select(["id", "day", "n", "who"]).to_pylist() == [
        {"id": 1, "day": date(2026, 1, 2), "n": 7, "who": "a/b"},
        {"id": 2, "day": date(2026, 1, 2), "n": 7, "who": "a/b"},
        {"id": 1, "day": date(2026, 1, 3), "n": -8, "who": None},
        {"id": 2, "day": date(2026, 1, 3), "n": -8, "who": None},
    ]


def test_columns_of_folders_have_the_types_of_the_dataset(hive: Path, tmp_path: Path) -> None:
    schema = pa.schema(
        [*ROWS.schema, ("day", pa.string()), ("n", pa.int16()), ("who", pa.large_string())]
    )
    target = write_dataset(schema.empty_table(), tmp_path / "a.lance")
    made = spark.append(target, hive, engine="local").to_table()
    assert made.schema == schema
    assert made["day"].to_pylist() == ["2026-01-02"] * 2 + ["2026-01-03"] * 2
    numbers = write_dataset(
        schema.set(4, pa.field("who", pa.int8())).empty_table(), tmp_path / "b.lance"
    )
    with pytest.raises(InvalidInputError, match=r"who=a/b is not a value of column 'who' \(int8\)"):
        spark.append(numbers, hive, engine="local")
    assert numbers.latest_version == 1
    without = write_dataset(ROWS.slice(0, 0), tmp_path / "c.lance")
    with pytest.raises(SchemaMismatchError, match="no column 'day'"):
        spark.append(without, hive, engine="local")
    assert spark.append(without, hive, hive=False, engine="local").count_rows() == 4


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "02"], pa.string()),  # 02 is not how an integer is written
        (["1", "2.5"], pa.float64()),
        (["1e400", "1"], pa.float64()),
        (["2026-13-01"], pa.string()),
        (["99999999999999999999"], pa.string()),  # a float would lose digits
        (["true"], pa.string()),
        (["__HIVE_DEFAULT_PARTITION__"], pa.string()),
    ],
)
def test_values_of_folders_look_like_a_type(
    tmp_path: Path, values: list[str], kind: pa.DataType
) -> None:
    for value in values:
        put(tmp_path / "in" / f"k={value}" / "x.parquet")
    found = created(tmp_path / "in", tmp_path / "new.lance")
    assert found.schema.field("k").type == kind


def test_files_of_other_partitions_and_columns_are_refused(tmp_path: Path) -> None:
    put(tmp_path / "in" / "k=1" / "x.parquet")
    put(tmp_path / "in" / "x.parquet")
    with pytest.raises(InvalidInputError, match=r"for columns k, and .* no column|no column, and"):
        created(tmp_path / "in", tmp_path / "new.lance")
    put(tmp_path / "both" / "id=1" / "x.parquet")
    with pytest.raises(InvalidInputError, match="has column 'id', and its folder"):
        created(tmp_path / "both", tmp_path / "new.lance")
    assert not (tmp_path / "new.lance").exists()
    assert created(tmp_path / "both", tmp_path / "new.lance", hive=False) == ROWS


def test_what_is_not_there_or_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(InvalidInputError, match=r"folder .*empty.* has no files"):
        find_files(tmp_path / "empty")
    with pytest.raises(InvalidInputError, match="no file matches"):
        find_files(str(tmp_path / "x*.parquet"))
    with pytest.raises(InvalidInputError, match=r"notes\.txt: the file name must end with"):
        created(tmp_path / "notes.txt", tmp_path / "new.lance")
    with pytest.raises(InvalidInputError, match="nowhere://"):
        find_files("nowhere://x/y.parquet")


def test_a_driver_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_args: object, **_options: object) -> None:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(fsspec.core, "url_to_fs", missing)
    with pytest.raises(MissingPackageError, match="s3fs, which is not installed: pip install s3fs"):
        find_files("s3://bucket/x.parquet")


def test_files_of_any_url_are_read(tmp_path: Path) -> None:
    store = fsspec.filesystem("memory")
    for name, table in (("k=1/a.parquet", ROWS), ("k=2/b.parquet", ROWS)):
        with store.open(f"/in/{name}", "wb") as file:
            parquet.write_table(table, file)
    try:
        found = created("memory://in", tmp_path / "new.lance")
        assert found["k"].to_pylist() == [1, 1, 2, 2]
        assert found.drop_columns(["k"]).slice(2) == ROWS
    finally:
        store.rm("/in", recursive=True)


def test_text_files_take_the_types_of_the_dataset(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int16()), ("text", pa.string()), ("when", pa.timestamp("us"))])
    target = write_dataset(schema.empty_table(), tmp_path / "a.lance")
    (tmp_path / "x.csv").write_text("id,text,when\n1,01,2026-01-02 03:04:05\n2,,\n")
    (tmp_path / "y.jsonl.gz").write_bytes(
        gzip.compress(b'{"id": 3, "text": "07", "when": "2026-01-02 03:04:05"}\n{"id": 4}\n')
    )
    for name in ("x.csv", "y.jsonl.gz"):
        target = spark.append(target, tmp_path / name, engine="local")
    found = target.to_table()
    assert found.schema == schema
    assert found["id"].to_pylist() == [1, 2, 3, 4]
    assert found["text"].to_pylist() == ["01", "", "07", None]
    assert found["when"].null_count == 2
    (tmp_path / "bad.csv").write_text("id,text,when\nx,y,\n")
    with pytest.raises(InvalidInputError, match=r"cannot decode .*bad\.csv: .*'x'"):
        spark.append(target, tmp_path / "bad.csv", engine="local")
    (tmp_path / "more.csv").write_text("id,other\n1,2\n")
    with pytest.raises(SchemaMismatchError, match="no column 'other'"):
        spark.append(target, tmp_path / "more.csv", engine="local")
    assert target.latest_version == 3


def test_columns_are_cast_on_request_only(tmp_path: Path) -> None:
    target = write_dataset(pa.table({"id": pa.array([1], pa.int32())}), tmp_path / "a.lance")
    wide, text = tmp_path / "wide.parquet", tmp_path / "text.parquet"
    put(wide, pa.table({"id": [2]}))
    put(text, pa.table({"id": ["x"]}))
    with pytest.raises(SchemaMismatchError, match=r"wide\.parquet: .*must have type int32"):
        spark.append(target, wide, engine="local")
    target = spark.append(target, wide, cast=True, engine="local")
    assert target.to_table().to_pydict() == {"id": [1, 2]}
    with pytest.raises(SchemaMismatchError, match=r"text\.parquet: column 'id' cannot be cast"):
        spark.append(target, text, cast=True, engine="local")
    put(wide, pa.table({"id": [2**40]}))
    with pytest.raises(SchemaMismatchError, match=r"wide\.parquet: column 'id' cannot be cast"):
        spark.append(target, wide, cast=True, engine="local")
    assert target.latest_version == 2


def test_schemas_of_files_are_merged_on_request(tmp_path: Path) -> None:
    put(tmp_path / "in" / "a.parquet", pa.table({"id": pa.array([1], pa.int32())}))
    put(tmp_path / "in" / "b.parquet", pa.table({"id": [2**40], "text": ["x"]}))
    with pytest.raises(SchemaMismatchError, match=r"b\.parquet: .*'text' is not in the dataset"):
        created(tmp_path / "in", tmp_path / "new.lance")
    found = created(tmp_path / "in", tmp_path / "new.lance", merge_schema=True)
    assert found.to_pydict() == {"id": [1, 2**40], "text": [None, "x"]}
    put(tmp_path / "in" / "c.parquet", pa.table({"id": ["x"]}))
    with pytest.raises(SchemaMismatchError, match="cannot be merged"):
        created(tmp_path / "in", tmp_path / "other.lance", merge_schema=True)


def test_a_column_may_begin_with_an_underscore(tmp_path: Path) -> None:
    """Folders that begin so are hidden, but for those that name a column."""
    put(tmp_path / "in" / "_day=1" / "x.parquet")
    put(tmp_path / "in" / "_temporary" / "x.parquet")
    assert created(tmp_path / "in", tmp_path / "new.lance")["_day"].to_pylist() == [1, 1]


def test_a_folder_with_a_dataset_is_a_dataset(tmp_path: Path) -> None:
    write_dataset(ROWS, tmp_path / "rows")
    assert created(tmp_path / "rows", tmp_path / "copy") == ROWS
    assert isinstance(spark.append(str(tmp_path / "copy"), tmp_path / "rows"), LanceDataset)


def test_a_csv_file_makes_a_dataset(tmp_path: Path) -> None:
    csv.write_csv(ROWS, tmp_path / "rows.csv")
    assert created(tmp_path / "rows.csv", tmp_path / "new.lance")["id"].to_pylist() == [1, 2]
