"""Writing pages of one value or none."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lance_nb import LanceFileReader, LanceFileWriter
from lance_nb.encodings.choose import LAYOUT_ENCODERS
from tests.conformance.codec_tests import check_page, options
from tests.support.encoded_files import encode_column

V2_1, V2_2 = options({}, (2, 1)), options({}, (2, 2))
LIST = pa.list_(pa.int32())


def layout_of(array: pa.Array, version: tuple[int, int] = (2, 2)) -> str:
    return str(check_page(array, options({}, version)).layout.WhichOneof("layout"))


def test_nothing_but_nulls_needs_no_buffer() -> None:
    for field_options in (V2_1, V2_2):
        assert encode_column(pa.nulls(9, pa.int32()), field_options).buffers == ()


@pytest.mark.parametrize("version", [(2, 1), (2, 2)])
def test_empty_and_null_lists_are_levels_only(version: tuple[int, int]) -> None:
    assert layout_of(pa.array([[], None] * 900, LIST), version) == "constant_layout"


def test_levels_without_values_are_compressed_from_2_2_on() -> None:
    lists = pa.array([[]] * 900, LIST)
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
