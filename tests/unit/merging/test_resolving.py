"""Conflicts of a merge that are decided cell by cell."""

from __future__ import annotations

import json
from itertools import count

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.errors import CommitConflictError, InvalidInputError
from lance_nb.merging.choices import CellChoice, parse_choice

_NUMBERS = count()
Row = tuple[object, ...] | None


def _forked(stable: bool) -> tuple[LanceDataset, LanceDataset]:
    """Both sides changed v of row 1; dev deleted row 5 and main changed it; dev changed s of 2."""
    rows = pa.table({"id": [*range(8)], "v": [*range(8)], "s": [f"s{one}" for one in range(8)]})
    uri = f"memory://resolving/{next(_NUMBERS)}"
    main = lance_nb.write_dataset(rows, uri, max_rows_per_file=4, enable_stable_row_ids=stable)
    dev = main.create_branch("dev")
    dev.update({"v": "100", "s": "'dev'"}, where="id = 1")
    dev.update({"s": "'two'"}, where="id = 2")
    dev.delete("id = 5")
    main.update({"v": "200"}, where="id IN (1, 2)")
    main.update({"v": "7"}, where="id = 5")
    return main, dev


def _rows(ds: LanceDataset) -> dict[int, Row]:
    found = lance_nb.dataset(ds.uri).to_table().to_pylist()
    return {one["id"]: (one["v"], one["s"]) for one in found}


@pytest.mark.parametrize(("stable", "key"), [(True, None), (False, "id"), (True, "id")])
@pytest.mark.parametrize(
    ("resolve", "one", "five"),
    [
        ("ours", (200, "dev"), (7, "s5")),
        ("theirs", (100, "dev"), None),
        ("base", (1, "dev"), (5, "s5")),
        (["theirs", "5.=ours"], (100, "dev"), (7, "s5")),
        (["v=base", "5.=theirs"], (1, "dev"), None),
        (["1.v:=55", "ours"], (55, "dev"), (7, "s5")),
        ([CellChoice("theirs", row=1, column="v"), "1.=base", "ours"], (100, "dev"), (7, "s5")),
    ],
)
def test_cells_are_taken_as_chosen(
    stable: bool, key: str | None, resolve: object, one: Row, five: Row
) -> None:
    main, _ = _forked(stable)
    made = main.branches.merge("dev", key=key, resolve=resolve)  # type: ignore[arg-type]
    wanted = {number: (number, f"s{number}") for number in range(8)}
    wanted |= {1: one, 2: (200, "two"), 5: five}  # type: ignore[dict-item]
    assert _rows(main) == {number: row for number, row in wanted.items() if row is not None}
    now = lance_nb.dataset(main.uri)
    now.validate()
    recorded = now.version_info(made.version).properties["lance_nb.merge.choices"]
    assert len(json.loads(recorded)) == (1 if isinstance(resolve, str) else len(resolve))  # type: ignore[arg-type]


def test_row_ids_stay_with_their_rows() -> None:
    main, _ = _forked(stable=True)
    main.branches.merge("dev", resolve="theirs")
    found = lance_nb.dataset(main.uri).to_table(columns=["id"], with_row_id=True).to_pylist()
    assert all(one["id"] == one["_rowid"] for one in found)


@pytest.mark.parametrize("stable", [False, True])
def test_what_has_no_choice_stops_the_merge(stable: bool) -> None:
    main, _ = _forked(stable)
    key = None if stable else "id"
    plan = main.branches.plan_merge("dev", key=key, resolve=["v=ours"])
    (decided, left) = plan.conflicts
    assert (decided.resolution, decided.num_rows) == ("by choice", 1)
    assert "= 5" in left.text
    with pytest.raises(CommitConflictError, match="without a choice"):
        plan.commit()
    rows = plan.conflict_rows().to_pylist()
    assert [one["base"]["id"] for one in rows] == [1, 5]
    assert rows[1]["source"] is None


@pytest.mark.parametrize(
    ("resolve", "said"),
    [
        ("mine", "a choice is 'ours'"),
        ([7], "a choice is 'ours'"),
        ("99.=ours", "is not in conflict"),
        ("nope=ours", "there is no column 'nope'"),
        ('1.v:="x"', "'x' is no value of column 'v', which is int64"),
        (7, "no list of choices"),
    ],
)
def test_choices_that_make_no_sense_are_refused(resolve: object, said: str) -> None:
    main, _ = _forked(stable=True)
    with pytest.raises(InvalidInputError, match=said):
        main.branches.plan_merge("dev", resolve=resolve)  # type: ignore[arg-type]


def test_without_row_ids_a_key_is_asked_for() -> None:
    main, _ = _forked(stable=False)
    with pytest.raises(InvalidInputError, match=r"key=\['id'\]"):
        main.branches.plan_merge("dev", resolve="ours")


def test_a_revert_is_decided_cell_by_cell() -> None:
    main, _ = _forked(stable=True)
    main.checkout_latest()
    main.update({"v": "0", "s": "'x'"}, where="id = 1")
    main.update({"v": "1"}, where="id = 1")
    main.revert(main.version - 1, resolve="ours")
    assert _rows(main)[1] == (1, "s1")


@pytest.mark.parametrize(
    "text", ["ours", "price=theirs", "12.=base", '"a.b".price=ours', "[1, 2].v=theirs", "3.v:=1.5"]
)
def test_choices_have_a_text_form(text: str) -> None:
    choice = parse_choice(text)
    assert parse_choice(str(choice)) == choice


@pytest.mark.parametrize("stable", [False, True])
def test_a_merge_after_a_merge_by_value_finds_the_rows_again(stable: bool) -> None:
    main, dev = _forked(stable)
    main.branches.merge("dev", key=None if stable else "id", resolve="theirs")
    dev.add_columns({"w": "id * 10"})
    dev.delete("id = 3")
    lance_nb.dataset(main.uri).branches.merge("dev")  # by the key of the merge before
    found = lance_nb.dataset(main.uri).to_table().to_pylist()
    assert {one["id"]: one["w"] for one in found} == {n: 10 * n for n in (0, 1, 2, 4, 6, 7)}
