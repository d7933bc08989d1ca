"""The portable bitmap: our writer equals pyroaring's, our check accepts what pyroaring reads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from lance_nb.errors import CorruptFileError
from lance_nb.format.roaring import bitmap_from_mask, check_portable, mask_from_bitmap
from tests.support.manifests import flipped


@pytest.mark.parametrize("share", [0.0, 0.001, 0.06, 0.0625, 0.5, 1.0])
@pytest.mark.parametrize("num_rows", [0, 1, 65_535, 65_536, 65_537, 300_000])
def test_bytes_equal_those_of_pyroaring(share: float, num_rows: int):
    mask = np.random.default_rng(5).random(num_rows) < share
    data = bitmap_from_mask(mask)
    assert BitMap.deserialize(data) == BitMap(np.flatnonzero(mask).astype(np.uint32))
    if share < 1:  # pyroaring turns a full container into one run, as Rust does not
        assert data == BitMap(np.flatnonzero(mask).astype(np.uint32)).serialize()
    check_portable(data)
    assert np.array_equal(mask_from_bitmap(data, num_rows), mask)


@pytest.mark.parametrize("count", [4095, 4096, 4097])
def test_the_form_of_a_container_changes_above_4096_values(count: int):
    """RoaringFormatSpec: up to 4,096 values are an array, more are a bitmap."""
    mask = np.zeros(100_000, np.bool_)
    mask[: 2 * count : 2] = True
    data = bitmap_from_mask(mask)

    assert data == BitMap(np.flatnonzero(mask).astype(np.uint32)).serialize()
    assert len(data) == 16 + (2 * count if count <= 4096 else 8192)
    assert np.array_equal(mask_from_bitmap(data, mask.size), mask)


@given(st.sets(st.integers(0, 2**32 - 1), max_size=60), st.booleans())
def test_what_pyroaring_writes_passes(values: set[int], runs: bool):
    bitmap = BitMap(values)
    if runs:
        bitmap.run_optimize()
    check_portable(bitmap.serialize())
    few = mask_from_bitmap(bitmap.serialize(), 1000)
    assert np.flatnonzero(few).tolist() == sorted(one for one in values if one < 1000)


def test_many_containers_with_and_without_runs():
    bitmap = BitMap(range(0, 2**22, 3)) | BitMap(range(2**22, 2**23, 60)) | BitMap(range(5, 99))
    plain = mask_from_bitmap(bitmap.serialize(), 2**23)
    assert np.array_equal(np.flatnonzero(plain), np.array(bitmap.to_array()))
    bitmap |= BitMap(range(2**23, 2**24))
    bitmap.run_optimize()
    with_runs = mask_from_bitmap(bitmap.serialize(), 2**24 + 5)
    assert np.array_equal(np.flatnonzero(with_runs), np.array(bitmap.to_array()))


def test_whatever_passes_the_check_is_read_whole():
    bitmap = BitMap([*range(5), *range(70_000, 80_000), 2**31])
    bitmap.run_optimize()
    for _, broken in flipped(bitmap.serialize(), 400, seed=3):
        try:
            check_portable(broken)
        except CorruptFileError:
            continue
        assert len(BitMap.deserialize(broken)) >= 0
