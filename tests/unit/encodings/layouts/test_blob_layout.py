"""Blob pages by hand: pairs of position and size, with levels where the size is 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_nb._pb import encodings21 as pb
from lance_nb.encodings.base import PackedStruct
from lance_nb.encodings.page_encoder import PageLevels, encode_blob_page
from lance_nb.encodings.repdef import unravel
from lance_nb.errors import CorruptFileError, NotSupportedError
from tests.support.encoded_files import decode_column
from tests.support.pages import Page, chunk, flat, u16, u64
from tests.support.reading import rows_of, single_rows

PAIRS = [(4096, 10), (0, 0), (65536, 0), (4160, 7)]
PACKED = pb.CompressiveEncoding(
    packed_struct=pb.PackedStruct(bits_per_value=[64, 64], values=flat(128))
)


def blobs(
    pairs: list[tuple[int, int]] = PAIRS,
    layers: tuple[int, ...] = (pb.REPDEF_NULLABLE_ITEM,),
    values: pb.CompressiveEncoding = PACKED,
) -> Page:
    """A page of file version 2.1, with one chunk."""
    data = b"".join(u64(*pair) for pair in pairs)
    body = chunk(0, data, sizes=u16(len(data)))
    inner = pb.MiniBlockLayout(
        value_compression=values,
        layers=[pb.REPDEF_ALL_VALID_ITEM],
        num_buffers=1,
        num_items=len(pairs),
    )
    message = pb.BlobLayout(inner_layout=pb.PageLayout(mini_block_layout=inner), layers=layers)
    words = u16((len(body) // 8 - 1) << 4)
    return Page("blob_layout", message, (words, body), len(pairs), (2, 1))


def pairs_of(found: Any) -> list[tuple[int, int]]:
    assert isinstance(found.values, PackedStruct)
    columns = [child.data.view("<u8").tolist() for child in found.values.children]
    return list(zip(*columns, strict=True))


@pytest.mark.parametrize("whole", [True, False])
def test_positions_sizes_and_nulls(whole: bool) -> None:
    found = blobs().decode(rows_of((0, 4)), whole=whole)
    assert pairs_of(found) == PAIRS
    (level,) = unravel(found)
    assert level.validity is not None
    assert level.validity.tolist() == [True, True, False, True]
    assert pairs_of(blobs().decode(single_rows([1, 3]), whole=whole)) == [PAIRS[1], PAIRS[3]]


def test_a_page_without_nulls_has_no_levels() -> None:
    found = blobs(PAIRS[:2], layers=(pb.REPDEF_ALL_VALID_ITEM,)).decode(rows_of((0, 2)))
    assert found.definition is None


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (blobs([(2 << 16, 0)]), "definition levels in the position"),
        (blobs(layers=()), "at least one"),
        (blobs(values=flat(128)), "pairs of position and size"),
        (Page("blob_layout", pb.BlobLayout(), (b"", b""), 3, (2, 1)), "inside a blob page"),
    ],
)
def test_a_damaged_page_is_refused(page: Page, reason: str) -> None:
    with pytest.raises(CorruptFileError, match=reason):
        page.decode(rows_of((0, page.num_rows)))


def test_a_blob_page_inside_a_blob_page_is_refused() -> None:
    inner = pb.PageLayout(blob_layout=pb.BlobLayout())
    page = Page("blob_layout", pb.BlobLayout(inner_layout=inner), (), 3, (2, 1))
    with pytest.raises(CorruptFileError, match="inside a blob page"):
        page.open()


def test_lists_of_blobs_are_not_supported() -> None:
    layers = (pb.REPDEF_ALL_VALID_ITEM, pb.REPDEF_NULLABLE_LIST)
    with pytest.raises(NotSupportedError, match="lists of blobs"):
        blobs(layers=layers).open()


POSITIONS, SIZES = np.array([64, 7, 9, 128]), np.array([3, 0, 0, 10])


KIND = pa.struct([("position", pa.uint64()), ("size", pa.uint64())])


@pytest.mark.parametrize("nullable", [False, True])
def test_places_read_back(nullable: bool):
    layers = (pb.REPDEF_NULLABLE_ITEM if nullable else pb.REPDEF_ALL_VALID_ITEM,)
    definition = np.array([0, 1, 0, 0], np.uint16) if nullable else None
    levels = PageLevels(layers, None, definition, 4, int(nullable), 4)
    page = encode_blob_page(POSITIONS, SIZES, levels, (2, 1))
    assert page.layout.WhichOneof("layout") == "blob_layout"
    assert tuple(page.layout.blob_layout.layers) == layers
    rows = [(64, 3), None if nullable else (0, 0), (0, 0), (128, 10)]
    expected = [row and {"position": row[0], "size": row[1]} for row in rows]
    assert decode_column(page, KIND, (2, 1)).to_pylist() == expected


def test_lists_are_refused():
    levels = PageLevels((1, 2), np.ones(4, np.uint16), None, 4, 0, 4)
    with pytest.raises(NotSupportedError, match="lists of blobs"):
        encode_blob_page(POSITIONS, SIZES, levels, (2, 1))
