"""Bytes of a data file, mapped or by ranges."""

from __future__ import annotations

import pytest

from lance_nb.errors import CorruptFileError
from lance_nb.file.source import FileSource
from lance_nb.storage import meter
from tests.support.reading import BytesStore

DATA = bytes(range(256)) * 4


@pytest.mark.parametrize(("mapped", "tail_bytes"), [(True, 0), (False, 100), (False, 5000)])
def test_views_tails_and_arrays(mapped: bool, tail_bytes: int) -> None:
    source = FileSource(BytesStore(DATA, mapped=mapped, tail_bytes=tail_bytes), "x")
    assert source.size_bytes == len(DATA)
    assert source.is_mapped is mapped
    assert bytes(source.tail(40)) == DATA[-40:]
    assert bytes(source.tail(10**6)) == DATA
    wanted = [(0, 10), (1020, 1024), (900, 950), (5, 5), (1024, 1024), (3, 1000)]
    for (start, stop), array in zip(wanted, source.arrays(wanted), strict=True):
        assert bytes(array) == DATA[start:stop]
        assert bytes(source.view(start, stop)) == DATA[start:stop]
    assert source.arrays([]) == []


def read_since(before: meter.Totals) -> tuple[int, int]:
    """Return the requests and bytes that were read since then."""
    now = meter.totals()
    return now.read_requests - before.read_requests, now.read_bytes - before.read_bytes


def test_looks_into_a_mapped_file_are_counted() -> None:
    source = FileSource(BytesStore(DATA), "x")
    before = meter.totals()
    source.view(100, 130)
    assert read_since(before) == (1, 30)
    source.arrays([(5, 15), (1000, 1024)])
    assert read_since(before) == (3, 64)
    source.views([(0, 1000)])
    assert read_since(before) == (3, 64)


@pytest.mark.parametrize(
    ("wanted", "counted"), [(0, 0), (1, 4096), (4096, 4096), (4097, 8192), (9000, 10_000)]
)
def test_a_share_of_a_mapped_range_is_counted_in_pages_of_memory(wanted: int, counted: int) -> None:
    before = meter.totals()
    FileSource.count_view(10_000, wanted, 3)
    assert read_since(before) == (3, counted)


def test_ranges_of_other_files_are_counted_by_their_store() -> None:
    source = FileSource(BytesStore(DATA, mapped=False, tail_bytes=100), "x")
    before = meter.totals()
    source.view(0, 10)
    source.arrays([(0, 10), (1020, 1024)])
    assert read_since(before) == (0, 0)


@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize(("start", "stop"), [(0, 1025), (-1, 5), (7, 6), (2**63, 2**63 + 8)])
def test_ranges_outside_of_the_file_are_refused(mapped: bool, start: int, stop: int) -> None:
    source = FileSource(BytesStore(DATA, mapped=mapped), "x")
    with pytest.raises(CorruptFileError, match="inside the file"):
        source.view(start, stop)
    with pytest.raises(CorruptFileError, match="inside the file"):
        source.arrays([(0, 1), (start, stop)])
