from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

import pytest

from lance_nb.errors import (
    CorruptFileError,
    DatasetNotFoundError,
    InvalidInputError,
    StorageError,
    VersionNotFoundError,
)
from lance_nb.format.layout import ManifestName, NamingScheme
from lance_nb.format.manifest import Section
from lance_nb.storage.registry import open_store
from lance_nb.table.versions import (
    describe_versions,
    find_latest,
    load_latest,
    load_manifest,
    load_version,
    read_section,
    version_asof,
    version_names,
)
from tests.golden.copies import copy_to_folder, copy_to_memory
from tests.golden.opening import WatchedStore


def names(*numbers):
    return [ManifestName(number, NamingScheme.V2) for number in numbers]


def test_versions_are_listed_oldest_first(history):
    assert [name.version for name in version_names(history)] == list(range(1, 15))


def test_listing_versions_reads_no_manifest(history):
    store = WatchedStore(history)
    version_names(store)
    assert find_latest(store).version == 14
    assert not store.reads


def test_v1_names_sort_by_number_and_not_by_text(stores):
    store = stores["v1_names"]
    assert [name.version for name in version_names(store)] == list(range(1, 13))
    assert find_latest(store) == ManifestName(12, NamingScheme.V1)
    assert load_latest(store).version == 12
    assert load_version(store, 9).version == 9


def test_a_version_is_loaded_with_one_read(history):
    store = WatchedStore(history)
    assert load_version(store, 7).version == 7
    assert sum(store.reads.values()) == 1
    assert not store.listed


def test_a_manifest_larger_than_one_tail_is_read_in_two(history, monkeypatch):
    monkeypatch.setattr("lance_nb.table.versions.TAIL_BYTES", 16)
    store = WatchedStore(history)
    assert load_version(store, 7).version == 7
    assert sum(store.reads.values()) == 2


def test_a_version_that_does_not_exist_is_refused_with_those_that_do(history):
    with pytest.raises(VersionNotFoundError) as caught:
        load_version(history, 15)
    assert str(caught.value) == f"version 15 of {history.uri!r} was not found; available: 1-14"
    assert (caught.value.version, caught.value.available) == (15, "1-14")


def test_the_error_for_a_missing_version_shows_the_gaps(history, tmp_path):
    root = copy_to_folder("history", tmp_path)
    for version in (1, 4, 5, 9):
        (root / "_versions" / f"{2**64 - 1 - version:020d}.manifest").unlink()
    with pytest.raises(VersionNotFoundError, match="available: 2-3, 6-8, 10-14"):
        load_version(open_store(root), 4)


@pytest.mark.parametrize("version", [2**64, -1])
def test_a_number_that_cannot_be_a_version_is_refused(history, version):
    with pytest.raises(InvalidInputError):
        load_version(history, version)


@pytest.mark.parametrize(
    ("numbers", "text"),
    [((), ""), ((3,), "3"), ((1, 2, 3), "1-3"), ((1, 3), "1, 3"), ((1, 2, 5, 6, 9), "1-2, 5-6, 9"),
     ((1, 3, 5, 7, 9, 11), "1, 3, 5, 7, 9, 11"), (range(1, 21, 2), "1, 3, 5, ..., 15, 17, 19")],
)  # fmt: skip
def test_versions_are_described_in_short(numbers, text):
    assert describe_versions(names(*numbers)) == text


@pytest.mark.parametrize("make", ["missing", "empty", "file", "file inside", "other files"])
def test_what_is_no_dataset_is_refused_as_such(tmp_path, make):
    path = tmp_path / "x.lance"
    if make == "file":
        path.write_text("no dataset")
    elif make != "missing":
        path.mkdir()
    if make == "other files":
        (path / "part-0.parquet").write_text("x")
    if make == "file inside":
        (path / "_versions").write_text("x")
    for read in (find_latest, version_names, load_latest, lambda store: load_version(store, 1)):
        with pytest.raises(DatasetNotFoundError) as caught:
            read(open_store(path))
        assert str(path) in str(caught.value)
        assert isinstance(caught.value, (FileNotFoundError, ValueError))


def test_an_empty_memory_store_is_no_dataset():
    with pytest.raises(DatasetNotFoundError, match="memory://nothing-here"):
        load_latest(open_store("memory://nothing-here"))


def test_a_section_is_read_from_the_file_where_it_was_not_read_with_the_manifest():
    store = open_store("memory://sections")
    store.write_if_absent("_versions/1.manifest", b"before\x03\0\0\0abcbehind")
    manifest = f"{store.uri}/_versions/1.manifest"

    assert bytes(read_section(store, manifest, Section(6, None))) == b"abc"
    assert read_section(store, manifest, Section(6, b"known")) == b"known"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every folder")
def test_a_folder_without_permission_is_a_storage_error(tmp_path):
    root = copy_to_folder("empty", tmp_path)
    (root / "_versions").chmod(0)
    with pytest.raises(StorageError, match="ermission"):
        load_latest(open_store(root))
    (root / "_versions").chmod(0o700)


def test_denied_access_is_a_storage_error_and_not_an_absent_dataset(tmp_path, monkeypatch):
    root = copy_to_folder("empty", tmp_path)

    def deny(path):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", deny)
    with pytest.raises(StorageError, match="Permission denied"):
        load_latest(open_store(root))


def test_the_newest_manifest_when_damaged_points_to_the_version_before():
    store = copy_to_memory("history")
    store.write(find_latest(store).path, b"")
    with pytest.raises(CorruptFileError) as caught:
        load_latest(store)
    assert "version=13" in caught.value.__notes__[0]
    assert "%lance doctor URI --repair" in caught.value.__notes__[0]


def test_the_only_manifest_when_damaged_points_to_nothing():
    store = copy_to_memory("empty")
    store.write(find_latest(store).path, b"")
    with pytest.raises(CorruptFileError) as caught:
        load_latest(store)
    assert not hasattr(caught.value, "__notes__")


def test_asof_finds_the_newest_version_not_after_the_moment(history):
    moments = {one.version: load_manifest(history, one).timestamp for one in version_names(history)}
    assert version_asof(history, moments[7]).version == 7
    assert version_asof(history, moments[7] - timedelta(microseconds=1)).version == 6
    assert version_asof(history, moments[7] + timedelta(microseconds=1)).version == 7
    assert version_asof(history, datetime.max.replace(tzinfo=UTC)).version == 14


def test_asof_before_the_first_version_is_refused(history):
    with pytest.raises(VersionNotFoundError, match="as of 2000-01-01") as caught:
        version_asof(history, datetime(2000, 1, 1, tzinfo=UTC))
    assert "1-14" in str(caught.value)


def test_a_small_manifest_is_known_by_its_bytes_and_still_read(tmp_path):
    root = copy_to_folder("history", tmp_path)
    first, again = load_latest(open_store(root)), load_latest(open_store(root))
    assert first is again

    path = next((root / "_versions").glob("*.manifest"))
    newest = min((root / "_versions").glob("*.manifest"))
    newest.write_bytes(path.read_bytes()[:-4] + b"LANX")
    with pytest.raises(CorruptFileError):
        load_latest(open_store(root))
