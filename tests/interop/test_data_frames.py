"""DataFrames in every verb that takes rows: what is stored is what pylance stores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pandas as pd
import pyarrow as pa
import pytest

import lance_nb

pytestmark = pytest.mark.interop

ROWS = 3


def _indexed(index: Any) -> pd.DataFrame:
    return pd.DataFrame({"key": range(ROWS), "a": [1.5, None, 2.5]}, index=index)


def _column(values: Any) -> pd.DataFrame:
    return pd.DataFrame({"key": range(ROWS), "a": values})


PANDAS: dict[str, pd.DataFrame] = {
    "range": _indexed(None),
    "range with a step": _indexed(pd.RangeIndex(4, 10, 2, name="r")),
    "filtered": _column(range(ROWS))[[True, False, True]],
    "texts": _indexed(["x", "y", "z"]),
    "named": _indexed(pd.Index([3, 1, 2], name="n")),
    "times": _indexed(pd.date_range("2020", periods=ROWS, tz="UTC")),
    "levels": _indexed(pd.MultiIndex.from_tuples([("x", 1), ("x", 2), ("y", 1)])),
    "named levels": _indexed(
        pd.MultiIndex.from_tuples([("x", 1), ("x", 2), ("y", 1)], names=["p", None])
    ),
    "Int64": _column(pd.array([2**53 + 1, None, 1], dtype="Int64")),
    "UInt8": _column(pd.array([255, None, 1], dtype="UInt8")),
    "Float32": _column(pd.array([0.5, None, 1], dtype="Float32")),
    "boolean": _column(pd.array([True, None, False], dtype="boolean")),
    "string": _column(pd.array(["x", None, ""], dtype="string")),
    "objects": _column(pd.Series([b"x", None, b""], dtype=object)),
    "lists": _column([["x"], None, []]),
    "structs": _column([{"x": "y"}, None, {"x": None}]),
    "times of nanoseconds": _column(pd.to_datetime(["2020", None, "2021"])),
    "durations": _column(pd.to_timedelta([1, None, 2], unit="s")),
    "categories": _column(pd.Categorical(["b", None, "a"], categories=["b", "a"])),
    "ordered": _column(pd.Categorical(["b", None, "a"], categories=["b", "a"], ordered=True)),
    "no rows": _indexed(["x", "y", "z"])[:0],
    "attributes": _indexed(None),
}
PANDAS["attributes"].attrs["unit"] = "m"


def _polars() -> dict[str, Any]:
    polars = pytest.importorskip("polars")
    columns = {
        "text": ["x", None, ""],
        "bytes": [b"x", None, b""],
        "list": [["x"], None, []],
        "struct": [{"t": "x", "b": b"y"}, None, {"t": None, "b": b""}],
        "number": [2**53 + 1, None, 1],
        "flag": [True, None, False],
        "nested": [[{"t": ["x"]}], None, []],
    }
    return {
        name: polars.DataFrame({"key": range(ROWS), "a": values})
        for name, values in columns.items()
    }


def _create(module: Any, uri: str, frame: Any) -> None:
    module.write_dataset(frame, uri)


def _create_with_schema(module: Any, uri: str, frame: Any) -> None:
    is_pandas = isinstance(frame, pd.DataFrame)
    schema = pa.Schema.from_pandas(frame) if is_pandas else frame.to_arrow().schema
    module.write_dataset(frame, uri, schema=schema)


def _append(module: Any, uri: str, frame: Any) -> None:
    lance.write_dataset(frame, uri)
    module.write_dataset(frame, uri, mode="append")


def _insert(module: Any, uri: str, frame: Any) -> None:
    lance.write_dataset(frame, uri)
    module.dataset(uri).insert(frame)


def _overwrite(module: Any, uri: str, frame: Any) -> None:
    lance.write_dataset(pa.table({"q": [1]}), uri)
    module.write_dataset(frame, uri, mode="overwrite")


def _upsert(module: Any, uri: str, frame: Any) -> None:
    lance.write_dataset(frame[:1], uri)
    builder = module.dataset(uri).merge_insert("key")
    builder.when_matched_update_all().when_not_matched_insert_all().execute(frame)


def _merge(module: Any, uri: str, frame: Any) -> None:
    lance.write_dataset(pa.table({"key": range(ROWS)}), uri)
    module.dataset(uri).merge(frame, "key")


def _merge_into_pandas(module: Any, uri: str, frame: Any) -> None:
    lance.write_dataset(pd.DataFrame({"key": range(ROWS)}), uri)
    module.dataset(uri).merge(frame, "key")


VERBS: tuple[Callable[[Any, str, Any], None], ...] = (
    _create, _create_with_schema, _append, _insert, _overwrite, _upsert, _merge,
    _merge_into_pandas,
)  # fmt: skip


def _stored(
    verb: Callable[[Any, str, Any], None], module: Any, uri: str, frame: Any
) -> tuple[Any, ...] | None:
    """Return schema, metadata, rows and the DataFrame that is read, None if it was refused."""
    try:
        verb(module, uri, frame)
    except (OSError, ValueError):
        return None
    table = lance.dataset(uri).to_table().sort_by("key")
    read = module.dataset(uri).to_pandas().sort_values("key")
    return (
        table.schema.to_string(truncate_metadata=False),
        table.schema.metadata,
        table.to_pylist(),
        read.dtypes.to_dict(),
        read.index.tolist(),
        read.index.names,
        read.to_dict("list"),
    )


def _check(frame: Any, tmp_path: Path) -> None:
    for verb in VERBS:
        if not len(frame) and verb in (_merge, _merge_into_pandas):
            continue  # pylance refuses a join with no rows; ours adds columns of nulls
        stored, expected = (
            _stored(verb, module, f"{tmp_path}/{module.__name__}{verb.__name__}", frame)
            for module in (lance_nb, lance)
        )
        assert repr(stored) == repr(expected), verb.__name__  # repr: NaN equals itself


@pytest.mark.parametrize("name", PANDAS)
def test_a_frame_of_pandas_is_stored_as_pylance_stores_it(name: str, tmp_path: Path):
    _check(PANDAS[name], tmp_path)


@pytest.mark.parametrize("name", ["text", "bytes", "list", "struct", "number", "flag", "nested"])
def test_a_frame_of_polars_is_stored_as_pylance_stores_it(name: str, tmp_path: Path):
    _check(_polars()[name], tmp_path)


@pytest.mark.parametrize("name", ["texts", "levels", "Int64", "boolean", "string", "filtered"])
def test_a_frame_of_pandas_is_read_as_it_was_written(name: str, tmp_path: Path):
    frame = PANDAS[name]
    lance_nb.write_dataset(frame, tmp_path / "rows")
    pd.testing.assert_frame_equal(lance_nb.dataset(tmp_path / "rows").to_pandas(), frame)
