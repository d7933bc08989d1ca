"""Pages of blob columns of the first generation, for writing: where each payload lies.

Layout: see layouts/blob_layout.py: (position u64, size u64) per row in an inner page without
levels. A payload of no bytes has size 0, and its definition in bits 16-31 of the position.

Not supported: lists of blobs.
Source: message BlobLayout of lance.encodings21; pages of pylance 14.0.2.
"""

from __future__ import annotations

import numpy as np

from lance_nb._pb import encodings21 as pb
from lance_nb.encodings.base import FixedWidth, Ints, PackedStruct
from lance_nb.encodings.compress_base import EncodedPage, PageLevels
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.page_encoder import encode_block
from lance_nb.errors import NotSupportedError

_DEFINITION_SHIFT = np.uint64(16)


def encode_blob_page(
    positions: Ints, sizes: Ints, levels: PageLevels, file_version: tuple[int, int]
) -> EncodedPage:
    """Encode where the payloads of a page lie; positions count from the start of the file."""
    if levels.repetition is not None:
        raise NotSupportedError("lists of blobs cannot be stored")
    places = positions.astype(np.uint64)
    none = sizes == 0
    places[none] = 0
    if levels.definition is not None:
        places[none] = levels.definition[none].astype(np.uint64) << _DEFINITION_SHIFT
    count = positions.size
    block = PackedStruct(
        count,
        (
            FixedWidth(64, count, places.view(np.uint8)),
            FixedWidth(64, count, sizes.astype(np.uint64).view(np.uint8)),
        ),
    )
    plain = PageLevels((pb.REPDEF_ALL_VALID_ITEM,), None, None, count, 0, count)
    options = EncodingOptions(file_version=file_version, compression="none", is_packed=True)
    inner = encode_block(block, plain, options)
    layout = pb.BlobLayout(inner_layout=inner.layout, layers=levels.layers)  # type: ignore[arg-type]
    return EncodedPage(pb.PageLayout(blob_layout=layout), inner.buffers, levels.num_rows)
