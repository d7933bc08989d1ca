from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lance_nb
from lance_nb.errors import InvalidInputError
from lance_nb.explorer.models.change_levels import Level, change_level, fragment_files
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.format.fragment_list import FragmentList
from lance_nb.transactions.operations.append import Append
from tests.unit.explorer.stored_datasets import changed_dataset, scores


@pytest.fixture(scope="module")
def dataset() -> Any:
    return changed_dataset()


def shown(level: Level) -> list[list[str | None]]:
    return [column.to_pylist() for column in level.window.new.columns]


def test_transactions_are_told_newest_first_in_windows(dataset: Any) -> None:
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
    assert found.window.masks[2] == "110"
    assert found.window.old[2].to_pylist()[:2] == ["0", "0"]
    assert shown(found)[5][:2] == ["deletions", "deletions"]
    added = change_level(dataset.diff(1, 3), "fragments", 0, 50, ["added"])
    assert (added.num_rows, added.window.kinds) == (1, "+")
    assert added.places == ({"fragment": 2},)


def test_the_files_of_a_fragment_are_told(dataset: Any) -> None:
    (file,) = fragment_files(dataset.diff(1, 3), 2, None)["files"]
    assert (file["kind"], file["columns"]) == ("+", "id, score, label")
    assert fragment_files(dataset.diff(1, 3), 0, None)["files"] == []


def test_deletions_are_counted_from_their_files(dataset: Any) -> None:
    found = change_level(dataset.diff(2, 3), "deletions", 0, 50)
    assert (found.num_rows, found.window.kinds) == (1, "~")
    assert [column[0] for column in shown(found)] == ["0", "30", "4", "3", "0"]
    assert found.window.old[2].to_pylist() == ["1"]
    assert change_level(dataset.diff(6, 7), "deletions", 0, 50).num_rows == 0


def test_settings_and_indices_are_told(dataset: Any) -> None:
    found = change_level(dataset.diff(1), "config", 0, 50)
    assert [column[0] for column in shown(found)] == ["config", "team", "vision"]
    assert change_level(dataset.diff(1), "indices", 0, 50).num_rows == 0


def test_of_many_fragments_only_those_of_the_window_are_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    uri = "memory://levels/many.lance"
    dataset = lance_nb.write_dataset(scores(1), uri)
    files = [DataFile(f"{at}.lance", (0, 1, 2), (0, 1, 2), 2, 2, 10) for at in range(5000)]
    made = Append(tuple(Fragment(0, (file,), 100) for file in files))
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
