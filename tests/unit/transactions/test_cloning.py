from __future__ import annotations

import uuid

import pytest

from lance_nb.errors import (
    DatasetAlreadyExistsError,
    InvalidInputError,
    StorageError,
    VersionNotFoundError,
)
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.storage.memory import MemoryStore
from lance_nb.table.versions import load_latest
from lance_nb.transactions import cloning
from lance_nb.transactions.cloning import deep_clone, shallow_clone
from lance_nb.transactions.commit_options import CommitPlace
from lance_nb.transactions.operations.append import Append
from tests.support.committing import Table, file_names
from tests.support.faulty_store import Fault, FaultyStore, on

DATA = bytes(range(256)) * 10


def _source() -> Table:
    """A dataset of two versions whose data files are there, one with a blob file beside it."""
    table = Table()
    first = table.create()
    second = table.append(1, "blobs")
    for name in {*file_names(first), *file_names(second)}:
        table.inner.write(f"data/{name}", DATA)
    table.inner.write("data/blobs/0101.blob", b"blob")
    table.inner.write("data/unrelated.lance", b"no")
    table.inner.write("data/unrelated/1.blob", b"no")
    return table


def _target() -> CommitPlace:
    return CommitPlace.of(MemoryStore(uuid.uuid4().hex))


def test_a_shallow_clone_refers_to_its_source():
    source, target = _source(), _target()
    made = shallow_clone(source.place, 2, target, source.options())
    found = load_latest(target.root)
    assert made.manifest == found
    assert (found.version, found.branch) == (2, None)
    assert [(one.id, one.path) for one in found.base_paths] == [(0, source.inner.uri)]
    assert {file.base_id for one in found.fragments for file in one.files} == {0}
    assert target.root.list_names("data") == []


def test_a_deep_clone_has_every_file_it_needs_and_no_other(monkeypatch):
    monkeypatch.setattr(cloning, "PIECE_BYTES", 1000)
    source, target = _source(), _target()
    seen = []
    made = deep_clone(source.place, 2, target, source.options(), seen.append)
    found = load_latest(target.root)
    assert made.manifest == found
    assert found.base_paths == ()
    assert {file.base_id for one in found.fragments for file in one.files} == {None}
    names = {one.name for one in target.root.list_recursive("data")}
    assert names == {*file_names(made), "blobs/0101.blob"}
    assert bytes(target.root.read("data/blobs.lance")) == DATA
    assert (seen[-1].num_files, seen[-1].num_files_copied) == (3, 3)
    assert seen[-1].bytes_copied == 2 * len(DATA) + 4


def test_a_deep_clone_of_a_shallow_clone_fetches_the_files_from_where_they_are():
    source, middle, target = _source(), _target(), _target()
    shallow_clone(source.place, 2, middle, source.options())
    with pytest.raises(InvalidInputError, match="allow_bases"):
        deep_clone(middle, 2, target, source.options())
    allowed = CommitPlace.of(middle.root, allow_bases=(source.inner.uri,))
    deep_clone(allowed, 2, target, source.options())
    assert load_latest(target.root).base_paths == ()
    assert bytes(target.root.read("data/blobs.lance")) == DATA


@pytest.mark.parametrize("clone", [shallow_clone, deep_clone])
def test_a_dataset_that_is_there_is_not_overwritten(clone):
    source, target = _source(), _source()
    before = {one.name: one.size_bytes for one in target.inner.list_recursive("")}
    with pytest.raises(DatasetAlreadyExistsError):
        clone(source.place, 1, target.sound, source.options())
    assert {one.name: one.size_bytes for one in target.inner.list_recursive("")} == before


@pytest.mark.parametrize("clone", [shallow_clone, deep_clone])
def test_a_version_that_is_not_there_is_told(clone):
    source, target = _source(), _target()
    with pytest.raises(VersionNotFoundError):
        clone(source.place, 9, target, source.options())
    assert target.root.list_recursive("") == []


def test_a_deep_clone_that_failed_is_no_dataset_and_can_be_repeated():
    source = _source()
    inner = MemoryStore(uuid.uuid4().hex)
    failing = CommitPlace.of(FaultyStore(inner, on("create", "blobs", Fault.NO_SPACE)))
    with pytest.raises(StorageError):
        deep_clone(source.place, 2, failing, source.options())
    assert inner.list_names("_versions") == []
    assert deep_clone(source.place, 2, failing, source.options()).version == 2


def test_a_file_that_two_fragments_share_is_copied_once():
    source, target = _source(), _target()
    shared = Fragment(0, (DataFile("blobs.lance", (0, 1), (0, 1), 2, 2, 100),), 10)
    source.commit(source.transaction(2, Append((shared,))))
    seen = []
    deep_clone(source.place, 3, target, source.options(), seen.append)
    assert len(seen) == 3


def test_writing_on_a_clone_goes_on_behind_the_number_of_its_source():
    source, target = _source(), _target()
    shallow_clone(source.place, 2, target, source.options())
    clone = Table(inner=target.root)
    made = clone.commit(clone.appending(2, "new"))
    assert made.version == 3
    assert load_latest(source.inner).version == 2
