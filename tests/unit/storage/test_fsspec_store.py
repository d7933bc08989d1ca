"""Any fsspec file system: reading like the model, secrets kept, missing drivers explained."""

from __future__ import annotations

import pickle
import threading
import traceback
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType

import fsspec
import pytest

from lance_nb.errors import (
    InvalidInputError,
    NotSupportedError,
    ObjectNotFoundError,
    StorageError,
)
from lance_nb.storage import probe
from lance_nb.storage.base import Store
from lance_nb.storage.fsspec_store import FsspecStore
from lance_nb.storage.registry import open_store
from tests.conformance.store_tests import StoreCreatingTests

CANARY = "TOPSECRET-canary-42"


class TestMemoryFileSystem(StoreCreatingTests):
    @pytest.fixture
    def store(self, tmp_path: Path) -> FsspecStore:
        filesystem = fsspec.filesystem("memory", skip_instance_cache=True)
        filesystem.store.clear()
        filesystem.pseudo_dirs[:] = [""]
        return FsspecStore.over(filesystem, "/bucket/data", "memory-fs://bucket/data")


class TestLocalFileSystem(StoreCreatingTests):
    @pytest.fixture
    def store(self, tmp_path: Path) -> FsspecStore:
        filesystem = fsspec.filesystem("file", auto_mkdir=True, skip_instance_cache=True)
        return FsspecStore.over(filesystem, str(tmp_path), f"file-fs://{tmp_path}")


def test_commits_are_refused_where_nothing_creates_exclusively(tmp_path: Path):
    store = FsspecStore.over(fsspec.filesystem("file"), str(tmp_path), "sftp://host")
    with pytest.raises(NotSupportedError, match=r"no exclusive create.*manifest_store"):
        store.write_if_absent("_versions/1.manifest", b"x")


class _Refusing:
    """An S3 driver that answers "busy" some times, else as told."""

    def __init__(self, answers: list[Exception]) -> None:
        self.answers = answers
        self.store: dict[str, bytes] = {}

    def pipe_file(self, full: str, data: bytes, **options: object) -> None:
        if ".probe-" not in full and self.answers:
            raise self.answers.pop(0)
        if full in self.store and options.get("mode") == "create":
            raise FileExistsError(full)
        self.store[full] = data

    def cat_file(self, full: str) -> bytes:
        return self.store[full]

    def rm_file(self, full: str) -> None:
        del self.store[full]


class _BusyError(OSError):
    response = MappingProxyType(
        {
            "Error": {"Code": "ConditionalRequestConflict"},
            "ResponseMetadata": {"HTTPStatusCode": 409},
        }
    )


def test_a_store_that_is_busy_with_the_object_is_asked_again(monkeypatch: pytest.MonkeyPatch):
    probe.forget()
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    driver = _Refusing([_BusyError("409"), _BusyError("409")])
    store = FsspecStore.over(driver, "bucket/busy", "s3://bucket/busy")
    store.write_if_absent("_versions/1.manifest", b"x")
    assert driver.store == {"bucket/busy/_versions/1.manifest": b"x"}
    assert waits == [0.05, 0.2]
    driver.answers = [_BusyError("409")] * 9
    with pytest.raises(StorageError) as caught:
        store.write_if_absent("_versions/2.manifest", b"x")
    assert caught.value.outcome == "unknown"
    assert len(waits) == 5


@pytest.mark.parametrize("scheme", ["s3", "sftp"])
def test_a_change_whose_reply_was_lost_is_of_unknown_outcome(scheme: str):
    driver = _Refusing([ConnectionResetError("lost"), PermissionError("refused")])
    store = FsspecStore.over(driver, "bucket/lost", f"{scheme}://bucket/lost")
    for outcome in ("unknown", "failed"):
        with pytest.raises(StorageError) as caught:
            store.write("_refs/tags/v1.json", b"x")
        assert caught.value.outcome == outcome

    def lost(_full: str) -> None:
        raise ConnectionResetError("lost")

    driver.rm_file = lost
    with pytest.raises(StorageError) as caught:
        store.delete("_refs/tags/v1.json")
    assert caught.value.outcome == "unknown"


def test_secrets_stay_out_of_errors_of_commits(monkeypatch: pytest.MonkeyPatch):
    probe.forget()
    store = _failing_store(monkeypatch)
    with pytest.raises(StorageError) as caught:
        store.write_if_absent("_versions/1.manifest", b"x")
    assert CANARY not in f"{caught.value} {caught.value!r} {caught.value.__cause__!r}"


def test_an_unknown_scheme_is_an_input_error():
    with pytest.raises(InvalidInputError, match="nosuch://"):
        open_store("nosuch://bucket/x")


def test_a_missing_driver_names_the_pip_line(monkeypatch: pytest.MonkeyPatch):
    def missing(*_: object, **__: object) -> None:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(fsspec.core, "url_to_fs", missing)
    with pytest.raises(NotSupportedError, match=r"pip install 'lance-nb\[s3\]'"):
        open_store("s3://bucket/x", {"key": CANARY})


class _Failing:
    """A driver that puts its credentials into every message."""

    async_impl = False

    def info(self, path: str, *_: object, **__: object) -> None:
        raise RuntimeError(f"403 for key {CANARY} at {path}")

    cat_file = isfile = ls = find = pipe_file = rm_file = info

    def invalidate_cache(self, path: str) -> None:
        return None


def _failing_store(monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(fsspec.core, "url_to_fs", lambda *_, **__: (_Failing(), "bucket/x"))
    options = {"aws_secret_access_key": CANARY, "client_kwargs": {"nested": CANARY + "2"}}
    return open_store("s3://user:" + CANARY + "@bucket/x", options)


def test_secrets_appear_in_no_text(monkeypatch: pytest.MonkeyPatch):
    store = _failing_store(monkeypatch)
    texts = [store.uri, repr(store), str(store), repr(store.child("tree/a")), store.child("a").uri]
    for act in (store.read, store.size, store.exists, store.list, store.list_recursive):
        with pytest.raises(StorageError) as caught:
            act("some/path")
        texts += [str(caught.value), repr(caught.value)]
        texts.append("".join(traceback.format_exception(caught.value)))
        texts.append(repr(pickle.dumps(caught.value)))
    assert not [text for text in texts if CANARY in text]
    assert "403 for key ***" in texts[5]


def test_a_store_with_secrets_is_not_pickled(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(NotSupportedError):
        pickle.dumps(_failing_store(monkeypatch))


def test_mistakes_of_our_own_are_not_dressed_up_as_storage_errors(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(_Failing, "info", lambda *_: {}["nothing"])
    with pytest.raises(KeyError):
        _failing_store(monkeypatch).size("x")


@pytest.fixture
def web_server(tmp_path: Path):
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_dataset_is_read_from_a_web_server(web_server: str, tmp_path: Path):
    pytest.importorskip("aiohttp", reason="the http driver of fsspec needs aiohttp")
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "x").write_bytes(b"0123456789")
    store = open_store(f"{web_server}/t")
    assert bytes(store.read("x")) == b"0123456789"
    assert store.list_names("") == ["x"]
    with pytest.raises(ObjectNotFoundError):
        store.read("y")
