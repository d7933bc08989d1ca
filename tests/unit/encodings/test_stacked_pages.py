"""Pages encoded together hold the bytes that each leaf gets alone, or come back to its values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb._pb import encodings21
from lance_nb.encodings.arrow_arrays import from_arrow
from lance_nb.encodings.arrow_parts import nulls_of
from lance_nb.encodings.compress_base import EncodedPage, LeafPage, PageLevels
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.page_encoder import encode_leaf_page
from lance_nb.encodings.stacked_pages import ROWS_MAX, encode_stack
from lance_nb.encodings.statistics import Measured

VERSIONS = ((2, 1), (2, 2))
NULLABLE, VALID = encodings21.REPDEF_NULLABLE_ITEM, encodings21.REPDEF_ALL_VALID_ITEM
COUNTS = (1, 2, 7, 16, 17, 50, 63, 64, 100, 512, 600, 1023, 1024, 1025, 3000, ROWS_MAX)


def levels_of(leaf: pa.Array) -> PageLevels:
    nulls = nulls_of(leaf)
    if nulls is None:
        return PageLevels((VALID,), None, None, len(leaf), 0, len(leaf))
    return PageLevels((NULLABLE,), None, nulls.astype(np.uint16), len(leaf), 1, len(leaf))


def alone(leaf: pa.Array, options: EncodingOptions) -> EncodedPage:
    return encode_leaf_page(LeafPage(Measured(from_arrow(leaf)), levels_of(leaf), options))


def stacked(leaves: list[pa.Array], version: tuple[int, int] = (2, 2)) -> dict[int, tuple]:
    """Return layout and buffers of each leaf that was encoded."""
    options = EncodingOptions(file_version=version)
    pages = {}
    for group in encode_stack(leaves, [levels_of(leaf) for leaf in leaves], options):
        for place, number in enumerate(group.leaves.tolist()):
            assert number not in pages
            buffers = [
                bytes(buffer.data[buffer.starts[place] :][: buffer.sizes[place]])
                for buffer in group.buffers
            ]
            pages[number] = (group.layout, *buffers)
    return pages


def parts(page: EncodedPage) -> tuple[object, ...]:
    return (page.layout, *(bytes(buffer) for buffer in page.buffers))


def numbers(random: np.random.Generator, count: int, kind: str) -> list[pa.Array]:
    """Return columns of which each kind of codec takes some."""
    top = np.iinfo(kind).max
    columns = [
        random.integers(0, top, count, endpoint=True),
        random.integers(0, 7, count),
        random.integers(0, 100, count),
        np.sort(random.integers(0, 5, count)),
        np.arange(count) % top,
        np.full(count, 3),
        np.append(np.zeros(count - 1, int), 1),
        random.choice(random.integers(0, top, 3, endpoint=True), count),
        random.choice(random.integers(0, top, 40, endpoint=True), count),
        np.repeat(random.integers(0, top, count, endpoint=True), 3)[:count],
    ]
    return [pa.array(column.astype(kind)) for column in columns]


def texts(random: np.random.Generator, count: int) -> list[pa.Array]:
    lengths = (0, 1, 5, 30, 150, 260)
    columns = [
        [str(number) for number in random.integers(0, 10**6, count)],
        [str(number) for number in random.integers(0, 9, count)],
        ["same"] * count,
        [""] * count,
        ["a", "aaa"] * (count // 2) + ["b"] * (count % 2),
        *(
            [chr(97 + row % 26) * (row * 7 % (size + 1)) for row in range(count)]
            for size in lengths
        ),
        ["x" * (2000 if row == count // 2 else 3) for row in range(count)],
        ["y" * (250 if row < count // 8 else 1) + str(row) for row in range(count)],
    ]
    return [pa.array(column, pa.string()) for column in columns]


def with_nulls(random: np.random.Generator, leaf: pa.Array) -> pa.Array:
    """Return a leaf with a null, its bytes below left as they are."""
    mask = random.random(len(leaf)) < 0.2
    mask[random.integers(0, len(leaf))] = True
    validity = pa.py_buffer(np.packbits(~mask, bitorder="little"))
    return pa.Array.from_buffers(leaf.type, len(leaf), [validity, *leaf.buffers()[1:]])


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("kind", ["int8", "uint16", "int32", "int64"])
def test_bytes_of_numbers_are_those_of_each_leaf_alone(kind, count, version):
    leaves = numbers(np.random.default_rng(count), count, kind)
    pages = stacked(leaves, version)
    options = EncodingOptions(file_version=version)
    small = leaves[0].nbytes <= 128
    for number, page in pages.items():
        expected = parts(alone(leaves[number], options))
        if not small or page[0].WhichOneof("layout") == "constant_layout":
            assert page == expected, f"leaf {number}"
    assert len(pages) >= 4


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("count", COUNTS)
def test_bytes_of_texts_are_those_of_each_leaf_alone(count, version):
    leaves = texts(np.random.default_rng(count), count)
    pages = stacked(leaves, version)
    options = EncodingOptions(file_version=version)
    for number, page in pages.items():
        assert page == parts(alone(leaves[number], options)), f"leaf {number}"
    assert pages or count > 1025


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("count", [count for count in COUNTS if count > 1])
def test_bytes_of_booleans_are_those_of_each_leaf_alone(count, version):
    random = np.random.default_rng(count)
    leaves = [pa.array(random.random(count) < share) for share in (0.5, 0.1, 2, -1)]
    pages = stacked(leaves, version)
    options = EncodingOptions(file_version=version)
    assert pages == {number: parts(alone(leaf, options)) for number, leaf in enumerate(leaves)}
