"""Which module reads and writes which arm: one line per compressive encoding and page layout.

The module of an arm, of the same name, is imported when a page first uses it: a dataset rarely has
more than three of them. The set of arms is closed by the format: an unknown arm, or an arm in a
role that it does not have, is refused.

Limits: encodings nest at most ``MAX_DEPTH`` deep.
Source: the ``oneof`` of ``CompressiveEncoding`` and of ``PageLayout`` in lance.encodings21.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    Chunks,
    Codecs,
    DataBlock,
    FixedWidth,
    JoiningLayout,
    Layout,
    ValuePlaces,
    VariableWidth,
    corrupt,
)
from lance_nb.encodings.codec import Codec
from lance_nb.errors import NotSupportedError
from lance_nb.value_classes import dataclass

MAX_DEPTH = 20
# Of each arm the class of its codec, which is in the module ``compression/<arm>.py``.
CODECS = {
    "flat": "Flat",
    "variable": "Variable",
    "constant": "Constant",
    "out_of_line_bitpacking": "OutOfLineBitpacking",
    "inline_bitpacking": "InlineBitpacking",
    "fsst": "Fsst",
    "dictionary": "Dictionary",
    "rle": "Rle",
    "byte_stream_split": "ByteStreamSplit",
    "general": "General",
    "fixed_size_list": "FixedSizeList",
    "packed_struct": "PackedStruct",
    "variable_packed_struct": "VariablePackedStruct",
}
# The same for page layouts, in ``layouts/<arm>.py``; blob pages are written by ``page_encoder``.
LAYOUTS = {
    "mini_block_layout": "MiniBlockLayout",
    "constant_layout": "ConstantLayout",
    "full_zip_layout": "FullZipLayout",
    "blob_layout": "BlobLayout",
}


@cache
def codec_of(arm: str) -> Codec:
    """Return the codec of an arm of ``CompressiveEncoding``."""
    codec: Codec = _class("compression", arm, CODECS[arm])()
    return codec


@cache
def layout_of(arm: str) -> Layout:
    """Return the layout of an arm of ``PageLayout``."""
    make = _class("layouts", arm, LAYOUTS[arm])
    layout: Layout = make(layout_of) if arm == "blob_layout" else make()
    return layout


@cache  # isinstance of a protocol is slow
def joining_layout_of(arm: str) -> JoiningLayout | None:
    """Return the layout if it can join pages."""
    layout = layout_of(arm)
    return layout if isinstance(layout, JoiningLayout) else None


def _class(folder: str, arm: str, name: str) -> Any:
    return getattr(import_module(f"lance_nb.encodings.{folder}.{arm}"), name)


@dataclass(frozen=True, slots=True)
class _Lookup:
    """The ``Codecs`` handed to a codec; each level of nesting sees one with less depth left."""

    depth_left: int

    def decode_chunks(self, encoding: encodings21.CompressiveEncoding, chunks: Chunks) -> DataBlock:
        """Decode the value buffers of mini-block chunks."""
        codec, message = self._codec(encoding)
        needed = codec.num_buffers(message, self._child())
        if len(chunks.buffers) < needed:
            raise corrupt(
                f"{needed} value buffers in each chunk for encoding {codec.arm!r}",
                f"{len(chunks.buffers)} buffers",
            )
        return codec.decode_chunks(message, chunks, self._child())

    def num_buffers(self, encoding: encodings21.CompressiveEncoding) -> int:
        """Return how many mini-block value buffers the encoding uses."""
        codec, message = self._codec(encoding)
        return codec.num_buffers(message, self._child())

    def decode_blocks(self, encoding: encodings21.CompressiveEncoding, blocks: Chunks) -> DataBlock:
        """Decode block-compressed buffers."""
        codec, message = self._codec(encoding)
        if len(blocks.buffers) != 1:
            raise corrupt("one buffer per block", f"{len(blocks.buffers)} buffers")
        return codec.decode_blocks(message, blocks, self._child())

    def decode_values(
        self, encoding: encodings21.CompressiveEncoding, values: FixedWidth | VariableWidth
    ) -> DataBlock:
        """Decode values that were stored one by one."""
        codec, message = self._codec(encoding)
        return codec.decode_values(message, values, self._child())

    def can_gather(self, encoding: encodings21.CompressiveEncoding) -> bool:
        """Tell whether single values can be fetched without decoding their chunks."""
        codec, message = self._codec(encoding)
        return codec.can_gather(message, self._child())

    def gather(
        self, encoding: encodings21.CompressiveEncoding, chunks: Chunks, request: ValuePlaces
    ) -> DataBlock:
        """Fetch single values of mini-block chunks."""
        codec, message = self._codec(encoding)
        if not request.vouches:
            _check_wanted(chunks, request)
        return codec.gather(message, chunks, request, self._child())

    def _codec(self, encoding: encodings21.CompressiveEncoding) -> tuple[Codec, Any]:
        """Return the codec of the arm that is set, and the message of the arm."""
        if self.depth_left == 0:
            raise NotSupportedError(f"encodings nested over {MAX_DEPTH} deep are not supported")
        arm = encoding.WhichOneof("compression")
        if arm is None:
            raise NotSupportedError(
                "a page uses a compressive encoding that this release of lance_nb does not know"
            )
        return codec_of(arm), getattr(encoding, arm)

    def _child(self) -> _Lookup:
        return _LOOKUPS[self.depth_left - 1]


def _check_wanted(chunks: Chunks, request: ValuePlaces) -> None:
    """Refuse chunks and positions that do not exist."""
    if not chunks.buffers:
        raise corrupt("a value buffer in each chunk", "none")
    count = chunks.num_values.size
    # Seen without a sign, what is negative is too large: one look instead of two.
    if not request.chunk.size:
        return
    if int(np.maximum.reduce(request.chunk.view(np.uint64))) >= count:
        raise corrupt(f"chunks below {count}", f"chunk {int(request.chunk.max())}")
    outside = request.position.view(np.uint64) >= chunks.num_values[request.chunk].view(np.uint64)
    if np.logical_or.reduce(outside):
        position = int(request.position[outside][0])
        raise corrupt("positions inside their chunk", f"position {position}")


_LOOKUPS = tuple(_Lookup(depth) for depth in range(MAX_DEPTH + 1))

codecs: Codecs = _LOOKUPS[MAX_DEPTH]
