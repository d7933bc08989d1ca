from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.explorer.models.change_drift import change_drift
from tests.unit.explorer.stored_datasets import changed_dataset


@pytest.fixture(scope="module")
def dataset() -> Any:
    return changed_dataset()


def facts(side: dict[str, Any]) -> dict[str, str]:
    return dict(side["facts"])


def test_columns_are_profiled_on_both_sides(dataset: Any) -> None:
    found = change_drift(dataset.diff(1), 0, 24)
    assert found["num_columns"] == 3
    number, score, label = found["columns"]
    assert (facts(number["before"])["max"], facts(number["after"])["max"]) == ("59", "79")
    assert facts(score["after"])["max"] == "111.2"
    assert label["labels"][-1] == "fox"
    assert (number["before"]["rows"], number["after"]["sampled"]) == (60, 77)
    assert max(max(number[side]["bars"]) for side in ("before", "after")) == 1000
    assert label["psi"] > 0


def test_means_are_grouped_like_all_numbers() -> None:
    uri = "memory://drift/means.lance"
    table = pa.table({"n": [1000, 2001, 5000, 9000]})
    lance_nb.write_dataset(table, uri)
    lance_nb.write_dataset(table, uri, mode="append")
    (column,) = change_drift(lance_nb.dataset(uri).diff(1), 0, 24)["columns"]
    assert facts(column["after"])["mean"] == "4,250"


def test_columns_come_in_parts(dataset: Any) -> None:
    found = change_drift(dataset.diff(1), 1, 1, exact=True)
    assert [one["name"] for one in found["columns"]] == ["score"]
    assert change_drift(dataset.diff(1), 9, 1)["columns"] == []


def test_times_and_vectors_are_said_in_their_own_form() -> None:
    uri = "memory://drift/kinds.lance"
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.ones(8, np.float32)), 4)
    day = datetime(2026, 1, 1, 12, tzinfo=UTC)
    table = pa.table({
        "when": pa.array([day, None], pa.timestamp("us", "UTC")),
        "vector": vectors,
        "bytes": pa.array([b"x", b"y"]),
    })  # fmt: skip
    lance_nb.write_dataset(table, uri)
    lance_nb.write_dataset(table, uri, mode="append")
    when, vector, raw = change_drift(lance_nb.dataset(uri).diff(1), 0, 24)["columns"]
    assert facts(when["after"])["min"].startswith("2026-01-01T12:00:00")
    assert facts(when["after"])["null"] == "50.0 %"
    assert facts(vector["after"])["norm, mean"] == "2"
    assert (raw["kind"], raw["psi"], raw["before"]["bars"]) == ("other", None, [])
