"""The life of a row, by its id, a key or its address."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import ColumnNotFoundError, InvalidInputError, NotFoundError
from lance_nb.table import versions
from tests.unit.table.diff.conftest import rows


def _told(history) -> list[tuple[int, str]]:
    return [(one.version, one.event) for one in history.steps()]


LIFE_OF_7 = [(1, "created"), (3, "updated"), (5, "extended"), (7, "moved")]


def test_a_row_is_followed_by_its_id(past) -> None:
    history = past().row_history(7)
    steps = history.steps()

    assert history.label == "stable row id"
    assert _told(history) == LIFE_OF_7
    assert [one.operation for one in steps] == ["Overwrite", "Update", "Merge", "Rewrite"]
    assert (steps[1].old["v"], steps[1].new["v"], steps[1].columns) == (7.0, 107.0, ("v",))
    assert (steps[2].columns, steps[2].new["w"]) == (("w",), 14)
    assert (steps[0].fragment_id, steps[0].offset) == (1, 2)
    assert steps[0].timestamp is not None


@pytest.mark.parametrize("stable", [True, False])
def test_a_row_is_followed_by_a_key(past, stable: bool) -> None:
    ds = past(stable=stable)

    assert _told(ds.row_history(key={"id": 7})) == LIFE_OF_7
    assert _told(ds.row_history(key={"t": "t12", "id": 12})) == [
        (2, "created"), (5, "extended"), (7, "moved"),
    ]  # fmt: skip


def test_a_step_has_the_message_of_its_commit(make) -> None:
    ds = make(enable_stable_row_ids=True)
    ds.insert(rows(10, 12), commit_message="two more")

    (step,) = ds.row_history(key={"id": 10}).steps()
    assert (step.version, step.message) == (2, "two more")
    assert ds.row_history(key={"id": 1}).steps()[0].message is None


def test_a_row_is_followed_by_its_address_as_far_as_that_tells(past) -> None:
    ds = past(stable=False)

    assert _told(ds.row_history(address=0)) == [(1, "created"), (5, "extended"), (7, "moved")]
    assert _told(ds.row_history(address=3)) == [(1, "created"), (4, "deleted")]
    assert _told(ds.row_history(address=1)) == [(1, "created"), (3, "gone")]
    assert _told(ds.row_history(address=3 << 32)) == [
        (3, "written"), (5, "extended"), (7, "moved"),
    ]  # fmt: skip
    assert ds.row_history(address=0).label == "row address"


def test_an_address_leads_to_the_row_id_where_there_is_one(past) -> None:
    history = past().row_history(address=1 << 32 | 2)

    assert history.label == "stable row id"
    assert _told(history) == LIFE_OF_7


@pytest.mark.parametrize("named", [{"row_id": 3}, {"key": {"id": 3}}], ids=str)
def test_a_row_that_was_deleted_is_found(past, named) -> None:
    steps = past().row_history(**named).steps()

    assert [(one.version, one.event) for one in steps] == [(1, "created"), (4, "deleted")]
    assert steps[-1].old == {"id": 3, "v": 3.0, "t": "t3"}


def test_a_deletion_that_was_taken_back_is_reported(past) -> None:
    ds = past(steps=4)
    ds.checkout_version(3).restore()
    ds = lance_nb.dataset(ds.uri)

    assert _told(ds.row_history(3)) == [(1, "created"), (4, "deleted"), (5, "restored")]


def test_a_branch_knows_the_life_before_its_fork(past) -> None:
    ds = past(steps=3)
    ds.create_branch("dev", 3)
    lance_nb.dataset(ds.uri, ("dev", None)).update({"v": "-1"}, where="id = 7")
    dev = lance_nb.dataset(ds.uri, ("dev", None))

    steps = dev.row_history(7).steps()
    assert [(one.version, one.branch, one.event) for one in steps] == [
        (1, None, "created"), (3, None, "updated"), (4, "dev", "updated"),
    ]  # fmt: skip


def test_columns_limit_the_values(past) -> None:
    ds = past(steps=3)

    assert ds.row_history(7, columns=["v"]).steps()[-1].new == {"v": 107.0}
    assert _told(ds.row_history(7, columns=["t"])) == [(1, "created"), (3, "moved")]
    with pytest.raises(ColumnNotFoundError):
        ds.row_history(7, columns=["nobody"])


def test_steps_are_worked_out_one_by_one_and_with_few_manifests(make, monkeypatch) -> None:
    ds = make(enable_stable_row_ids=True)
    for number in range(40):
        ds.update_config({"n": str(number)})
    ds.update({"v": "0"}, where="id = 7")
    ds = lance_nb.dataset(ds.uri)
    loads: list[int] = []
    real = versions.load_version
    monkeypatch.setattr(
        versions, "load_version", lambda home, number: loads.append(number) or real(home, number)
    )

    newest = next(iter(ds.row_history(7)))
    first = len(loads)
    assert (newest.version, newest.event) == (42, "updated")
    assert _told(ds.row_history(7)) == [(1, "created"), (42, "updated")]
    assert first < 10
    assert len(loads) < 30


@pytest.mark.parametrize(
    ("named", "error"),
    [
        ({}, InvalidInputError), ({"row_id": 1, "address": 1}, InvalidInputError),
        ({"row_id": 99}, NotFoundError), ({"address": 9 << 32}, NotFoundError),
        ({"row_id": "x"}, InvalidInputError), ({"row_id": -1}, InvalidInputError),
        ({"key": {}}, InvalidInputError), ({"key": {"id": 77}}, NotFoundError),
        ({"key": {"nobody": 1}}, ColumnNotFoundError), ({"key": {"id": "x"}}, InvalidInputError),
    ],
    ids=str,
)  # fmt: skip
def test_a_row_that_is_not_there_is_refused(past, named, error) -> None:
    with pytest.raises(error):
        past(steps=4).row_history(**named)


def test_a_key_of_several_rows_is_refused(make) -> None:
    ds = make()
    ds.update({"t": "'same'"}, where="id < 4")

    with pytest.raises(InvalidInputError, match="several rows"):
        ds.row_history(key={"t": "same"})


def test_a_history_prints_how_the_row_is_followed(past) -> None:
    assert repr(past(steps=2).row_history(1)) == "<lance_nb.RowHistory by stable row id>"
    by_key = past(stable=False, steps=2).row_history(key={"id": 1})
    assert repr(by_key) == "<lance_nb.RowHistory by key: id>"


def test_a_key_is_of_top_level_columns(make) -> None:
    ds = make(pa.table({"p": [{"x": 1}, {"x": 2}], "n": [1, 2]}))
    for key in ({"p.x": 1}, {"n": 1, "p.x": 1}):
        with pytest.raises(InvalidInputError, match=r"key column 'p.x' is nested"):
            ds.row_history(key=key).steps()
    with pytest.raises(InvalidInputError, match="at least one column"):
        ds.row_history(key={}).steps()
