"""Compressing whole buffers."""

from __future__ import annotations

import numpy as np
import pytest

from lance_nb.encodings.choose import compressors
from lance_nb.encodings.encoding_options import EncodingOptions
from tests.support.compressing import COMPRESSORS, V2_2, by_value, in_blocks, in_chunks, measured

GENERAL = COMPRESSORS["general"]
WISHES = [
    EncodingOptions(file_version=(2, 2), compression="lz4"),
    EncodingOptions(file_version=(2, 2), compression="zstd", compression_level=1),
]
TEXTS = [f"some text {i % 10} " * 3 for i in range(2000)]


@pytest.mark.parametrize("options", WISHES, ids=lambda found: found.compression)
def test_text_comes_back_smaller(options: EncodingOptions) -> None:
    block = measured(TEXTS)
    encoding, _ = in_chunks("general", block, options)
    assert encoding.general.values.WhichOneof("compression") == "variable"
    assert by_value("general", block, options).general.HasField("compression")


@pytest.mark.parametrize("options", WISHES, ids=lambda found: found.compression)
def test_packed_numbers_are_compressed_again(options: EncodingOptions) -> None:
    encoding, _ = in_chunks("general", measured(np.tile(np.arange(64), 200)), options)
    assert encoding.general.values.WhichOneof("compression") == "inline_bitpacking"


def test_what_does_not_shrink_stays() -> None:
    random = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 4000)
    encoding, _ = in_chunks("general", measured(random), WISHES[0])
    assert encoding.WhichOneof("compression") == "flat"
    encoding, _ = in_blocks("general", measured(random[:100]), [100], WISHES[0])
    assert encoding.WhichOneof("compression") != "general"


def test_dictionaries_of_text_shrink() -> None:
    encoding, _ = in_blocks("general", measured(TEXTS[:10]), [10], WISHES[0])
    assert encoding.WhichOneof("compression") == "general"


def test_it_must_be_asked_for() -> None:
    assert not GENERAL.nominate_chunks(measured(TEXTS), V2_2)
    assert not GENERAL.nominate_chunks(measured(TEXTS), WISHES[0].wrapped)
    assert not GENERAL.nominate_chunks(measured(["short"]), WISHES[0])


def test_the_first_buffer_is_compressed_whatever_the_others_take() -> None:
    """Values of runs shrink, though not below the bytes of their lengths."""
    runs = np.repeat(np.random.default_rng(1).integers(0, 2**20, 1000), 10)
    encoding, _ = in_chunks("general", measured(runs), WISHES[1])
    assert encoding.general.values.WhichOneof("compression") == "rle"


def test_numbers_value_by_value_and_little_content_stay() -> None:
    numbers = measured(np.arange(5000))
    assert GENERAL.compress_values(numbers, WISHES[0], compressors).encoding.HasField("flat")
    for size, taken in ((4095, False), (4096, True)):
        block = measured(np.zeros(size, np.uint8))
        assert bool(GENERAL.nominate_chunks(block, WISHES[0])) == taken
