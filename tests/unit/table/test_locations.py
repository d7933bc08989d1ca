"""Where files are: folders, base paths, links, and datasets that were moved or copied."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import lance_nb
from lance_nb.errors import CorruptFileError, InvalidInputError, LanceError, ObjectNotFoundError
from lance_nb.format.manifest import BasePath
from lance_nb.format.refs import Branch
from lance_nb.magic.command_line import main
from lance_nb.storage.memory import MemoryStore
from lance_nb.storage.registry import open_store
from lance_nb.table import locations
from lance_nb.table.locations import Locations
from tests.golden.copies import copy_to_folder
from tests.support.moved_datasets import LINES, at, contents, ids, relocate, repair, rows, write

ROOT = MemoryStore("places/x.lance")


def base(path, identity=0, *, is_root=True):
    return BasePath(identity, path, is_root, None)


def locations_with(*bases, allowed=(), root=ROOT, home=None):
    return Locations(root, home or root, bases, allowed)


def test_a_file_without_a_base_lies_in_the_folder_of_the_branch():
    home = ROOT.child("tree/side")
    assert locations_with(home=home).locate("data/a.lance", None) == (home, "data/a.lance")


def test_a_base_that_is_a_dataset_root_keeps_the_usual_folders():
    found = locations_with(base(ROOT.uri)).locate("data/a.lance", 0)
    assert (found[0].uri, found[1]) == (ROOT.uri, "data/a.lance")


def test_a_base_that_is_no_dataset_root_holds_files_directly():
    found = locations_with(base(f"{ROOT.uri}/more", is_root=False)).locate("data/a.lance", 0)
    assert (found[0].uri, found[1]) == (f"{ROOT.uri}/more", "a.lance")


def test_a_branch_of_a_branch_is_found_below_the_root():
    found = locations_with(base(f"{ROOT.uri}/tree/side", 1), base(ROOT.uri, 0)).locate("data/a", 1)
    assert found[0].uri == f"{ROOT.uri}/tree/side"


def test_a_base_is_opened_once():
    made = locations_with(base(ROOT.uri))
    assert made.locate("data/a", 0)[0] is made.locate("data/b", 0)[0]


def test_bases_that_have_not_moved_are_the_same_tuple():
    made = locations_with(base(ROOT.uri), base(f"{ROOT.uri}/tree/side", 1))
    assert made.present_bases() is made.bases


def test_base_id_0_is_a_base_and_not_no_base():
    with pytest.raises(CorruptFileError, match="include id 0, found ids 7"):
        locations_with(base(ROOT.uri, 7)).locate("data/a", 0)


@pytest.mark.parametrize(
    "path",
    ["memory://places/y.lance", "memory://places", "memory://places/x.lance-2", "memory://other/x.lance",
     "memory://places/x.lance/../y", "memory://places/x.lance/a/../../y", "/places/x.lance", "s3://places/x.lance",
     "file:///places/x.lance"],
)  # fmt: skip
def test_a_base_that_is_not_at_or_below_the_root_is_refused(path):
    with pytest.raises(InvalidInputError) as caught:
        locations_with(base(path)).locate("data/a", 0)
    assert repr(path) in str(caught.value)
    assert f"allow_bases=[{path!r}]" in str(caught.value)


@pytest.mark.parametrize(
    "allowed", ["memory://places/y.lance", "memory://places/", "memory://places/y.lance/"]
)
def test_a_base_that_is_allowed_by_name_or_from_above_is_opened(allowed):
    made = locations_with(base("memory://places/y.lance"), allowed=(allowed,))
    assert made.locate("data/a", 0)[0].uri == "memory://places/y.lance"


def test_a_local_base_is_compared_by_where_it_really_is(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "real" / "out").symlink_to(tmp_path)
    root = open_store(tmp_path / "link")
    inside = locations_with(base(str(tmp_path / "real")), root=root)
    assert inside.locate("data/a", 0)[0].uri == root.uri
    outside = locations_with(base(str(tmp_path / "real" / "out")), root=root)
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


@pytest.fixture(params=["moved", "copied"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, as_another_process: Callable[[], None]
) -> Path:
    """The dataset somewhere else. Where it was is nothing, or files that are damaged since."""
    there = relocate(tmp_path, is_copy=request.param == "copied")
    as_another_process()
    return there


def test_every_branch_is_read_where_it_is_now(place: Path):
    assert contents(place) == LINES
    for branch, expected in LINES.items():
        dataset = at(place, branch)
        assert dataset.count_rows("id > 2") == len([one for one in expected if one > 2])
        assert sorted(dataset.take([0, 1])["id"].to_pylist()) == expected[:2]
        dataset.validate()
        for one in dataset.versions():
            at(place, branch, one["version"]).to_table()
    found = lance_nb.dataset(place).verify()
    assert {one.code for one in found.findings} == {"base-moved"}
    assert {one.branch for one in found.findings} == set(LINES)


def test_what_a_copy_lacks_is_not_read_from_the_original(tmp_path: Path, as_another_process):
    first, copy = tmp_path / "first", tmp_path / "copy"
    write(first)
    shutil.copytree(first, copy)
    victim = next((copy / "data").glob("*.lance"))
    lost = [one for one in ("dev", "merged") if victim.name in _files(copy, one)]
    victim.unlink()
    for allowed in ((), [str(first)]):
        with pytest.raises(ObjectNotFoundError, match=str(copy / "data" / victim.name)):
            at(copy, lost[0], allow_bases=allowed).to_table()
    as_another_process()
    with pytest.raises(ObjectNotFoundError, match=str(copy / "data" / victim.name)):
        at(copy, lost[0]).to_table()


def _files(place: Path, branch: str) -> set[str]:
    fragments = at(place, branch).get_fragments()
    return {file.path for one in fragments for file in one.data_files()}


def test_the_doctor_says_from_where_a_dataset_was_moved(
    place: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["doctor", str(place), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["findings"]
    first = place.parent.parent / "first"
    assert f"moved from '{first}'; these files are read at '{place}' now" in {
        one["message"] for one in found
    }
    repair(place)
    assert main(["doctor", str(place)]) == 0


def test_a_dataset_that_is_moved_again_is_read_and_repaired_again(place: Path):
    repair(place)
    third = place.parent / place.name[:-1]  # its path begins as the former one does
    place.rename(third)
    assert contents(third) == LINES
    for branch in LINES:
        for one in at(third, branch).versions():
            at(third, branch, one["version"]).to_table()
    assert len(repair(third)) == len(LINES)
    assert contents(third) == LINES


@pytest.fixture
def clone(tmp_path: Path, as_another_process: Callable[[], None]) -> Path:
    """A shallow clone of another dataset's branch, with a branch of the same name, moved."""
    write(tmp_path / "source")
    made = at(tmp_path / "source", "dev").shallow_clone(tmp_path / "clone")
    made.insert(rows(40))
    made.create_branch("dev").insert(rows(50))
    (tmp_path / "clone").rename(tmp_path / "there")
    as_another_process()
    return tmp_path / "there"


@pytest.mark.parametrize("branch", [None, "dev"])
def test_the_source_of_a_clone_is_no_former_place_of_it(clone: Path, branch: str | None):
    with pytest.raises(InvalidInputError, match="under another base path"):
        at(clone, branch).to_table()
    source = str(clone.parent / "source")
    expected = [2, 3, 10, 40] + [50] * (branch == "dev")
    assert ids(at(clone, branch, allow_bases=[source])) == expected
    found = lance_nb.dataset(clone).repair_moved(dry_run=True)
    assert [(one.branch, len(one.bases)) for one in found] == [("dev", 1)]
    repair(clone)
    assert ids(at(clone, branch, allow_bases=[source])) == expected


def test_a_branch_that_names_another_dataset_stays_refused(tmp_path: Path, as_another_process):
    """A hostile branch: its first version was cloned from the root, and names a foreign base."""
    for name in ("other", "mine"):
        lance_nb.write_dataset(rows(1, 2), tmp_path / name)
    mine = lance_nb.dataset(tmp_path / "mine")
    dev = mine.create_branch("dev")
    dev.add_bases([lance_nb.DatasetBasePath(str(tmp_path / "other"), is_dataset_root=True)])
    base = next(one for one in at(tmp_path / "mine", "dev").base_paths().values() if one.id)
    as_another_process()
    locations = at(tmp_path / "mine", "dev").opened[1].locations
    assert locations.base(base.id) == base
    with pytest.raises(InvalidInputError, match="under another base path"):
        locations.locate("data/x.lance", base.id)


def test_without_its_first_version_a_branch_has_one_candidate_or_none(tmp_path: Path):
    """The Clone is gone: the only unnamed base is the fork; of two nobody can tell."""
    first, there = tmp_path / "first", tmp_path / "there"
    made = lance_nb.write_dataset(rows(1, 2), first)
    for name in ("one", "two"):
        branch = made.create_branch(name)
        if name == "two":
            base = lance_nb.DatasetBasePath(str(tmp_path / "more"), is_dataset_root=True)
            branch.add_bases([base])
        branch.insert(rows(3))
        oldest = max((first / "tree" / name / "_versions").glob("*.manifest"))
        oldest.unlink()
    first.rename(there)
    assert ids(at(there, "one")) == [1, 2, 3]
    with pytest.raises(InvalidInputError, match="under another base path"):
        at(there, "two").to_table()


def test_a_named_base_at_the_own_root_is_not_taken_for_the_fork(tmp_path: Path):
    first, there = tmp_path / "first", tmp_path / "there"
    made = lance_nb.write_dataset(rows(1, 2), first)
    made.add_bases([lance_nb.DatasetBasePath(str(first), name="own", is_dataset_root=True)])
    made.create_branch("dev").insert(rows(3))

    first.rename(there)

    assert ids(at(there, "dev")) == [1, 2, 3]


@pytest.mark.parametrize("damage", ["record", "first version"])
def test_what_cannot_be_read_decides_nothing(tmp_path: Path, damage: str):
    first, there = tmp_path / "first", tmp_path / "there"
    branch = lance_nb.write_dataset(rows(1, 2), first).create_branch("dev")
    branch.insert(rows(3))
    first.rename(there)
    if damage == "record":
        (there / "_refs" / "branches" / "dev.json").write_bytes(b"{")
    else:
        max((there / "tree" / "dev" / "_versions").glob("*.manifest")).write_bytes(b"no manifest")
    with pytest.raises(LanceError):
        at(there, "dev").to_table()


def test_records_that_name_each_other_in_a_circle_end(place: Path):
    record = Branch("dev", 3, ((1, "0" * 32),))
    (place / "_refs" / "branches" / "dev.json").write_bytes(record.to_bytes())
    with pytest.raises(InvalidInputError, match="under another base path"):
        at(place, "dev").to_table()


def test_a_branch_began_at_the_only_root_without_a_name(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(locations, "_fork_base", lambda _home: (False, None))
    bases = [
        BasePath(1, "/elsewhere/data"),
        BasePath(2, "/named", is_dataset_root=True, name="named"),
        BasePath(3, "/root", is_dataset_root=True),
    ]

    assert locations._fork_root(MemoryStore("fork-root"), None, bases) == "/root"
