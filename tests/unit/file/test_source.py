"""Bytes of a data file, mapped or by ranges."""

from __future__ import annotations

import pytest

from lance_nb.errors import CorruptFileError
from lance_nb.file.source import FileSource
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


@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize(("start", "stop"), [(0, 1025), (-1, 5), (7, 6), (2**63, 2**63 + 8)])
def test_ranges_outside_of_the_file_are_refused(mapped: bool, start: int, stop: int) -> None:
    source = FileSource(BytesStore(DATA, mapped=mapped), "x")
    with pytest.raises(CorruptFileError, match="inside the file"):
        source.view(start, stop)
    with pytest.raises(CorruptFileError, match="inside the file"):
        source.arrays([(0, 1), (start, stop)])
