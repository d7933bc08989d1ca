"""Codecs against the bytes that pylance writes, page by page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.encodings.base import (
    DataBlock,
    FixedSizeList,
    FixedWidth,
    PackedStruct,
    VariableWidth,
    single_chunk,
)
from lance_nb.encodings.registry import codecs
from tests.interop.container import Page, arms, mini_blocks, read_columns
from tests.support.compiled_forms import Form, forced
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

ROWS = 20_000
RNG = np.random.default_rng(11)
TEXT = ["".join(map(chr, RNG.integers(97, 123, n))) for n in RNG.integers(8, 31, ROWS)]
URLS = [f"https://www.example.com/path/{i % 977}/page?id={i}" for i in range(ROWS)]
# Bytes too rare for symbols of their own: FSST must escape them.
ODD = [text + chr(0x100 + i % 3000) if i % 50 == 0 else text for i, text in enumerate(TEXT)]
RUNS = np.repeat(RNG.integers(0, 1 << 30, ROWS // 100), 100)


def fixed_lists(dimension: int, kind: str) -> pa.Array:
    flat = pa.array(RNG.integers(0, 2, ROWS * dimension)).cast(kind)
    return pa.FixedSizeListArray.from_arrays(flat, dimension)


def with_null_items(dimension: int) -> pa.Array:
    lists = [None if i % 3 else [i % 100 + 0.5] * dimension for i in range(2000)]
    flat = [item for part in lists for item in (part or [None] * dimension)]
    return pa.FixedSizeListArray.from_arrays(pa.array(flat, pa.float32()), dimension)


PLAIN: dict[str, str] = {}
ZSTD = {"lance-encoding:compression": "zstd"}
LZ4_SPLIT = {"lance-encoding:compression": "lz4", "lance-encoding:bss": "on"}
# What to write, how, and the arms that its first page must use: the point of the case.
CASES = {
    "random_i64": (pa.array(RNG.integers(-(2**62), 2**62, ROWS)), PLAIN, ["flat"]),
    "bool": (pa.array(RNG.random(ROWS) < 0.5), PLAIN, ["flat"]),
    "decimal": (pa.array(RNG.integers(0, 2**60, ROWS)).cast(pa.decimal128(38, 0)), PLAIN, ["flat"]),
    "i8": (pa.array(RNG.integers(0, 7, ROWS), pa.int8()), PLAIN, ["inline_bitpacking"]),
    "i16": (pa.array(RNG.integers(0, 300, ROWS), pa.int16()), PLAIN, ["inline_bitpacking"]),
    "i32": (pa.array(RNG.integers(0, 5000, ROWS), pa.int32()), PLAIN, ["inline_bitpacking"]),
    "i64": (pa.array(np.arange(ROWS)), PLAIN, ["inline_bitpacking"]),
    "f64": (pa.array(RNG.random(ROWS)), PLAIN, ["inline_bitpacking"]),
    "short_text": (pa.array([t[:3] for t in TEXT]), PLAIN, ["variable"]),
    "text": (pa.array(TEXT), PLAIN, ["fsst", "variable"]),
    "urls": (pa.array(URLS), PLAIN, ["fsst", "variable"]),
    "odd_text": (pa.array(ODD), PLAIN, ["fsst", "variable"]),
    "large_text": (pa.array(TEXT, pa.large_string()), PLAIN, ["fsst", "variable"]),
    "runs_i32": (pa.array(RUNS, pa.int32()), PLAIN, ["rle", "flat"]),
    "zstd_text": (pa.array(TEXT), ZSTD, ["general", "variable"]),
    "zstd_i64": (
        pa.array(np.arange(ROWS)),
        ZSTD | {"lance-encoding:bss": "off"},
        ["general", "inline_bitpacking"],
    ),
    "split_f32": (
        pa.array(RNG.random(ROWS), pa.float32()),
        LZ4_SPLIT,
        ["general", "byte_stream_split", "flat"],
    ),
    "split_f64": (
        pa.array(RNG.normal(size=ROWS) * 1e9),
        LZ4_SPLIT,
        ["general", "byte_stream_split", "flat"],
    ),
    "lists": (fixed_lists(6, "float"), PLAIN, ["fixed_size_list", "flat"]),
    "bit_lists": (fixed_lists(8, "bool"), PLAIN, ["fixed_size_list", "flat"]),
    "null_items": (with_null_items(5), PLAIN, ["fixed_size_list", "flat"]),
    "wide_lists": (fixed_lists(128, "float"), PLAIN, ["fixed_size_list", "flat"]),
    "wide_null_items": (with_null_items(100), PLAIN, ["fixed_size_list", "flat"]),
    "words": (pa.array([TEXT[i % 50] for i in range(ROWS)]), PLAIN, ["inline_bitpacking"]),
    "few_f64": (pa.array(RNG.random(20)[RUNS % 20]), PLAIN, None),
}


def written(folder: Path, array: pa.Array, metadata: dict[str, str], version: str) -> list[Page]:
    lance_file = pytest.importorskip("lance.file")
    path = folder / "one.lance"
    schema = pa.schema([pa.field("c", array.type, nullable=False, metadata=metadata)])
    with lance_file.LanceFileWriter(str(path), schema, version=version) as writer:
        writer.write_batch(pa.table([array], schema=schema))
    (column,) = read_columns(path)
    return column


def test_some_text_here_needs_fsst_escapes(tmp_path: Path) -> None:
    require_pylance()
    (page,) = written(tmp_path, *CASES["odd_text"][:2], "2.2")
    encoding = page.layout.mini_block_layout.value_compression
    codes = codecs.decode_chunks(encoding.fsst.values, mini_blocks(page).values)
    assert (codes.data == 255).any()


def values_of(page: Page) -> DataBlock:
    """Decode the values of a page without levels."""
    if page.layout.HasField("full_zip_layout"):
        layout = page.layout.full_zip_layout
        assert layout.bits_rep + layout.bits_def == 0
        data = FixedWidth(layout.bits_per_value, layout.num_items, page.buffers[0])
        return codecs.decode_values(layout.value_compression, data)
    layout = page.layout.mini_block_layout
    values = codecs.decode_chunks(layout.value_compression, mini_blocks(page).values)
    if not layout.HasField("dictionary"):
        return values
    dictionary = single_chunk(layout.num_dictionary_items, page.buffers[2])
    items = codecs.decode_blocks(layout.dictionary, dictionary)
    indices = values.data.view(f"u{values.bits_per_value // 8}")
    return pa.DictionaryArray.from_arrays(pa.array(indices.astype(np.int32)), arrow(items))


def bits(data: np.ndarray, count: int) -> np.ndarray:
    return np.unpackbits(data, count=count, bitorder="little").astype(bool)


def arrow(block: DataBlock) -> pa.Array:
    """Turn a block into an Arrow array of binary values, lists or structs."""
    match block:
        case FixedWidth(1, count, data):
            return pa.array(bits(data, count))
        case FixedWidth(width, count, data):
            buffers = [None, pa.py_buffer(data)]
            return pa.Array.from_buffers(pa.binary(width // 8), count, buffers)
        case VariableWidth(count, offsets, data):
            kind = pa.binary() if offsets.dtype == np.int32 else pa.large_binary()
            buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
            return pa.Array.from_buffers(kind, count, buffers)
        case FixedSizeList(dimension, count, items, validity):
            inner = arrow(items)
            if validity is not None:
                mask = pa.array(bits(validity, count * dimension))
                inner = pa.compute.if_else(mask, inner, None)
            return pa.FixedSizeListArray.from_arrays(inner, dimension)
        case PackedStruct(_, children):
            return pa.StructArray.from_arrays([arrow(child) for child in children], ["a", "b"])
    return block


def plain(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if isinstance(array, pa.DictionaryArray) else array


def raw(array: pa.Array) -> pa.Array:
    """Strip an array of its type, so that it compares with ``arrow``."""
    kind = array.type
    if pa.types.is_fixed_size_list(kind):
        return pa.FixedSizeListArray.from_arrays(raw(array.values), kind.list_size)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return array.cast(pa.large_binary() if pa.types.is_large_string(kind) else pa.binary())
    if pa.types.is_boolean(kind):
        return array
    buffers = [array.buffers()[0], array.buffers()[1]]
    plain = pa.binary(kind.bit_width // 8)
    return pa.Array.from_buffers(plain, len(array), buffers, offset=array.offset)


@pytest.mark.parametrize("form", [Form.NUMPY, Form.COMPILED], ids=["numpy", "compiled"])
@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("name", CASES)
def test_values_are_those_pylance_wrote(
    tmp_path: Path, name: str, version: str, form: Form
) -> None:
    require_pylance()
    import pyarrow.compute  # noqa: F401

    array, metadata, expected = CASES[name]
    pages = written(tmp_path, array, metadata, version)
    layout = getattr(pages[0].layout, pages[0].layout.WhichOneof("layout"))
    if expected is not None:
        assert list(arms(layout.value_compression)) == expected
    with forced(form):
        found = [plain(arrow(values_of(page))) for page in pages]
    assert pa.chunked_array(found).combine_chunks().equals(raw(array))


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("share", [0.01, 0.2, 0.5])
def test_definition_levels_are_those_of_the_nulls(
    tmp_path: Path, version: str, share: float
) -> None:
    require_pylance()
    mask = RNG.random(ROWS) < share
    if share == 0.5:
        mask = np.repeat(mask[: ROWS // 100], 100)
    array = pa.array(RNG.integers(0, 1000, ROWS), pa.int32(), mask=mask)
    lance_file = pytest.importorskip("lance.file")
    path = tmp_path / "nulls.lance"
    with lance_file.LanceFileWriter(str(path), version=version) as writer:
        writer.write_batch(pa.table({"c": array}))
    ((page,),) = read_columns(path)
    block = codecs.decode_blocks(
        page.layout.mini_block_layout.def_compression, mini_blocks(page).definition
    )
    assert np.array_equal(block.data.view(np.uint16), mask)


def test_packed_structs_are_cut_into_their_children(tmp_path: Path) -> None:
    fields = [pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.int16(), nullable=False)]
    numbers = np.arange(ROWS)
    children = [pa.array(numbers * 3), pa.array(numbers % 100, pa.int16())]
    array = pa.StructArray.from_arrays(children, fields=fields)
    require_pylance()
    (page,) = written(tmp_path, array, {"packed": "true"}, "2.2")
    block = values_of(page)
    assert isinstance(block, PackedStruct)
    assert np.array_equal(block.children[0].data.view(np.int64), numbers * 3)
    assert np.array_equal(block.children[1].data.view(np.int16), numbers % 100)
