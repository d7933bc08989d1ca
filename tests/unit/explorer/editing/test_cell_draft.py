"""Drafts of edits: steps, limits, blocks of the clipboard, other versions, the card."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.errors import CommitConflictError, InvalidInputError, NotSupportedError
from lance_nb.explorer.editing import cell_draft
from lance_nb.explorer.editing.cell_draft import (
    CellDraft,
    block_of,
    block_text,
    check_editable,
    edit_text,
)
from lance_nb.explorer.stage.card import COMMITTED, FAILED, PLANNED, READY, ProgressReporter
from lance_nb.explorer.stage.card_view import card_json, conflict_lines
from lance_nb.explorer.stage.staging_area import StagingArea
from lance_nb.merging.choices import CellChoice
from lance_nb.writing.editing import hand_value


def price(value: float | None) -> pa.Scalar:
    return pa.scalar(value, pa.float64())


def prices(dataset: LanceDataset) -> dict[int, float]:
    table = lance_nb.dataset(dataset.uri).to_table()
    return dict(zip(table["id"].to_pylist(), table["price"].to_pylist(), strict=True))


def test_steps_are_undone_and_redone(dataset: LanceDataset) -> None:
    draft = CellDraft(dataset)
    draft.set_cells([(3, "price", price(9)), (4, "price", price(None))])
    draft.delete_rows([5])
    draft.add_rows([{"id": pa.scalar(100, pa.int64())}])
    assert draft.title == "Edits of 2 cells in 2 rows, 1 row added, 1 row deleted"
    whole = draft.state
    for _ in range(3):
        draft.undo()
    assert draft.is_empty
    draft.undo()
    for _ in range(4):
        draft.redo()
    assert (draft.state, draft.num_redo) == (whole, 0)
    draft.drop("cell", 3, "price")
    draft.drop("added", 1)
    draft.drop("deleted", 5)
    assert draft.title == "Edits of 1 cell in 1 row"
    draft.set_cells([(4, "price", price(4.0))])  # its old value
    assert draft.title == "No edits"


def test_a_row_that_is_deleted_has_no_other_edits(dataset: LanceDataset) -> None:
    draft = CellDraft(dataset)
    draft.set_cells([(3, "price", price(9))])
    draft.delete_rows([3])
    assert not draft.state.cells
    with pytest.raises(InvalidInputError, match="marked to be deleted"):
        draft.set_cells([(3, "price", price(9))])


def test_a_draft_is_bounded(dataset: LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_draft, "MAX_CELLS", 3)
    draft = CellDraft(dataset)
    with pytest.raises(InvalidInputError, match=r"at most 3 cells .* would be 4"):
        draft.set_cells((row, "price", price(99)) for row in range(4))
    assert draft.is_empty


@given(st.lists(st.lists(st.one_of(st.none(), st.text()), min_size=1, max_size=4), min_size=1))
def test_a_block_reads_as_it_was_written(rows: list[list[str | None]]) -> None:
    # A last line of one empty field is the end of the text.
    written = [[None if one is None else one.replace("\0", "") for one in row] for row in rows]
    if len(written) > 1 and written[-1] == [None]:
        written[-1] = [""]
    assert block_of(block_text(written)) == written


@pytest.mark.parametrize(
    ("written", "rows"),
    [
        ("a\tb\r\nc\t\r\n", [["a", "b"], ["c", None]]),
        ('"a\tb\nc"\t""\n', [["a\tb\nc", ""]]),
        ('"a""b"', [['a"b']]),
        ('"a" inch\tb', [['"a" inch', "b"]]),
        ('5" pipe', [['5" pipe']]),
        ('"open\tb', [['"open', "b"]]),
        ("", [[None]]),
    ],
)
def test_blocks_as_spreadsheets_write_them(written: str, rows: list[list[str | None]]) -> None:
    assert block_of(written) == rows


@pytest.mark.parametrize("block", ["1\t2\n" * 500_000, "x" * 6_000_000, "\t" * 30_000])
def test_a_huge_block_is_refused_at_once(block: str) -> None:
    began = time.process_time()
    with pytest.raises(InvalidInputError, match="10,000"):
        block_of(block)
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (12, pa.int8()), (0.1, pa.float64()), (0.1, pa.float32()), (1.5, pa.float16()),
        (True, pa.bool_()), ("a\tb", pa.string()), ("", pa.large_string()),
        (10**15, pa.timestamp("us", "Europe/Berlin")), (10**15 + 1, pa.timestamp("us")),
        (19_000, pa.date32()), (3_600, pa.time32("s")), ("1.20", pa.decimal128(9, 2)),
        ("x", pa.dictionary(pa.int8(), pa.string())), ([1, None], pa.list_(pa.int64())),
        ({"a": "é"}, pa.struct([("a", pa.string())])),
    ],
)  # fmt: skip
def test_a_value_is_read_back_from_its_text(value: object, kind: pa.DataType) -> None:
    if pa.types.is_decimal(kind):
        scalar = pa.array([value]).cast(kind)[0]
    else:
        scalar = pa.array([value], kind)[0]
    assert hand_value(edit_text(scalar), pa.field("c", kind))[0] == scalar


@pytest.mark.parametrize(
    "kind",
    [pa.binary(), pa.list_(pa.float32(), 8), pa.duration("s"), pa.map_(pa.string(), pa.int8())],
)
def test_values_that_cannot_be_typed_are_refused(kind: pa.DataType) -> None:
    try:
        made = lance_nb.write_dataset(
            pa.table({"c": pa.array([None], kind)}), f"memory://refused/{kind}.lance"
        )
    except NotSupportedError:
        pytest.skip(f"{kind} is not written")
    with pytest.raises(NotSupportedError, match="cannot be typed"):
        check_editable(made, "c")


def test_the_card_writes_at_the_commit_and_says_its_code(
    area: StagingArea, dataset: LanceDataset
) -> None:
    card = area.edit(dataset, lambda draft: draft.set_cells([(3, "price", price(9))]))
    assert area.edit(dataset, lambda draft: draft.delete_rows([5])) is card
    shown = card_json(card)
    assert (card.state, shown["title"]) == (
        PLANNED, "Edits of 1 cell in 1 row, 1 row deleted",
    )  # fmt: skip
    assert shown["code"]["python"] == "ds.stage().edit({3: {'price': 9.0}}, delete=[5]).commit()"
    assert shown["edits"]["cells"] == [
        {"row": "3", "column": "price", "name": "price", "before": "3.0", "after": "9.0"}
    ]
    area.prepare(card.id, ProgressReporter())
    assert card.preview is not None
    assert (card.state, card.preview.num_updated_rows) == (READY, 1)
    area.edit(dataset, lambda draft: draft.undo())
    assert (card.state, card.stage) == (PLANNED, None)
    area.commit(card.id, "by hand", ProgressReporter())
    assert card.state == COMMITTED
    assert (prices(dataset)[3], prices(dataset)[5]) == (9, 5)
    assert area.edits(None) is None


def test_a_draft_whose_steps_are_all_undone_commits_nothing(
    area: StagingArea, dataset: LanceDataset
) -> None:
    card = area.edit(dataset, lambda draft: draft.set_cells([(3, "price", price(9))]))
    area.edit(dataset, lambda draft: draft.undo())
    with pytest.raises(InvalidInputError, match="nothing is edited"):
        area.commit(card.id, None, ProgressReporter())
    assert lance_nb.dataset(dataset.uri).version == 1


@pytest.mark.parametrize("take", ["ours", "theirs", "base", "value"])
def test_a_conflict_is_shown_and_decided(take: str) -> None:
    made = lance_nb.write_dataset(
        pa.table({"id": range(9), "price": [float(n) for n in range(9)]}),
        f"memory://conflict/{take}.lance", enable_stable_row_ids=True,
    )  # fmt: skip
    area = StagingArea()
    card = area.edit(
        made,
        lambda draft: draft.set_cells([(3, "price", price(90)), (4, "price", price(40))]),
    )
    made.checkout_version(1).update({"price": "77.0"}, "id = 3")
    area.commit(card.id, None, ProgressReporter())
    assert card.state == FAILED
    assert isinstance(card.problem, CommitConflictError)
    assert card_json(card)["conflicts"]["cells"]["total"] == 1
    draft = card.draft
    assert draft is not None
    (line,) = conflict_lines(draft, 0, 10)
    sides = [line[side]["text"] for side in ("base", "ours", "theirs")]
    assert sides == ["3.0", "90.0", "77.0"]
    with pytest.raises(InvalidInputError, match="are others now"):
        area.resolve(card.id, 0, [CellChoice(take, 3, "price")])
    newest = made.checkout_version((None, None))
    with pytest.raises(InvalidInputError, match="in conflict"):
        area.edit(newest, lambda draft: draft.set_cells([(5, "price", price(50))]))
    area.resolve(card.id, 1, [CellChoice(take, 3, "price", "5.5" if take == "value" else None)])
    area.commit(card.id, None, ProgressReporter())
    assert card.state == COMMITTED
    expected = {"ours": 90.0, "theirs": 77.0, "base": 3.0, "value": 5.5}[take]
    found = prices(made)
    assert (found[3], found[4]) == (expected, 40.0)


def test_an_unrelated_commit_is_no_conflict(area: StagingArea, dataset: LanceDataset) -> None:
    card = area.edit(dataset, lambda draft: draft.set_cells([(3, "price", price(9))]))
    lance_nb.dataset(dataset.uri).update({"price": "0"}, "id = 4")
    area.commit(card.id, None, ProgressReporter())
    assert card.state == COMMITTED
    assert (prices(dataset)[3], prices(dataset)[4]) == (9, 0)


@pytest.mark.parametrize("take", ["ours", "theirs"])
def test_a_rewritten_row_is_followed_by_the_primary_key(take: str) -> None:
    key = pa.field("id", pa.int64(), nullable=False).with_metadata(
        {"lance-schema:unenforced-primary-key": "true"}
    )
    schema = pa.schema([key, pa.field("price", pa.float64()), pa.field("name", pa.string())])
    columns = [range(9), [float(n) for n in range(9)], ["a"] * 9]
    ds = lance_nb.write_dataset(
        pa.table(dict(zip(schema.names, columns, strict=True)), schema=schema),
        f"memory://followed/{take}.lance",
    )
    area = StagingArea()
    card = area.edit(ds, lambda draft: draft.set_cells([(3, "price", price(90)),
                                                        (4, "price", price(40))]))  # fmt: skip
    area.edit(ds, lambda draft: draft.delete_rows([5]))
    other = ds.checkout_version(1)
    other.update({"price": "77.0"}, "id = 3")
    other.update({"name": "'b'"}, "id = 4 OR id = 5")
    area.commit(card.id, None, ProgressReporter())
    draft = card.draft
    assert draft is not None
    lines = conflict_lines(draft, 0, 10)
    assert [(line["column"], line["sides"]) for line in lines] == [("price", None), (None, None)]
    assert [line["label"] for line in lines] == ["3", "5"]
    plan = card_json(card)["conflicts"]
    assert (plan["sides"], plan["note"], plan["cells"]["key"]) == (None, "", "id")
    area.resolve(card.id, 1, [CellChoice(take)])
    area.commit(card.id, None, ProgressReporter())
    assert card.state == COMMITTED
    rows = {row["id"]: row for row in lance_nb.dataset(ds.uri).to_table().to_pylist()}
    assert (rows[3]["price"], rows[4]["price"]) == (90.0 if take == "ours" else 77.0, 40.0)
    assert rows[4]["name"] == "b"
    assert (5 in rows) == (take == "theirs")


@pytest.mark.parametrize("ids", [[0, 1, 1, 2], [0, 1, 3, 2]])
def test_a_key_that_names_two_rows_is_not_followed(ids: list[int]) -> None:
    key = pa.field("id", pa.int64(), nullable=False).with_metadata(
        {"lance-schema:unenforced-primary-key": "true"}
    )
    schema = pa.schema([key, pa.field("price", pa.float64())])
    table = pa.table({"id": ids, "price": [0.0, 1.0, 2.0, 3.0]}, schema=schema)
    ds = lance_nb.write_dataset(table, f"memory://twice/{ids[2]}.lance")
    area = StagingArea()
    card = area.edit(
        ds, lambda draft: draft.set_cells([(1, "price", price(50)), (2, "price", price(60))])
    )
    newer = ds.checkout_version(1)
    newer.delete("price = 2")
    newer.update({"price": "price"}, "id = 1")
    area.commit(card.id, None, ProgressReporter())
    assert card.draft is not None
    is_unique = len(set(ids)) == len(ids)
    assert [conflict.is_lost for conflict in card.draft.conflicts] == [True] * (2 - is_unique)


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("take", ["ours", "theirs", "base"])
def test_a_row_that_others_wrote_again_is_followed_and_the_edit_is_kept(
    take: str, stable: bool
) -> None:
    table = pa.table({"id": range(9), "price": [float(n) for n in range(9)], "name": ["a"] * 9})
    ds = lance_nb.write_dataset(
        table, f"memory://moved/{take}{stable}.lance", enable_stable_row_ids=stable
    )
    area = StagingArea()
    card = area.edit(ds, lambda draft: draft.set_cells([(3, "price", price(90))]))
    ds.checkout_version(1).update({"price": "77.0", "name": "'b'"}, "id = 3")
    area.commit(card.id, None, ProgressReporter())
    draft = card.draft
    assert draft is not None
    (line,) = conflict_lines(draft, 0, 10)
    values = [line[side]["text"] for side in ("base", "ours", "theirs")]
    assert (line["label"], line["column"], values) == ("3", "price", ["3.0", "90.0", "77.0"])
    assert line["sides"] is None
    plan = card_json(card)["conflicts"]
    assert plan["cells"]["key"] == "id"
    assert (plan["target"]["label"], plan["source"]["label"]) == ("your edit", "theirs · main:2")
    assert ("found by id, which is unique" in plan["note"]) is not stable
    area.resolve(card.id, 1, [CellChoice(take)])
    if take != "theirs":
        area.commit(card.id, None, ProgressReporter())
    rows = {row["id"]: row for row in lance_nb.dataset(ds.uri).to_table().to_pylist()}
    expected = {"ours": 90.0, "theirs": 77.0, "base": 3.0}[take]
    assert rows[3] == {"id": 3, "price": expected, "name": "b"}
    assert len(rows) == 9


@pytest.mark.parametrize("take", ["ours", "base", "theirs"])
def test_a_row_that_was_deleted_is_added_again_with_the_edit(
    area: StagingArea, dataset: LanceDataset, take: str
) -> None:
    card = area.edit(dataset, lambda draft: draft.set_cells([(3, "price", price(9))]))
    before = dataset.to_table(filter="id = 3").to_pylist()[0]
    lance_nb.dataset(dataset.uri).delete("id = 3")
    area.commit(card.id, None, ProgressReporter())
    assert card.draft is not None
    (line,) = conflict_lines(card.draft, 0, 10)
    assert (line["label"], line["theirs"], line["sides"]) == ("3", {"text": "deleted"}, None)
    assert "'your edit' adds it again" in card_json(card)["conflicts"]["note"]
    area.resolve(card.id, 1, [CellChoice(take)])
    if take != "theirs":
        area.commit(card.id, None, ProgressReporter())
        assert card.state == COMMITTED
    rows = lance_nb.dataset(dataset.uri).to_table(filter="id = 3").to_pylist()
    expected = {"ours": [before | {"price": 9.0}], "base": [before], "theirs": []}[take]
    assert rows == expected


def test_a_row_that_nothing_tells_from_others_can_only_be_given_up(area: StagingArea) -> None:
    table = pa.table({"id": [1, 1, 2], "price": [0.0, 1.0, 2.0]})
    dataset = lance_nb.write_dataset(table, "memory://alike.lance")
    card = area.edit(dataset, lambda draft: draft.set_cells([(1, "price", price(9))]))
    lance_nb.dataset(dataset.uri).delete("price = 1")
    area.commit(card.id, None, ProgressReporter())
    assert card.state == FAILED
    draft = card.draft
    assert draft is not None
    (line,) = conflict_lines(draft, 0, 10)
    lost = "deleted, or written again under another row id"
    assert (line["sides"], line["theirs"]) == (["theirs"], {"text": lost})
    assert (line["label"], line["ours"]) == ("1 (row id 1)", {"text": "price = 9.0"})
    plan = card_json(card)["conflicts"]
    assert (plan["sides"], plan["cells"]["key"]) == (["theirs"], "id")
    assert "search for it in the Rows tab" in plan["note"]
    with pytest.raises(InvalidInputError, match="only given up"):
        area.resolve(card.id, 1, [CellChoice("ours", draft.conflicts[0].row_id)])
    area.resolve(card.id, 1, [CellChoice("ours")])
    assert len(draft.conflicts) == 1  # a choice for all rows is none for this one
    area.resolve(card.id, 1, [CellChoice("theirs")])
    assert card.draft is not None
    assert card.draft.is_empty
