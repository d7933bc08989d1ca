"""Uploads in parts through fsspec: completed at the end, cancelled on failure."""

from __future__ import annotations

from contextlib import nullcontext
from io import BytesIO
from typing import Any

import pytest

from lance_nb.errors import StorageError
from lance_nb.storage.fsspec_writer import FsspecObjectWriter


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
