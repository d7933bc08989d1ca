"""Local files written piece by piece: nothing is seen before the end, failures leave nothing."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from lance_nb.errors import StorageError
from lance_nb.storage.links import Boundary
from lance_nb.storage.local_writer import PIECES_MAX, LocalObjectWriter


def test_nobody_sees_the_name_before_the_end(tmp_path: Path):
    upload = LocalObjectWriter(f"{tmp_path}/data/x.lance", Boundary(str(tmp_path)))
    upload.write([b"1"])
    assert not (tmp_path / "data" / "x.lance").exists()
    upload.finish()
    assert (tmp_path / "data" / "x.lance").read_bytes() == b"1"


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    real = os.writev

    def short(descriptor: int, views: list[memoryview]) -> int:
        return real(descriptor, [views[0][: max(1, len(views[0]) // 2)]])

    monkeypatch.setattr(os, "writev", short)
    upload = LocalObjectWriter(f"{tmp_path}/x", Boundary(str(tmp_path)))
    upload.write([b"abcdefg", b"", b"hi", b"j" * 100])
    upload.finish()
    assert (tmp_path / "x").read_bytes() == b"abcdefghi" + b"j" * 100


def test_more_pieces_than_one_call_takes(tmp_path: Path):
    upload = LocalObjectWriter(f"{tmp_path}/x", Boundary(str(tmp_path)))
    upload.write([b"%d," % k for k in range(PIECES_MAX * 2 + 3)])
    upload.finish()
    assert (tmp_path / "x").read_bytes() == b"".join(b"%d," % k for k in range(PIECES_MAX * 2 + 3))


@pytest.mark.parametrize("call", ["writev", "fsync", "rename"])
def test_a_full_disk_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str):
    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    upload = LocalObjectWriter(f"{tmp_path}/x", Boundary(str(tmp_path)))
    monkeypatch.setattr(os, call, full)
    with pytest.raises(StorageError, match="No space left"):
        upload.write([b"1"])
        upload.finish()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path):
    (tmp_path / "data").write_bytes(b"a file")
    with pytest.raises((StorageError, OSError)):
        LocalObjectWriter(f"{tmp_path}/data/x", Boundary(str(tmp_path)))
