"""What the codec of each arm of ``CompressiveEncoding`` can do, reading and writing.

Values are stored in one of three forms: in the chunks of mini-block pages, in opaque blocks of one
buffer each, or one by one (full-zip). A codec has the methods of the forms that its arm has in the
format; for the others it is refused when reading and never nominated when writing. It never imports
a sibling but decodes and compresses its children through the ``codecs`` and ``compressors`` that it
is handed.
"""

from __future__ import annotations

from typing import Any

from lance_nb.encodings.base import (
    Chunks,
    Codecs,
    DataBlock,
    FixedWidth,
    Ints,
    ValuePlaces,
    VariableWidth,
)
from lance_nb.encodings.compress_base import (
    CompressedBlocks,
    CompressedChunks,
    CompressedValues,
    Compressors,
)
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.statistics import Measured
from lance_nb.errors import InternalError, NotSupportedError


class Codec:
    """The base of codecs. ``encoding`` is the arm's own message, ``encoding.flat`` for example."""

    @property
    def arm(self) -> str:
        """The name of the arm, which is that of the module."""
        return type(self).__module__.rpartition(".")[2]

    def has(self, method: str) -> bool:
        """Tell whether the codec has a method of its own."""
        return getattr(type(self), method) is not getattr(Codec, method)

    # --- reading --------------------------------------------------------------------------------

    def num_buffers(self, encoding: Any, codecs: Codecs) -> int:
        """Return how many value buffers of each mini-block chunk belong to the encoding."""
        return 1

    def decode_chunks(self, encoding: Any, chunks: Chunks, codecs: Codecs) -> DataBlock:
        """Decode the first ``num_buffers`` buffers of all mini-block chunks."""
        raise self._refused("in mini-block chunks")

    def decode_blocks(self, encoding: Any, blocks: Chunks, codecs: Codecs) -> DataBlock:
        """Decode opaque blocks of one buffer each."""
        raise self._refused("for a block")

    def decode_values(
        self, encoding: Any, values: FixedWidth | VariableWidth, codecs: Codecs
    ) -> DataBlock:
        """Decode values that were stored one by one."""
        raise self._refused("value by value (full-zip)")

    def can_gather(self, encoding: Any, codecs: Codecs) -> bool:
        """Tell whether single values can be fetched without decoding their chunks."""
        return False

    def gather(
        self, encoding: Any, chunks: Chunks, request: ValuePlaces, codecs: Codecs
    ) -> DataBlock:
        """Fetch the wanted values of mini-block chunks, in their order."""
        raise self._refused("for fetching single values")

    def _refused(self, role: str) -> NotSupportedError:
        return NotSupportedError(f"compressive encoding {self.arm!r} is not supported {role}")

    # --- writing --------------------------------------------------------------------------------

    def nominate_chunks(self, measured: Measured, options: EncodingOptions) -> int:
        """Return a priority for writing mini-block chunks, 0 to stay away."""
        return 0

    def compress_chunks(
        self, measured: Measured, options: EncodingOptions, compressors: Compressors
    ) -> CompressedChunks:
        """Compress the values and decide how many go into each chunk."""
        raise InternalError(f"{self.arm} does not write chunks")

    def cut(self, measured: Measured, num_values: Ints) -> CompressedChunks:
        """Compress consecutive runs of ``num_values`` values, each into one chunk."""
        raise InternalError(f"{self.arm} does not cut chunks")

    def nominate_blocks(
        self, measured: Measured, num_values: Ints, options: EncodingOptions
    ) -> int:
        """Return a priority for writing opaque blocks, 0 to stay away."""
        return 0

    def compress_blocks(
        self,
        measured: Measured,
        num_values: Ints,
        options: EncodingOptions,
        compressors: Compressors,
    ) -> CompressedBlocks:
        """Compress consecutive runs of ``num_values`` values, each into one block."""
        raise InternalError(f"{self.arm} does not write blocks")

    def nominate_values(self, measured: Measured, options: EncodingOptions) -> int:
        """Return a priority for writing values one by one, 0 to stay away."""
        return 0

    def compress_values(
        self, measured: Measured, options: EncodingOptions, compressors: Compressors
    ) -> CompressedValues:
        """Compress every value."""
        raise InternalError(f"{self.arm} does not write single values")
