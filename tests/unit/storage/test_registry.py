"""From a URI to a store."""

from __future__ import annotations

from pathlib import Path

import pytest

from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.storage.local import LocalStore
from lance_nb.storage.memory import MemoryStore
from lance_nb.storage.registry import STORES, open_store, split_uri


@pytest.mark.parametrize("name", ["plain", "with space", "naïve-データ", "per%20cent", "a#b?c"])
def test_local_spellings_open_the_same_folder(name: str, tmp_path: Path):
    folder = tmp_path / name
    folder.mkdir()
    (folder / "x").write_bytes(b"1")
    for uri in (
        str(folder),
        folder,
        folder.as_uri(),
        f"{folder}/",
        folder.as_uri().upper()[:4] + folder.as_uri()[4:],
    ):
        store = open_store(uri)
        assert isinstance(store, LocalStore)
        assert store.uri == str(folder)
        assert bytes(store.read("x")) == b"1"


def test_relative_paths_and_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert open_store("a/b").uri == str(tmp_path / "a" / "b")
    assert open_store("~/a").uri == str(tmp_path / "a")
    assert open_store("file://localhost/tmp/x").uri == "/tmp/x"


def test_a_name_that_only_looks_like_a_scheme_is_a_path(tmp_path: Path):
    assert split_uri("a:b/c")[0] == "file"
    assert split_uri(str(tmp_path / "s3:" / "x"))[0] == "file"


def test_memory_and_remote_schemes():
    assert isinstance(open_store("memory://a/b"), MemoryStore)
    assert split_uri("S3://bucket/a b/c/") == ("s3", "s3://bucket/a b/c")
    for scheme in ("s3", "gs", "az", "abfs", "https", "hf"):
        _target, package, install = STORES[scheme]
        assert package
        assert install


@pytest.mark.parametrize("uri", ["", "  ", "a\0b", "file://host/share", 7, None, b"/tmp/x"])
def test_what_is_no_uri_is_refused(uri):
    with pytest.raises(InvalidInputError):
        open_store(uri)


def test_an_external_manifest_store_is_refused_with_advice():
    with pytest.raises(NotSupportedError, match="s3://"):
        open_store("s3+ddb://bucket/x?ddbTableName=t")
