"""The portable bitmap: our writer equals pyroaring's, our check accepts what pyroaring reads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from lance_nb.errors import CorruptFileError
from lance_nb.format.roaring import bitmap_from_mask, check_portable
from tests.support.manifests import flipped


@pytest.mark.parametrize("share", [0.0, 0.001, 0.06, 0.0625, 0.5, 1.0])
@pytest.mark.parametrize("num_rows", [0, 1, 65_535, 65_536, 65_537, 300_000])
def test_bytes_equal_those_of_pyroaring(share: float, num_rows: int):
    mask = np.random.default_rng(5).random(num_rows) < share
    data = bitmap_from_mask(mask)
    assert BitMap.deserialize(data) == BitMap(np.flatnonzero(mask).astype(np.uint32))
    if share < 1:  # pyroaring turns a full container into one run, as Rust does not
        assert data == BitMap(np.flatnonzero(mask).astype(np.uint32)).serialize()
    assert check_portable(data) == np.count_nonzero(mask)


@given(st.sets(st.integers(0, 2**32 - 1), max_size=60), st.booleans())
def test_what_pyroaring_writes_passes(values: set[int], runs: bool):
    bitmap = BitMap(values)
    if runs:
        bitmap.run_optimize()
    assert check_portable(bitmap.serialize()) == len(values)


def test_many_containers_with_and_without_runs():
    bitmap = BitMap(range(0, 2**24, 3)) | BitMap(range(2**24, 2**25))
    assert check_portable(bitmap.serialize()) == len(bitmap)
    bitmap.run_optimize()
    assert check_portable(bitmap.serialize()) == len(bitmap)


def test_whatever_passes_the_check_is_read_whole():
    bitmap = BitMap([*range(5), *range(70_000, 80_000), 2**31])
    bitmap.run_optimize()
    for _, broken in flipped(bitmap.serialize(), 400, seed=3):
        try:
            check_portable(broken)
        except CorruptFileError:
            continue
        assert len(BitMap.deserialize(broken)) >= 0
