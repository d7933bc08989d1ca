"""Decode FSST: each code stands for a symbol of 1 to 8 bytes, 255 for the literal byte after it.

Layout: ``codes[offsets[i]:offsets[i + 1]]`` are the codes of value ``i``; the symbols come as one
word of 8 bytes each (unused bytes zero) with their lengths.

How: without the compiled loop, Arrow's ``take`` copies symbols out of a table. It is fastest with
*pairs* of codes, because 65,536 pairs of symbols make half as many copies. An escape and its
literal are a pair too, once every escape has an even place (``_aligned``). A table of pairs is
worth its making from some 400,000 codes on; fewer are taken one by one, with literals as entries of
their own. A few codes are put together by numpy: Arrow's ``take`` costs its first caller the
loading of pyarrow.compute.
Limits: at most 255 symbols.
Source: FSST (Boncz, Neumann, Leis 2020), as written by pylance 14.0.2.
"""

from __future__ import annotations

import struct
import sys
from functools import lru_cache
from types import ModuleType

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.encodings.base import corrupt
from lance_nb.encodings.kernels import compiled
from lance_nb.encodings.kernels.memory import allocate
from lance_nb.errors import CorruptFileError
from lance_nb.value_classes import dataclass

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Offsets = npt.NDArray[np.int32] | Ints
Codes = npt.NDArray[np.uint8] | npt.NDArray[np.uint16]

ESCAPE = 255
_TABLE_BYTES = 2312
_MAGIC = 0x46535354
_WIDEST = 8  # bytes of a symbol
_SLACK = 32  # bytes that the compiled loop may write beyond the last symbol
_PAIR_TABLES = 8  # kept, about a megabyte each
_PAIRS_FROM = 400_000  # codes: below, building the table of pairs costs more than it saves
_FEW = 4096  # codes: below, numpy is faster than Arrow
_FEW_ESCAPES = 64  # up to so many, a loop is quicker than numpy
_FEW_AT_FIRST = 65_536  # the same while Arrow's functions are not loaded, which takes 50 ms
_INT32_MAX = (1 << 31) - 1


@dataclass(frozen=True, slots=True, eq=False)
class Symbols:
    """The symbols of the codes 0..n-1: 8 bytes each, filled with zeros, and their lengths.

    Compared by identity: what is derived from a table is kept for its next page.
    """

    words: npt.NDArray[np.uint64]
    lengths: npt.NDArray[np.uint8]


@lru_cache(maxsize=64)
def symbol_table(table: bytes) -> Symbols | None:
    """Parse a symbol table; None when its switch is off. Raises CorruptFileError."""
    if len(table) != _TABLE_BYTES:
        raise corrupt(f"an FSST symbol table of {_TABLE_BYTES} bytes", f"{len(table)} bytes")
    (header,) = struct.unpack_from("<Q", table)
    if header >> 32 != _MAGIC:
        raise corrupt("the magic of an FSST symbol table", f"{header >> 32:#010x}")
    if not header >> 24 & 1:
        return None
    count = header & 255
    words = np.frombuffer(table, "<u8", count, 8).copy()
    lengths = np.frombuffer(table, np.uint8, count, 8 + 8 * count).copy()
    if count and not 1 <= int(lengths.min()) <= int(lengths.max()) <= 8:
        raise corrupt("FSST symbols of 1 to 8 bytes", f"lengths {sorted(set(lengths.tolist()))}")
    # Bytes beyond a symbol's length mean nothing: clear them, the kernels may copy whole words.
    words &= np.uint64(0xFFFF_FFFF_FFFF_FFFF) >> (np.uint64(8) * (np.uint64(8) - lengths))
    return Symbols(words, lengths)


def decode(codes: Bytes, offsets: Offsets, symbols: Symbols) -> tuple[Offsets, Bytes]:
    """Return the offsets and bytes of the decoded values. Raises CorruptFileError."""
    codes = codes[: int(offsets[-1])]
    highest = int(codes.max()) if codes.size else 0
    num_symbols = symbols.lengths.size
    if codes.size and num_symbols <= highest < ESCAPE:
        raise _broken(num_symbols)
    has_escapes = highest == ESCAPE
    if compiled.loops is not None:
        return _decode_compiled(compiled.loops, codes, offsets, symbols)
    escapes = _checked_escapes(codes, offsets, num_symbols) if has_escapes else None
    if codes.size < _PAIRS_FROM and escapes is not None:
        plain, plain_offsets = _resolve_escapes(codes, offsets, escapes.places)
        ends, data = _take_single(plain, plain_offsets, _with_literals(symbols))
    elif codes.size < _PAIRS_FROM:
        ends, data = _take_single(codes, offsets, symbols)
    elif escapes is not None:
        ends, data = _take_pairs(*_aligned(codes, offsets, escapes), symbols)
    else:
        ends, data = _take_pairs(codes, offsets, symbols)
    return (ends.astype(np.int64) if offsets.dtype.itemsize == 8 else ends), data[: int(ends[-1])]


def _decode_compiled(
    loops: ModuleType, codes: Bytes, offsets: Offsets, symbols: Symbols
) -> tuple[Offsets, Bytes]:
    """Measure all values, then write each symbol as a whole word; the next corrects its end."""
    words, lengths = np.zeros(256, np.uint64), np.zeros(256, np.uint8)
    words[: symbols.words.size] = symbols.words
    lengths[: symbols.lengths.size] = symbols.lengths
    total: int = loops.measure_fsst(codes, lengths)
    if total < 0:
        raise _broken(symbols.lengths.size)
    is_wide = offsets.dtype.itemsize == 8 or total > _INT32_MAX
    ends: Offsets = np.empty(offsets.size, np.int32)
    if is_wide:
        ends = np.empty(offsets.size, np.int64)
    out = allocate(total + _SLACK)
    if (
        loops.decode_fsst(codes, offsets.astype(ends.dtype, copy=False), words, lengths, ends, out)
        != total
    ):
        raise _broken(symbols.lengths.size)
    return ends, out[:total]


def _broken(num_symbols: int) -> CorruptFileError:
    return corrupt(
        f"FSST codes below {num_symbols}, or an escape with its byte",
        "a code without a symbol, or a value that ends in an escape",
    )


@dataclass(frozen=True, slots=True)
class _Escapes:
    """Where the escapes are, and which offset is the next one behind each."""

    places: Ints
    next_offset: Ints


def _find_escapes(codes: Bytes) -> Ints:
    """Return the places of escapes, told from literals of the same value."""
    positions = np.flatnonzero(codes == ESCAPE)
    if positions.size <= _FEW_ESCAPES:
        return np.array(_escapes_among(positions.tolist()), np.int64)
    # In a run of 255s every other one is an escape, the first included: the byte before the run is
    # not an escape, or the run would have begun there.
    rank = np.arange(positions.size)
    begins = np.flatnonzero(np.diff(positions, prepend=-2) != 1)
    rank -= np.repeat(begins, np.diff(begins, append=positions.size))
    places: Ints = positions[rank % 2 == 0]
    return places


def _escapes_among(places: list[int]) -> list[int]:
    """Return the places of escapes among the places of 255s: a 255 behind an escape is none."""
    escapes: list[int] = []
    for place in places:
        if not escapes or escapes[-1] + 1 != place:
            escapes.append(place)
    return escapes


def _checked_escapes(codes: Bytes, offsets: Offsets, num_symbols: int) -> _Escapes:
    """Find the escapes; check them, and the codes of symbols."""
    places = _find_escapes(codes)
    after = np.searchsorted(offsets, places, side="right")
    if bool((places + 1 >= offsets[after]).any()):
        raise _broken(num_symbols)
    if num_symbols < ESCAPE:
        wrong = codes >= num_symbols
        wrong[places] = False
        wrong[places + 1] = False
        if bool(wrong.any()):
            raise _broken(num_symbols)
    return _Escapes(places, after)


def _resolve_escapes(
    codes: Bytes, offsets: Offsets, escapes: Ints
) -> tuple[npt.NDArray[np.uint16], Ints]:
    """Replace each escape and its literal ``b`` by the one code ``256 + b``."""
    wide = codes.astype(np.uint16)
    wide[escapes + 1] += 256
    keep = np.ones(codes.size, np.bool_)
    keep[escapes] = False
    return wide.compress(keep), offsets.astype(np.int64) - np.searchsorted(escapes, offsets)


def _aligned(codes: Bytes, offsets: Offsets, escapes: _Escapes) -> tuple[Bytes, Offsets]:
    """Give every escape an even place, so that it shares a pair with its literal.

    An escape at an odd place is written twice: as second half of a pair it stands for nothing.
    """
    places = escapes.places
    is_odd = (np.diff(places, prepend=0) & 1).astype(np.bool_)
    if not bool(is_odd.any()):
        return codes, offsets
    counts = np.ones(codes.size, np.int64)
    counts[places.compress(is_odd)] = 2
    added = np.bincount(escapes.next_offset.compress(is_odd), minlength=offsets.size)
    return np.repeat(codes, counts), offsets + np.cumsum(added).astype(offsets.dtype)


def _with_literals(symbols: Symbols) -> Symbols:
    """Return 512 symbols: those there are, and the literal bytes from 256 on."""
    words = np.zeros(512, np.uint64)
    words[: symbols.words.size] = symbols.words
    words[256:] = np.arange(256)
    lengths = np.ones(512, np.uint8)
    lengths[: symbols.lengths.size] = symbols.lengths
    return Symbols(words, lengths)


def _take_single(codes: Codes, offsets: Offsets, symbols: Symbols) -> tuple[Offsets, Bytes]:
    if codes.size <= _FEW or (codes.size <= _FEW_AT_FIRST and not _arrow_is_loaded()):
        return _select(codes, offsets, symbols)
    ends, data = _take(_table(symbols), codes)
    return ends[offsets], data


def _arrow_is_loaded() -> bool:
    return "pyarrow.compute" in sys.modules


def _select(codes: Codes, offsets: Offsets, symbols: Symbols) -> tuple[Offsets, Bytes]:
    """Copy all symbols at full width, then drop what is beyond their lengths."""
    lengths = symbols.lengths[codes]
    ends: Offsets = np.zeros(codes.size + 1, np.int32)
    np.cumsum(lengths, out=ends[1:])
    used = np.arange(_WIDEST, dtype=np.uint8) < lengths[:, None]
    return ends[offsets], symbols.words[codes].view(np.uint8).reshape(-1, _WIDEST)[used]


def _take_pairs(codes: Bytes, offsets: Offsets, symbols: Symbols) -> tuple[Offsets, Bytes]:
    even = codes if codes.size % 2 == 0 else np.append(codes, np.uint8(0))
    pairs = np.ascontiguousarray(even).view("<u2")
    ends, data = _take(_pair_table(symbols), pairs)
    half = offsets >> 1
    odd = np.flatnonzero(offsets & 1)
    out_offsets = ends[half]
    out_offsets[odd] += symbols.lengths[codes[offsets[odd] - 1]]
    return out_offsets, data


def _take(table: pa.Array, indices: Codes) -> tuple[Offsets, Bytes]:
    """Copy entries of the table; return where each begins, the end of the last, and the bytes."""
    lengths = np.diff(np.frombuffer(table.buffers()[1], np.int32))
    longest = int(lengths.max(initial=0))
    if indices.size * longest > _INT32_MAX:
        table = pc.cast(table, pa.large_binary())
    kind = pa.uint8() if indices.dtype.itemsize == 1 else pa.uint16()
    codes_wanted = pa.Array.from_buffers(kind, indices.size, [None, pa.py_buffer(indices)])
    _, offsets, data = pc.take(table, codes_wanted).buffers()
    large = pa.types.is_large_binary(table.type)
    count = indices.size + 1
    ends: Offsets
    if large:
        ends = np.frombuffer(offsets, np.int64, count)
    else:
        ends = np.frombuffer(offsets, np.int32, count)
    total = int(ends[-1])
    return ends, np.frombuffer(data, np.uint8, total) if total else np.empty(0, np.uint8)


def _table(symbols: Symbols) -> pa.Array:
    """Return the symbols as a binary array."""
    used = np.arange(_WIDEST) < symbols.lengths[:, None]
    data = symbols.words.view(np.uint8).reshape(-1, _WIDEST)[used]
    return _binary(symbols.lengths, data)


@lru_cache(maxsize=_PAIR_TABLES)
def _pair_table(symbols: Symbols) -> pa.Array:
    """Return the symbols of the codes ``first | second << 8`` as 65,536 binary entries.

    An escape and a literal are the literal; an escape in second place is nothing.
    """
    count = symbols.lengths.size
    words, sizes = np.zeros(256, np.uint64), np.zeros(256, np.uint8)
    words[:count], sizes[:count] = symbols.words, symbols.lengths
    pairs = np.empty((256, 256, 2), np.uint64)
    pairs[:, :, 0], pairs[:, :, 1] = words[None, :], words[:, None]
    lengths = np.empty((256, 256, 2), np.uint8)
    lengths[:, :, 0], lengths[:, :, 1] = sizes[None, :], sizes[:, None]
    pairs[:, ESCAPE, 1], lengths[:, ESCAPE, 1] = np.arange(256), 1
    used = np.arange(_WIDEST, dtype=np.uint8) < lengths[..., None]
    data = pairs.ravel().view(np.uint8).compress(used.ravel())
    return _binary(lengths.sum(axis=2, dtype=np.uint8).ravel(), data)


def _binary(lengths: npt.NDArray[np.uint8], data: Bytes) -> pa.Array:
    offsets = np.zeros(lengths.size + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), lengths.size, buffers)
