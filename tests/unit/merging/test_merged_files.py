"""Columns that were added fragment by fragment are the same in every fragment."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset, LanceFragment
from lance_nb.errors import SchemaMismatchError

NUMBERS = pa.array(range(5), pa.int64())


def by_function(fragment: LanceFragment, name: str, column: pa.Array) -> Any:
    made = pa.RecordBatch.from_arrays([column], [name])
    return fragment.merge_columns(lambda _: made, columns=["id"])


def by_stream(fragment: LanceFragment, name: str, column: pa.Array) -> Any:
    return fragment.merge_columns(pa.table({name: column}).to_reader())


def committed(dataset: LanceDataset, way: Any, *columns: tuple[str, pa.Array]) -> LanceDataset:
    made = [
        way(fragment, *column)
        for fragment, column in zip(dataset.get_fragments(), columns, strict=True)
    ]
    operation = lance_nb.LanceOperation.Merge([one for one, _ in made], made[-1][1])
    return LanceDataset.commit(dataset.uri, operation, read_version=dataset.version)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("way", [by_function, by_stream])
@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (
            ("x", NUMBERS),
            ("y", NUMBERS),
            r"fragment 0: column 'y' .* not among the columns \('x'\)",
        ),
        (("x", NUMBERS), ("x", NUMBERS.cast(pa.int32())), "'x' is int32 in the schema, but int64"),
        (
            ("x", NUMBERS),
            ("x", NUMBERS.cast(pa.string())),
            "'x' is string in the schema, but int64",
        ),
        (
            ("x", pa.StructArray.from_arrays([NUMBERS], ["a"])),
            ("x", pa.StructArray.from_arrays([NUMBERS], ["b"])),
            r"'x.b' of the schema is not among the columns \('x.a'\)",
        ),
    ],
)
def test_other_columns_in_one_fragment_are_refused(  # noqa: PLR0917
    make, version, way, first, second, message
):
    dataset = make(max_rows_per_file=5, data_storage_version=version)
    with pytest.raises(SchemaMismatchError, match=message):
        committed(dataset, way, first, second)
    assert lance_nb.dataset(dataset.uri).version == 1


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize(
    "column",
    [
        NUMBERS,
        pa.array(["a", "b", None, "a", "b"]).dictionary_encode(),
        pa.array([[1, 2]] * 5, pa.list_(pa.float32(), 2)),
        pa.array([[{"a": 1, "b": ["x"]}]] * 5),
        pa.StructArray.from_arrays([NUMBERS, NUMBERS], ["b", "a"]),
        pa.array(['{"k":1}'] * 5, pa.json_()),
    ],
    ids=str,
)
def test_the_same_columns_are_committed(make, version, column):
    if version == "2.0" and column.type == pa.json_():
        version = "2.1"
    dataset = make(max_rows_per_file=5, data_storage_version=version)
    found = committed(dataset, by_stream, ("x", column), ("x", column))
    assert found.to_table()["x"].to_pylist() == 2 * column.to_pylist()
