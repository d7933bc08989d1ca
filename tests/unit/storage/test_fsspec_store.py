"""Any fsspec file system: reads, uploads, errors without secrets, coalesced byte ranges."""

from __future__ import annotations

import pickle
import threading
import traceback
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import Any

import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_nb.errors import (
    CorruptFileError,
    InvalidInputError,
    MissingPackageError,
    NotSupportedError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
)
from lance_nb.storage import conditional_put
from lance_nb.storage.base import ByteRange, Store
from lance_nb.storage.conditional_put import GcsPut, outcome_by_class
from lance_nb.storage.fsspec_store import (
    DRIVERS,
    DriverErrors,
    FsspecObjectWriter,
    FsspecStore,
    coalesce,
    object_info,
    read_ranges,
)
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
    conditional_put._faults.clear()
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
    conditional_put._faults.clear()
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
    with pytest.raises(NotSupportedError, match=r"pip install .*\[s3\]'"):
        open_store("s3://bucket/x", {"key": CANARY, "driver": "fsspec"})


@pytest.mark.parametrize(
    ("scheme", "install"), [*DRIVERS.items(), ("hf", "huggingface_hub"), ("https", "aiohttp")]
)
def test_every_missing_driver_is_named_in_one_line(
    monkeypatch: pytest.MonkeyPatch, scheme: str, install: str
) -> None:
    def missing(*_: object, **__: object) -> None:
        raise ImportError("no driver")

    monkeypatch.setattr(fsspec.core, "url_to_fs", missing)
    with pytest.raises(MissingPackageError) as caught:
        open_store(f"{scheme}://place/x")
    assert str(caught.value) == (
        f"opening {scheme}:// needs {install}, which is not installed: pip install {install}"
    )


def test_a_driver_that_needs_other_options_is_an_input_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise TypeError("missing 1 required positional argument: 'url'")

    monkeypatch.setattr(fsspec.core, "url_to_fs", refuse)
    with pytest.raises(InvalidInputError, match=r"driver of jlab:// .* 'url'"):
        open_store("jlab://place/x")


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


MOMENT = datetime(2024, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("entry", "modified", "e_tag"),
    [
        ({"LastModified": MOMENT, "ETag": '"a"'}, MOMENT, '"a"'),
        ({"mtime": MOMENT.timestamp(), "etag": "b"}, MOMENT, "b"),
        ({"created": MOMENT.replace(tzinfo=None)}, MOMENT, None),
        ({"updated": "yesterday", "e_tag": 5}, None, None),
        ({}, None, None),
    ],
)
def test_times_and_tags_are_found(entry: dict[str, Any], modified: Any, e_tag: Any) -> None:
    info = object_info({"size": 7, **entry}, "x")
    assert (info.name, info.size_bytes, info.modified, info.e_tag) == ("x", 7, modified, e_tag)


def test_a_size_that_is_not_reported_is_none() -> None:
    assert object_info({"size": None}, "x").size_bytes == 0


class _Upload(BytesIO):
    """A file of an object store: the object appears when it is closed."""

    forced = False

    def __init__(self, system: _System, path: str) -> None:
        super().__init__()
        self.system, self.path = system, path
        self.cancelled = False

    def close(self) -> None:
        if not self.cancelled:
            self.system.objects[self.path] = self.getvalue()

    def discard(self) -> None:
        self.cancelled = True

    closed: Any = False


class _System:
    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.uploads: list[_Upload] = []

    def open(self, path: str, mode: str) -> _Upload:
        assert mode == "wb"
        self.uploads.append(_Upload(self, path))
        return self.uploads[-1]

    def rm_file(self, path: str) -> None:
        del self.objects[path]


def test_the_object_appears_at_the_end():
    system = _System()
    upload = FsspecObjectWriter(system, "x", nullcontext())
    upload.write([b"1", b"2"])
    assert system.objects == {}
    upload.finish()
    assert system.objects == {"x": b"12"}


def test_an_aborted_upload_is_cancelled():
    system = _System()
    upload = FsspecObjectWriter(system, "x", nullcontext())
    upload.write([b"1"])
    upload.abort()
    assert system.objects == {}
    assert system.uploads[0].cancelled


def test_a_failing_part_cancels_the_upload(monkeypatch: pytest.MonkeyPatch):
    system = _System()
    upload = FsspecObjectWriter(system, "x", nullcontext())

    def fail(_: object) -> int:
        raise StorageError("x", "the network is gone")

    monkeypatch.setattr(system.uploads[0], "write", fail)
    with pytest.raises(StorageError):
        upload.write([b"1"])
    assert system.uploads[0].cancelled


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (FileNotFoundError("x"), ObjectNotFoundError),
        (NotADirectoryError("x"), ObjectNotFoundError),
        (PermissionError("x"), StorageError),
        (RuntimeError(""), StorageError),
        (StorageError("x", "told already"), StorageError),
        (KeyError("a mistake of ours"), KeyError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_each_error_has_one_of_ours(raised: BaseException, expected: type) -> None:
    with pytest.raises(expected), DriverErrors("s3://b/x", []):
        raise raised


def test_a_secret_is_reported_neither_by_the_error_nor_by_its_cause() -> None:
    with pytest.raises(StorageError) as caught, DriverErrors("s3://b/x", ["TOPSECRET"]):
        raise OSError("no access with TOPSECRET")
    assert "TOPSECRET" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "text", ["no access with TOPSECRET", "no https://host/x?X-Amz-Signature=TOPSECRET"]
)
def test_an_error_whose_own_cause_holds_a_secret_is_no_cause(text: str) -> None:
    error = OSError("no access")
    error.__cause__ = RuntimeError(text)
    with pytest.raises(StorageError) as caught, DriverErrors("s3://b/x", ["with TOPSECRET"]):
        raise error
    assert caught.value.__cause__ is None
    with pytest.raises(StorageError) as caught, DriverErrors("s3://b/x", []):
        raise OSError("no access")
    assert isinstance(caught.value.__cause__, OSError)


def test_creations_are_judged_by_their_strategy() -> None:
    guard = DriverErrors("gs://b/x", [], GcsPut())
    with pytest.raises(ObjectExistsError), guard:
        raise FileExistsError("b/x")
    with pytest.raises(StorageError) as caught, guard:
        raise TimeoutError("late")
    assert (caught.value.outcome, guard.busy) == ("unknown", False)


@pytest.mark.parametrize(
    ("raised", "outcome"),
    [(TimeoutError("late"), "unknown"), (PermissionError("no"), "failed")],
    ids=["timeout", "refused"],
)
def test_a_change_that_was_not_refused_may_have_been_done(raised: Exception, outcome: str) -> None:
    with (
        pytest.raises(StorageError) as caught,
        DriverErrors("s3://b/x", [], changes=outcome_by_class),
    ):
        raise raised
    assert caught.value.outcome == outcome
    with pytest.raises(StorageError) as read, DriverErrors("s3://b/x", []):
        raise raised
    assert read.value.outcome == "failed"


DATA = bytes(range(256)) * 20
RANGES = st.lists(
    st.tuples(st.integers(0, len(DATA)), st.integers(0, 300)).map(
        lambda pair: ByteRange(pair[0], min(pair[0] + pair[1], len(DATA)))
    ),
    max_size=40,
)


@given(RANGES, st.integers(0, 200), st.integers(1, 1000))
def test_every_range_lies_in_its_span_and_spans_are_apart(wanted, gap, largest):
    plan = coalesce(wanted, gap, largest)
    for one, at in zip(wanted, plan.span_of, strict=True):
        if one.size_bytes:
            span = plan.spans[at]
            assert span.start <= one.start
            assert one.stop <= span.stop
        else:
            assert at == -1
    for before, after in zip(plan.spans, plan.spans[1:], strict=False):
        assert before.start < after.start
    for span in plan.spans:
        assert span.size_bytes <= max(largest, *(one.size_bytes for one in wanted))


@given(RANGES)
def test_slices_equal_direct_reads_in_the_order_asked_for(wanted):
    found = read_ranges("x", wanted, lambda span: DATA[span.start : span.stop])
    assert [bytes(one) for one in found] == [DATA[one.start : one.stop] for one in wanted]


def test_near_ranges_share_a_request_and_far_ones_do_not():
    plan = coalesce([ByteRange(20, 30), ByteRange(10_000_000, 10_000_010), ByteRange(0, 10)])
    assert plan.spans == (ByteRange(0, 30), ByteRange(10_000_000, 10_000_010))
    assert plan.span_of == (0, 1, 0)


def test_a_short_answer_is_damage():
    with pytest.raises(CorruptFileError, match="10 bytes"):
        read_ranges("x", [ByteRange(0, 10)], lambda _: b"123")


def test_the_first_error_is_raised():
    def fetch(span: ByteRange) -> bytes:
        raise StorageError("x", f"no bytes at {span.start}")

    wanted = [ByteRange(start, start + 1) for start in range(0, 10_000_000, 1_000_000)]
    with pytest.raises(StorageError, match="no bytes at 0"):
        read_ranges("x", wanted, fetch)
