"""Short histories of particular kinds of datasets, replayed as in test_replay.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.support.replay import differences, load_history, rebuild
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

PRIMARY_KEY = "lance-schema:unenforced-primary-key"
KEYED = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.string())])


def rows(count: int, first: int = 0) -> pa.Table:
    ids = range(first, first + count)
    return pa.table({"a": pa.array(ids, pa.int64()), "b": [f"s{i % 7}" for i in ids]})


def primary_key_of_the_schema(lance: Any, path: str) -> None:
    schema = KEYED.set(0, KEYED.field(0).with_metadata({PRIMARY_KEY: "true"}))
    ds = lance.write_dataset(rows(3).cast(schema), path)
    merge = ds.merge_insert("a").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(rows(2, 2).cast(schema))
    ds.update_field_metadata({"b": {"x": "y"}})


def primary_key_set_later(lance: Any, path: str) -> None:
    ds = lance.write_dataset(rows(3).cast(KEYED), path)
    ds.update_field_metadata({"a": {PRIMARY_KEY: "true"}})
    ds.update_field_metadata({"a": {"z": "y"}, "b": {"x": "1"}})
    lance.write_dataset(rows(2).cast(KEYED), path, mode="append")


def files_of_2023(lance: Any, path: str) -> None:
    lance.write_dataset(rows(50), path, data_storage_version="legacy", max_rows_per_file=20)
    ds = lance.write_dataset(rows(10, 50), path, mode="append")
    ds.delete("a % 7 = 1")
    ds.update({"b": "'x'"}, where="a < 5")
    ds.add_columns({"d": "a + 1"})
    ds.drop_columns(["b"])
    ds.optimize.compact_files()
    lance.write_dataset(rows(5), path, mode="overwrite", data_storage_version="2.0")


def blobs(lance: Any, path: str) -> None:
    blob = pa.field("x", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    schema = pa.schema([pa.field("a", pa.int64()), blob])
    data = pa.table({"a": [1, 2], "x": [b"1" * 10, b"2" * 100_000]}, schema=schema)
    lance.write_dataset(data, path)
    ds = lance.write_dataset(data.slice(0, 1), path, mode="append")
    ds.delete("a = 2")
    ds.optimize.compact_files()


def nested_columns(lance: Any, path: str) -> None:
    data = pa.table({"s": [{"x": 1, "y": {"z": 2}}] * 10, "l": [[{"k": 1}]] * 10})
    lance.write_dataset(data, path).drop_columns(["s.x"])
    lance.dataset(path).alter_columns({"path": "s.y", "name": "renamed"})
    lance.dataset(path).add_columns(pa.field("e", pa.struct([("q", pa.int8())])))


def nothing_in_it(lance: Any, path: str) -> None:
    lance.write_dataset(rows(0).cast(KEYED.remove(0).insert(0, pa.field("a", pa.int64()))), path)
    lance.write_dataset(rows(5), path, mode="append").delete("true")
    lance.write_dataset(rows(5), path, mode="append")
    lance.write_dataset(rows(5), path, mode="append").optimize.compact_files()


def files_under_another_base(lance: Any, path: str) -> None:
    bases = [lance.DatasetBasePath(f"{path}-base", name="one")]
    lance.write_dataset(rows(10), path, initial_bases=bases, target_bases=["one"])
    ds = lance.write_dataset(rows(4), path, mode="append", target_bases=["one"])
    ds.delete("a = 2")
    ds.optimize.compact_files()


def parts_of_indices(lance: Any, path: str) -> None:
    ds = lance.write_dataset(rows(100), path, max_rows_per_file=10, enable_stable_row_ids=True)
    ds.create_scalar_index("a", "BTREE")
    ds.create_scalar_index("b", "BITMAP")
    ds = lance.write_dataset(rows(30, 100), path, mode="append")
    ds.optimize.optimize_indices(num_indices_to_merge=0)
    ds.delete("a < 20")
    ds.update({"b": "'x'"}, where="a < 40")
    ds.optimize.compact_files()
    lance.dataset(path).drop_index("a_idx")


def every_kind_of_index(lance: Any, path: str) -> None:
    count = 300
    vectors = pa.FixedSizeListArray.from_arrays(
        pa.array(np.random.default_rng(1).random(count * 4, "f4")), 4
    )
    data = rows(count).append_column("v", vectors).append_column("u", pa.array([0] * count))
    ds = lance.write_dataset(data, path, max_rows_per_file=100, enable_stable_row_ids=True)
    for column, kind in (("a", "BTREE"), ("a", "ZONEMAP"), ("a", "BLOOMFILTER")):
        ds.create_scalar_index(column, kind, name=kind)
    for column, kind in (("b", "BITMAP"), ("b", "NGRAM"), ("b", "INVERTED")):
        ds.create_scalar_index(column, kind, name=kind)
    ds.create_index("v", "IVF_FLAT", num_partitions=1)
    ds.update({"u": "u + 1"}, where="a % 2 = 0")
    ds.optimize.compact_files(target_rows_per_fragment=200)


def nullability(lance: Any, path: str) -> None:
    lance.write_dataset(rows(3).cast(KEYED), path).alter_columns({"path": "a", "nullable": True})
    lance.dataset(path).alter_columns({"path": "a", "nullable": False})


@pytest.mark.parametrize(
    "write",
    [
        primary_key_of_the_schema,
        primary_key_set_later,
        files_of_2023,
        blobs,
        nested_columns,
        nothing_in_it,
        files_under_another_base,
        parts_of_indices,
        every_kind_of_index,
        nullability,
    ],
)
def test_every_version_is_built_as_pylance_builds_it(
    write: Callable[[Any, str], None], tmp_path: Path
) -> None:
    lance = require_pylance()
    write(lance, str(tmp_path / "dataset"))
    history = load_history(tmp_path / "dataset")
    assert len(history) > 2
    for version in sorted(history)[1:]:
        assert differences(rebuild(history, version), history[version]) == [], version
