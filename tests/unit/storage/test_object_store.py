"""Object stores through obstore: the store itself, the choice of the driver, forks, errors."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
import traceback
from typing import Any

import fsspec
import obstore
import pytest
from obstore.store import MemoryStore

from lance_nb.errors import (
    InvalidInputError,
    MissingPackageError,
    NotSupportedError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
)
from lance_nb.storage import conditional_put, object_store
from lance_nb.storage.base import ByteRange, Store
from lance_nb.storage.conditional_put import ObjectStorePut, Outcome, object_store_text
from lance_nb.storage.fsspec_store import FsspecStore
from lance_nb.storage.object_store import PART_BYTES, ObjectStore
from lance_nb.storage.registry import open_store
from tests.conformance.store_tests import StoreTests

CANARY = "TOPSECRET-canary-42"
S3 = {"key": "k" * 20, "secret": CANARY, "region": "us-east-1"}


@pytest.fixture(autouse=True)
def _forget_probes() -> None:
    conditional_put._faults.clear()


class TestMemory(StoreTests):
    @pytest.fixture
    def store(self) -> Store:
        return ObjectStore.over(MemoryStore(), "bucket/data", "s3://bucket/data")


class TestWithoutRangesFromTheEnd(StoreTests):
    """Azure knows none, so the size is asked for first."""

    @pytest.fixture
    def store(self) -> Store:
        store = ObjectStore.over(MemoryStore(), "", "az://container")
        store._has_suffixes = False
        return store


def test_a_known_size_spares_a_request_and_a_wrong_one_is_corrected(monkeypatch):
    store = ObjectStore.over(MemoryStore(), "", "az://container")
    store._has_suffixes = False
    store.write("x", b"0123456789")
    heads = []
    head = obstore.head
    monkeypatch.setattr(obstore, "head", lambda *args: heads.append(args) or head(*args))
    for known in (10, 4, 25):
        tail, size, e_tag = store.read_marked_tail("x", 4, known)
        assert (bytes(tail), size, e_tag) == (b"6789", 10, store.mark("x")[1])
        assert len(heads) == (2 if known == 25 else 1)  # one of them is ours
        heads.clear()


# --- which driver ---------------------------------------------------------------------------------


def without(monkeypatch: pytest.MonkeyPatch, *missing: str) -> None:
    find = object_store.find_spec
    monkeypatch.setattr(
        object_store, "find_spec", lambda name: None if name in missing else find(name)
    )


def test_obstore_is_the_driver_unless_something_speaks_against_it(
    monkeypatch: pytest.MonkeyPatch,
):
    assert isinstance(open_store("s3://bucket/x", S3), ObjectStore)
    for more in ({"driver": "fsspec"}, {"version_aware": True}, {"client_kwargs": {"verify": 0}}):
        assert isinstance(open_store("s3://bucket/x", {**S3, **more}), FsspecStore)
    with monkeypatch.context() as patched:
        without(patched, "obstore")
        assert isinstance(open_store("s3://bucket/x", S3), FsspecStore)


def test_a_file_system_that_somebody_registered_is_used(monkeypatch: pytest.MonkeyPatch):
    from fsspec.implementations.memory import MemoryFileSystem
    from fsspec.registry import _registry

    class Mine(MemoryFileSystem):
        protocol = "gs"

    monkeypatch.setitem(_registry, "gs", Mine)
    assert isinstance(open_store("gs://bucket/x"), FsspecStore)
    explicit = open_store("gs://bucket/x", {"driver": "obstore", "token": "anon"})
    assert isinstance(explicit, ObjectStore)
    assert fsspec.registry["gs"] is Mine


@pytest.mark.parametrize(
    ("scheme", "extra"), [("s3", "s3"), ("gs", "gcs"), ("az", "azure"), ("abfs", "azure")]
)
def test_without_any_driver_one_line_names_the_pip_command(monkeypatch, scheme: str, extra: str):
    without(monkeypatch, "obstore", "s3fs", "gcsfs", "adlfs")
    for driver in ({}, {"driver": "obstore"}):
        with pytest.raises(NotSupportedError) as caught:
            open_store(f"{scheme}://bucket/x", driver)
        expected = MissingPackageError(f"opening {scheme}://", "obstore", f"lance-nb[{extra}]")
        assert str(caught.value) == str(expected)


def test_in_an_environment_without_drivers_the_command_is_named():
    program = (
        "import sys, importlib.abc\n"
        "class Missing(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('obstore', 's3fs', 'gcsfs', 'adlfs'):\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "import importlib.util as util\n"
        "find = util.find_spec\n"
        "def found(name, package=None):\n"
        "    try:\n"
        "        return find(name, package)\n"
        "    except ModuleNotFoundError:\n"
        "        return None\n"
        "util.find_spec = found\n"
        "sys.meta_path.insert(0, Missing())\n"
        "import lance_nb\n"
        "for act in (lance_nb.dataset, lambda uri: lance_nb.dataset(uri, "
        "storage_options={'driver': 'fsspec'})):\n"
        "    try:\n"
        "        act('s3://bucket/x')\n"
        "    except NotImplementedError as error:\n"
        "        print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    line = str(MissingPackageError("opening s3://", "obstore", "lance-nb[s3]"))
    assert done.stdout.splitlines() == [line, line]


def test_an_option_that_needs_a_missing_driver_names_both(monkeypatch: pytest.MonkeyPatch):
    without(monkeypatch, "s3fs")
    with pytest.raises(NotSupportedError, match=r"'version_aware'.*pip install s3fs"):
        open_store("s3://bucket/x", {"version_aware": True})


def test_an_unknown_driver_and_an_unknown_option_are_refused_by_name():
    with pytest.raises(InvalidInputError, match="'driver' is one of"):
        open_store("s3://bucket/x", {"driver": "boto"})
    with pytest.raises(InvalidInputError, match=r"'aws_acces_key_id'.*did you mean 'aws_access_"):
        open_store("s3://bucket/x", {"aws_acces_key_id": CANARY})


# --- forks ----------------------------------------------------------------------------------------


def test_a_forked_child_gets_an_error_and_does_not_wait_for_ever():
    program = (
        "import os, sys\n"
        "from obstore.store import MemoryStore\n"
        "from lance_nb.storage.object_store import ObjectStore\n"
        "store = ObjectStore.over(MemoryStore(), '', 's3://b')\n"
        "for number in range(2):\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        try:\n"
        "            store.write('x', b'1')\n"
        "        except NotImplementedError as error:\n"
        "            os._exit(7 if 'spawn' in str(error) else 1)\n"
        "        os._exit(0)\n"
        "    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "    store.write('y', b'1')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["0", "7"]


# --- errors ---------------------------------------------------------------------------------------

ANSWER = (
    "Object at location x already exists: Error performing PUT "
    "https://acme.blob.core.windows.net/c/x?sig=SIGNATURE&se=1 in 4ms{retried} - Server returned "
    'non-2xx status code: {status}: <?xml version="1.0"?>\n<Error><Code>{code}</Code>'
    "<Message>said so</Message></Error>\n\nDebug source:\nGeneric {{ retries: {retries} }}"
)


def answered(kind: str, status: str, code: str, retries: int = 0) -> Exception:
    retried = f", after {retries} retries" if retries else ""
    text = ANSWER.format(status=status, code=code, retries=retries, retried=retried)
    error = getattr(obstore.exceptions, kind, None) or FileNotFoundError
    return error(text)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (answered("AlreadyExistsError", "412 Precondition", "PreconditionFailed"), Outcome.EXISTS),
        (answered("AlreadyExistsError", "409 Conflict", "BlobAlreadyExists"), Outcome.EXISTS),
        (
            answered("AlreadyExistsError", "409 Conflict", "ConditionalRequestConflict"),
            Outcome.BUSY,
        ),
        (answered("AlreadyExistsError", "409 Conflict", "LeaseIdMissing"), Outcome.UNKNOWN),
        (obstore.exceptions.AlreadyExistsError("x"), Outcome.EXISTS),
        (answered("PermissionDeniedError", "403 Forbidden", "AccessDenied"), Outcome.FAILED),
        (answered("PermissionDeniedError", "403 Forbidden", "AccessDenied", 1), Outcome.UNKNOWN),
        (answered("FileNotFoundError", "404 Not Found", "NoSuchBucket"), Outcome.FAILED),
        (answered("GenericError", "400 Bad Request", "InvalidRequest"), Outcome.FAILED),
        (answered("GenericError", "500 Internal", "InternalError", 6), Outcome.UNKNOWN),
        (answered("GenericError", "503 Slow Down", "SlowDown"), Outcome.UNKNOWN),
        (obstore.exceptions.GenericError("HTTP error: error sending request"), Outcome.UNKNOWN),
    ],
)
def test_outcomes_of_a_conditional_put(error: Exception, expected: Outcome):
    assert ObjectStorePut().outcome(error) is expected


def test_a_message_is_one_line_without_the_query_of_an_address():
    text = object_store_text(answered("GenericError", "403 Forbidden", "AccessDenied"))
    assert "SIGNATURE" not in text
    assert "\n" not in text
    assert text.endswith("403 (AccessDenied: said so)") or "AccessDenied: said so" in text


def test_secrets_appear_in_no_text(monkeypatch: pytest.MonkeyPatch):
    store = open_store("s3://bucket/x", {**S3, "endpoint_url": "http://127.0.0.1:9"})

    def fail(*_: object, **__: object) -> None:
        raise obstore.exceptions.GenericError(f"403 for {CANARY} at http://h/b?sig={CANARY}")

    for name in ("get", "get_ranges", "head", "put", "delete", "list", "list_with_delimiter"):
        monkeypatch.setattr(obstore, name, fail)
    texts = [store.uri, repr(store), repr(vars(store.child("a"))["_driver"])]
    for act in (
        store.read, store.size, store.exists, store.list, store.list_recursive, store.delete,
        lambda path: store.write(path, b"1"), lambda path: store.write_if_absent(path, b"1"),
        lambda path: store.read_tail(path, 5), lambda path: store.read_range(path, ByteRange(0, 1)),
    ):  # fmt: skip
        with pytest.raises(StorageError) as caught:
            act("some/path")
        texts += [str(caught.value), repr(caught.value), repr(pickle.dumps(caught.value))]
        texts.append("".join(traceback.format_exception(caught.value)))
    assert not [text for text in texts if CANARY in text]
    with pytest.raises(NotSupportedError):
        pickle.dumps(store)


def test_a_change_whose_reply_was_lost_is_of_unknown_outcome(monkeypatch: pytest.MonkeyPatch):
    store = ObjectStore.over(MemoryStore(), "", "s3://bucket")
    for kind, outcome in (("GenericError", "unknown"), ("PermissionDeniedError", "failed")):
        error = getattr(obstore.exceptions, kind)("lost")

        def fail(*_: object, error: Exception = error, **__: object) -> None:
            raise error

        monkeypatch.setattr(obstore, "put", fail)
        monkeypatch.setattr(obstore, "delete", fail)
        for act in (lambda: store.write("x", b""), lambda: store.delete("x")):
            with pytest.raises(StorageError) as caught:
                act()
            assert caught.value.outcome == outcome


def test_a_busy_object_is_asked_for_again(monkeypatch: pytest.MonkeyPatch):
    store = ObjectStore.over(MemoryStore(), "", "s3://busy")
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    answers = [answered("AlreadyExistsError", "409 Conflict", "OperationAborted")] * 2
    put = obstore.put

    def busy(driver: Any, path: str, data: bytes, **options: Any) -> None:
        if ".probe-" not in path and answers:
            raise answers.pop()
        put(driver, path, data, **options)

    monkeypatch.setattr(obstore, "put", busy)
    store.write_if_absent("_versions/1.manifest", b"x")
    assert waits == [0.05, 0.2]
    with pytest.raises(ObjectExistsError):
        store.write_if_absent("_versions/1.manifest", b"y")


@pytest.mark.parametrize(
    ("service", "endpoint", "known"),
    [
        ("s3", "", True),
        ("s3", "https://s3.eu-west-1.amazonaws.com", True),
        ("s3", "http://s3.eu-west-1.amazonaws.com", False),
        ("s3", "https://amazonaws.com.evil.org", False),
        ("s3", "http://127.0.0.1:9000", False),
        ("gs", "https://storage.googleapis.com", True),
        ("az", "https://acme.blob.core.windows.net", True),
        ("az", "https://azurite:10000", False),
    ],
)
def test_only_the_services_own_addresses_need_no_probe(service, endpoint: str, known: bool):
    assert object_store._is_known(service, endpoint) is known


# --- piecewise writing ----------------------------------------------------------------------------


def test_large_objects_are_sent_in_parts_and_small_ones_at_once(monkeypatch: pytest.MonkeyPatch):
    store = ObjectStore.over(MemoryStore(), "", "s3://bucket")
    calls: list[bool] = []
    put = obstore.put

    def noted(*args: Any, **options: Any) -> None:
        calls.append(options["use_multipart"])
        put(*args, **options)

    monkeypatch.setattr(obstore, "put", noted)
    for size in (0, PART_BYTES, PART_BYTES + 1, 3 * PART_BYTES + 5):
        data = os.urandom(size)
        upload = store.create("x")
        for start in range(0, size, 1 << 20):
            upload.write([data[start : start + (1 << 20)]])
        upload.finish()
        assert bytes(store.read("x")) == data
    assert calls == [False, False, True, True]


def test_an_upload_that_fails_says_so_and_ends(monkeypatch: pytest.MonkeyPatch):
    store = ObjectStore.over(MemoryStore(), "", "s3://bucket")

    def fail(*_: object, **__: object) -> None:
        raise obstore.exceptions.GenericError("the network is gone")

    monkeypatch.setattr(obstore, "put", fail)
    upload = store.create("x")
    with pytest.raises(StorageError, match="network is gone"):
        for _ in range(20):
            upload.write([bytes(PART_BYTES)])
    upload.abort()
    upload = store.create("x")
    with pytest.raises(StorageError, match="network is gone"):
        upload.finish()


def test_an_aborted_upload_of_several_parts_leaves_nothing():
    store = ObjectStore.over(MemoryStore(), "", "s3://bucket")
    upload = store.create("x")
    upload.write([bytes(3 * PART_BYTES)])
    upload.abort()
    with pytest.raises(ObjectNotFoundError):
        store.read("x")
