"""Writing FSST."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.encodings.encoding_options import EncodingOptions
from tests.support.compressing import COMPRESSORS, V2_2, by_value, in_chunks, measured

FSST = COMPRESSORS["fsst"]
TEXTS = [f"the quick brown fox jumps over dog {i}" for i in range(2000)]


@pytest.mark.parametrize("type_", [pa.string(), pa.large_binary()])
def test_text_comes_back(type_: pa.DataType) -> None:
    encoding, _ = in_chunks("fsst", measured(TEXTS, type_))
    assert len(encoding.fsst.symbol_table) == 2312
    assert encoding.fsst.values.WhichOneof("compression") == "variable"
    by_value("fsst", measured(TEXTS, type_))


def test_it_is_chosen_for_repetitive_text_only() -> None:
    assert FSST.nominate_chunks(measured(TEXTS), V2_2) > 300
    assert FSST.nominate_values(measured(TEXTS), V2_2)
    rng = np.random.default_rng(1)
    random = [rng.bytes(20) for _ in range(3000)]
    for values in (TEXTS[:100], ["abcd"] * 20_000, random):
        assert not FSST.nominate_chunks(measured(values), V2_2)
    assert not FSST.nominate_chunks(measured([1, 2]), V2_2)


@pytest.mark.parametrize("wish", ["none", "zstd", "lz4"])
def test_another_wish_of_the_field_goes_first(wish: str) -> None:
    options = EncodingOptions(file_version=(2, 2), compression=wish)
    assert not FSST.nominate_chunks(measured(TEXTS), options)


def test_texts_whose_codes_may_need_longer_offsets_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from lance_nb.encodings.compressors import fsst

    monkeypatch.setattr(fsst, "_INT32_MAX", 1000)

    assert not FSST.nominate_chunks(measured(TEXTS), V2_2)
    assert FSST.nominate_chunks(measured(TEXTS, pa.large_string()), V2_2)
