"""Bytes per field come from page metadata: no page is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.file.source import FileSource
from lance_nb.table.data_statistics import data_statistics

ROWS = pa.table(
    {"id": pa.array(range(4000), pa.int64()), "st": [{"a": n, "b": f"b{n}"} for n in range(4000)]}
)


@pytest.fixture
def written() -> Callable[..., LanceDataset]:
    return lambda **options: lance_nb.write_dataset(
        ROWS, f"memory://statistics/{options}.lance", mode="overwrite", **options
    )


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_every_field_has_its_bytes(written: Callable[..., LanceDataset], version: str):
    found = written(data_storage_version=version, max_rows_per_file=1000)
    seen: list[tuple[int, int]] = []
    fields = {
        one.id: one.bytes_on_disk
        for one in found.stats.data_stats(progress=lambda *s: seen.append(s)).fields
    }
    assert list(fields) == [0, 1, 2, 3]
    assert all(fields[one] > 0 for one in (0, 2, 3))
    assert sum(fields.values()) < found.stats().size_bytes
    assert seen[-1] == (4, 4)


def test_no_page_is_read(written: Callable[..., LanceDataset], monkeypatch: pytest.MonkeyPatch):
    snapshot = lance_nb.dataset(written().uri).opened[1]
    views: list[int] = []
    whole = FileSource.view
    monkeypatch.setattr(
        FileSource,
        "view",
        lambda self, start, stop: views.append(stop - start) or whole(self, start, stop),
    )
    found = data_statistics(snapshot)
    assert sum(views) < sum(one.bytes_on_disk for one in found.fields) / 10


def test_dropped_columns_are_not_counted(written: Callable[..., LanceDataset]):
    found = written()
    found.drop_columns(["id"])
    assert [one.id for one in found.stats.data_stats().fields] == [1, 2, 3]


def test_a_struct_that_is_listed_without_a_column_has_no_bytes(
    written: Callable[..., LanceDataset],
):
    """pylance lists such fields with the column -1."""
    snapshot = written(data_storage_version="2.1").opened[1]
    (fragment,) = snapshot.manifest.fragments
    listed = replace(fragment.files[0], fields=(0, 1, 2, 3), column_indices=(0, -1, 1, 2))
    found = data_statistics(snapshot, among=[replace(fragment, files=(listed,))])
    assert found == data_statistics(snapshot)
    assert found.fields[1].bytes_on_disk == 0
