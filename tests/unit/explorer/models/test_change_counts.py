from __future__ import annotations

from typing import Any

import pytest

import lance_nb
from lance_nb.explorer.models.change_counts import change_counts
from tests.unit.explorer.stored_datasets import changed_dataset


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


def test_one_version_and_equal_versions_are_told_apart(dataset: Any) -> None:
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
