"""Local files written piece by piece: the name appears at the end, failures leave nothing."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from lance_nb.errors import StorageError
from lance_nb.storage import local_writer
from lance_nb.storage.links import Boundary
from lance_nb.storage.local_writer import PIECES_MAX, RUN_BYTES, EarlyWriteback, LocalObjectWriter


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


def test_runs_are_handed_over_once(monkeypatch: pytest.MonkeyPatch):
    calls: list[tuple[int, ...]] = []
    monkeypatch.setattr(local_writer, "_sync_file_range", lambda *args: calls.append(args))
    writeback = EarlyWriteback()
    for size in (10, RUN_BYTES - 1, RUN_BYTES + 5, RUN_BYTES + 6, 3 * RUN_BYTES):
        writeback.reached(7, size)
    assert [call[:3] for call in calls] == [
        (7, 0, RUN_BYTES + 5),
        (7, RUN_BYTES + 5, 2 * RUN_BYTES - 5),
    ]


def test_the_system_takes_it_or_leaves_it(tmp_path: Path):
    with (tmp_path / "x").open("wb") as file:
        file.write(bytes(RUN_BYTES))
        file.flush()
        EarlyWriteback().reached(file.fileno(), RUN_BYTES)
    EarlyWriteback().reached(-1, RUN_BYTES)
    assert (tmp_path / "x").stat().st_size == RUN_BYTES


def test_other_systems_do_without(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(local_writer, "_sync_file_range", None)
    EarlyWriteback().reached(7, RUN_BYTES)
