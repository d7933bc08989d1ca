from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.storage import meter
from lance_nb.storage.base import ByteRange, Store
from lance_nb.storage.registry import open_store


def spent(before: meter.Reading) -> tuple[int, int]:
    now = meter.reading()
    return now.requests - before.requests, now.size_bytes - before.size_bytes


@pytest.fixture(params=["local", "memory", "fsspec"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    name = f"meter-{tmp_path.name}"
    uris = {"local": str(tmp_path), "memory": f"memory://{name}", "fsspec": f"local://{tmp_path}"}
    (tmp_path / "folder").mkdir()
    store = open_store(uris[request.param])
    store.write("folder/a", b"0123456789")
    return store


def test_reads_and_listings_are_counted_with_their_bytes(store: Store) -> None:
    before = meter.reading()
    store.read("folder/a")
    assert spent(before)[1] == 10
    before = meter.reading()
    store.read_ranges("folder/a", [ByteRange(0, 2), ByteRange(4, 8)])
    requests, size_bytes = spent(before)
    assert requests >= 1
    assert 6 <= size_bytes <= 10
    before = meter.reading()
    store.list_names("folder")
    assert spent(before) == (1, 0)


def test_writes_are_counted(store: Store) -> None:
    before = meter.reading()
    store.write("folder/b", b"12345")
    requests, size_bytes = spent(before)
    assert requests >= 1
    assert size_bytes == 5


def test_of_a_mapped_file_the_share_of_the_wanted_rows_is_counted(tmp_path: Path) -> None:
    numbers = np.random.default_rng(1).integers(0, 2**60, 300_000)
    dataset = lance_nb.write_dataset(pa.table({"n": numbers}), tmp_path / "a.lance")
    dataset.to_table()  # opens files and pages
    before = meter.reading()
    dataset.to_table(offset=150_000, limit=200)
    assert 1600 <= spent(before)[1] <= 3 * 4096  # pages of memory
    before = meter.reading()
    dataset.to_table()
    assert spent(before)[1] >= 8 * 300_000 * 0.9
