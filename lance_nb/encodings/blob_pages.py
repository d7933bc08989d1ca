"""The page of a blob column of a 2.1 file: where each payload lies, and how long it is.

Layout: see ``layouts/blob_layout``: a packed struct of two u64, position (from the start of the
data file) and size. A null has size 0 and its definition level in bits 16-31 of the position; an
empty payload is (0, 0).

Limits: the payloads themselves are written by the file floor, 64-byte aligned; no lists of blobs.
Source: message BlobLayout of lance.encodings21; byte layout verified against pylance 14.0.2.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_nb._pb import encodings21
from lance_nb.encodings.base import FixedWidth, PackedStruct
from lance_nb.encodings.compress_base import EncodedPage, PageLevels
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.page_encoder import encode_block
from lance_nb.errors import InternalError, NotSupportedError

Positions = npt.NDArray[np.uint64]


def encode_blob_page(
    positions: Positions, sizes: Positions, levels: PageLevels, options: EncodingOptions
) -> EncodedPage:
    """Encode one page; both arrays have one item per row, those of nulls do not matter.

    Raises NotSupportedError for lists of blobs.
    """
    if levels.repetition is not None:
        raise NotSupportedError("lists of blobs cannot be stored in a 2.1 file")
    if positions.size != levels.num_rows or sizes.size != levels.num_rows:
        raise InternalError(f"{positions.size} blobs for {levels.num_rows} rows")
    places = np.where(sizes > 0, positions, np.uint64(0))
    if levels.definition is not None:
        is_null = levels.definition > 0
        sizes = np.where(is_null, np.uint64(0), sizes)
        places = np.where(is_null, levels.definition.astype(np.uint64) << np.uint64(16), places)
    children = tuple(
        FixedWidth(64, levels.num_rows, np.ascontiguousarray(column).view(np.uint8))
        for column in (places, sizes)
    )
    plain = PageLevels(
        (encodings21.REPDEF_ALL_VALID_ITEM,), None, None, levels.num_rows, 0, levels.num_rows
    )
    inner = encode_block(PackedStruct(levels.num_rows, children), plain, options.plain)
    layout = encodings21.PageLayout()
    layout.blob_layout.inner_layout.CopyFrom(inner.layout)
    layout.blob_layout.layers.extend(levels.layer_enums)
    return EncodedPage(layout, inner.buffers, levels.num_rows)
