"""Blob pages of 2.1 files: payloads lie elsewhere in the file, the page says where.

Layout: an inner page (a packed struct of two u64) gives position and size of each payload, position
counted from the start of the data file. Where the size is 0 the position holds levels instead:
repetition in bits 0-15, definition in bits 16-31; so an empty payload is (0, 0) and a null one is
(65536, 0) for a plain nullable column.

Limits: the layers of the inner page are all valid. Not supported: lists of blobs.
Source: message BlobLayout of lance.encodings21; byte layout verified against pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    Bytes,
    Codecs,
    DecodedPage,
    FixedWidth,
    Layout,
    Levels,
    PackedStruct,
    PageBuffer,
    PageReader,
    PageShape,
    Rows,
    Span,
    corrupt,
)
from lance_nb.encodings.repdef import check_layers, check_levels, max_definition, num_list_layers
from lance_nb.errors import NotSupportedError

_DEFINITION_SHIFT = np.uint64(16)


class BlobLayout:
    """The layout arm. ``layout_of`` finds the layout of the inner page."""

    def __init__(self, layout_of: Callable[[str], Layout]) -> None:
        self._layout_of = layout_of

    def index_buffers(self, layout: encodings21.BlobLayout, shape: PageShape) -> tuple[int, ...]:
        """Ask for what the inner page needs."""
        inner, message = self._inner(layout)
        return inner.index_buffers(message, shape)

    def open(
        self,
        layout: encodings21.BlobLayout,
        shape: PageShape,
        buffers: Mapping[int, Bytes],
        codecs: Codecs,
    ) -> PageReader:
        """Open the inner page."""
        inner, message = self._inner(layout)
        layers = check_layers(layout.layers)
        if num_list_layers(layers):
            raise NotSupportedError("lists of blobs cannot be read by this release")
        return BlobPage(inner.open(message, shape, buffers, codecs), layers)

    def _inner(self, layout: encodings21.BlobLayout) -> tuple[Layout, object]:
        arm = layout.inner_layout.WhichOneof("layout")
        if arm is None or arm == "blob_layout":
            raise corrupt("a page of positions and sizes inside a blob page", f"{arm!r}")
        return self._layout_of(arm), getattr(layout.inner_layout, arm)


class BlobPage:
    """One opened blob page: decodes to (position, size) structs."""

    def __init__(self, inner: PageReader, layers: tuple[int, ...]) -> None:
        self._inner = inner
        self._layers = layers

    def spans(self, rows: Rows) -> Sequence[Span]:
        """Ask for what the inner page needs."""
        return self._inner.spans(rows)

    def decode(self, rows: Rows, buffers: Mapping[int, PageBuffer]) -> DecodedPage:
        """Decode the pairs and take the levels out of the positions."""
        values = self._inner.decode(rows, buffers).values
        if not isinstance(values, PackedStruct) or len(values.children) != 2:
            raise corrupt("pairs of position and size", type(values).__name__)
        position, size = (_u64(child) for child in values.children)
        definition = self._definition(position, size)
        return DecodedPage(values, None, definition, self._layers)

    def _definition(
        self, position: np.ndarray[tuple[int], np.dtype[np.uint64]], size: np.ndarray
    ) -> Levels | None:
        if not max_definition(self._layers):
            return None
        levels = np.where(size == 0, position >> _DEFINITION_SHIFT, np.uint64(0))
        if levels.size and int(levels.max()) > max_definition(self._layers):
            most = max_definition(self._layers)
            expected = f"definition levels in the position of empty blobs up to {most}"
            raise corrupt(expected, str(int(levels.max())))
        definition = levels.astype(np.uint16)
        check_levels(None, definition, self._layers)
        return definition


def _u64(block: object) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    if not isinstance(block, FixedWidth) or block.bits_per_value != 64:
        raise corrupt("64-bit positions and sizes", type(block).__name__)
    return block.data.view(np.uint64)
