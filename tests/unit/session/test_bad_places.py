"""A full disk, files that may not grow, a folder without write access, few descriptors: for real.

Every verb fails with an error that says why, and leaves every byte as it was; when there is room
again, it works.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import LanceError, StorageError

NOBODY = 65534
TMPFS_BYTES = 4 * 1024 * 1024
ROWS = pa.table({"id": range(100), "name": [f"name {at}" for at in range(100)]})
VERBS: dict[str, Callable[[Any], object]] = {
    "append": lambda ds: ds.insert(ROWS),
    "overwrite": lambda ds: lance_nb.write_dataset(ROWS, ds.uri, mode="overwrite"),
    "delete": lambda ds: ds.delete("id = 7"),
    "update": lambda ds: ds.update({"name": "'new'"}, where="id < 5"),
    "upsert": lambda ds: ds.merge_insert("id").when_matched_update_all().execute(ROWS.slice(0, 3)),
    "add column": lambda ds: ds.add_columns({"twice": "id * 2"}),
    "cast column": lambda ds: ds.alter_columns({"path": "id", "data_type": pa.int32()}),
    "drop column": lambda ds: ds.drop_columns(["name"]),
    "compact": lambda ds: ds.optimize.compact_files(),
    "config": lambda ds: ds.update_config({"a": "b"}),
    "restore": lambda ds: ds.checkout_version(1).restore(),
    "tag": lambda ds: ds.tags.create("second", 1),
    "branch": lambda ds: ds.create_branch("dev"),
    "stage": lambda ds: ds.stage().append(ROWS).delete("id = 3").commit("both"),
}


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    """Load what the verbs need: in trouble, Python's own files may be out of reach."""
    for number, verb in enumerate(VERBS.values()):
        verb(lance_nb.dataset(_made(f"memory://bad_places/{number}")))


def _made(uri: str) -> str:
    """Two fragments, one with a deletion, and a tag."""
    dataset = lance_nb.write_dataset(ROWS, uri)
    dataset.insert(ROWS)
    dataset.delete("id = 90")
    dataset.tags.create("first", 1)
    return uri


def content(uri: str) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(one): one.read_bytes() for one in Path(uri).rglob("*") if one.is_file()}


def check_verbs(place: Path, trouble: Callable[[], Any], reason: str) -> None:
    """Try every verb in trouble, and once more without."""
    _made(str(place / "original"))
    for name, verb in VERBS.items():
        uri = str(place / f"{name}.lance")
        shutil.copytree(place / "original", uri)
        before, dataset = content(uri), lance_nb.dataset(uri)
        with trouble(), pytest.raises(LanceError) as caught:
            assert lance_nb.dataset(uri).to_table().equals(dataset.to_table())  # reading goes on
            verb(dataset)
        assert isinstance(caught.value, StorageError), name
        assert reason in str(caught.value), name
        assert f"{name}.lance" in str(caught.value), name
        assert content(uri) == before, name
        verb(lance_nb.dataset(uri))
        assert content(uri) != before, name


@contextmanager
def _small_files() -> Iterator[None]:
    """No file of this process may pass 16 bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_files_that_may_not_grow(tmp_path: Path) -> None:
    check_verbs(tmp_path, _small_files, "File too large")


@contextmanager
def _powerless(place: Path) -> Iterator[None]:
    """Be somebody who may read the folder and not write to it."""
    if os.geteuid() == 0:
        os.seteuid(NOBODY)
        try:
            yield
        finally:
            os.seteuid(0)
        return
    folders = [one for one in (place, *place.rglob("*")) if one.is_dir()]
    for folder in folders:
        folder.chmod(0o555)
    try:
        yield
    finally:
        for folder in folders:
            folder.chmod(0o755)


def test_a_folder_that_may_not_be_written_to(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents) if os.geteuid() == 0 else ():
        mode = folder.stat().st_mode
        if not mode & 0o001 and folder.stat().st_uid == 0:
            if folder == Path.home():
                pytest.skip("the tests' folder lies where only its owner may go")
            folder.chmod(mode | 0o011)
    check_verbs(tmp_path, lambda: _powerless(tmp_path), "Permission denied")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of four megabytes."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={TMPFS_BYTES}", "tmpfs", str(place)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system needs root and its rights")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@contextmanager
def _full(place: Path) -> Iterator[None]:
    """Fill a disk to the last page."""
    filler = place / "filler"
    with filler.open("wb", buffering=0) as file:
        while True:
            try:
                file.write(bytes(4096))
            except OSError:
                break
    try:
        yield
    finally:
        filler.unlink()


def test_a_disk_that_is_full(small_disk: Path) -> None:
    check_verbs(small_disk, lambda: _full(small_disk), "No space left on device")


FEW_DESCRIPTORS = """
import os, resource, sys, time
import pyarrow as pa
import lance_nb

uri, sync = sys.argv[1], os.fsync
def slow_sync(descriptor):  # a disk that is slower than the writer, so that syncs queue up
    time.sleep(0.002)
    sync(descriptor)
os.fsync = slow_sync
rows = pa.table({"id": range(300), "name": ["x"] * 300})
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
num_open = len(os.listdir("/proc/self/fd"))
for mode in ("create", "append"):
    dataset = lance_nb.write_dataset(rows, uri, mode=mode, max_rows_per_file=2)
verbs = {
    "scan": lambda: dataset.to_table(filter="name = 'x'"),
    "delete": lambda: dataset.delete("id % 2 = 1 AND id < 200"),
    "stage": lambda: dataset.stage().append(rows, max_rows_per_file=2).delete("id = 0").commit(),
    "update": lambda: dataset.update({"name": "'y'"}, "id % 2 = 0"),
    "compact": lambda: dataset.optimize.compact_files(target_rows_per_fragment=100),
}
for name, verb in verbs.items():
    verb()
    assert len(os.listdir("/proc/self/fd")) <= num_open + 2, name
print(dataset.count_rows(), len(verbs))
"""


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="descriptors are counted in /proc")
def test_hundreds_of_fragments_are_changed_with_64_descriptors(tmp_path: Path) -> None:
    """Syncs that wait held 64 descriptors by themselves. A child process: the limit stays."""
    command = [sys.executable, "-c", FEW_DESCRIPTORS, str(tmp_path / "many.lance")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["698", "5"]
