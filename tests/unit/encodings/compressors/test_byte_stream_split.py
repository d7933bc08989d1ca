"""Splitting the bytes of values."""

from __future__ import annotations

import numpy as np
import pytest

from lance_nb.encodings.encoding_options import EncodingOptions
from tests.support.compressing import COMPRESSORS, V2_2, in_chunks, measured

WISH = EncodingOptions(file_version=(2, 2), compression="lz4", bss="on")


@pytest.mark.parametrize("kind", ["float32", "float64", "int32"])
@pytest.mark.parametrize("count", [1, 1023, 1024, 1025, 5000])
def test_split_values_come_back(kind: str, count: int) -> None:
    values = np.random.default_rng(1).standard_normal(count) * 100
    in_chunks("byte_stream_split", measured(values.astype(kind)), WISH.wrapped)


def test_it_is_chosen_only_below_a_compression_that_was_asked_for() -> None:
    split, values = COMPRESSORS["byte_stream_split"], measured(np.arange(9.0))
    assert split.nominate_chunks(values, WISH.wrapped)
    for options in (WISH, V2_2, V2_2.wrapped):
        assert not split.nominate_chunks(values, options)
    assert not split.nominate_chunks(measured([1], None), V2_2.wrapped)
