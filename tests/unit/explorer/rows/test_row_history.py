from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import CancelledError, NotFoundError
from lance_nb.explorer.rows.row_history import (
    RowHistoryCache,
    RowPlace,
    place_of_row,
    value_text,
    values_at,
)
from tests.support.explorer_datasets import changed_dataset, scores


def quiet(_done: int, _total: int) -> None:
    """Tell nobody."""


@pytest.fixture(scope="module")
def dataset() -> Any:
    return changed_dataset()


def named(dataset: Any, row_filter: str, key: tuple[str, ...] | None = None) -> RowPlace:
    found = dataset.to_table(columns=["_rowid", "_rowaddr"], filter=row_filter)
    fragment, offset, _ = place_of_row(found)
    return RowPlace(dataset.branch, dataset.version, fragment, offset, key)


def test_a_life_is_reported_newest_first_as_far_as_asked(dataset: Any) -> None:
    lives = RowHistoryCache(None)
    row = named(dataset, "id = 5")
    first = lives.steps(dataset, row, 1, quiet)
    assert ([one["event"] for one in first["steps"]], first["whole"]) == (["moved"], False)
    whole = lives.steps(dataset, row, 50, quiet)
    assert [(one["event"], one["label"]) for one in whole["steps"]] == [
        ("moved", "main:6"), ("extended", "main:5"), ("updated", "main:2"), ("created", "main:1"),
    ]  # fmt: skip
    assert (whole["whole"], whole["label"]) == (True, "stable row id")
    update = whole["steps"][2]
    assert (update["cells"], update["changes"]) == (
        [["score", "1.25", "101.25"], ["label", "bird", "fox"]], True,
    )  # fmt: skip
    created = whole["steps"][3]
    assert (created["changes"], created["cells"][0]) == (False, ["id", None, "5"])


def test_a_search_that_was_stopped_goes_on_where_it_was(dataset: Any) -> None:
    lives = RowHistoryCache(None)
    row = named(dataset, "id = 6")

    def stop(done: int, _total: int) -> None:
        if done == 1:
            raise CancelledError("stopped")

    with pytest.raises(CancelledError):
        lives.steps(dataset, row, 50, stop)
    assert [one["event"] for one in lives.steps(dataset, row, 50, quiet)["steps"]] == [
        "moved", "extended", "created",
    ]  # fmt: skip


def test_without_stable_ids_the_label_is_honest_and_a_key_helps() -> None:
    plain = changed_dataset("plain.lance", stable=False)
    row = named(plain, "id = 5")
    by_address = RowHistoryCache(None).steps(plain, row, 50, quiet)
    assert by_address["label"] == "row address"
    assert "looks like a new row" in by_address["followed"]
    assert by_address["steps"][-1]["event"] == "written"
    by_key = RowHistoryCache(None).steps(plain, named(plain, "id = 5", ("id",)), 50, quiet)
    assert by_key["label"] == "key: id"
    assert [one["event"] for one in by_key["steps"]][-2:] == ["updated", "created"]


def test_the_unenforced_primary_key_is_used_where_there_is_one() -> None:
    uri = "memory://life/primary.lance"
    key = pa.field("id", pa.int64(), False, {"lance-schema:unenforced-primary-key": "true"})
    table = scores(4).cast(pa.schema([key, *list(scores(4).schema)[1:]]))
    lance_nb.write_dataset(table, uri)
    lance_nb.dataset(uri).update({"label": "'fox'"}, where="id = 2")
    dataset = lance_nb.dataset(uri)
    found = RowHistoryCache(None).steps(dataset, named(dataset, "id = 2"), 50, quiet)
    assert found["label"] == "key: id"
    assert [one["event"] for one in found["steps"]] == ["updated", "created"]


def test_a_place_without_a_row_is_an_error(dataset: Any) -> None:
    with pytest.raises(NotFoundError):
        values_at(dataset, RowPlace(None, 7, 99, 0), ["id"])
    lives = RowHistoryCache(None)
    for _ in range(2):  # a search that failed is begun anew
        with pytest.raises(NotFoundError):
            lives.steps(dataset, RowPlace(None, 7, 9999, 0), 1, quiet)


def test_values_are_said_as_the_grid_says_them() -> None:
    assert value_text(0.1, pa.float32()) == "0.1"
    assert value_text([1.5, None], pa.list_(pa.float32())) == "[1.5, null]"
    assert value_text(None, None) == "null"
    assert value_text("x", pa.int64()) == "x"
    assert len(value_text("x" * 10_000, pa.string())) == 240
    assert value_text(object, None).startswith("<class")
