from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.spark.source.options import SourceOptions
from lance_nb.spark.source.scan import ReadPlan
from lance_nb.storage import meter


def test_a_scan_is_cut_for_several_cores(
    dataset: LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = ReadPlan.of(SourceOptions.of({"path": dataset.uri, "columns": "id"}))
    assert plan.parts() == [tuple(range(10))]  # too small to be cut
    monkeypatch.setattr("lance_nb.spark.plan._LEAST_BYTES", 1)
    for num_cores, num_parts in ((2, 2), (8, 8), (100, 10)):
        parts = plan.parts(num_cores)
        assert len(parts) == num_parts
        batches = [one for part in parts for one in plan.batches(part)]
        assert [row for one in batches for row in one["id"].tolist()] == list(range(100))


FIXED = {
    "flag": pa.bool_(),
    "day": pa.date32(),
    "price": pa.decimal128(9, 2),
    "vector": pa.list_(pa.float32(), 3),
    "place": pa.struct([("x", pa.float64()), ("y", pa.int16())]),
}
WIDTHS = {"flag": 1, "day": 4, "price": 16, "vector": 12, "place": 10}


def test_bytes_to_read_are_those_of_the_columns_and_of_the_filter(tmp_path: Path) -> None:
    num_rows = 4_000
    columns = {name: pa.nulls(num_rows, kind) for name, kind in FIXED.items()}
    rng = np.random.default_rng(1)
    texts = [rng.bytes(500).hex() for _ in range(num_rows)]
    table = pa.table({**columns, "text": texts, "words": [[one] for one in texts]})
    uri = str(tmp_path / "rows.lance")
    lance_nb.write_dataset(table, uri, max_rows_per_file=1_000)

    def sizes(names: str, predicate: str = "") -> list[int]:
        said = {"path": uri, "columns": names, **({"filter": predicate} if predicate else {})}
        plan = ReadPlan.of(SourceOptions.of(said))
        _, snapshot = plan.pinned.open()
        read = plan._read_bytes(snapshot, {"text"} if predicate else set())
        if names in FIXED:
            assert plan.size_bytes == num_rows * WIDTHS[names]
        else:
            assert plan.size_bytes > 4_000_000  # those of all files
        return read.tolist()

    for name, width in WIDTHS.items():
        assert sizes(name) == [1_000 * width] * 4
    assert all(1_000_000 < one < 2_300_000 for one in sizes("text"))
    assert all(1_000_000 < one < 2_300_000 for one in sizes("day", "text IS NULL"))
    whole = ReadPlan.of(SourceOptions.of({"path": uri, "columns": "flag,day"}))
    assert whole.size_bytes == num_rows * 5


def test_partitions_take_the_columns_of_the_filter_into_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lance_nb.spark.plan._LEAST_BYTES", 1024**2)
    monkeypatch.setattr("lance_nb.spark.source.scan._OPEN_BYTES", 0)
    rng = np.random.default_rng(2)
    texts = [rng.bytes(1_000).hex() for _ in range(4_000)]
    table = pa.table({"id": range(4_000), "text": texts})
    uri = str(tmp_path / "rows.lance")
    lance_nb.write_dataset(table, uri, max_rows_per_file=1_000)
    for predicate, num_parts in (("id >= 0", 1), ("text IS NOT NULL", 2)):
        said = {"path": uri, "columns": "id", "filter": predicate}
        assert len(ReadPlan.of(SourceOptions.of(said)).parts(2)) == num_parts


def test_rows_of_text_that_compress_well_are_counted_all_the_same(tmp_path: Path) -> None:
    uri = str(tmp_path / "rows.lance")
    same = {"text": pa.repeat("same", 100_000), "id": pa.nulls(100_000, pa.int64())}
    made = lance_nb.write_dataset(pa.table(same), uri)
    sizes = made.inspect.data_files()["size_bytes"].to_pylist()
    assert sum(sizes) < 100_000
    plan = ReadPlan.of(SourceOptions.of({"path": uri, "columns": "text"}))
    assert plan._read_bytes(plan.pinned.open()[1], set()).tolist() == [1_600_000]


def test_a_filter_that_no_fragment_passes_leaves_one_empty_part(dataset: LanceDataset) -> None:
    dataset.create_scalar_index("id", "BTREE")
    plan = ReadPlan.of(SourceOptions.of({"path": dataset.uri, "filter": "id = 1000000"}))
    assert plan.parts() == [()]
    assert list(plan.batches(())) == []


def test_one_column_of_wide_rows_is_read_without_the_others(tmp_path: Path) -> None:
    num_rows, width = 5_000, 384
    values = np.random.default_rng(1).random(num_rows * width, dtype=np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values), width)
    uri = str(tmp_path / "wide.lance")
    lance_nb.write_dataset(pa.table({"id": np.arange(num_rows), "vector": vectors}), uri)
    whole = ReadPlan.of(SourceOptions.of({"path": uri}))
    plans = {
        "columns=": ReadPlan.of(SourceOptions.of({"path": uri, "columns": "id"})),
        "a schema": whole.select(["id"]),
        "all": whole,
    }
    read_bytes = {}
    for name, plan in plans.items():
        before = meter.totals().read_bytes
        batches = [one for part in plan.parts() for one in plan.batches(part)]
        assert sum(sum(one["id"].to_pylist()) for one in batches) == sum(range(num_rows)), name
        read_bytes[name] = meter.totals().read_bytes - before
    assert read_bytes["all"] > values.nbytes
    assert max(read_bytes["columns="], read_bytes["a schema"]) < values.nbytes / 20, read_bytes
