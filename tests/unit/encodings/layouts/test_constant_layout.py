"""Constant pages from bytes written out by hand, and everything that is refused in them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_nb import LanceFileReader, LanceFileWriter
from lance_nb._pb import encodings21 as pb
from lance_nb.encodings.arrow_arrays import to_arrow
from lance_nb.encodings.base import AllNull, Constant, FixedWidth, VariableWidth
from lance_nb.encodings.page_encoder import LAYOUT_ENCODERS
from lance_nb.encodings.repdef import unravel
from lance_nb.errors import CorruptFileError
from tests.conformance.codec_tests import check_page, options
from tests.support.encoded_files import encode_column
from tests.support.pages import Page, constant, flat, u16, u32, u64
from tests.support.reading import rows_of, single_rows
from tests.support.shredding import rebuild, shred

ITEM, NULLABLE = pb.REPDEF_ALL_VALID_ITEM, pb.REPDEF_NULLABLE_ITEM
LIST, STRUCT_ROWS = pb.REPDEF_NULL_AND_EMPTY_LIST, [(7,), None, (None,), (7,)]
RLE = pb.CompressiveEncoding(rle=pb.Rle(values=flat(16), run_lengths=flat(8)))


def page(*buffers: bytes, rows: int = 3, version: tuple[int, int] = (2, 2), **fields: Any) -> Page:
    fields.setdefault("layers", [ITEM])
    return Page("constant_layout", pb.ConstantLayout(**fields), buffers, rows, version)


@pytest.mark.parametrize("version", [(2, 1), (2, 2)])
def test_a_page_without_value_is_all_null(version: tuple[int, int]) -> None:
    found = page(layers=[NULLABLE], version=version).decode(rows_of((1, 3)))
    assert found.values == AllNull(2)
    assert to_arrow(found.values, pa.int32()).null_count == 2


def test_an_inline_value_is_repeated() -> None:
    found = page(inline_value=u32(42)).decode(single_rows([0, 2]))
    assert to_arrow(found.values, pa.int32()).to_pylist() == [42, 42]


@pytest.mark.parametrize(("value", "expected"), [(b"\1", True), (b"\0", False)])
def test_a_boolean_is_one_byte(value: bytes, expected: bool) -> None:
    found = page(inline_value=value).decode(rows_of((0, 3)))
    assert to_arrow(found.values, pa.bool_()).to_pylist() == [expected] * 3


@pytest.mark.parametrize("width", [1, 2, 16, 32])
def test_inline_values_of_any_width(width: int) -> None:
    found = page(inline_value=bytes(range(width))).decode(rows_of((0, 2)))
    assert to_arrow(found.values, pa.binary(width)).to_pylist() == [bytes(range(width))] * 2


SCALARS = [
    (
        bytes.fromhex("02000000080000000a000000000000000a000000") + b"same value",
        pa.string(),
        "same value",
    ),
    (u32(2, 16, 3) + u64(0, 3) + b"xyz", pa.large_string(), "xyz"),
    (u32(2, 8, 0) + u32(0, 0), pa.binary(), b""),
    (u32(1, 40) + bytes(range(40)), pa.binary(40), bytes(range(40))),
]


@pytest.mark.parametrize(("scalar", "kind", "expected"), SCALARS)
def test_scalar_buffers_of_the_reference(scalar: bytes, kind: pa.DataType, expected: Any) -> None:
    found = page(scalar).decode(rows_of((0, 3)))
    assert to_arrow(found.values, kind).to_pylist() == [expected] * 3


def test_a_constant_with_nulls_has_raw_definition_levels() -> None:
    built = page(b"", u16(0, 1, 0), layers=[NULLABLE], inline_value=u32(5))
    found = built.decode(rows_of((0, 3)))
    assert rebuild(unravel(found), [5, 5, 5], ["leaf"]) == [5, None, 5]
    found = built.decode(single_rows([1]))
    assert rebuild(unravel(found), [5], ["leaf"]) == [None]


def test_a_scalar_buffer_with_levels_comes_first() -> None:
    built = page(SCALARS[1][0], b"", u16(1, 0, 0), layers=[NULLABLE])
    found = built.decode(rows_of((0, 3)))
    assert isinstance(found.values, Constant)
    assert isinstance(found.values.value, VariableWidth)
    assert unravel(found)[0].validity.tolist() == [False, True, True]


def test_empty_and_null_lists() -> None:
    built = page(u16(1, 1, 1), u16(2, 1, 2), layers=[ITEM, LIST])
    found = built.decode(rows_of((0, 3)))
    assert found.values == AllNull(0)
    assert rebuild(unravel(found), [], ["list", "leaf"]) == [[], None, []]


def test_compressed_levels() -> None:
    reps = u64(2) + u16(1) + bytes([200])
    definitions = u64(4) + u16(1, 2) + bytes([150, 50])
    built = page(
        reps,
        definitions,
        rows=200,
        layers=[ITEM, LIST],
        rep_compression=RLE,
        def_compression=RLE,
        num_rep_values=200,
        num_def_values=200,
    )
    found = built.decode(rows_of((140, 160)))
    assert rebuild(unravel(found), [], ["list", "leaf"]) == [None] * 10 + [[]] * 10


@pytest.mark.parametrize("compressed", [True, False])
def test_constants_inside_nesting(compressed: bool) -> None:
    rows = [[7, None], [], None, [7], [7, 7, 7]]
    built = constant(shred(rows, ["list", "leaf"]), u32(7), compressed=compressed)
    for wanted in ([0], [1, 2], [0, 3], [4], [0, 1, 2, 3, 4]):
        found = built.decode(single_rows(wanted))
        leaves = [7] * found.values.num_values
        assert rebuild(unravel(found), leaves, ["list", "leaf"]) == [rows[one] for one in wanted]
    built = constant(shred(STRUCT_ROWS, ["struct", "leaf"]), u32(7))
    found = built.decode(rows_of((0, 4)))
    assert rebuild(unravel(found), [7] * 4, ["struct", "leaf"]) == STRUCT_ROWS


def test_nothing_is_left_to_read() -> None:
    assert list(page(inline_value=b"\1").open().spans(rows_of((0, 3)))) == []


def test_a_huge_page_costs_nothing_until_it_is_shown() -> None:
    found = page(rows=2**48, layers=[NULLABLE]).decode(rows_of((2**47, 2**47 + 5)))
    assert found.values == AllNull(5)


REFUSED: dict[str, tuple[Page, str]] = {
    "four buffers": (page(b"", b"", b"", b""), "at most 3"),
    "no layers": (page(layers=[]), "at least one"),
    "an empty inline value": (page(inline_value=b""), "1 to 32 bytes"),
    "a long inline value": (page(inline_value=bytes(33)), "1 to 32 bytes"),
    "two values": (page(SCALARS[0][0], inline_value=b"\1"), "no scalar buffer beside"),
    "a value in a 2.1 file": (page(inline_value=b"\1", version=(2, 1)), "all-null constant page"),
    "a scalar in a 2.1 file": (page(SCALARS[0][0], version=(2, 1)), "all-null constant page"),
    "a short scalar": (page(b"\1\0\0"), "at least 4 bytes"),
    "no scalar buffers": (page(u32(0)), "scalar buffers"),
    "three scalar buffers": (page(u32(3, 1, 1, 1) + b"abc"), "scalar buffers"),
    "scalar lengths cut off": (page(u32(2, 8)), "scalar buffers"),
    "a scalar cut off": (page(SCALARS[0][0][:-1]), "18 bytes of scalar"),
    "scalar lengths that overflow": (page(u32(2, 2**32 - 1, 2**32 - 1)), "bytes of scalar"),
    "three offsets": (page(u32(2, 12, 1, 0, 1, 1) + b"a"), "a pair of offsets"),
    "offsets that miss the bytes": (page(u32(2, 8, 2, 0, 1) + b"ab"), "offsets 0 and 2"),
    "offsets that start late": (page(u32(2, 8, 2, 1, 2) + b"ab"), "offsets 0 and 2"),
    "odd levels": (page(b"", u16(0, 0, 0) + b"\0", layers=[NULLABLE]), "16-bit levels"),
    "8-bit levels": (
        page(b"", b"\0\0\0", layers=[NULLABLE], def_compression=flat(8), num_def_values=3),
        "16-bit levels",
    ),
    "an absurd count of levels": (
        page(b"", b"\0", layers=[NULLABLE], def_compression=flat(16), num_def_values=2**64 - 1),
        "damaged",
    ),
    "a level out of range": (page(b"", u16(0, 2, 0), layers=[NULLABLE]), "levels up to 1"),
    "a repetition out of range": (page(u16(1, 2, 1), b"", layers=[ITEM, LIST]), "levels up to 1"),
    "too few levels": (page(b"", u16(0, 1), layers=[NULLABLE]), "levels for 3 rows"),
    "too few rows": (page(u16(1, 0, 1), b"", layers=[ITEM, LIST]), "levels for 3 rows"),
    "no repetition levels": (page(layers=[ITEM, LIST]), "repetition levels on a page of lists"),
    "levels of two lengths": (
        page(u16(1, 1, 1), u16(0, 0), layers=[ITEM, LIST]),
        "3 definition levels, found 2",
    ),
    "a page that begins inside a list": (
        page(u16(0, 1, 1, 1), b"", layers=[ITEM, LIST]),
        "begins with a new row",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_damaged_page_is_refused(name: str) -> None:
    built, reason = REFUSED[name]
    with pytest.raises(CorruptFileError, match=reason):
        unravel(built.decode(rows_of((0, built.num_rows))))


def test_a_scalar_of_the_wrong_width_does_not_become_that_type() -> None:
    found = page(u32(1, 3) + b"abc").decode(rows_of((0, 1)))
    assert found.values == Constant(1, found.values.value)
    assert isinstance(found.values.value, FixedWidth)
    assert np.array_equal(found.values.value.data, np.frombuffer(b"abc", np.uint8))
    with pytest.raises(CorruptFileError, match="values of type int32"):
        to_arrow(found.values, pa.int32())


def test_a_page_of_lists_without_rows() -> None:
    built = replace(page(b"", b"", layers=[ITEM, LIST]), num_rows=0)
    assert unravel(built.decode(rows_of()))[0].length == 0


V2_1, V2_2 = options({}, (2, 1)), options({}, (2, 2))
LIST_WRITTEN = pa.list_(pa.int32())


def layout_of(array: pa.Array, version: tuple[int, int] = (2, 2)) -> str:
    return str(check_page(array, options({}, version)).layout.WhichOneof("layout"))


def test_nothing_but_nulls_needs_no_buffer() -> None:
    for field_options in (V2_1, V2_2):
        assert encode_column(pa.nulls(9, pa.int32()), field_options).buffers == ()


@pytest.mark.parametrize("version", [(2, 1), (2, 2)])
def test_empty_and_null_lists_are_levels_only(version: tuple[int, int]) -> None:
    assert layout_of(pa.array([[], None] * 900, LIST_WRITTEN), version) == "constant_layout"


def test_levels_without_values_are_compressed_from_2_2_on() -> None:
    lists = pa.array([[]] * 900, LIST_WRITTEN)
    assert sum(len(buffer) for buffer in encode_column(lists, V2_1).buffers) == 4 * 900
    assert sum(len(buffer) for buffer in encode_column(lists, V2_2).buffers) < 60


def test_validity_of_structs_without_lists_is_compressed_too(tmp_path: Path) -> None:
    rows = [None, {"a": None}] * 5_000
    sizes = []
    for version in ("2.1", "2.2"):
        path = str(tmp_path / version)
        table = pa.table({"s": pa.array(rows, pa.struct([("a", pa.int32())]))})
        with LanceFileWriter(path, table.schema, version=version) as writer:
            writer.write_batch(table)
        assert LanceFileReader(path).read_all().to_table().equals(table)
        sizes.append(Path(path).stat().st_size)
    assert sizes[0] > 20_000  # 16 bits a row, as 2.1 has them
    assert sizes[1] < 5_000


def test_one_value_is_kept_once() -> None:
    assert layout_of(pa.array([7] * 500)) == "constant_layout"
    assert layout_of(pa.array([7] * 499 + [8])) == "mini_block_layout"
    assert layout_of(pa.array([7] * 500), (2, 1)) == "mini_block_layout"


def test_beside_levels_only_wide_values_stay_single() -> None:
    assert layout_of(pa.array([7, None] * 500)) == "mini_block_layout"
    assert layout_of(pa.array([1.5, None] * 500, pa.float32())) == "constant_layout"
    assert layout_of(pa.array([[1.5], None, []] * 500, pa.list_(pa.float32()))) == "constant_layout"


def test_it_stands_above_the_others() -> None:
    assert set(LAYOUT_ENCODERS) == {"mini_block_layout", "constant_layout", "full_zip_layout"}
