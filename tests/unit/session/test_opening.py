from __future__ import annotations

import os
import uuid
from datetime import date, datetime, timedelta

import pytest

import lance_nb
from lance_nb.errors import (
    DatasetNotFoundError,
    InvalidInputError,
    InvalidRefError,
    RefNotFoundError,
    StorageError,
    VersionNotFoundError,
)
from lance_nb.storage.registry import open_store
from tests.golden.copies import NAMES, copy_to_folder, copy_to_memory, copy_to_store, expected


@pytest.mark.parametrize("name", NAMES)
def test_the_latest_version_is_opened(stores, name):
    dataset = lance_nb.dataset(stores[name].uri)
    assert dataset.version == dataset.latest_version
    assert dataset.to_table().num_rows == expected(name, dataset.version).num_rows


def spellings(folder):
    return {
        "text": str(folder),
        "path": folder,
        "slash": f"{folder}/",
        "slashes": f"{folder.parent}//{folder.name}//",
        "file URI": f"file://{folder}",
        "file URI with host": f"file://localhost{folder}",
        "file-object-store": f"file-object-store://{folder}",
        "dots": f"{folder.parent}/./x/../{folder.name}",
    }


@pytest.mark.parametrize("spelling", list(spellings(copy_to_folder.__globals__["GOLDEN"])))
def test_a_local_dataset_is_found_however_it_is_spelled(folder, spelling):
    dataset = lance_nb.dataset(spellings(folder)[spelling])
    assert dataset.uri == str(folder)
    assert dataset.name == "history.lance"
    assert (
        dataset.checkout_version(("side", None)).to_table().equals(expected("history", 3, "side"))
    )


def test_a_relative_path_starts_at_the_working_folder(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    dataset = lance_nb.dataset(folder.name)
    monkeypatch.chdir("/")
    assert dataset.to_table().equals(expected("history", 14))


def test_a_home_folder_is_expanded(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder.parent))
    assert lance_nb.dataset("~/history.lance").version == 14


def test_a_root_that_is_a_symbolic_link_is_followed_with_its_branches(folder, tmp_path):
    link = tmp_path / "link.lance"
    link.symlink_to(folder)
    dataset = lance_nb.dataset(link, ("team/deep", None))
    assert dataset.to_table().equals(expected("history", 4, "team/deep"))


def test_names_with_spaces_and_percents_are_names(tmp_path):
    root = copy_to_folder("empty", tmp_path).rename(tmp_path / "a b%20c#d.lance")
    assert lance_nb.dataset(root).count_rows() == 0
    assert lance_nb.dataset(f"file://{tmp_path}/a b%2520c#d.lance").count_rows() == 0


@pytest.mark.parametrize("name", ["history", "types_2_2", "v1_names"])
def test_fsspec_stores_give_the_same_rows(name):
    pytest.importorskip("fsspec")
    from lance_nb.storage.fsspec_store import FsspecStore
    from tests.golden.opening import open_over

    place = f"memory://{uuid.uuid4().hex}/{name}.lance"
    store = FsspecStore(place, {}, "")
    source = copy_to_memory(name)
    for info in source.list_recursive(""):
        store.write(info.name, source.read(info.name))
    dataset = open_over(store)
    assert store.map("data/x") is None
    assert dataset.to_table().equals(expected(name, dataset.version).select(dataset.schema.names))
    assert [one["version"] for one in dataset.versions()] == dataset.version_numbers()


@pytest.mark.parametrize(
    ("ref", "branch", "version"),
    [(None, None, 14), (1, None, 1), (14, None, 14), ("first", None, 1), ("on-side", "side", 3),
     (("side", None), "side", 3), (("side", 2), "side", 2), ((None, 5), None, 5), (("main", None),
      None, 14),
     (("team/deep", 3), "team/deep", 3)],
)  # fmt: skip
def test_a_version_is_chosen_by_every_form_of_ref(at, ref, branch, version):
    dataset = at(ref)
    assert (dataset.branch, dataset.version) == (branch, version)
    assert dataset.to_table().equals(expected("history", version, branch))


@pytest.mark.parametrize("version", [15, 99, 2**63, 2**64 - 1])
def test_a_version_that_does_not_exist_is_refused(at, version):
    with pytest.raises(VersionNotFoundError, match="1-14"):
        at(version)


def test_an_unknown_tag_or_branch_is_refused(at):
    with pytest.raises(
        RefNotFoundError, match="tag or branch 'nope' does not exist; names that exist: "
    ):
        at("nope")
    with pytest.raises(RefNotFoundError, match="branch 'nope'"):
        at(("nope", None))
    with pytest.raises(InvalidRefError):
        at(0)


def test_asof_finds_the_version_of_that_time(at, stores):
    moments = {one.version: one.timestamp for one in at().history()}
    uri = stores["history"].uri
    later = moments[5] + timedelta(microseconds=1)
    assert lance_nb.dataset(uri, asof=later).version == 5
    assert lance_nb.dataset(uri, asof=later.isoformat()).version == 5
    assert lance_nb.dataset(uri, asof=later.astimezone().replace(tzinfo=None)).version == 5
    assert lance_nb.dataset(uri, asof=date(2100, 1, 1)).version == 14
    assert lance_nb.dataset(uri, 2, asof=later).version == 2
    with pytest.raises(VersionNotFoundError, match="as of 1999"):
        lance_nb.dataset(uri, asof="1999-01-01")


@pytest.mark.parametrize("asof", ["yesterday", "", 17, 1.5, []])
def test_what_is_no_time_is_refused(stores, asof):
    with pytest.raises(InvalidInputError):
        lance_nb.dataset(stores["history"].uri, asof=asof)


def test_asof_takes_naive_times_as_local(at, stores):
    moment = at().version_info(5).timestamp
    naive = datetime.fromtimestamp(moment.timestamp() + 1e-3)  # noqa: DTZ006
    assert lance_nb.dataset(stores["history"].uri, asof=naive).version >= 5


@pytest.mark.parametrize("kind", ["missing", "empty", "file", "parquet folder", "inside"])
def test_what_is_no_dataset_is_refused(tmp_path, folder, kind):
    path = tmp_path / "x.lance"
    if kind == "file":
        path.write_text("text")
    elif kind in ("empty", "parquet folder"):
        path.mkdir()
    if kind == "parquet folder":
        (path / "part.parquet").write_text("x")
    if kind == "inside":
        path = folder / "data"
    for ref in (None, 1, ("main", 1)):
        with pytest.raises(DatasetNotFoundError) as caught:
            lance_nb.dataset(path, ref)
        assert repr(str(path)) in str(caught.value)
        assert "_versions" in str(caught.value)
    with pytest.raises(ValueError, match="no Lance dataset"):
        lance_nb.dataset(path)


def test_denied_access_is_a_storage_error(folder, monkeypatch):
    def deny(path, *rest):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", deny)
    with pytest.raises(StorageError, match="Permission denied"):
        lance_nb.dataset(folder)
    monkeypatch.undo()
    monkeypatch.setattr(os, "open", deny)
    with pytest.raises(StorageError, match="Permission denied"):
        lance_nb.dataset(folder)


@pytest.mark.parametrize("uri", ["", "  ", "a\0b", None, 7, b"x", ["x"], "file://host/x"])
def test_what_is_no_uri_is_refused(uri):
    with pytest.raises(InvalidInputError):
        lance_nb.dataset(uri)


def test_a_scheme_that_needs_more_is_refused_with_a_reason():
    with pytest.raises(InvalidInputError, match="ddbTableName"):
        lance_nb.dataset("s3+ddb://bucket/x")
    with pytest.raises(InvalidInputError, match="nosuch"):
        lance_nb.dataset("nosuch://x/y")


def test_a_dataset_that_is_copied_within_memory_reads_the_same(stores):
    store = copy_to_store("history", f"memory://{uuid.uuid4().hex}/a/b c/d.lance")
    dataset = lance_nb.dataset(store.uri, ("team/deep", None))
    assert dataset.to_table().equals(expected("history", 4, "team/deep"))
    assert open_store(store.uri).uri == dataset.uri
