"""Symbolic links below the root: followed inside of it, refused where they leave it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lance_nb.errors import InvalidInputError, LanceError, ObjectNotFoundError, StorageError
from lance_nb.storage import links, local_files
from lance_nb.storage.base import ByteRange, prune, sync_folder, turn, write_new, write_unsynced
from lance_nb.storage.links import KNOWN_MAX, Boundary
from lance_nb.storage.local import LocalStore
from lance_nb.storage.registry import open_store
from lance_nb.storage.system_calls import OpenFolder

BIG = b"b" * 100_000  # is mapped

READS: dict[str, Callable[[LocalStore, str], Any]] = {
    "size": LocalStore.size,
    "exists": LocalStore.exists,
    "read": LocalStore.read,
    "read_range": lambda store, path: store.read_range(path, ByteRange(0, 1)),
    "read_ranges": lambda store, path: store.read_ranges(path, [ByteRange(0, 1)]),
    "read_tail": lambda store, path: store.read_tail(path, 1),
    "map": LocalStore.map,
}
WRITES: dict[str, Callable[[LocalStore, str], Any]] = {
    "write": lambda store, path: store.write(path, b"new"),
    "write_new": lambda store, path: write_new(store, path, b"new"),
    "write_unsynced": lambda store, path: write_unsynced(store, path, b"new"),
    "write_if_absent": lambda store, path: store.write_if_absent(path, b"new"),
    "create": lambda store, path: store.create(path),
    "replace": lambda store, path: store.replace(path, b"old", b"new"),
    "delete": lambda store, path: store.delete(path),
}
LISTINGS: dict[str, Callable[[LocalStore, str], Any]] = {
    "list": LocalStore.list,
    "list_names": LocalStore.list_names,
    "list_recursive": LocalStore.list_recursive,
    "sync_folder": sync_folder,
    "turn": lambda store, prefix: turn(store, prefix).__enter__(),
}


def state(folder: Path) -> dict[str, bytes | None]:
    """Return everything below a folder: the bytes of files, None for folders."""
    return {
        str(one.relative_to(folder)): one.read_bytes() if one.is_file() else None
        for one in folder.rglob("*")
    }


class Place:
    """A root, a folder beside it, and a link from the one into the other."""

    def __init__(self, home: Path) -> None:
        self.root, self.outside = home / "root", home / "outside"
        (self.root / "own").mkdir(parents=True)
        (self.outside / "deep").mkdir(parents=True)
        for folder in (self.root / "own", self.outside, self.outside / "deep"):
            (folder / "small").write_bytes(b"old")
            (folder / "big").write_bytes(BIG)
        (self.root / "away").symlink_to(self.outside)
        self.store = LocalStore(str(self.root))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


# --- links that leave the root --------------------------------------------------------------------


@pytest.mark.parametrize("name", ["small", "big", "nothing", "deep/small", "new/folder/x"])
@pytest.mark.parametrize("call", [*READS, *WRITES])
def test_nothing_is_done_through_a_folder_that_leaves_the_root(
    place: Place, call: str, name: str
) -> None:
    before = state(place.outside)
    with pytest.raises(InvalidInputError) as caught:
        {**READS, **WRITES}[call](place.store, f"away/{name}")

    said = str(caught.value)
    assert f"'{place.root}/away' is a symbolic link that leaves the dataset" in said
    assert f"to '{place.outside}'" in said
    assert f"allow_bases=['{place.outside}']" in said
    assert state(place.outside) == before


@pytest.mark.parametrize("prefix", ["away", "away/deep", "away/nothing"])
@pytest.mark.parametrize("call", LISTINGS)
def test_nothing_is_listed_through_a_folder_that_leaves_the_root(
    place: Place, call: str, prefix: str
) -> None:
    with pytest.raises(InvalidInputError, match="leaves the dataset"):
        LISTINGS[call](place.store, prefix)


@pytest.mark.parametrize("target", ["small", "big", "deep", "nothing"])
@pytest.mark.parametrize("call", READS)
def test_a_file_that_is_a_link_away_is_not_read(place: Place, call: str, target: str) -> None:
    (place.root / "own" / "x").symlink_to(place.outside / target)
    with pytest.raises(InvalidInputError, match=r"own/x' is a symbolic link that leaves"):
        READS[call](place.store, "own/x")


@pytest.mark.parametrize("call", ["write", "write_new", "write_unsynced", "delete"])
def test_a_name_that_is_a_link_is_replaced_or_removed_itself(place: Place, call: str) -> None:
    before = state(place.outside)
    (place.root / "own" / "x").symlink_to(place.outside / "small")
    WRITES[call](place.store, "own/x")

    assert state(place.outside) == before
    assert not (place.root / "own" / "x").is_symlink()
    assert (place.root / "own" / "x").exists() == (call != "delete")


def test_a_name_that_is_a_link_is_taken(place: Place) -> None:
    (place.root / "own" / "x").symlink_to(place.outside / "not there")
    with pytest.raises(FileExistsError):
        place.store.write_if_absent("own/x", b"new")
    with pytest.raises(InvalidInputError, match="leaves the dataset"):
        place.store.replace("own/x", b"old", b"new")
    assert not (place.outside / "not there").exists()


def test_a_link_to_a_folder_that_is_not_there_makes_no_folder(place: Place) -> None:
    (place.root / "gone").symlink_to(place.outside / "gone")
    for write in WRITES.values():
        with pytest.raises(InvalidInputError, match="leaves the dataset"):
            write(place.store, "gone/x")
    assert not (place.outside / "gone").exists()


def test_links_through_other_links_are_followed_to_their_end(place: Place) -> None:
    (place.root / "own" / "second").symlink_to("../away")
    (place.root / "first").symlink_to("own/second")
    with pytest.raises(InvalidInputError, match=r"root/first' is a symbolic link that leaves"):
        place.store.read("first/small")


def test_folders_that_only_begin_like_the_root_are_outside(place: Place) -> None:
    neighbour = place.root.parent / "root-2"
    neighbour.mkdir()
    (neighbour / "x").write_bytes(b"1")
    (place.root / "near").symlink_to(neighbour)
    with pytest.raises(InvalidInputError, match="leaves the dataset"):
        place.store.read("near/x")


def test_a_child_is_bound_by_the_root_above_it(place: Place) -> None:
    child = place.store.child("own")
    (place.root / "own" / "up").symlink_to("../own")
    assert bytes(child.read("up/small")) == b"old"
    (place.root / "own" / "out").symlink_to(place.outside)
    with pytest.raises(InvalidInputError, match="leaves the dataset"):
        child.read("out/small")
    inner = place.store.child("away")
    with pytest.raises(InvalidInputError, match="leaves the dataset"):
        inner.list_names("")
    with pytest.raises(InvalidInputError, match="leaves the dataset"):
        inner.write("x", b"1")


def test_a_file_that_was_mapped_before_it_was_moved_away_is_refused(place: Place) -> None:
    assert bytes(place.store.read("own/big")) == BIG
    (place.root / "own").rename(place.outside / "own")
    (place.root / "own").symlink_to(place.outside / "own")
    with pytest.raises(InvalidInputError, match="leaves the dataset"):
        LocalStore(str(place.root)).read("own/big")


# --- listings -------------------------------------------------------------------------------------


def test_a_listing_names_links_away_without_looking_at_what_they_lead_to(place: Place) -> None:
    (place.root / "own" / "out").symlink_to(place.outside / "big")
    (place.root / "own" / "dangling").symlink_to("nothing")
    (place.root / "own" / "inside").symlink_to("small")
    (place.root / "own" / "folder").symlink_to(place.root)
    names = ["big", "inside", "out", "small"]
    assert sorted(place.store.list_names("own")) == names
    found = {one.name: one.size_bytes for one in place.store.list("own")}
    assert sorted(found) == names
    assert found["inside"] == 3
    assert found["out"] == len(str(place.outside / "big"))  # of the link itself


def test_folders_that_are_links_are_not_walked_into(place: Place) -> None:
    (place.root / "again").symlink_to("own")
    found = {one.name for one in place.store.list_recursive("")}
    assert found == {"away", "own/big", "own/small"}


def test_prune_removes_no_folder_behind_a_link(place: Place) -> None:
    (place.outside / "empty").mkdir()
    (place.root / "empty" / "deep").mkdir(parents=True)
    prune(place.store)
    assert (place.outside / "empty").is_dir()
    assert not (place.root / "empty").exists()
    prune(place.store.child("away"))
    prune(place.store.child("away/empty"))
    assert (place.outside / "empty").is_dir()


# --- links that stay ------------------------------------------------------------------------------


def test_links_inside_of_the_root_are_followed(place: Place) -> None:
    (place.root / "same").symlink_to("own")
    (place.root / "whole").symlink_to(place.root)
    for name in ("same", "whole/own", "whole/whole/same"):
        for size, path in ((3, f"{name}/small"), (len(BIG), f"{name}/big")):
            for read in READS.values():
                read(place.store, path)
            assert place.store.size(path) == size
        assert sorted(place.store.list_names(name)) == ["big", "small"]
    (place.root / "own" / "x").symlink_to("big")
    assert bytes(place.store.read("own/x")) == BIG
    assert place.store.exists("own/x")
    for number, call in enumerate(("write", "write_new", "write_unsynced", "write_if_absent")):
        WRITES[call](place.store, f"same/new{number}")
        assert (place.root / "own" / f"new{number}").read_bytes() == b"new"
    assert place.store.replace("same/small", b"old", b"new")


def test_nothing_is_deleted_through_a_link_wherever_it_leads(place: Place) -> None:
    (place.root / "same").symlink_to("own")
    allowing = LocalStore(str(place.root), [str(place.outside)])
    for store, path in (
        (place.store, "same/small"),
        (allowing, "away/small"),
        (allowing, "away/deep/small"),
    ):
        with pytest.raises(InvalidInputError, match="nothing is deleted through a link") as caught:
            store.delete(path)
        assert repr(f"{place.root}/{path.split('/')[0]}") in str(caught.value)
    assert (place.root / "own" / "small").exists()
    assert len(state(place.outside)) == 5


def test_the_root_may_be_a_link_and_may_be_changed(place: Place) -> None:
    alias = place.root.parent / "alias"
    alias.symlink_to(place.root)
    store = LocalStore(str(alias))
    store.write("own/new", b"1")
    store.delete("own/new")
    assert bytes(store.read("own/big")) == BIG
    with pytest.raises(InvalidInputError, match="leaves the dataset"):
        store.read("away/small")
    alias.unlink()
    alias.symlink_to(place.outside)
    assert bytes(store.read("deep/big")) == BIG
    store.write("deep/new", b"1")
    store.delete("deep/new")


def test_the_root_of_the_file_system_holds_everything(place: Place) -> None:
    store = LocalStore("/")
    inside = str(place.root / "away" / "deep")[1:]
    assert bytes(store.read(f"{inside}/small")) == b"old"
    store.write(f"{inside}/new", b"1")
    assert (place.outside / "deep" / "new").exists()


# --- places that are allowed ----------------------------------------------------------------------


def test_links_into_places_that_are_allowed_are_followed(place: Place) -> None:
    (place.root / "own" / "x").symlink_to(place.outside / "big")
    allowed = [str(place.outside), "s3://bucket/x"]
    store = open_store(str(place.root), None, allowed)
    assert bytes(store.read("away/deep/small")) == b"old"
    assert bytes(store.read("own/x")) == BIG
    assert sorted(store.list_names("away")) == ["big", "small"]
    assert {one.name: one.size_bytes for one in store.list("own")}["x"] == len(BIG)
    for number, call in enumerate(("write", "write_new", "write_unsynced", "write_if_absent")):
        WRITES[call](store, f"away/new/{number}")
        assert (place.outside / "new" / str(number)).read_bytes() == b"new"


def test_what_one_store_may_map_another_may_not(place: Place) -> None:
    allowing = LocalStore(str(place.root), [str(place.outside)])
    assert bytes(allowing.read("away/big")) == BIG
    with pytest.raises(InvalidInputError, match="leaves the dataset"):
        place.store.read("away/big")


def test_an_allowed_place_does_not_allow_its_neighbours(place: Place) -> None:
    store = LocalStore(str(place.root), [str(place.outside / "deep"), f"{place.outside}-2"])
    assert bytes(store.read("away/deep/small")) == b"old"
    with pytest.raises(InvalidInputError, match="leaves the dataset"):
        store.read("away/small")


# --- races ----------------------------------------------------------------------------------------


def swap(place: Place) -> None:
    """Put a link to the outside into the place of a folder."""
    if not (place.root / "own").is_symlink():
        (place.root / "own").rename(place.root / "moved")
        (place.root / "own").symlink_to(place.outside)


@pytest.mark.parametrize("call", [*READS, *WRITES, *LISTINGS])
def test_a_link_that_is_put_there_just_before_opening_is_refused(
    place: Place, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    before = state(place.outside)
    real, opened = os.open, []

    def late(path: Any, *rest: Any, **where: Any) -> int:
        if str(path).startswith(f"{place.root}/own"):
            swap(place)
            opened.append(path)
        return real(path, *rest, **where)

    monkeypatch.setattr(os, "open", late)
    with pytest.raises(InvalidInputError, match="leaves the dataset"):
        if call in LISTINGS:
            LISTINGS[call](place.store, "own")
        else:
            {**READS, **WRITES}[call](place.store, "own/small")
    assert opened
    assert state(place.outside) == before


@pytest.mark.parametrize(
    ("call", "step"),
    [
        ("write", "create"), ("write", "rename"), ("write", "sync"), ("write_new", "create"),
        ("write_new", "rename"), ("write_unsynced", "remove"), ("write_unsynced", "create"),
        ("write_if_absent", "create"), ("write_if_absent", "link"), ("write_if_absent", "sync"),
        ("delete", "remove"), ("replace", "rename"),
    ],
)  # fmt: skip
def test_a_link_that_is_put_there_while_a_file_is_written_changes_nothing_outside(
    place: Place, monkeypatch: pytest.MonkeyPatch, call: str, step: str
) -> None:
    before = state(place.outside)
    real = getattr(OpenFolder, step)

    def late(folder: OpenFolder, *names: str) -> Any:
        swap(place)
        return real(folder, *names)

    monkeypatch.setattr(OpenFolder, step, late)
    path = "own/new" if call == "write_if_absent" else "own/small"
    WRITES[call](place.store, path)
    assert state(place.outside) == before
    assert (place.root / "moved").is_dir()


def test_a_link_that_is_put_there_before_a_folder_is_made_is_refused(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, real = state(place.outside), os.mkdir

    def late(name: str, **where: Any) -> None:
        swap(place)
        real(name, **where)

    monkeypatch.setattr(os, "mkdir", late)
    with pytest.raises(InvalidInputError, match="leaves the dataset"):
        place.store.write("own/new/x", b"1")
    assert state(place.outside) == before


def test_a_file_that_becomes_a_link_before_it_is_mapped_is_refused(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = local_files.pa.memory_map

    def late(path: str) -> Any:
        Path(path).unlink()
        Path(path).symlink_to(place.outside / "big")
        return real(path)

    monkeypatch.setattr(local_files.pa, "memory_map", late)
    with pytest.raises(InvalidInputError, match="leaves the dataset"):
        place.store.read("own/big")


def test_a_file_that_is_moved_away_while_it_is_opened_is_refused(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def moved(path: Any, *rest: Any, **where: Any) -> int:
        descriptor = real(path, *rest, **where)
        if str(path).endswith("own/small"):
            (place.root / "own" / "small").rename(place.outside / "moved")
        return descriptor

    monkeypatch.setattr(os, "open", moved)
    with pytest.raises(StorageError, match="while it was opened"):
        place.store.read("own/small")


def test_a_folder_that_is_replaced_while_a_file_is_deleted_in_it_is_an_error(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Boundary.open_folder

    def late(boundary: Boundary, folder: str, **options: Any) -> OpenFolder:
        opened = real(boundary, folder, **options)
        (place.root / "own").rename(place.root / "moved")
        (place.root / "own").mkdir()
        return opened

    monkeypatch.setattr(Boundary, "open_folder", late)
    with pytest.raises(StorageError, match="moved while it was used"):
        place.store.delete("own/small")
    assert (place.root / "moved" / "small").exists()


# --- where the system does not tell ---------------------------------------------------------------


def test_without_proc_the_path_must_lead_to_what_was_opened(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "_OPENED", "/nowhere/%d")
    (place.root / "same").symlink_to("own")
    for read in READS.values():
        read(place.store, "own/small")
        read(place.store, "own/big")
        read(place.store, "same/small")
        with pytest.raises(InvalidInputError, match="leaves the dataset"):
            read(place.store, "away/small")
    place.store.write("own/new", b"1")
    place.store.delete("own/new")
    with pytest.raises(InvalidInputError, match="nothing is deleted"):
        place.store.delete("same/small")
    with pytest.raises(InvalidInputError, match="leaves the dataset"):
        place.store.write("away/x", b"1")


def test_a_name_that_the_system_has_for_it_elsewhere_is_looked_up_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mount may be seen under two names."""
    real = os.readlink
    monkeypatch.setattr(os, "readlink", lambda path: real(path).replace("/root/", "/mnt/"))
    assert bytes(place.store.read("own/small")) == b"old"
    place.store.write("own/new", b"1")
    place.store.delete("own/new")


# --- errors ---------------------------------------------------------------------------------------


def test_what_is_not_there_is_reported_as_such(place: Place) -> None:
    for read in ("size", "read", "read_tail", "map"):
        with pytest.raises(ObjectNotFoundError):
            READS[read](place.store, "own/nothing")
        with pytest.raises(ObjectNotFoundError):
            READS[read](place.store, "nowhere/nothing")
    assert not place.store.exists("nowhere/nothing")
    assert place.store.list("nowhere") == []
    place.store.delete("nowhere/nothing")


def test_links_in_a_circle_are_an_error(place: Place) -> None:
    (place.root / "round").symlink_to("round")
    for call in ("size", "read", "read_tail"):
        with pytest.raises(StorageError, match="symbolic links"):
            READS[call](place.store, "round")
    with pytest.raises(LanceError):
        place.store.write("round/x", b"1")
    with pytest.raises(StorageError, match="symbolic links"):
        place.store.list_names("round")


def test_no_descriptor_stays_open(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def count() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = count()
    for path in ("own/small", "own/big", "away/small", "away/nothing", "own/nothing"):
        for name, call in {**READS, **WRITES}.items():
            if name in ("create", "delete"):
                continue
            try:
                call(place.store, path)
            except LanceError:
                continue
    upload = place.store.create("own/x")
    upload.abort()
    with monkeypatch.context() as patch, pytest.raises(StorageError, match="No space"):
        patch.setattr(OpenFolder, "create", _full)
        place.store.create("own/x")
    for name, call in LISTINGS.items():
        if name != "turn":
            call(place.store, "own")
    with turn(place.store, "own"):
        pass
    assert count() == before


def _full(*_: object) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_the_folders_that_are_remembered_are_bounded(place: Place) -> None:
    boundary = Boundary(str(place.root))
    for number in range(KNOWN_MAX):
        boundary._folders_inside.add(str(number))
    boundary.know_folder(f"{place.root}/own")
    assert boundary._folders_inside == {f"{place.root}/own"}


def test_a_root_without_links_is_not_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path.resolve() / "d.lance"
    (root / "a" / "b").mkdir(parents=True)
    looked: list[str] = []
    realpath = os.path.realpath

    def noted(path: str) -> str:
        looked.append(path)
        return realpath(path)

    monkeypatch.setattr(os.path, "realpath", noted)

    Boundary(str(root)).open_folder(f"{root}/a/b").close()
    assert looked == []

    link = tmp_path / "link.lance"
    link.symlink_to(root)
    Boundary(str(link)).open_folder(f"{link}/a/b").close()
    assert looked[0] == str(link)


def test_a_link_beside_the_root_does_not_make_its_name_the_root(tmp_path: Path) -> None:
    (tmp_path / "other" / "x").mkdir(parents=True)
    root = tmp_path / "d.lance"
    (root / "a").mkdir(parents=True)
    (root / "a" / "b").symlink_to(tmp_path / "other" / "x")
    (tmp_path / "d.lance.more").mkdir()
    (root / "a" / "c").symlink_to(tmp_path / "d.lance.more")
    boundary = Boundary(str(root))

    for name in ("b", "c"):
        with pytest.raises(InvalidInputError, match="symbolic link that leaves the dataset"):
            boundary.open_folder(f"{root}/a/{name}")


@pytest.mark.parametrize(("replacements", "is_read"), [(1, True), (50, True), (10**9, False)])
def test_a_file_that_is_replaced_while_it_is_opened_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replacements: int, is_read: bool
) -> None:
    """As on macOS, which has no /proc: the path must lead to the very file that was opened."""
    monkeypatch.setattr(links, "_OPENED", str(tmp_path / "no-proc-%d"))
    path, done = tmp_path / "x", 0
    path.write_bytes(b"0")
    opens = os.open

    def replacing(name: Any, *args: Any, **options: Any) -> int:
        nonlocal done
        descriptor = opens(name, *args, **options)
        if str(name) == str(path) and done < replacements:
            done += 1
            (tmp_path / "new").write_bytes(b"%d" % done)
            (tmp_path / "new").replace(path)
        return descriptor

    monkeypatch.setattr(os, "open", replacing)
    store = LocalStore(str(tmp_path))
    if is_read:
        assert bytes(store.read("x")) == b"%d" % replacements
    else:
        with pytest.raises(StorageError, match="while it was opened"):
            store.read("x")
