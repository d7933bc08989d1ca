"""Build pages byte by byte, as a writer would, and read them whole or by the spans they ask."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lance_nb._pb import encodings21 as pb
from lance_nb.encodings.base import Bytes, DecodedPage, PageBuffer, PageShape, Rows
from lance_nb.encodings.registry import codecs, layout_of
from tests.support.shredding import Entry, Shredded


@dataclass(frozen=True)
class Page:
    """One page as it lies in a file: the layout's message, its buffers, its rows."""

    arm: str
    message: Any
    buffers: tuple[bytes, ...]
    num_rows: int
    file_version: tuple[int, int] = (2, 2)

    def open(self) -> Any:
        """Open the page with its index buffers only."""
        layout = layout_of(self.arm)
        sizes = tuple(len(buffer) for buffer in self.buffers)
        shape = PageShape(self.num_rows, sizes, self.file_version)
        numbers = layout.index_buffers(self.message, shape)
        return layout.open(self.message, shape, {n: self.array(n) for n in numbers}, codecs)

    def array(self, number: int) -> Bytes:
        return np.frombuffer(self.buffers[number], np.uint8)

    def decode(self, rows: Rows, *, whole: bool = True) -> DecodedPage:
        """Decode rows, from whole buffers or from nothing but the spans that the page asks for."""
        reader = self.open()
        spans = reader.spans(rows)
        if whole:
            buffers: Mapping[int, PageBuffer] = {
                number: PageBuffer(self.array(number)) for number in range(len(self.buffers))
            }
            return reader.decode(rows, buffers)
        return reader.decode(rows, self.only(spans))

    def only(self, spans: Sequence[Any]) -> dict[int, PageBuffer]:
        """Cut the spans out, back to back, as a remote source hands them over."""
        found = {}
        for number in {span.buffer for span in spans}:
            mine = [span for span in spans if span.buffer == number]
            for span, after in itertools.pairwise(mine):
                assert span.start < span.stop < after.start, "spans are sorted, with gaps"
            pieces = [self.array(number)[span.start : span.stop] for span in mine]
            sizes = np.array([piece.size for piece in pieces], np.int64)
            starts = np.array([span.start for span in mine], np.int64)
            found[number] = PageBuffer(np.concatenate(pieces), starts, np.cumsum(sizes) - sizes)
        return found


def flat(bits: int) -> pb.CompressiveEncoding:
    return pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=bits))


def variable(bits: int = 32) -> pb.CompressiveEncoding:
    return pb.CompressiveEncoding(variable=pb.Variable(offsets=flat(bits)))


def pad8(data: bytes) -> bytes:
    return data + b"\xfe" * (-len(data) % 8)


def u16(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}H", *values)


def u32(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}I", *values)


def u64(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}Q", *values)


def leaf_bytes(entry: Entry) -> bytes:
    return struct.pack("<i", entry.value or 0)


# --- mini-block --------------------------------------------------------------------------------


def chunk(levels: int, *parts: bytes, sizes: bytes) -> bytes:
    """Build one chunk: header (``sizes`` is the rest of it), then every part, all padded to 8."""
    return b"".join(pad8(part) for part in (u16(levels) + sizes, *parts))


def mini_block(shredded: Shredded, counts: Sequence[int], version: tuple[int, int]) -> Page:
    """Build a page of flat 32-bit leaves; ``counts`` are leaf values of all chunks but the last."""
    large = version >= (2, 2)
    has_rep = bool(shredded.num_lists)
    has_def = any(entry.definition for entry in shredded.entries)
    words, chunks = [], []
    cuts = cut_entries(shredded.entries, counts)
    for number, entries in enumerate(cuts):
        values = b"".join(leaf_bytes(entry) for entry in entries if entry.visible)
        levels = []
        levels += [u16(*(entry.rep for entry in entries))] * has_rep
        levels += [u16(*(entry.definition for entry in entries))] * has_def
        sizes = u16(*map(len, levels)) + (u32 if large else u16)(len(values))
        count = len(entries) if levels else 0
        chunks.append(chunk(count, *levels, values, sizes=sizes))
        log = 0 if number == len(cuts) - 1 else (len(values) // 4).bit_length() - 1
        words.append(((len(chunks[-1]) // 8 - 1) << 4) | log)
    message = pb.MiniBlockLayout(
        rep_compression=flat(16) if has_rep else None,
        def_compression=flat(16) if has_def else None,
        value_compression=flat(32),
        layers=shredded.layers,
        num_buffers=1,
        repetition_index_depth=int(has_rep),
        num_items=sum(entry.visible for entry in shredded.entries),
        has_large_chunk=large,
    )
    table = (u32 if large else u16)(*words)
    index = (repetition_index(cuts, shredded.num_lists),) if has_rep else ()
    buffers = (table, b"".join(chunks), *index)
    return Page("mini_block_layout", message, buffers, len(shredded.rows), version)


def cut_entries(entries: Sequence[Entry], counts: Sequence[int]) -> list[list[Entry]]:
    """Cut after the n-th visible entry of each chunk; the last chunk takes what is left."""
    cuts: list[list[Entry]] = []
    at = 0
    for count in counts:
        stop, seen = at, 0
        while seen < count:
            seen += entries[stop].visible
            stop += 1
        cuts.append(list(entries[at:stop]))
        at = stop
    if at < len(entries):
        cuts.append(list(entries[at:]))
    return cuts


def repetition_index(cuts: Sequence[Sequence[Entry]], top: int) -> bytes:
    """Per chunk: rows that end in it, and levels after the last row end."""
    pairs: list[list[int]] = []
    for number, entries in enumerate(cuts):
        begins = [at for at, entry in enumerate(entries) if entry.rep == top]
        if number and entries and entries[0].rep == top and pairs[-1][1]:
            pairs[-1] = [pairs[-1][0] + 1, 0]
        ended = sum(at > 0 for at in begins)
        leftover = len(entries) - begins[-1] if begins else len(entries)
        pairs.append([ended, leftover])
    if pairs:
        pairs[-1] = [pairs[-1][0] + 1, 0]
    return b"".join(u64(*pair) for pair in pairs)


# --- full-zip ----------------------------------------------------------------------------------


def full_zip(shredded: Shredded, *, text: bool, index_width: int = 0) -> Page:
    """Build a page of 32-bit leaves, or of their decimal digits as variable-width values."""
    bits_rep = shredded.num_lists.bit_length()
    top = max((entry.definition for entry in shredded.entries), default=0)
    bits_def = top.bit_length()
    bits = bits_rep + bits_def
    control = 0 if not bits else 1 if bits <= 8 else 2 if bits <= 16 else 4
    data, offsets = b"", [0]
    for row in shredded.rows:
        for entry in row:
            data += ((entry.rep << bits_def) | entry.definition).to_bytes(control, "little")
            if text and entry.definition == 0:
                digits = str(entry.value).encode()
                data += u32(len(digits)) + digits
            elif not text and entry.visible:
                data += leaf_bytes(entry)
        offsets.append(len(data))
    width = index_width or next(w for w in (1, 2, 4, 8) if len(data) < 1 << 8 * w)
    index = b"".join(offset.to_bytes(width, "little") for offset in offsets)
    message = pb.FullZipLayout(
        bits_rep=bits_rep,
        bits_def=bits_def,
        num_items=len(shredded.entries),
        num_visible_items=sum(entry.visible for entry in shredded.entries),
        value_compression=variable() if text else flat(32),
        layers=shredded.layers,
        **({"bits_per_offset": 32} if text else {"bits_per_value": 32}),
    )
    buffers = (data, index) if text or bits_rep else (data,)
    return Page("full_zip_layout", message, buffers, len(shredded.rows))


# --- constant ----------------------------------------------------------------------------------


def constant(
    shredded: Shredded, value: bytes | None, *, scalar: bytes = b"", compressed: bool = False
) -> Page:
    """Build a page whose valid leaves all are ``value`` (inline) or the scalar buffer's."""
    reps = [entry.rep for entry in shredded.entries] if shredded.num_lists else []
    definitions = [entry.definition for entry in shredded.entries]
    if not any(definitions):
        definitions = []
    levels = (u16(*reps), u16(*definitions)) if reps or definitions else ()
    message = pb.ConstantLayout(layers=shredded.layers, inline_value=value)
    if compressed:
        message.rep_compression.CopyFrom(flat(16))
        message.def_compression.CopyFrom(flat(16))
        message.num_rep_values, message.num_def_values = len(reps), len(definitions)
    buffers = ((scalar,) if scalar else ()) + levels
    return Page("constant_layout", message, buffers, len(shredded.rows))
