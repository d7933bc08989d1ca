from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import lance_nb
from lance_nb.errors import CorruptFileError, InvalidInputError
from lance_nb.format.manifest import BasePath
from lance_nb.storage.memory import MemoryStore
from lance_nb.storage.registry import open_store
from lance_nb.table.locations import Locations
from tests.golden.copies import copy_to_folder

ROOT = MemoryStore("places/x.lance")


def base(path, identity=0, *, is_root=True):
    return BasePath(identity, path, is_root, None)


def locations(*bases, allowed=(), root=ROOT, home=None):
    return Locations(root, home or root, bases, allowed)


def test_a_file_without_a_base_lies_in_the_folder_of_the_branch():
    home = ROOT.child("tree/side")
    assert locations(home=home).locate("data/a.lance", None) == (home, "data/a.lance")


def test_a_base_that_is_a_dataset_root_keeps_the_usual_folders():
    found = locations(base(ROOT.uri)).locate("data/a.lance", 0)
    assert (found[0].uri, found[1]) == (ROOT.uri, "data/a.lance")


def test_a_base_that_is_no_dataset_root_holds_files_directly():
    found = locations(base(f"{ROOT.uri}/more", is_root=False)).locate("data/a.lance", 0)
    assert (found[0].uri, found[1]) == (f"{ROOT.uri}/more", "a.lance")


def test_a_branch_of_a_branch_is_found_below_the_root():
    found = locations(base(f"{ROOT.uri}/tree/side", 1), base(ROOT.uri, 0)).locate("data/a", 1)
    assert found[0].uri == f"{ROOT.uri}/tree/side"


def test_a_base_is_opened_once():
    made = locations(base(ROOT.uri))
    assert made.locate("data/a", 0)[0] is made.locate("data/b", 0)[0]


def test_bases_that_have_not_moved_are_the_same_tuple():
    made = locations(base(ROOT.uri), base(f"{ROOT.uri}/tree/side", 1))
    assert made.present_bases() is made.bases


def test_base_id_0_is_a_base_and_not_no_base():
    with pytest.raises(CorruptFileError, match="include id 0, found ids 7"):
        locations(base(ROOT.uri, 7)).locate("data/a", 0)


@pytest.mark.parametrize(
    "path",
    ["memory://places/y.lance", "memory://places", "memory://places/x.lance-2", "memory://other/x.lance",
     "memory://places/x.lance/../y", "memory://places/x.lance/a/../../y", "/places/x.lance", "s3://places/x.lance",
     "file:///places/x.lance"],
)  # fmt: skip
def test_a_base_that_is_not_at_or_below_the_root_is_refused(path):
    with pytest.raises(InvalidInputError) as caught:
        locations(base(path)).locate("data/a", 0)
    assert repr(path) in str(caught.value)
    assert f"allow_bases=[{path!r}]" in str(caught.value)


@pytest.mark.parametrize(
    "allowed", ["memory://places/y.lance", "memory://places/", "memory://places/y.lance/"]
)
def test_a_base_that_is_allowed_by_name_or_from_above_is_opened(allowed):
    made = locations(base("memory://places/y.lance"), allowed=(allowed,))
    assert made.locate("data/a", 0)[0].uri == "memory://places/y.lance"


def test_a_local_base_is_compared_by_where_it_really_is(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "real" / "out").symlink_to(tmp_path)
    root = open_store(tmp_path / "link")
    inside = locations(base(str(tmp_path / "real")), root=root)
    assert inside.locate("data/a", 0)[0].uri == root.uri
    outside = locations(base(str(tmp_path / "real" / "out")), root=root)
    with pytest.raises(InvalidInputError, match="allow_bases"):
        outside.locate("data/a", 0)


def test_links_out_of_the_dataset_are_refused_unless_allowed(tmp_path: Path) -> None:
    path = copy_to_folder("history", tmp_path)
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    file = path / "data" / lance_nb.dataset(path, version=1).get_fragments()[0].data_files()[0].path
    shutil.move(file, outside / file.name)
    file.symlink_to(outside / file.name)

    with pytest.raises(InvalidInputError, match="symbolic link that leaves the dataset"):
        lance_nb.dataset(path, version=1).to_table()
    allowed = lance_nb.dataset(path, version=1, allow_bases=[str(outside)])
    assert allowed.to_table().num_rows == 40


def test_links_of_folders_and_inside_the_dataset(tmp_path: Path) -> None:
    path = copy_to_folder("history", tmp_path)
    shutil.move(path / "data", path / "moved")
    (path / "data").symlink_to(path / "moved")
    assert lance_nb.dataset(path, version=1).to_table().num_rows == 40

    shutil.move(path / "moved", tmp_path / "moved")
    (path / "data").unlink()
    (path / "data").symlink_to(tmp_path / "moved")
    with pytest.raises(InvalidInputError, match="symbolic link"):
        lance_nb.dataset(path, version=1).to_table()
    (tmp_path / "alias").symlink_to(path)
    with pytest.raises(InvalidInputError, match="symbolic link"):
        lance_nb.dataset(tmp_path / "alias", version=1).to_table()
    (path / "data").unlink()
    shutil.move(tmp_path / "moved", path / "data")
    assert lance_nb.dataset(tmp_path / "alias", version=1).to_table().num_rows == 40


def test_a_file_that_is_named_may_be_a_link(tmp_path: Path) -> None:
    path = copy_to_folder("history", tmp_path)
    file = path / "data" / lance_nb.dataset(path, version=1).get_fragments()[0].data_files()[0].path
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "x.lance").symlink_to(file)

    assert (
        lance_nb.LanceFileReader(tmp_path / "link" / "x.lance").read_all().to_table().num_rows == 40
    )
