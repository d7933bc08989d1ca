from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import ColumnNotFoundError, InvalidInputError, NotSupportedError
from lance_nb.explorer.changes.change_summary import (
    MAX_DIFFS,
    DiffCache,
    change_counts,
    change_drift,
    key_of,
)
from lance_nb.explorer.session import Session
from lance_nb.explorer.source import compared_source
from tests.support.explorer_datasets import changed_dataset
from tests.support.fake_dataset import small_dataset


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(changed_dataset())


def test_a_diff_is_made_once(session: Session) -> None:
    desk = DiffCache(session)
    first = desk.diff((None, 1), (None, 7))
    assert desk.diff((None, 1), (None, 7)) is first
    assert desk.diff((None, 1), (None, 7), ("id",)) is not first
    for version in range(2, 2 + MAX_DIFFS):
        desk.diff((None, version), (None, 7))
    assert desk.diff((None, 1), (None, 7)) is not first


def test_a_key_that_is_no_column_is_refused(session: Session) -> None:
    with pytest.raises(ColumnNotFoundError):
        DiffCache(session).diff((None, 1), (None, 7), ("nothing",))


def test_what_cannot_be_compared_says_so() -> None:
    with pytest.raises(NotSupportedError, match="cannot be compared"):
        compared_source(small_dataset())


@pytest.mark.parametrize("key", ["id", [], [1], ["x"] * 17, ["x" * 1001]])
def test_keys_in_requests_are_lists_of_names(key: object) -> None:
    with pytest.raises(InvalidInputError, match="key must be a list"):
        key_of({"key": key})
    assert key_of({"key": None}) is None
    assert key_of({"key": ["a", "b"]}) == ("a", "b")


@pytest.fixture(scope="module")
def dataset() -> Any:
    return changed_dataset()


def counted(dataset: Any, a: Any, b: Any = None, key: Any = None) -> dict[str, Any]:
    return change_counts(dataset.diff(a, b, key=key), "data/x.lance").to_json()


def chip(found: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in found["chips"] if one["id"] == name)


def test_every_level_has_a_chip_with_its_numbers(dataset: Any) -> None:
    found = counted(dataset, 1)
    assert [one["id"] for one in found["chips"]] == [
        "rows", "drift", "schema", "transactions", "fragments", "deletions", "indices", "config",
    ]  # fmt: skip
    assert chip(found, "rows") | {"label": ""} == {
        "id": "rows", "label": "", "added": 77, "removed": 60, "changed": 0, "bound": True,
        "note": "",
    }  # fmt: skip
    assert chip(found, "schema")["added"] == 1
    assert chip(found, "transactions")["note"] == "6"
    settings = chip(found, "config")
    assert (settings["added"], settings["removed"], settings["changed"]) == (1, 0, 0)
    assert found["rows"] == [60, 77]


def test_rows_that_only_came_are_exact(dataset: Any) -> None:
    rows = chip(counted(dataset, 3, 4), "rows")
    assert (rows["added"], rows["removed"], rows["bound"]) == (20, 0, False)


def test_two_sides_of_a_fork_name_where_they_parted(dataset: Any) -> None:
    found = counted(dataset, ("dev", 5), 7)
    assert found["fork"] == {
        "a_side": 1, "b_side": 3, "label": "main:4", "branch": None, "version": 4,
    }  # fmt: skip
    assert counted(dataset, 1)["fork"] is None
    assert counted(dataset, 4, ("dev", 5))["fork"] is None


def test_one_version_and_equal_versions_are_distinguished(dataset: Any) -> None:
    assert counted(dataset, 7)["same"]
    dev = counted(dataset, 4, ("dev", 4))
    assert (dev["same"], dev["empty"]) == (False, True)


def test_the_badge_says_by_what_rows_are_matched(dataset: Any) -> None:
    assert counted(dataset, 1)["identity"]["kind"] == "id"
    by_key = counted(dataset, 1, key="id")
    assert (by_key["identity"]["kind"], by_key["identity"]["label"]) == ("key", "key: id")
    plain = changed_dataset("plain.lance", stable=False)
    assert counted(plain, 1)["identity"]["kind"] == "address"
    assert "compactions are followed" in counted(plain, 1)["identity"]["reason"]


def test_the_code_makes_the_same_diff(dataset: Any) -> None:
    code = change_counts(dataset.diff(("dev", 5), 7, key="id"), dataset.uri).to_json()["code"]
    assert code["magic"] == "%lance diff dev:5..main:7 --key id"
    made = eval(code["python"], {"lance_nb": lance_nb})  # noqa: S307
    assert (made.a, made.b, made.identity) == (("dev", 5), (None, 7), "key: id")
    assert counted(dataset, 1)["code"]["python"] == "lance_nb.diff('data/x.lance', 1, 7)"
    by_address = counted(dataset, 1, key="_rowaddr")["code"]["python"]
    assert by_address.endswith("key='_rowaddr')")


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
