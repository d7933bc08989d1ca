"""How much of a Parquet file is decoded at a time."""

from __future__ import annotations

import json
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pyarrow import parquet

from lance_nb import dataset, spark
from lance_nb.dataset.functions import write_dataset
from lance_nb.errors import InvalidInputError
from lance_nb.spark.plan import Location
from lance_nb.spark.tasks.file_formats import Range, batch_rows
from lance_nb.spark.tasks.files import FileRows, plan_append
from lance_nb.spark.tasks.source_files import SourceFile

COUNT = 100_000


def rows_of(path: str, start: int, stop: int) -> pa.Table:
    return FileRows(SourceFile(Location(path)), Range(start, stop, 1)).read()


@pytest.mark.parametrize(
    ("column", "num_rows"),
    [
        (pa.array(range(COUNT)), 524_288),
        (pa.array([f"{at:040}" for at in range(COUNT)]), 524_288),
        (pa.array([f"{at:080}" for at in range(COUNT)]), 65_536),
        (pa.array(["a" * 300] * COUNT), 65_536),  # one value in a dictionary: next to nothing
        (pa.array([[7] * 100] * COUNT), 65_536),
        (pa.array(["a" * 8188] * 1000), 8192),  # 64 MB, with the offset of each
    ],
)
def test_a_batch_is_large_and_bounded(tmp_path: Path, column: pa.Array, num_rows: int) -> None:
    path = str(tmp_path / "rows.parquet")
    parquet.write_table(pa.table({"c": column}), path)
    assert batch_rows(parquet.ParquetFile(path), [0]) == num_rows
    found = rows_of(path, 0, 1)
    assert found["c"].combine_chunks() == column


def test_row_groups_without_rows(tmp_path: Path) -> None:
    path = str(tmp_path / "rows.parquet")
    parquet.write_table(pa.table({"c": pa.array([], pa.int32())}), path)
    file = parquet.ParquetFile(path)
    groups = list(range(file.num_row_groups))
    assert rows_of(path, 0, len(groups)).num_rows == 0


def test_an_empty_row_group_tells_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "rows.parquet")
    table = pa.table({"a.b": ["x" * 300] * 1000, "items": [["y" * 3000]] * 1000})
    with parquet.ParquetWriter(path, table.schema) as writer:
        writer.write_table(table.slice(0, 0))
        writer.write_table(table)
    file = parquet.ParquetFile(path)
    assert [file.metadata.row_group(at).num_rows for at in range(2)] == [0, 1000]
    wide = table.nbytes / table.num_rows
    assert batch_rows(file, [0, 1]) == pytest.approx(64 * 1024**2 / wide, rel=0.02)
    assert rows_of(path, 0, 2) == table


def test_a_file_that_is_cut_is_named(tmp_path: Path) -> None:
    target = write_dataset(pa.table({"a": [1, 2]}), tmp_path / "a.lance")
    cut = tmp_path / "cut.parquet"
    parquet.write_table(target.to_table(), cut)
    cut.write_bytes(cut.read_bytes()[:-4])
    with pytest.raises(InvalidInputError, match=r"cut\.parquet is not a valid Parquet file: "):
        plan_append(target, str(cut))


def test_a_file_with_a_damaged_page_is_named_and_nothing_is_committed(tmp_path: Path) -> None:
    target = write_dataset(pa.table({"a": [1, 2]}), tmp_path / "a.lance")
    path = tmp_path / "damaged.parquet"
    parquet.write_table(pa.table({"a": pa.array(range(10_000))}), path, use_dictionary=False)
    raw = bytearray(path.read_bytes())
    raw[4:2000] = b"\xff" * 1996
    path.write_bytes(raw)
    with pytest.raises(InvalidInputError, match=r"cannot decode .*damaged\.parquet: "):
        spark.append(target, str(path), engine="local")
    assert dataset(target.uri).version == 1
    assert len(list((tmp_path / "a.lance" / "data").iterdir())) == 1


def test_row_groups_are_shared_out_in_tasks_of_the_size_asked_for(tmp_path: Path) -> None:
    target = write_dataset(pa.table({"a": [1, 2]}), tmp_path / "a.lance")
    path = tmp_path / "groups.parquet"
    parquet.write_table(pa.table({"a": pa.array(range(9000))}), path, row_group_size=1000)
    file = parquet.ParquetFile(path)
    each = max(file.metadata.row_group(at).total_byte_size for at in range(9))

    def parts(task_bytes: int) -> list[tuple[int, int]]:
        plan = plan_append(target, str(path), task_bytes=task_bytes)
        return [(task.part.part.start, task.part.part.stop) for task in plan.tasks]

    assert parts(3 * each) == [(0, 3), (3, 6), (6, 9)]
    assert parts(2 * each) == [(0, 2), (2, 4), (4, 6), (6, 8), (8, 9)]
    assert parts(1) == [(at, at + 1) for at in range(9)]
    assert parts(100 * each) == [(0, 9)]


def numbers(start: int, stop: int) -> pa.Table:
    return pa.table({"id": pa.array(range(start, stop), pa.int64())})


def test_files_that_cannot_be_read_are_left_out_as_a_whole(tmp_path: Path) -> None:
    folder, uri = tmp_path / "files", str(tmp_path / "t.lance")
    folder.mkdir()
    write_dataset(numbers(0, 10), uri)
    parquet.write_table(numbers(10, 20), folder / "a.parquet")
    parquet.write_table(numbers(20, 30), folder / "b.parquet", row_group_size=5, compression="NONE")
    damaged = bytearray((folder / "b.parquet").read_bytes())
    second = parquet.ParquetFile(folder / "b.parquet").metadata.row_group(1).column(0)
    start = second.dictionary_page_offset or second.data_page_offset
    damaged[start : start + 20] = bytes(20)
    (folder / "b.parquet").write_bytes(damaged)  # its first row group is sound
    (folder / "c.parquet").write_bytes(b"PAR1 no file")
    parquet.write_table(pa.table({"id": ["text"]}), folder / "d.parquet")

    with pytest.raises(InvalidInputError, match=r"c\.parquet is not a valid Parquet file"):
        spark.append(uri, folder)
    told: list[spark.RunProgress] = []
    with pytest.warns(UserWarning, match="files were skipped, 3 in all"):
        made = spark.append(
            uri, folder, on_error="skip", journal=True, engine="local",
            source_options=None, progress=told.append,
        )  # fmt: skip
    assert sorted(lance.dataset(uri).to_table()["id"].to_pylist()) == list(range(20))
    done = made.read_transaction(made.version)
    listed = json.loads(done.transaction_properties["lance_nb.spark.skipped"])
    assert listed["count"] == 3
    assert {Path(one["file"]).name for one in listed["files"]} == {
        "b.parquet", "c.parquet", "d.parquet",
    }  # fmt: skip
    assert all(Path(one["file"]).name in one["problem"] for one in listed["files"])
    assert lance.dataset(uri).version == 2

    (folder / "a.parquet").unlink()
    with pytest.raises(InvalidInputError, match="no file is left: 3 cannot be read"):
        spark.append(uri, folder, on_error="skip")
    with pytest.raises(InvalidInputError, match="on_error is 'raise' or 'skip'"):
        spark.append(uri, folder, on_error="ignore")
    assert lance.dataset(uri).version == 2


def test_a_new_dataset_has_the_columns_of_the_first_file_that_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 no file")
    parquet.write_table(numbers(0, 5), tmp_path / "b.parquet")
    with pytest.warns(UserWarning, match="files were skipped, 1 in all"):
        made = spark.write(str(tmp_path / "*.parquet"), tmp_path / "t.lance", on_error="skip")
    assert lance.dataset(made.uri).to_table() == numbers(0, 5)
