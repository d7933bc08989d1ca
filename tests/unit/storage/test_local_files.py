"""The system calls behind local files: mappings and bounded resources."""

from __future__ import annotations

from pathlib import Path

import pytest

from lance_nb.errors import ObjectNotFoundError, StorageError
from lance_nb.storage import local_files
from lance_nb.storage.links import Boundary
from lance_nb.storage.local import LocalStore
from tests.conformance.store_tests import BIG


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path))


def test_mapped_files_hold_no_descriptors(store: LocalStore):
    before = len(list(Path("/proc/self/fd").iterdir()))
    views = []
    for number in range(50):
        store.write(f"f{number}", BIG)
        views.append(store.map(f"f{number}"))
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 2


def test_the_number_of_mappings_is_bounded(store: LocalStore, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(local_files, "MAPPINGS_MAX", 3)
    mappings, boundary = local_files.Mappings(), Boundary(store.uri)
    for number in range(10):
        store.write(f"f{number}", BIG)
        full = f"{store.uri}/f{number}"
        assert bytes(mappings.get(full, Path(full).stat(), boundary)) == BIG
    assert len(mappings._entries) == 3


def test_errors_of_the_system_are_translated_and_ours_pass():
    with pytest.raises(ObjectNotFoundError) as caught, local_files.translated("x"):
        raise FileNotFoundError(2, "No such file")
    assert isinstance(caught.value.__cause__, FileNotFoundError)
    ours = StorageError("y", "why", "unknown")
    with pytest.raises(StorageError) as passed, local_files.translated("x"):
        raise ours
    assert passed.value is ours


def test_a_file_that_shrinks_while_it_is_read_gives_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "x").write_bytes(b"0123456789")
    pread, boundary = local_files.os.pread, Boundary(str(tmp_path))
    monkeypatch.setattr(local_files.os, "pread", lambda fd, n, at: pread(fd, min(n, 4), at))
    assert bytes(local_files.read_file(str(tmp_path / "x"), boundary)[0]) == b"0123456789"
    monkeypatch.setattr(local_files.os, "pread", lambda *wanted: b"" if wanted[2] else b"01")
    assert bytes(local_files.read_file(str(tmp_path / "x"), boundary)[0]) == b"01"
