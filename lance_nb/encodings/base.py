"""Types that all encodings share: data blocks, buffers and rows; the roles of codecs and pages.

A *data block* is a run of leaf values as plain numpy buffers, without nulls and without Arrow: what
a codec produces and what ``arrow_arrays`` turns into Arrow. A *layout* opens one page, and its
reader decodes the rows that are wanted; it asks a *codec* to undo the compressive encoding of its
values. A codec never imports a sibling: children are decoded through the ``Codecs`` lookup that it
is handed.

Roles of a codec (a codec implements those that the format lets it play):

* mini-block: the values of many chunks at once, each chunk with one or more small buffers;
* block: one opaque buffer per block (repetition and definition levels, dictionaries);
* per value: full-zip pages, where values are stored one by one.

Everything works on many chunks per call, so that no role ever loops over values.

Limits: counts are 64-bit; a chunk holds at most 2**15 values unless it is the last of its page.
Source: messages ``CompressiveEncoding`` and ``PageLayout`` of lance.encodings21 (pylance 14.0.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from lance_nb._pb import encodings21
from lance_nb.errors import CorruptFileError
from lance_nb.value_classes import dataclass

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Levels = npt.NDArray[np.uint16]
AnyLevels = Levels | npt.NDArray[np.uint8]  # as decoded: bytes where all of them fit

VALUES_MAX = 1 << 48  # in one page or block: sums of such counts stay inside 64 bits


def corrupt(expected: str, actual: str) -> CorruptFileError:
    """Build the error of a broken page; the file floor adds path, column and page as notes."""
    return CorruptFileError("", None, expected, actual)


# --- data blocks ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FixedWidth:
    """``num_values`` values of ``bits_per_value`` bits each, packed back to back.

    ``data`` is a C-contiguous uint8 array of exactly ceil(num_values * bits / 8) bytes. With one
    bit per value it is a bitmap, least significant bit first.
    """

    bits_per_value: int
    num_values: int
    data: Bytes


@dataclass(frozen=True, slots=True)
class VariableWidth:
    """Byte strings: value ``i`` is ``data[offsets[i]:offsets[i + 1]]``.

    ``offsets`` has ``num_values + 1`` non-decreasing items, int32 or int64, starting at 0; the last
    one is at most ``len(data)``.
    """

    num_values: int
    offsets: npt.NDArray[np.int32] | Ints
    data: Bytes


@dataclass(frozen=True, slots=True)
class FixedSizeList:
    """``num_values`` lists of ``dimension`` items.

    ``validity`` is a bitmap over the items, least significant bit first.
    """

    dimension: int
    num_values: int
    items: DataBlock
    validity: Bytes | None


@dataclass(frozen=True, slots=True)
class PackedStruct:
    """Struct rows whose children were stored together; every child has ``num_values`` values."""

    num_values: int
    children: tuple[DataBlock, ...]


@dataclass(frozen=True, slots=True)
class Dictionary:
    """``indices`` (FixedWidth, unsigned, below ``items.num_values``) into ``items``."""

    num_values: int
    indices: FixedWidth
    items: DataBlock


@dataclass(frozen=True, slots=True)
class Constant:
    """``num_values`` times the single value of ``value``."""

    num_values: int
    value: DataBlock


@dataclass(frozen=True, slots=True)
class AllNull:
    """``num_values`` nulls: no value is stored at all."""

    num_values: int


DataBlock = (
    FixedWidth | VariableWidth | FixedSizeList | PackedStruct | Dictionary | Constant | AllNull
)


# --- buffers and chunks -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChunkBuffer:
    """One buffer of each of many chunks: chunk ``i`` owns ``data[starts[i]:starts[i] + sizes[i]]``.

    The creator has checked that every chunk lies inside ``data``. Chunks need not be adjacent.
    ``noted`` keeps what a codec has found out about them for the next time that it is asked.
    ``spare_bytes``: so much before each chunk may be written by who gets the buffer, and between
    a chunk and that of the next are only zeros, up to a multiple of 8.
    """

    data: Bytes
    starts: Ints
    sizes: Ints
    spare_bytes: int = 0
    noted: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SymbolTables:
    """The FSST symbol tables of joined pages; chunk ``i`` uses ``tables[of_chunk[i]]``."""

    tables: tuple[bytes, ...]
    of_chunk: Ints

    def part(self, chunks: Ints) -> SymbolTables:
        """Return the same for some chunks."""
        return SymbolTables(self.tables, self.of_chunk[chunks])


@dataclass(frozen=True, slots=True)
class Chunks:
    """Many chunks, with their value buffers and the number of values in each (int64, all >= 0).

    ``symbols`` replace the symbol table of the encoding, where pages with others are joined;
    ``pages`` are the numbers of the joined pages, where each has a dictionary of its own.
    ``cache`` is what a codec found out about these very chunks and their encoding: those of an open
    page are decoded again with every scan.
    """

    buffers: tuple[ChunkBuffer, ...]
    num_values: Ints
    symbols: SymbolTables | None = None
    pages: Ints | None = None
    cache: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def total(self) -> int:
        """The number of values in all chunks."""
        counts = self.num_values  # the first rows of a page lie in one chunk: no call of numpy
        return int(counts[0]) if counts.size == 1 else int(np.add.reduce(counts))


@dataclass(frozen=True, slots=True)
class ValuePlaces:
    """Single values of chunks: ``position[i]`` of chunk ``chunk[i]``, in any order, with repeats.

    The lookup has checked that every chunk exists and has that many values, unless whoever found
    them in a chunk table ``vouches`` for it.
    """

    chunk: Ints
    position: Ints
    vouches: bool = False


def single_chunk(num_values: int, *buffers: Bytes) -> Chunks:
    """View whole buffers as one chunk. Raises CorruptFileError for a count that is no count."""
    if num_values > VALUES_MAX:
        raise corrupt(f"at most {VALUES_MAX} values in a block", str(num_values))
    zero = np.zeros(1, np.int64)
    return Chunks(
        tuple(ChunkBuffer(data, zero, np.array([data.size], np.int64)) for data in buffers),
        np.array([num_values], np.int64),
    )


class Codecs(Protocol):
    """The lookup that decodes a child, whatever its arm.

    Raises NotSupportedError for an unknown arm, or for one in a role that it does not have.
    """

    def decode_chunks(self, encoding: encodings21.CompressiveEncoding, chunks: Chunks) -> DataBlock:
        """Decode the value buffers of mini-block chunks.

        Uses the first ``num_buffers(encoding)`` of ``chunks.buffers``.
        """
        ...

    def num_buffers(self, encoding: encodings21.CompressiveEncoding) -> int:
        """Return how many mini-block value buffers the encoding uses."""
        ...

    def decode_blocks(self, encoding: encodings21.CompressiveEncoding, blocks: Chunks) -> DataBlock:
        """Decode block-compressed buffers (levels, dictionaries): one buffer per block."""
        ...

    def decode_values(
        self, encoding: encodings21.CompressiveEncoding, values: FixedWidth | VariableWidth
    ) -> DataBlock:
        """Decode values that were stored one by one (full-zip)."""
        ...

    def can_gather(self, encoding: encodings21.CompressiveEncoding) -> bool:
        """Tell whether single values can be fetched without decoding their chunks."""
        ...

    def gather(
        self, encoding: encodings21.CompressiveEncoding, chunks: Chunks, request: ValuePlaces
    ) -> DataBlock:
        """Fetch single values of mini-block chunks, in the order of ``request``.

        Only what is asked for is checked: damage elsewhere in a chunk goes unseen.
        """
        ...


# --- pages ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rows:
    """ValuePlaces rows of one page: sorted, disjoint, non-empty half-open ranges (int64 arrays)."""

    starts: Ints
    stops: Ints
    num_rows: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        """Count the rows: everybody asks."""
        if self.starts.size == 1:
            count = int(self.stops[0]) - int(self.starts[0])
        else:
            count = int(np.add.reduce(self.stops - self.starts))
        object.__setattr__(self, "num_rows", count)


@dataclass(frozen=True, slots=True)
class PageShape:
    """What the file says about a page: rows, bytes of each page buffer, file version (2, 1)..."""

    num_rows: int
    buffer_sizes: tuple[int, ...]
    file_version: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Span:
    """A byte range of one page buffer: ``[start, stop)`` counted from the start of that buffer."""

    buffer: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class PageBuffer:
    """The bytes of one page buffer that are at hand.

    ``span_starts`` is None when ``data`` is the whole buffer (a mapped local file). Otherwise
    ``data`` holds the requested spans of this buffer back to back, in order: the span that starts
    at buffer offset ``span_starts[k]`` lies at ``data[positions[k]:]``.
    """

    data: Bytes
    span_starts: Ints | None = None
    positions: Ints | None = None

    def locate(self, offsets: Ints) -> Ints:
        """Translate buffer offsets (each inside a requested span) into offsets in ``data``."""
        if self.span_starts is None or self.positions is None:
            return offsets
        span = np.searchsorted(self.span_starts, offsets, side="right") - 1
        return offsets - self.span_starts[span] + self.positions[span]


@dataclass(frozen=True, slots=True)
class DecodedPage:
    """The wanted rows of one page.

    ``values`` holds one value per visible leaf slot. ``rep`` and ``definition`` are None when the
    page has no such levels, else one uint8 or uint16 per entry. ``layers`` are the page's
    RepDefLayer numbers, leaf first.
    """

    values: DataBlock
    rep: AnyLevels | None
    definition: AnyLevels | None
    layers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WholePage:
    """A page whose bytes are all at hand; ``layout`` is the message of its arm of PageLayout.

    ``buffer_offsets`` are the places of the buffers in the file, if all pages are of one file.
    """

    layout: Any
    num_rows: int
    buffers: Sequence[memoryview]
    buffer_offsets: Sequence[int] = ()


class PageReader(Protocol):
    """A page whose index buffers (chunk metadata, repetition index, dictionary) are in memory."""

    def spans(self, rows: Rows) -> Sequence[Span]:
        """Return the byte ranges that ``decode`` will need: sorted per buffer, merged."""
        ...

    def decode(self, rows: Rows, buffers: Mapping[int, PageBuffer]) -> DecodedPage:
        """Decode exactly ``rows``; ``buffers`` has at least the spans asked for."""
        ...


# ``layout`` is Any below: each arm has a message type of its own.
class Layout(Protocol):
    """One arm of PageLayout. ``layout`` below is the arm's own message."""

    def index_buffers(self, layout: Any, shape: PageShape) -> tuple[int, ...]:
        """Return the numbers of the page buffers that ``open`` needs whole."""
        ...

    def open(
        self, layout: Any, shape: PageShape, buffers: Mapping[int, Bytes], codecs: Codecs
    ) -> PageReader:
        """Validate the page and return its reader. Raises CorruptFileError."""
        ...


@runtime_checkable
class JoiningLayout(Protocol):
    """A layout that can decode small pages of several files as if they were one page.

    Pages of more than ``joined_bytes_max`` bytes are not joined: it would copy them.
    """

    joined_bytes_max: int

    def join_key(self, layout: Any) -> bytes | None:
        """Return what pages must share to be joined; None for a page that gains nothing by it."""
        ...

    def open_joined(
        self,
        pages: Sequence[WholePage],
        file_version: tuple[int, int],
        codecs: Codecs,
        file_bytes: Bytes | None = None,
    ) -> tuple[PageReader, Mapping[int, PageBuffer]]:
        """Join pages of an equal key: a reader of all their rows, and the bytes to decode.

        ``file_bytes`` are those of the one file that has all pages, of which nothing is copied
        then. Raises CorruptFileError if one of the pages is damaged.
        """
        ...
