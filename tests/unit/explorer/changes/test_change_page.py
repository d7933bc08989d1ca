from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import InvalidInputError
from lance_nb.explorer.changes.change_page import (
    Changes,
    Level,
    change_level,
    change_page,
    changed_row,
    changed_rows,
    fragment_files,
    kinds_of,
    known_rows,
    position_of,
)
from lance_nb.explorer.rows.row_page import Window, page_texts
from lance_nb.format.fragment import Fragment
from lance_nb.format.fragment_list import FragmentList
from lance_nb.table.diff.row_level import KINDS
from lance_nb.transactions.operations.append import Append
from tests.support.explorer_datasets import changed_dataset, scores
from tests.support.markup_payloads import PAYLOADS


def test_new_and_old_values_lie_one_behind_the_other() -> None:
    new = pa.table({"id": [1, 2], "name": ["a", "b"]})
    made = change_page(Changes("~+", new, {1: pa.array(["old"])}, {1: "1"}), offset=40)
    sidecar = made.to_json()
    assert (sidecar["kinds"], sidecar["marks"]) == ("~+", [[1, 0, "1"]])
    assert sidecar["split"] == len(made.page.buffers)
    assert made.buffers == (*made.page.buffers, *made.old.buffers)
    assert (made.page.offset, page_texts(made.old)) == (40, [["old"]])


def test_windows_of_our_own_have_no_types_and_numbers_on_the_right() -> None:
    window = Changes(
        "+", pa.table({"size": ["3 KB"], "why": [""]}), plain=True, numeric=frozenset([0])
    )
    size, why = change_page(window, 0).to_json()["page"]["columns"]
    assert (size["type"], size["look"], why["look"]) == ("", "number", "plain")


def test_a_window_that_is_too_large_is_cut() -> None:
    table = pa.table({"text": ["x" * 100] * 64})
    window = Changes("~" * 64, table, {0: pa.array(["y" * 100] * 64)}, {0: "1" * 64})
    made = change_page(window, 0, max_bytes=4000)
    assert made.page.num_rows == made.old.num_rows == 16
    assert len(made.to_json()["kinds"]) == len(made.to_json()["marks"][0][2]) == 16
    assert change_page(window, 0, max_bytes=1).page.num_rows == 1


@pytest.fixture(scope="module")
def dataset() -> Any:
    return changed_dataset()


def test_changed_rows_come_first_with_old_values_of_changed_cells(dataset: Any) -> None:
    found = changed_rows(dataset.diff(1))
    sidecar = found.to_json()
    assert sidecar["kinds"] == "~~" + "+" * 20 + "-" * 3
    assert sidecar["marks"] == [[2, 0, "11"], [1, 1, "11"]]
    assert [column[:2] for column in page_texts(found.page.page)] == [
        ["5", "45"], ["fox", "fox"], ["101.25", "111.25"], ["2", "22"],
    ]  # fmt: skip
    assert page_texts(found.page.old) == [["1.25", "11.25"], ["bird", "cat"]]
    assert sidecar["found"] == {
        "added": 20, "removed": 3, "changed": 2, "is_finished": True, "compared": 2,
        "to_compare": 2, "cells": [["score", 2], ["label", 2]],
    }  # fmt: skip


def test_windows_of_rows_and_columns_fit_together(dataset: Any) -> None:
    diff = dataset.diff(1)
    part = changed_rows(diff, Window(offset=1, limit=2, first_column=1, num_columns=1))
    sidecar = part.to_json()
    assert (sidecar["kinds"], sidecar["marks"]) == ("~+", [[0, 0, "1"]])
    assert page_texts(part.page.page) == [["fox", "cat"]]
    assert page_texts(part.page.old) == [["cat"]]
    removed = changed_rows(diff, Window(limit=2), ("removed",))
    assert (removed.to_json()["kinds"], removed.to_json()["marks"]) == ("--", [])


def test_rows_that_came_need_no_comparison(dataset: Any) -> None:
    diff = dataset.diff(1)
    found = changed_rows(diff, kinds=("added",)).rows_found
    assert (found["added"], found["is_finished"], found["cells"]) == (20, False, [])
    diff.summary()
    assert known_rows(diff)["cells"] == [["score", 2], ["label", 2]]


def test_one_row_is_reported_in_full_with_its_place(dataset: Any) -> None:
    diff = dataset.diff(1)
    row = changed_row(diff, KINDS, 1)
    assert (row["kind"], row["label"], row["row_id"]) == ("~", "main:7", "45")
    assert [node["text"] for node in row["nodes"]] == ["45", "fox", "111.25", "22"]
    assert {at: node["text"] for at, node in row["old"].items()} == {"2": "11.25", "1": "cat"}
    assert dataset.take([row["position"]]).column("id").to_pylist() == [45]
    gone = changed_row(diff, ("removed",), 2)
    assert (gone["kind"], gone["label"], gone["position"]) == ("-", "main:1", 2)
    with pytest.raises(InvalidInputError, match="row 99 of this kind"):
        changed_row(diff, KINDS, 99)


def test_of_a_wide_row_the_first_columns_and_those_that_changed_are_reported() -> None:
    uri = "memory://rows/wide.lance"
    table = pa.table({f"c{at}": [1, 2] for at in range(450)})
    lance_nb.write_dataset(table, uri, enable_stable_row_ids=True)
    lance_nb.dataset(uri).update({"c440": "7"}, where="c0 = 2")
    row = changed_row(lance_nb.dataset(uri).diff(1), KINDS, 0)
    assert (len(row["nodes"]), row["hidden"]) == (201, 249)
    assert row["nodes"][200]["name"] == "c440"
    assert row["old"]["200"]["text"] == "2"


def test_positions_count_live_rows(dataset: Any) -> None:
    snapshot = dataset.checkout_version(3).opened[1]
    assert position_of(snapshot, 1 << 32 | 4) == 30 - 3 - 1 + 4
    assert position_of(snapshot, 1) is None
    assert position_of(snapshot, 77 << 32) is None


def test_by_address_updated_rows_are_removed_and_added() -> None:
    plain = changed_dataset("plain.lance", stable=False)
    sidecar = changed_rows(plain.diff(1)).to_json()
    assert sidecar["kinds"] == "+" * 22 + "-" * 5
    by_key = changed_rows(plain.diff(1, key="id")).to_json()
    assert by_key["kinds"].startswith("~~+")
    assert changed_row(plain.diff(1), KINDS, 0)["row_id"] is None


def test_no_name_and_no_value_is_more_than_text() -> None:
    for at, payload in enumerate(PAYLOADS[:3]):
        uri = f"memory://rows/hostile{at}.lance"
        first = pa.table({"_change": [1], "_changed": [payload], "x": [payload]})
        lance_nb.write_dataset(first, uri, enable_stable_row_ids=True)
        lance_nb.dataset(uri).update({"x": "'new'"})
        found = changed_rows(lance_nb.dataset(uri).diff(1))
        assert page_texts(found.page.page) == [["1"], [payload], ["new"]]
        assert page_texts(found.page.old) == [[payload]]


@pytest.mark.parametrize("kinds", ["added", [], ["moved"], [1]])
def test_kinds_in_requests_are_lists_of_known_ones(kinds: object) -> None:
    with pytest.raises(InvalidInputError, match="kinds must be a list"):
        kinds_of({"kinds": kinds})
    assert kinds_of({}) == KINDS
    assert kinds_of({"kinds": ["removed", "changed"]}) == ("changed", "removed")


def shown(level: Level) -> list[list[str | None]]:
    return [column.to_pylist() for column in level.window.new.columns]


def test_transactions_are_reported_newest_first_in_windows(dataset: Any) -> None:
    whole = change_level(dataset.diff(1), "transactions", 0, 50)
    assert whole.num_rows == 6
    assert shown(whole)[0] == [f"main:{version}" for version in (7, 6, 5, 4, 3, 2)]
    assert shown(whole)[1][:3] == ["UpdateConfig", "Rewrite", "Merge"]
    part = change_level(dataset.diff(1), "transactions", 2, 2)
    assert (part.num_rows, shown(part)[0]) == (6, ["main:5", "main:4"])
    assert part.places[0] == {"branch": None, "version": 5}


def test_transactions_of_a_fork_name_their_side(dataset: Any) -> None:
    found = change_level(dataset.diff(("dev", 5), 7), "transactions", 0, 50)
    assert found.window.new.schema.names[1] == "side"
    assert shown(found)[:2] == [["main:7", "main:6", "main:5", "dev:5"], ["B", "B", "B", "A"]]


def test_a_version_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path) -> None:
    dataset = changed_dataset("d.lance", folder=tmp_path)
    diff = dataset.checkout_version(7).diff(1)
    manifests = sorted((tmp_path / "d.lance" / "_versions").iterdir())
    broken = next(one for one in manifests if int(one.stem) in (3, 2**64 - 1 - 3))
    broken.write_bytes(b"no manifest")
    fresh = type(dataset).from_opened(type(dataset.opened[0])(dataset.opened[0].root), diff.ends.b)
    found = change_level(fresh.diff(1), "transactions", 0, 50)
    operations = shown(found)[1]
    assert operations[4] == "Damaged"
    assert operations[:4] == ["UpdateConfig", "Rewrite", "Merge", "Append"]


def test_schema_tells_what_came_went_and_changed(dataset: Any) -> None:
    came = change_level(dataset.diff(1), "schema", 0, 50)
    assert (came.window.kinds, shown(came)[0], shown(came)[1]) == ("+", ["half"], ["int64"])
    went = change_level(dataset.diff(7, 1), "schema", 0, 50)
    assert (went.window.kinds, shown(went)[0]) == ("-", ["half"])


def test_fragments_stand_beside_what_they_were(dataset: Any) -> None:
    found = change_level(dataset.diff(1, 3), "fragments", 0, 50)
    assert found.window.kinds == "~~+"
    assert [one.split(" → ")[0] for one in shown(found)[2]] == ["0", "0", "0"]
    assert shown(found)[5][:2] == ["deletions", "deletions"]
    added = change_level(dataset.diff(1, 3), "fragments", 0, 50, ["added"])
    assert (added.num_rows, added.window.kinds) == (1, "+")
    assert added.places == ({"fragment": 2},)


def test_the_files_of_a_fragment_are_reported(dataset: Any) -> None:
    (file,) = fragment_files(dataset.diff(1, 3), 2, None)["files"]
    assert (file["kind"], file["columns"]) == ("+", "id, score, label")
    assert fragment_files(dataset.diff(1, 3), 0, None)["files"] == []


def test_deletions_are_counted_from_their_files(dataset: Any) -> None:
    found = change_level(dataset.diff(2, 3), "deletions", 0, 50)
    assert (found.num_rows, found.window.kinds) == (1, "~")
    assert [column[0] for column in shown(found)] == ["0", "30", "1", "4", "3", "0"]
    assert not found.window.old
    assert change_level(dataset.diff(6, 7), "deletions", 0, 50).num_rows == 0


def test_settings_and_indices_are_reported(dataset: Any) -> None:
    found = change_level(dataset.diff(1), "config", 0, 50)
    assert [column[0] for column in shown(found)] == ["config", "team", "vision"]
    assert change_level(dataset.diff(1), "indices", 0, 50).num_rows == 0


def test_of_many_fragments_only_those_of_the_window_are_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    uri = "memory://levels/many.lance"
    dataset = lance_nb.write_dataset(scores(1), uri)
    root, (first,) = dataset.opened[0].root, dataset.opened[1].manifest.fragments[0].files
    data = bytes(root.read(first.location()))
    files = [replace(first, path=f"{at}.lance") for at in range(5000)]
    for file in files:  # a commit reads what they hold
        root.write(file.location(), data)
    made = Append(tuple(Fragment(0, (file,), 1) for file in files))
    diff = lance_nb.LanceDataset.commit(dataset, made, read_version=1).diff(1)
    decoded: list[int] = []
    real = FragmentList.__getitem__

    def noted(self: FragmentList, at: int) -> Fragment:
        decoded.append(at)
        return real(self, at)

    monkeypatch.setattr(FragmentList, "__getitem__", noted)
    found = change_level(diff, "fragments", 4900, 200)
    assert (found.num_rows, len(found.window.kinds)) == (5000, 100)
    assert len(decoded) <= 100
    assert found.places[-1] == {"fragment": 5000}


def test_an_unknown_level_is_refused(dataset: Any) -> None:
    with pytest.raises(InvalidInputError, match="level must be one of"):
        change_level(dataset.diff(1), "rows", 0, 50)


def test_a_long_text_is_shown_where_it_changed(tmp_path: Path) -> None:
    long = "the same words again and again " * 200
    first = pa.table({"id": [1, 2], "text": [f"{long}cat", "short"]})
    lance_nb.write_dataset(first, tmp_path / "t.lance")
    changed = pa.table({"id": [1], "text": [f"{long}dog"]})
    found = lance_nb.dataset(tmp_path / "t.lance")
    found.merge_insert("id").when_matched_update_all().execute(changed)
    found.insert(pa.table({"id": [3], "text": [long]}))
    diff = lance_nb.dataset(tmp_path / "t.lance").diff(1, key="id")
    page = changed_rows(diff).page
    assert page.window.kinds == "~+"
    new, old = page_texts(page.page)[1], page_texts(page.old)[0]
    assert new[0].endswith("again cat".replace("cat", "dog"))
    assert old[0].endswith("again cat")
    assert new[0][:-3] == old[0][:-3]
    assert new[1].startswith("the same words")
    row = changed_row(diff, KINDS, 0)
    assert row["nodes"][1]["text"].endswith("again dog")
    assert row["old"]["1"]["text"].endswith("again cat")


def test_more_deletions_are_no_change_of_a_cell(tmp_path: Path) -> None:
    lance_nb.write_dataset(pa.table({"id": range(9)}), tmp_path / "t.lance")
    found = lance_nb.dataset(tmp_path / "t.lance")
    found.delete("id < 4")
    level = change_level(found.diff(1), "fragments", 0, 10)
    at = level.window.new.column_names.index("deleted")
    assert level.window.new.column(at).to_pylist() == ["0 → 4"]
    assert at not in level.window.old
