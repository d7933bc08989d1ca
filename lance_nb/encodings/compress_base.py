"""Types that all encoders share: levels of a page, compressed chunks, the roles of encoders.

Writing mirrors reading (``encodings.base``): a codec that can be written has some of the roles
below. For each it *nominates* itself (a priority; 0 when it cannot or need not) and *compresses*.
A codec never imports a sibling: children are compressed through the ``Compressors`` lookup.

Layout: a compressed buffer of many chunks is made of *parts* that follow each other in every chunk
(the offsets and the bytes of strings, say), so that nothing is copied before the page is put
together.

Limits: counts are 64-bit. Source: messages ``CompressiveEncoding`` and ``PageLayout`` of
lance.encodings21 (pylance 14.0.2).
"""

from __future__ import annotations

from typing import Protocol, cast, runtime_checkable

import numpy as np
import numpy.typing as npt

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    Bytes,
    ChunkBuffer,
    DataBlock,
    FixedWidth,
    Ints,
    Levels,
    VariableWidth,
)
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.kernels import ranges
from lance_nb.encodings.statistics import Measured
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True)
class PageLevels:
    """Repetition and definition of one page, one level per entry.

    ``layers`` are RepDefLayer numbers, innermost first. ``repetition`` is None without lists,
    ``definition`` is None when everything is valid. Entries with a definition above
    ``max_visible_definition`` have no leaf value (empty and null lists).
    """

    layers: tuple[int, ...]
    repetition: Levels | None
    definition: Levels | None
    num_entries: int
    max_visible_definition: int
    num_rows: int

    @property
    def layer_enums(self) -> list[encodings21.RepDefLayer]:
        """The layers as the message wants them."""
        return cast("list[encodings21.RepDefLayer]", list(self.layers))

    @property
    def visible(self) -> npt.NDArray[np.bool_] | None:
        """Which entries have a leaf slot; None when all have one."""
        if self.definition is None or self.repetition is None:
            return None
        shown: npt.NDArray[np.bool_] = self.definition <= self.max_visible_definition
        return None if bool(shown.all()) else shown


@dataclass(frozen=True, slots=True)
class EncodedPage:
    """One page, ready for the file: its layout message and its buffers (views where possible)."""

    layout: encodings21.PageLayout
    buffers: tuple[bytes | memoryview | Bytes, ...]
    num_rows: int


@dataclass(frozen=True, slots=True)
class Parts:
    """One buffer of each of many chunks, in parts: chunk ``i`` holds range ``i`` of each part."""

    parts: tuple[ChunkBuffer, ...]

    @property
    def sizes(self) -> Ints:
        """Bytes of the buffer in each chunk."""
        total = self.parts[0].sizes
        for part in self.parts[1:]:
            total = total + part.sizes
        return total

    def joined(self) -> ChunkBuffer:
        """Copy the parts of every chunk together, unless there is one part only."""
        if len(self.parts) == 1:
            return self.parts[0]
        sizes = self.sizes
        starts = ranges.starts_of(sizes)
        out = np.zeros(int(starts[-1]), np.uint8)
        position = starts[:-1]
        for part in self.parts:
            ranges.scatter(part.data, part.starts, part.sizes, out, position)
            position = position + part.sizes
        return ChunkBuffer(out, starts[:-1], sizes)


@dataclass(frozen=True, slots=True)
class CompressedChunks:
    """The values of a page in mini-block chunks; all counts but the last are powers of two."""

    encoding: encodings21.CompressiveEncoding
    buffers: tuple[Parts, ...]
    num_values: Ints


# Where codecs and layouts begin to pay, for ``stacked_pages`` too.
PACKING_SAVING_MIN = 100  # thousandths: less is not worth the time of unpacking
RUN_SHARE_MAX = 0.6  # of sampled neighbours that differ: from here on runs are not counted
RUN_LENGTH_MAX = 255
RUN_CHUNK_VALUES = 2048
WIDE_BYTES = 256  # of the widest value: from here on chunks would hold too few values
DICT_VALUES_MIN = 64  # below, nothing is worth a dictionary
TEXT_CHUNK_HOLDS = 2  # times the bytes aimed at, that no chunk passes while it can be halved
_CHUNK_VALUES = 4096


def values_per_chunk(bits: int, options: EncodingOptions) -> int:
    """Return how many values of so many bits a chunk holds as they are."""
    fitting = power_of_two_below(options.chunk_bytes * 8 // bits, 8 if bits % 8 else 2)
    return min(fitting, _CHUNK_VALUES)


def strings_per_chunk(means: npt.NDArray[np.float64], aim: int) -> Ints:
    """Return the power of two of strings, with these mean sizes, that take about ``aim`` bytes."""
    limits = np.maximum((aim / np.maximum(means, 1)).astype(np.int64), 2)
    counts: Ints = np.minimum(_CHUNK_VALUES, 1 << np.frexp(limits)[1].astype(np.int64) - 1)
    return counts


def uniform_counts(num_values: int, per_chunk: int) -> Ints:
    """Return the values of each chunk: ``per_chunk`` everywhere, what is left in the last one."""
    counts = np.full(max(1, -(-num_values // per_chunk)), per_chunk, np.int64)
    counts[-1] = num_values - per_chunk * (counts.size - 1)
    return counts


def power_of_two_below(limit: int, least: int = 2) -> int:
    """Return the largest power of two up to ``limit``, but at least ``least``."""
    return max(least, 1 << max(limit, 1).bit_length() - 1)


@dataclass(frozen=True, slots=True)
class CompressedBlocks:
    """Opaque blocks (levels of many chunks, or one dictionary)."""

    encoding: encodings21.CompressiveEncoding
    blocks: Parts


@dataclass(frozen=True, slots=True)
class CompressedValues:
    """Values that are stored one by one (full-zip)."""

    encoding: encodings21.CompressiveEncoding
    values: FixedWidth | VariableWidth


class Compressors(Protocol):
    """The lookup that compresses a block with the codec that nominates itself highest."""

    def compress_chunks(self, measured: Measured, options: EncodingOptions) -> CompressedChunks:
        """Compress into mini-block chunks."""
        ...

    def compress_blocks(
        self, block: DataBlock, num_values: Ints, options: EncodingOptions
    ) -> CompressedBlocks:
        """Compress consecutive runs of ``num_values`` values, each into one opaque block."""
        ...

    def compress_values(self, measured: Measured, options: EncodingOptions) -> CompressedValues:
        """Compress value by value."""
        ...


@dataclass(frozen=True, slots=True)
class LeafPage:
    """What a layout encodes: the leaf values of a page with their levels and options."""

    measured: Measured
    levels: PageLevels
    options: EncodingOptions

    @property
    def valid_slots(self) -> npt.NDArray[np.bool_] | None:
        """Which leaf slots hold a value; None when all do."""
        definition = self.levels.definition
        if definition is None:
            return None
        if self.levels.repetition is not None:
            definition = definition[definition <= self.levels.max_visible_definition]
        valid: npt.NDArray[np.bool_] = definition == 0
        return None if bool(valid.all()) else valid


@runtime_checkable
class LayoutEncoder(Protocol):
    """A page layout that can be written."""

    def nominate(self, page: LeafPage) -> int:
        """Return a priority, 0 to stay away."""
        ...

    def encode(self, page: LeafPage, compressors: Compressors) -> EncodedPage | None:
        """Encode the page; None when the page turns out not to fit the layout."""
        ...
