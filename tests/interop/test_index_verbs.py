"""Verbs on indices beside pylance's: statistics, descriptions, dropping."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import NotSupportedError
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

ROWS = 400
SCALAR = {
    "number": "BTREE",
    "word": "BITMAP",
    "labels": "LABEL_LIST",
    "text": "INVERTED",
    "zone": "ZONEMAP",
    "part": "NGRAM",
    "bloom": "BLOOMFILTER",
}
VECTOR = {"v": "IVF_PQ", "h": "IVF_HNSW_SQ"}


def table(first: int, count: int) -> pa.Table:
    ids = range(first, first + count)
    vectors = pa.array(np.random.default_rng(first).random(count * 8, np.float32))
    return pa.table(
        {
            "number": pa.array(ids, pa.int64()),
            "word": [f"w{at % 5}" for at in ids],
            "labels": [[at % 5] for at in ids],
            "text": [f"red w{at % 9}" for at in ids],
            "zone": pa.array(ids, pa.int64()),
            "part": [f"part {at}" for at in ids],
            "bloom": pa.array(ids, pa.int64()),
            "v": pa.FixedSizeListArray.from_arrays(vectors, 8),
            "h": pa.FixedSizeListArray.from_arrays(vectors, 8),
        }
    )


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Write a dataset with an index of every kind; some have a second segment."""
    lance = require_pylance()
    path = tmp_path_factory.mktemp("verbs") / "t.lance"
    made = lance.write_dataset(table(0, ROWS), str(path), max_rows_per_file=100)
    for column, kind in SCALAR.items():
        made.create_scalar_index(column, kind)
    for column, kind in VECTOR.items():
        extra = {"num_sub_vectors": 4} if kind.endswith("PQ") else {}
        made.create_index(column, kind, num_partitions=2, **extra)
    made.insert(table(ROWS, 50))
    made.optimize.optimize_indices(num_indices_to_merge=0, index_names=["number_idx", "v_idx"])
    made.insert(table(ROWS + 50, 30))
    made.delete("number % 7 = 3")
    return lance.dataset(str(path))


# What pylance reads from the files of an index, and settings that it fills in.
IN_FILES = {"indices", "segments"}


@pytest.mark.parametrize("column", [*SCALAR, *VECTOR])
def test_statistics_are_those_of_pylance(indexed: Any, column: str) -> None:
    name = f"{column}_idx"
    theirs = indexed.stats.index_stats(name)
    ours = lance_nb.dataset(indexed.uri).stats.index_stats(name)
    not_read = set(ours.pop("not_read"))
    assert ours.keys() == theirs.keys()
    assert {key: one for key, one in ours.items() if key not in IN_FILES} == {
        key: one for key, one in theirs.items() if key not in IN_FILES
    }
    assert not not_read
    if column in VECTOR:
        return
    for mine, other in zip(ours["segments"], theirs["segments"], strict=True):
        said = {key: one for key, one in other.items() if key not in ("type", "params")}
        assert said
        assert {key: mine.get(key) for key in said} == said


BOUNDS = {
    "floats": pa.array([0.5, -1 / 3, 1e21, 2.0]),
    "floats32": pa.array([0.1, 7, -2e-9, 3], pa.float32()),
    "nan": pa.array([1.0, None, float("nan"), 3]),
    "nulls": pa.array([None, None, None, None], pa.int32()),
    "texts": ["it's", "", "\u00e9", "b"],
    "bytes": [b"\x00a", b"z", b"", b"\xff\x02"],
    "flags": [True, False, True, True],
    "days": pa.array([0, 1, -400, 20_000], pa.date32()),
    "times": pa.array([5, -5, 0, 1], pa.timestamp("us", "UTC")),
    "durations": pa.array([5, 7, 0, 1], pa.duration("ms")),
}


def test_bounds_of_trees_are_written_as_pylance_writes_them(tmp_path: Path) -> None:
    lance = require_pylance()
    made = lance.write_dataset(pa.table(BOUNDS), str(tmp_path / "bounds.lance"))
    for name in BOUNDS:
        made.create_scalar_index(name, "BTREE", name=name)
    ours = lance_nb.dataset(made.uri)
    for name in BOUNDS:
        (theirs,) = made.stats.index_stats(name)["segments"]
        (mine,) = ours.index_statistics(name)["segments"]
        assert {key: mine[key] for key in theirs} == theirs, name


@pytest.mark.parametrize("column", [*SCALAR, *VECTOR])
def test_descriptions_are_those_of_pylance(indexed: Any, column: str) -> None:
    (theirs,) = (one for one in indexed.describe_indices() if one.name == f"{column}_idx")
    found = lance_nb.dataset(indexed.uri).describe_indices()
    (ours,) = (one for one in found if one.name == f"{column}_idx")
    for name in ("index_type", "type_url", "num_rows_indexed", "total_size_bytes"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert list(ours.fields) == theirs.fields
    wanted = theirs.details
    assert {key: wanted[key] for key in ours.details if key in wanted} == {
        key: one for key, one in ours.details.items() if key in wanted
    }
    for mine, other in zip(ours.segments, theirs.segments, strict=True):
        assert mine.fragment_ids == frozenset(other.fragment_ids)
        assert list(mine.covering_fields) == other.covering_fields
        assert mine.created_at.replace(microsecond=0) == other.created_at.replace(microsecond=0)
        for name in (
            "uuid", "dataset_version_at_last_update", "index_version", "size_bytes", "base_id",
        ):  # fmt: skip
            assert getattr(mine, name) == getattr(other, name), name


def test_dropped_indices_are_gone_for_pylance(tmp_path: Path) -> None:
    lance = require_pylance()
    uri = str(tmp_path / "t.lance")
    theirs = lance.write_dataset(table(0, 50), uri)
    theirs.create_scalar_index("number", "BTREE")
    theirs.create_scalar_index("word", "BITMAP")
    ours = lance_nb.dataset(uri)
    ours.drop_index("number_idx")
    theirs.checkout_latest()
    theirs.validate()
    assert [one.name for one in theirs.describe_indices()] == ["word_idx"]
    assert theirs.to_table(filter="number = 7").num_rows == 1
    assert ours.version == theirs.version
    for engine in (theirs, ours):
        with pytest.raises(RuntimeError, match=r"number_idx|no index named"):
            engine.drop_index("number_idx")
        with pytest.raises(KeyError):
            engine.stats.index_stats("number_idx")
        with pytest.raises(RuntimeError):
            engine.prewarm_index("none")
    theirs.create_scalar_index("number", "BTREE")
    assert "ScalarIndexQuery" in theirs.scanner(filter="number = 7").explain_plan(True)


def test_what_is_refused_names_the_call_that_works(tmp_path: Path) -> None:
    lance = require_pylance()
    uri = str(tmp_path / "t.lance")
    ours = lance_nb.write_dataset(table(0, 50), uri)
    with pytest.raises(NotSupportedError) as refused:
        ours.create_scalar_index("number", "RTREE")
    call = f"lance.dataset({uri!r}).create_scalar_index('number', 'RTREE')"
    assert call in str(refused.value)
    lance.dataset(uri).create_scalar_index("number", "BITMAP")
    ours.checkout_latest()
    assert ours.stats.index_stats("number_idx")["num_indexed_rows"] == 50


@pytest.mark.parametrize("name", ["compact_files", "optimize_indices"])
def test_every_argument_of_the_optimizer_is_taken(name: str) -> None:
    require_pylance()
    theirs = import_module("lance.dataset").DatasetOptimizer
    ours = lance_nb.write_dataset(pa.table({"a": [1]}), f"memory://optimizer/{name}").optimize
    wanted = inspect.signature(getattr(theirs, name)).parameters.keys() - {"self", "kwargs"}
    assert wanted <= inspect.signature(getattr(ours, name)).parameters.keys()
