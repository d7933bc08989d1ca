"""Which values get a dictionary, and that hostile ones cost no more than others."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.encodings.arrow_arrays import from_arrow
from lance_nb.encodings.base import FixedWidth, VariableWidth
from lance_nb.encodings.distinct_values import Worth, numbered
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.kernels import compiled
from tests.support.compiled_forms import Form, forced

OPTIONS = EncodingOptions(file_version=(2, 2))
needs_extension = pytest.mark.skipif(compiled.loops is None, reason="was not built")


def words(values: np.ndarray) -> FixedWidth:
    return FixedWidth(64, values.size, values.astype("u8").view(np.uint8))


@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("kind", ["string", "large_string"])
def test_texts_are_numbered_as_they_appear(form: Form, kind: str) -> None:
    texts = ["", "ab", "a", "abcdefgh", "abcdefghi", "ab", "abcdefgi", "", "abcdefghi"] * 9
    block = from_arrow(pa.array(texts, kind).slice(1))
    with forced(form):
        found = numbered(block, Worth(len(texts) - 1, 1 << 40, OPTIONS))
    assert found is not None
    items = found.items
    assert isinstance(items, VariableWidth)
    bounds = items.offsets.tolist()
    values = [items.data[a:b].tobytes().decode() for a, b in pairwise(bounds)]
    assert values == ["ab", "a", "abcdefgh", "abcdefghi", "abcdefgi", ""]
    numbers = found.indices.data.view(np.int32).tolist()
    assert [values[number] for number in numbers] == texts[1:]


@pytest.mark.parametrize("form", Form)
def test_too_many_different_values_stop_it(form: Form) -> None:
    block = words(np.arange(200) % 100)
    with forced(form):
        assert numbered(block, Worth(200, 1 << 40, OPTIONS)) is not None
        assert numbered(block, Worth(198, 1 << 40, OPTIONS)) is None
        assert numbered(block, Worth(1, 1 << 40, OPTIONS)) is None


@needs_extension
def test_values_whose_hashes_collide_are_left_to_arrow() -> None:
    """All of these want the same place of the table."""
    factor = 0x9E3779B97F4A7C15
    inverse = pow(factor, -1, 1 << 64)
    wanted = [at << 32 | at ^ 77 for at in range(1000)]
    values = np.array([8 ^ (hashed * inverse) % (1 << 64) for hashed in wanted], "u8")
    block = words(np.tile(values, 3))
    assert compiled.loops is not None
    room = np.zeros(1 << 12, np.uint64), np.empty(3000, np.int32), np.empty(1500, np.int64)
    assert (
        compiled.loops.number_values(block.data, None, 8, np.zeros(1, np.int64), 3000, *room) == -2
    )

    found = numbered(block, Worth(3000, 1 << 40, OPTIONS))
    assert found is not None
    assert isinstance(found.items, FixedWidth)
    assert found.items.data.view("u8").tolist() == values.tolist()
    assert found.indices.data.view(np.int32).tolist() == list(range(1000)) * 3


@needs_extension
def test_numbers_of_what_does_not_fit_are_refused() -> None:
    loops = compiled.loops
    ints = lambda *values: np.array(values, np.int64)
    data, offsets = np.frombuffer(b"abab", np.uint8), np.array([0, 2, 4], np.int32)
    numbers, firsts = np.empty(2, np.int32), np.empty(1, np.int64)
    table = lambda size=2: np.zeros(size, np.uint64)

    assert loops.number_values(data, offsets, 0, ints(0), 2, table(), numbers, firsts) == 1
    assert numbers.tolist() == [0, 0]
    assert loops.number_values(data, None, 1, ints(0), 2, table(), numbers, firsts) == -1
    for starts, run in ((ints(1), 2), (ints(-1), 2), (ints(0), 1), (ints(0), 0), (ints(0, 2), 1)):
        assert loops.number_values(data, offsets, 0, starts, run, table(), numbers, firsts) == -2
    for size in (1, 3):
        assert loops.number_values(data, None, 2, ints(0), 2, table(size), numbers, firsts) == -2
    for bad in ([0, 3, 2], [-1, 2, 4], [0, 2, 5]):
        wrong = np.array(bad, np.int64)
        assert loops.number_values(data, wrong, 0, ints(0), 2, table(), numbers, firsts) == -2
    assert loops.number_values(data, None, 0, ints(0), 2, table(), numbers, firsts) == -2
