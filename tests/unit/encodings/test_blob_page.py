"""Pages that say where blobs lie."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb._pb import encodings21 as pb
from lance_nb.encodings.blob_page import encode_blob_page
from lance_nb.encodings.page_encoder import PageLevels
from lance_nb.errors import NotSupportedError
from tests.support.encoded_files import decode_column

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
