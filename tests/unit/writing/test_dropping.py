"""A dataset is deleted whole, and only a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lance_nb
from lance_nb import DatasetNotFoundError, InvalidInputError, LanceDataset
from tests.support.faulty_system import Call, WatchedSystem, in_place_of_os


def test_nothing_remains_of_a_dataset(make, uri, files) -> None:
    made = make()
    made.create_branch("dev").insert(made.to_table())
    made.tags.create("t", 1)
    LanceDataset.drop(uri)
    assert files() == {}
    with pytest.raises(DatasetNotFoundError):
        lance_nb.dataset(uri)


def test_no_folder_remains_of_a_local_one(rows, tmp_path: Path) -> None:
    lance_nb.write_dataset(rows, tmp_path / "d").create_branch("dev")
    LanceDataset.drop(tmp_path / "d")
    assert list(tmp_path.iterdir()) == []


def test_where_nothing_is_nothing_can_be_dropped(uri) -> None:
    with pytest.raises(DatasetNotFoundError):
        LanceDataset.drop(uri)
    LanceDataset.drop(uri, ignore_not_found=True)


def test_other_folders_are_left_alone(rows, tmp_path: Path) -> None:
    lance_nb.write_dataset(rows, tmp_path / "above" / "d")
    with pytest.raises(InvalidInputError, match="not the root of a dataset"):
        LanceDataset.drop(tmp_path / "above")
    broken = tmp_path / "broken" / "_versions"
    broken.mkdir(parents=True)
    (broken / "1.manifest").write_bytes(b"no manifest")
    with pytest.raises(InvalidInputError, match="not the root of a dataset"):
        LanceDataset.drop(tmp_path / "broken")
    assert lance_nb.dataset(tmp_path / "above" / "d").count_rows() == 10
    assert (broken / "1.manifest").exists()


class _PowerSwitch:
    """Writes the calls down, and ends the process, as it were, before one of the removals."""

    def __init__(self, number: int = 0) -> None:
        self.log: list[str] = []
        self._number = number

    def __call__(self, name: str, real: Call, arguments: Any, options: Any) -> Any:
        if name == "unlink":
            self._number -= 1
            if self._number == 0:
                raise KeyboardInterrupt
        self.log.append(f"{name} {arguments[0]}" if isinstance(arguments[0], str) else name)
        return real(*arguments, **options)


@pytest.mark.parametrize("has_store", [False, True])
def test_a_drop_that_was_interrupted_can_be_repeated(
    rows, tmp_path: Path, *, has_store: bool
) -> None:
    """The hint went after the last manifest: without one, the next drop refused the rest.

    A manifest store named a manifest that was gone, so the rest was no dataset.
    """
    options = {"manifest_store": f"sqlite:///{tmp_path}/m.db"} if has_store else {}
    place = tmp_path / "in" / "d"
    place.parent.mkdir()
    number = 0
    while True:
        number += 1
        made = lance_nb.write_dataset(rows, place, storage_options=options)
        made.delete("id = 1")
        switch = _PowerSwitch(number)
        try:
            with in_place_of_os(WatchedSystem(("unlink",), switch)):
                LanceDataset.drop(place, options)
        except KeyboardInterrupt:
            LanceDataset.drop(place, options, ignore_not_found=True)
            assert list(place.parent.iterdir()) == []
            continue
        assert number > 6
        return


def test_manifests_go_when_the_rest_is_gone_from_the_disk(rows, tmp_path: Path) -> None:
    lance_nb.write_dataset(rows, tmp_path / "d").delete("id = 1")
    switch = _PowerSwitch()
    with in_place_of_os(WatchedSystem(("unlink", "fsync", "rmdir"), switch)):
        LanceDataset.drop(tmp_path / "d")
    is_manifest = [one.endswith(".manifest") for one in switch.log]
    first, last = is_manifest.index(True), len(is_manifest) - is_manifest[::-1].index(True)
    assert last - first == 2, "all in a row"
    folders = {"data", "_deletions", "_transactions", "_versions"}
    assert switch.log[first - len(folders) : first] == ["fsync"] * len(folders)
    assert switch.log[last] == "fsync"
