"""Which module reads and writes which arm: one line per compressive encoding and page layout.

The module of an arm, of the same name, is imported when a page first uses it: a dataset rarely has
more than three of them. A codec plays the roles that its arm has in the format, as methods of the
protocols below; it never imports a sibling but decodes its children through the ``codecs`` it is
handed. The set of arms is closed by the format: an unknown arm, or an arm in a role that it does
not have, is refused.

Limits: encodings nest at most ``MAX_DEPTH`` deep.
Source: the ``oneof`` of ``CompressiveEncoding`` and of ``PageLayout`` in lance.encodings21.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

import numpy as np

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    Chunks,
    Codecs,
    DataBlock,
    FixedWidth,
    JoiningLayout,
    Layout,
    VariableWidth,
    Wanted,
    corrupt,
)
from lance_nb.errors import NotSupportedError
from lance_nb.value_classes import dataclass

MAX_DEPTH = 20
# Of each arm the classes that decode and, where it is written, encode it; they are in the module
# ``compression/<arm>.py``.
CODECS = {
    "flat": ("Flat", "FlatCompressor"),
    "variable": ("Variable", "VariableCompressor"),
    "constant": ("Constant", ""),
    "out_of_line_bitpacking": ("OutOfLineBitpacking", "OutOfLineBitpackingCompressor"),
    "inline_bitpacking": ("InlineBitpacking", "InlineBitpackingCompressor"),
    "fsst": ("Fsst", "FsstCompressor"),
    "dictionary": ("Dictionary", ""),
    "rle": ("Rle", "RleCompressor"),
    "byte_stream_split": ("ByteStreamSplit", "ByteStreamSplitCompressor"),
    "general": ("General", "GeneralCompressor"),
    "fixed_size_list": ("FixedSizeList", "FixedSizeListCompressor"),
    "packed_struct": ("PackedStruct", "PackedStructCompressor"),
    "variable_packed_struct": ("VariablePackedStruct", "VariablePackedStructCompressor"),
}
# The same for page layouts, in ``layouts/<arm>.py``; blob pages are written by ``page_encoder``.
LAYOUTS = {
    "mini_block_layout": ("MiniBlockLayout", "MiniBlockLayoutEncoder"),
    "constant_layout": ("ConstantLayout", "ConstantLayoutEncoder"),
    "full_zip_layout": ("FullZipLayout", "FullZipLayoutEncoder"),
    "blob_layout": ("BlobLayout", ""),
}


# In every role, ``encoding`` is the arm's own message (``encoding.flat``, ``encoding.rle`` ...).
class Codec(Protocol):
    """What all arms have in common: nothing but the roles below, at least one of them."""


@runtime_checkable
class MiniBlockCodec(Protocol):
    """Decodes the value buffers of mini-block chunks."""

    def num_buffers(self, encoding: Any, codecs: Codecs) -> int:
        """Return how many value buffers of each chunk belong to the encoding."""
        ...

    def decode_chunks(self, encoding: Any, chunks: Chunks, codecs: Codecs) -> DataBlock:
        """Decode the first ``num_buffers`` buffers of all chunks."""
        ...


@runtime_checkable
class BlockCodec(Protocol):
    """Decodes opaque blocks of one buffer each."""

    def decode_blocks(self, encoding: Any, blocks: Chunks, codecs: Codecs) -> DataBlock:
        """Decode the first buffer of all blocks."""
        ...


@runtime_checkable
class PerValueCodec(Protocol):
    """Decodes values that were stored one by one."""

    def decode_values(
        self, encoding: Any, values: FixedWidth | VariableWidth, codecs: Codecs
    ) -> DataBlock:
        """Decode every value."""
        ...


@runtime_checkable
class GatherCodec(Protocol):
    """Fetches single values out of mini-block chunks, if the description lets it."""

    def can_gather(self, encoding: Any, codecs: Codecs) -> bool:
        """Tell whether this description lets single values be fetched."""
        ...

    def gather(self, encoding: Any, chunks: Chunks, request: Wanted, codecs: Codecs) -> DataBlock:
        """Fetch the wanted values, in their order."""
        ...


@cache
def codec_of(arm: str) -> Codec:
    """Return the codec that decodes an arm of ``CompressiveEncoding``."""
    codec: Codec = _class("compression", arm, CODECS[arm][0])()
    return codec


@cache
def layout_of(arm: str) -> Layout:
    """Return the layout that opens the pages of an arm of ``PageLayout``."""
    make = _class("layouts", arm, LAYOUTS[arm][0])
    layout: Layout = make(layout_of) if arm == "blob_layout" else make()
    return layout


@cache  # isinstance of a protocol is slow
def joining_layout_of(arm: str) -> JoiningLayout | None:
    """Return the layout if it can join pages."""
    layout = layout_of(arm)
    return layout if isinstance(layout, JoiningLayout) else None


def codec_encoders() -> dict[str, Any]:
    """Return an encoder for each arm of ``CompressiveEncoding`` that is written."""
    return {arm: _class("compression", arm, name)() for arm, (_, name) in CODECS.items() if name}


def layout_encoders() -> dict[str, Any]:
    """Return an encoder for each arm of ``PageLayout`` that is written from leaf values."""
    return {arm: _class("layouts", arm, name)() for arm, (_, name) in LAYOUTS.items() if name}


def _class(folder: str, arm: str, name: str) -> Any:
    return getattr(import_module(f"lance_nb.encodings.{folder}.{arm}"), name)


def _lookup_in_role(role: Any) -> Callable[[str], Any]:
    """Return a function from an arm to its codec, None if that lacks the role."""

    @cache  # isinstance of a protocol is slow
    def codec_in_role(arm: str) -> Any:
        codec = codec_of(arm)
        return codec if isinstance(codec, role) else None

    return codec_in_role


_mini_block: Callable[[str], MiniBlockCodec | None] = _lookup_in_role(MiniBlockCodec)
_block: Callable[[str], BlockCodec | None] = _lookup_in_role(BlockCodec)
_per_value: Callable[[str], PerValueCodec | None] = _lookup_in_role(PerValueCodec)
_gather: Callable[[str], GatherCodec | None] = _lookup_in_role(GatherCodec)


@dataclass(frozen=True, slots=True)
class _Lookup:
    """The ``Codecs`` handed to a codec; each level of nesting sees one with less depth left."""

    depth_left: int

    def decode_chunks(self, encoding: encodings21.CompressiveEncoding, chunks: Chunks) -> DataBlock:
        """Decode the value buffers of mini-block chunks."""
        arm = self._arm(encoding)
        codec = _mini_block(arm)
        if codec is None:
            raise _refused(arm, "in mini-block chunks")
        needed = codec.num_buffers(getattr(encoding, arm), self._child())
        if len(chunks.buffers) < needed:
            raise corrupt(
                f"{needed} value buffers in each chunk for encoding {arm!r}",
                f"{len(chunks.buffers)} buffers",
            )
        return codec.decode_chunks(getattr(encoding, arm), chunks, self._child())

    def num_buffers(self, encoding: encodings21.CompressiveEncoding) -> int:
        """Return how many mini-block value buffers the encoding uses."""
        arm = self._arm(encoding)
        codec = _mini_block(arm)
        if codec is None:
            raise _refused(arm, "in mini-block chunks")
        return codec.num_buffers(getattr(encoding, arm), self._child())

    def decode_blocks(self, encoding: encodings21.CompressiveEncoding, blocks: Chunks) -> DataBlock:
        """Decode block-compressed buffers."""
        arm = self._arm(encoding)
        codec = _block(arm)
        if codec is None:
            raise _refused(arm, "for a block")
        if len(blocks.buffers) != 1:
            raise corrupt("one buffer per block", f"{len(blocks.buffers)} buffers")
        return codec.decode_blocks(getattr(encoding, arm), blocks, self._child())

    def decode_values(
        self, encoding: encodings21.CompressiveEncoding, values: FixedWidth | VariableWidth
    ) -> DataBlock:
        """Decode values that were stored one by one."""
        arm = self._arm(encoding)
        codec = _per_value(arm)
        if codec is None:
            raise _refused(arm, "value by value (full-zip)")
        return codec.decode_values(getattr(encoding, arm), values, self._child())

    def can_gather(self, encoding: encodings21.CompressiveEncoding) -> bool:
        """Tell whether single values can be fetched without decoding their chunks."""
        arm = self._arm(encoding)
        codec = _gather(arm)
        if codec is None:
            return False
        return codec.can_gather(getattr(encoding, arm), self._child())

    def gather(
        self, encoding: encodings21.CompressiveEncoding, chunks: Chunks, request: Wanted
    ) -> DataBlock:
        """Fetch single values of mini-block chunks."""
        arm = self._arm(encoding)
        codec = _gather(arm)
        if codec is None:
            raise _refused(arm, "for fetching single values")
        if not request.vouches:
            _check_wanted(chunks, request)
        return codec.gather(getattr(encoding, arm), chunks, request, self._child())

    def _arm(self, encoding: encodings21.CompressiveEncoding) -> str:
        if self.depth_left == 0:
            raise NotSupportedError(f"encodings nested over {MAX_DEPTH} deep are not supported")
        arm = encoding.WhichOneof("compression")
        if arm is None:
            raise NotSupportedError(
                "a page uses a compressive encoding that this release of lance_nb does not know"
            )
        return str(arm)

    def _child(self) -> _Lookup:
        return _LOOKUPS[self.depth_left - 1]


def _check_wanted(chunks: Chunks, request: Wanted) -> None:
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


def _refused(arm: str, role: str) -> NotSupportedError:
    return NotSupportedError(f"compressive encoding {arm!r} is not supported {role}")


_LOOKUPS = tuple(_Lookup(depth) for depth in range(MAX_DEPTH + 1))

codecs: Codecs = _LOOKUPS[MAX_DEPTH]
