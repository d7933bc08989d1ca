"""By what rows are matched, and what happens when that does not tell them apart."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import InvalidInputError
from lance_nb.table.diff import compare_plan
from tests.unit.table.diff.conftest import rows


def test_stable_row_ids_go_first_and_a_key_before_them(past) -> None:
    ds = past(steps=3)

    assert ds.diff(1).identity == "stable row id"
    assert ds.diff(1, key=["id", "t"]).identity == "key: id, t"
    assert ds.diff(1, key="_rowaddr").identity == "row address"


def test_without_ids_and_key_rows_are_matched_by_address(past) -> None:
    diff = past(stable=False, steps=3).diff(2)

    assert diff.identity == "row address"
    assert "removed and added" in diff.reason
    assert (diff.summary().added, diff.summary().removed, diff.summary().changed) == (2, 2, 0)


def test_the_primary_key_of_the_table_serves(make) -> None:
    marked = {"lance-schema:unenforced-primary-key": "true"}
    schema = rows(0, 1).schema.set(0, pa.field("id", pa.int64(), False, marked))
    ds = make(rows(0, 10).cast(schema))
    ds.update({"v": "0.5"}, where="id = 4")

    diff = ds.diff(1)
    assert diff.identity == "key: id"
    assert diff.summary().cells == {"v": 1}


@pytest.mark.parametrize("key", [[], ["id", "id"], "_rowid"], ids=str)
def test_a_key_that_cannot_serve_is_refused(make, key) -> None:
    with pytest.raises(InvalidInputError):
        make().diff(1, key=key)


def test_a_key_that_fits_several_rows_is_refused_with_examples(make) -> None:
    ds = make(pa.table({"k": [1, 1, 2], "v": [1, 2, 3]}))
    ds.update({"v": "v + 1"}, where="true")

    with pytest.raises(InvalidInputError, match=r"more than once.*for example 1"):
        ds.diff(1, key="k").summary()


def test_keys_may_be_null_and_of_several_columns(make) -> None:
    ds = make(pa.table({"a": [None, 1, 1], "b": ["x", "x", None], "v": [1, 2, 3]}))
    ds.update({"v": "v + 1"}, where="v > 1")

    diff = ds.diff(1, key=["a", "b"])
    assert (diff.summary().added, diff.summary().changed) == (0, 2)


def test_a_key_that_was_rewritten_in_place_is_another_row(make) -> None:
    ds = make()
    ds.drop_columns(["t"])
    ds.add_columns({"t": "cast(id % 7 as string)"})

    assert ds.diff(1, key="id").summary().cells == {"t": 10}
    with pytest.raises(InvalidInputError, match="more than once"):
        ds.diff(1, key="t").summary()


def test_ids_given_out_on_two_branches_are_not_one_row(make) -> None:
    ds = make(enable_stable_row_ids=True)
    ds.create_branch("dev", 1)
    dev = lance_nb.dataset(ds.uri, ("dev", None))
    lance_nb.write_dataset(rows(20, 23), dev, mode="append")
    lance_nb.write_dataset(rows(30, 32), ds.uri, mode="append")

    diff = lance_nb.dataset(ds.uri).diff("dev", "main")

    assert (diff.summary().added, diff.summary().removed, diff.summary().changed) == (2, 3, 0)


def test_stable_row_ids_can_be_asked_for(past) -> None:
    diff = past(steps=3).diff(1, key="_rowid")
    assert (diff.identity, diff.reason) == ("stable row id", "asked for")
    with pytest.raises(InvalidInputError, match="both versions need stable row ids"):
        past(stable=False, steps=3).diff(1, key="_rowid").summary()


def test_without_a_common_version_no_fragment_was_shared() -> None:
    assert compare_plan._max_shared_id(SimpleNamespace(ancestor=None)) == -1  # type: ignore[arg-type]
