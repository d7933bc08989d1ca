"""Inputs for both forms of every loop, sound and hostile, from a seed.

Shared by the property test, which compares the forms, and by ``python -m tests.faults kernels``,
which runs the compiled form under AddressSanitizer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from lance_nb._pb import encodings21
from lance_nb.encodings import packed_blocks, repdef
from lance_nb.encodings.arrow_arrays import from_arrow
from lance_nb.encodings.base import (
    AllNull,
    ChunkBuffer,
    Chunks,
    DataBlock,
    DecodedPage,
    FixedWidth,
    VariableWidth,
)
from lance_nb.encodings.compression import rle
from lance_nb.encodings.distinct_values import Worth, numbered
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.kernels import (
    bitpack,
    fsst,
    fsst_encode,
    ranges,
    sorted_numbers,
    substring,
    table_sums,
    zip_entries,
)
from lance_nb.encodings.kernels.zip_entries import EntryFormat
from lance_nb.encodings.registry import codecs
from lance_nb.encodings.statistics import Measured
from lance_nb.errors import LanceError
from tests.property.encodings.reference_encoders import (
    byte_stream_split,
    out_of_line_bitpacking,
    variable,
    variable_block,
    variable_chunk,
)
from tests.support.compiled_forms import Form, forced

Rng = np.random.Generator
LAYERS = (
    encodings21.REPDEF_ALL_VALID_ITEM,
    encodings21.REPDEF_NULLABLE_ITEM,
    encodings21.REPDEF_ALL_VALID_LIST,
    encodings21.REPDEF_NULLABLE_LIST,
    encodings21.REPDEF_EMPTYABLE_LIST,
    encodings21.REPDEF_NULL_AND_EMPTY_LIST,
)
Run = Callable[[], tuple[Any, ...]]


def unpack(rng: Rng) -> Run:
    word_bits = int(rng.choice([8, 16, 32, 64]))
    width = int(rng.integers(0, word_bits + 1))
    count = int(rng.integers(0, 5))
    data = rng.integers(0, 256, int(rng.integers(0, 4 * 128 * width + 300)), np.uint8)
    room = max(data.size - 128 * width, 0)
    starts = rng.integers(0, room + 1, count) if rng.random() < 0.8 else positions(rng, count, room)
    if rng.random() < 0.5:
        starts = starts // 8 * 8
    if data.size < 128 * width:
        starts = positions(rng, count, room)
    kind = np.dtype(f"u{word_bits // 8}")

    def run() -> tuple[Any, ...]:
        out = np.empty((count, 1024), kind)
        bitpack.unpack(data, starts, width, out)
        return (out,)

    return run


def measure(rng: Rng) -> Run:
    kind = np.dtype(f"u{rng.choice([1, 2, 4, 8])}")
    count = int(rng.choice([0, 1, 2, 1023, 1024, 1025, int(rng.integers(0, 5000))]))
    most = int(rng.integers(0, 8 * kind.itemsize + 1))
    words = rng.integers(0, (1 << most) - 1, count, np.uint64, endpoint=True).astype(kind)
    words = np.repeat(words, rng.integers(0, 4, count)) if rng.random() < 0.5 else words
    block = FixedWidth(8 * kind.itemsize, words.size, words.view(np.uint8))

    def run() -> tuple[Any, ...]:
        found = Measured(block)
        return found.block_widths, found.num_runs, found.sampled_run_share

    return run


def pack(rng: Rng) -> Run:
    word_bits = int(rng.choice([8, 16, 32, 64]))
    width = int(rng.integers(1, word_bits + 1))
    count, gap = int(rng.integers(1, 5)), int(rng.integers(0, 3))
    blocks = rng.integers(0, (1 << width) - 1, (count, 1024), np.uint64, endpoint=True)
    blocks = blocks.astype(f"u{word_bits // 8}")

    def run() -> tuple[Any, ...]:
        out = np.zeros((count, gap + 1024 * width // word_bits), blocks.dtype)
        bitpack.pack(blocks, width, out[:, gap:])
        return (out,)

    return run


def decode_fsst(rng: Rng) -> Run:
    count = int(rng.integers(1, 256))
    lengths = rng.integers(1, 9, count).astype(np.uint8)
    words = rng.integers(0, 1 << 63, count).astype(np.uint64)
    words &= np.uint64(0xFFFF_FFFF_FFFF_FFFF) >> (np.uint64(64) - lengths * np.uint64(8))
    symbols = fsst.Symbols(words, lengths)
    size = int(rng.integers(0, 400))
    codes = rng.integers(0, count, size).astype(np.uint8)
    if rng.random() < 0.6:
        codes[rng.random(size) < rng.random() * 0.4] = 255
    if rng.random() < 0.2:
        codes[rng.random(size) < 0.05] = rng.integers(0, 256)
    inner = np.sort(rng.integers(0, size + 1, int(rng.integers(0, 30))))
    offsets = np.concatenate([[0], inner, [size]]).astype(rng.choice(["i4", "i8"]))
    return lambda: fsst.decode(codes, offsets, symbols)


def encode_fsst(rng: Rng) -> Run:
    letters = int(rng.choice([2, 4, 26, 256]))
    size = int(rng.integers(0, 1500 if rng.random() < 0.9 else 20_000))
    data = rng.integers(0, letters, size).astype(np.uint8)
    if rng.random() < 0.3:  # repeated: more candidates than symbols
        data = np.tile(data[: size // 3], 3)
        size = data.size
    inner = np.sort(rng.integers(0, size + 1, int(rng.integers(0, 20))))
    offsets = np.concatenate([[rng.integers(0, inner[0] + 1) if inner.size else 0], inner, [size]])

    def run() -> tuple[Any, ...]:
        matcher = fsst_encode.train(lambda m: fsst_encode.encode_symbols(data, offsets, m))
        codes, ends = fsst_encode.encode(data, offsets, matcher)
        return fsst_encode.to_bytes(matcher), codes, ends

    return run


def spread(rng: Rng, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return starts and sizes of ranges inside of ``size`` bytes: callers check them."""
    count = int(rng.integers(0, 40))
    sizes = rng.integers(0, int(rng.choice([2, 9, 60])), count)
    if rng.random() < 0.3:
        sizes[: count // 2] = 8
    return rng.integers(0, max(size - 60, 1), count), sizes


def copy_ranges(rng: Rng) -> Run:
    data = rng.integers(0, 256, int(rng.integers(60, 3000)), np.uint8)
    starts, sizes = spread(rng, data.size)
    return lambda: (ranges.concatenate(data, starts, sizes),)


def scatter_ranges(rng: Rng) -> Run:
    data = rng.integers(0, 256, int(rng.integers(60, 3000)), np.uint8)
    starts, sizes = spread(rng, data.size)
    places = np.cumsum(sizes + rng.integers(0, 5, sizes.size)) - sizes
    room = int((places + sizes)[-1]) if sizes.size else 0

    def run() -> tuple[Any, ...]:
        out = np.zeros(room, np.uint8)
        ranges.scatter(data, starts, sizes, out, places)
        return (out,)

    return run


def walk_entries(rng: Rng) -> Run:
    control_bytes = int(rng.choice([0, 1, 2, 4]))
    bits = int(rng.integers(0, min(8 * control_bytes, 16) + 1))
    most = int(rng.integers(0, 4))
    fixed_bytes = int(rng.choice([0, 0, 1, 16]))
    length_bytes = int(rng.choice([4, 8]))
    form = EntryFormat(control_bytes, bits, most, fixed_bytes, length_bytes)
    pieces: list[bytes] = []
    bounds = [0]
    for _ in range(int(rng.choice([0, 1, 20, 90]))):
        row = b""
        for _ in range(int(rng.integers(1, 4))):
            word = int(rng.integers(0, 1 << min(8 * control_bytes, 3)))
            definition = word & (1 << bits) - 1
            row += word.to_bytes(control_bytes, "little")
            if fixed_bytes:
                row += b"v" * (fixed_bytes if definition <= most else 0)
            elif definition == 0:
                size = int(rng.integers(0, 12))
                row += size.to_bytes(length_bytes, "little") + b"x" * size
        pieces.append(row)
        bounds.append(bounds[-1] + len(row))
    data = np.frombuffer(b"".join(pieces), np.uint8).copy()
    starts, stops = np.array(bounds[:-1], np.int64), np.array(bounds[1:], np.int64)
    if rng.random() < 0.5 and data.size:
        data[rng.integers(0, data.size, 3)] = rng.integers(0, 256, 3)
    if rng.random() < 0.2 and starts.size:
        stops[rng.integers(0, stops.size)] += int(rng.integers(-3, 30))

    def run() -> tuple[Any, ...]:
        walked = zip_entries.walk_entries(data, starts, stops, form)
        return walked.control, walked.value_starts, walked.value_sizes

    return run


def unpack_levels(rng: Rng) -> Run:
    width = int(rng.choice(bitpack.LEVEL_WIDTHS))
    count = int(rng.integers(0, 5))
    data = rng.integers(0, 256, 128 * width + int(rng.integers(0, 700)), np.uint8)
    starts = rng.integers(0, data.size - 128 * width + 1, count)
    if rng.random() < 0.2:
        starts = positions(rng, count, data.size - 128 * width)

    def run() -> tuple[Any, ...]:
        out = np.empty((count, 1024), np.uint8)
        bitpack.unpack_levels(data, starts, width, out)
        return (out,)

    return run


def unpack_level_chunks(rng: Rng) -> Run:
    """Chunks of full blocks and a tail, packed or raw; now and then one of another size."""
    width = int(rng.choice(bitpack.LEVEL_WIDTHS))
    counts = rng.integers(0, 2500, int(rng.integers(1, 5)))
    blocks, tails = np.divmod(counts, 1024)
    packed = (blocks + (tails > 0)) * 128 * width
    sizes = np.where(rng.random(counts.size) < 0.5, packed, blocks * 128 * width + 2 * tails)
    starts = np.cumsum(sizes) - sizes
    data = rng.integers(0, 256, int(sizes.sum()) + 2, np.uint8)
    if rng.random() < 0.7:
        data[1::2] = 0  # raw levels of one byte
    if rng.random() < 0.2:
        sizes[rng.integers(counts.size)] += 1
    encoding = out_of_line_bitpacking(16, width)
    chunks = Chunks((ChunkBuffer(data, starts, sizes),), counts)
    return lambda: (packed_blocks.decode_levels(encoding, chunks, codecs),)


def unravel(rng: Rng) -> Run:
    """Levels of random layers: sound ones by their sizes, or any within the layers' limits."""
    layers = tuple(int(layer) for layer in rng.choice(LAYERS, int(rng.integers(1, 5))))
    lists, top = repdef.num_list_layers(layers), repdef.max_definition(layers)
    count = int(rng.integers(0, 60))
    kinds = [np.dtype(rng.choice(["u1", "u2"])) for _ in range(2)]
    definition = rng.integers(0, top + 1, count).astype(kinds[0])
    rep = rng.integers(0, lists + 1, count).astype(kinds[1])
    visible = definition <= repdef.max_visible_definition(layers)
    if rng.random() < 0.8:
        rep[:1] = lists
        hidden = np.flatnonzero(~visible)
        rep[hidden] = np.maximum(rep[hidden], rng.integers(1, max(lists, 1) + 1, hidden.size))
        after = hidden[hidden + 1 < count] + 1
        rep[after] = lists
    values = int(visible.sum())
    if rng.random() < 0.1:
        values += 1
    has_definition = rng.random() < 0.9
    page = DecodedPage(
        AllNull(values if has_definition else count),
        rep if lists and rng.random() < 0.98 else None,
        definition if has_definition else None,
        layers,
    )

    def run() -> tuple[Any, ...]:
        return tuple(
            part
            for level in repdef.unravel(page)
            for part in (level.length, level.validity, level.offsets)
        )

    return run


def contains(rng: Rng) -> Run:
    letters = list("ab" if rng.random() < 0.5 else "abcdefgh €ß")
    lengths = rng.integers(0, int(rng.choice([3, 12, 200])), int(rng.integers(0, 60)))
    texts = ["".join(rng.choice(letters, length)) for length in lengths]
    values = [None if rng.random() < 0.1 else text for text in texts]
    kind = pa.string() if rng.random() < 0.5 else pa.large_string()
    array = pa.array(values, kind).slice(int(rng.integers(0, 12)))
    piece = "".join(rng.choice(letters, int(rng.integers(0, 5))))

    def run() -> tuple[Any, ...]:
        found = substring.contains(array, piece)
        found.validate(full=True)
        return (str(found.type), found.to_pylist(), found.null_count)

    return run


def repeat_runs(rng: Rng) -> Run:
    width = int(rng.choice([1, 2, 3, 4, 8]))
    repeats = rng.integers(0, 40, int(rng.integers(0, 60)))
    values = rng.integers(0, 256, repeats.size * width, np.uint8)
    return lambda: (rle._repeated(values, width, repeats),)


def join_strings(rng: Rng) -> Run:
    """Chunks of strings, or blocks, some of whose offsets may be wrong."""
    bits, as_blocks = int(rng.choice([32, 64])), rng.random() < 0.3
    counts = rng.integers(0, 9, int(rng.integers(1, 12)))
    if rng.random() < 0.5:
        counts[:-1] = counts[0]
    encoded = variable_block if as_blocks else variable_chunk
    pieces = [
        encoded([b"xyz" * int(rng.integers(0, 4)) for _ in range(count)], bits) for count in counts
    ]
    sizes = np.array([len(piece) for piece in pieces])
    gap = int(rng.integers(0, 4))
    data = np.frombuffer((b"#" * gap).join([b"", *pieces]), np.uint8).copy()
    starts = np.cumsum(sizes + gap) - sizes
    if rng.random() < 0.5:
        at = int(rng.integers(0, data.size))
        data[at] = rng.choice([0, 255, data[at] ^ 1, data[at] ^ 128])
    chunks = Chunks((ChunkBuffer(data, starts, sizes),), counts)
    decode = codecs.decode_blocks if as_blocks else codecs.decode_chunks

    def run() -> tuple[Any, ...]:
        found = decode(variable(bits), chunks)
        assert isinstance(found, VariableWidth)
        return found.offsets, found.data, found.num_values

    return run


def join_bytes(rng: Rng) -> Run:
    width = int(rng.choice([4, 8]))
    counts = rng.integers(0, 50, int(rng.integers(1, 12)))
    if rng.random() < 0.5:
        counts[:] = counts[0]
    gaps = rng.integers(0, 9, counts.size)
    starts = np.cumsum(counts * width + gaps) - counts * width
    data = rng.integers(0, 256, int(starts[-1] + counts[-1] * width), np.uint8)
    short = int(rng.integers(1, 9)) if rng.random() < 0.1 else 0
    chunks = Chunks((ChunkBuffer(data, starts, counts * width - short),), counts)
    encoding = byte_stream_split(8 * width)

    def run() -> tuple[Any, ...]:
        return (codecs.decode_chunks(encoding, chunks).data,)

    return run


def number_values(rng: Rng) -> Run:
    """Few or many different values, of which short ones are prefixes of each other."""
    count, most = int(rng.choice([64, 600, 5000])), int(rng.choice([3, 40, 2000]))
    kind = str(rng.choice(["words", "wide", "texts", "large"]))
    drawn = rng.integers(0, most, count)
    block: DataBlock
    if kind in ("words", "wide"):
        bits = 64 if kind == "words" else 128
        values = np.repeat(drawn.astype("u8"), bits // 64)
        block = FixedWidth(bits, count, values.view(np.uint8))
    else:
        texts = [("ab" * int(number))[: int(number) % 40] + str(number % 3) for number in drawn]
        block = from_arrow(pa.array(texts, pa.string() if kind == "texts" else pa.large_string()))
    worth = Worth(count, float(rng.choice([0, 1, 1 << 40])), EncodingOptions(file_version=(2, 2)))

    def run() -> tuple[Any, ...]:
        found = numbered(block, worth)
        if found is None:
            return (None,)
        items = found.items
        assert isinstance(items, FixedWidth | VariableWidth)
        offsets = items.offsets if isinstance(items, VariableWidth) else None
        return found.indices.data, offsets, items.data, found.num_values

    return run


def positions(rng: Rng, count: int, most: int) -> np.ndarray:
    """Return positions of which many lie outside of ``0..most``."""
    ends = np.array(
        [-(1 << 63), -(1 << 62), -1, 0, most, most + 1, 1 << 31, 1 << 62, (1 << 63) - 1]
    )
    near = rng.integers(-9, most + 9, count)
    return np.where(rng.random(count) < 0.3, rng.choice(ends, count), near)


def sum_tables(rng: Rng) -> Run:
    bits = int(rng.choice([4, 8]))
    rows, count = int(rng.integers(0, 20)), int(rng.choice([0, 1, 7, 2047, 2048, 2049, 5000]))
    table = rng.normal(size=(rows * 8 // bits, 1 << bits)).astype(np.float32)
    codes = rng.integers(0, 256, (rows, count)).astype(np.uint8)

    def run() -> tuple[Any, ...]:
        return (table_sums.table_sums(table, codes, bits),)

    return run


def look_up(rng: Rng) -> Run:
    most = int(rng.choice([10, 300, 1 << 32]))
    numbers, wanted = (
        np.sort(rng.integers(0, most, int(rng.integers(0, 300)), np.uint64)).astype(np.uint32)
        for _ in range(2)
    )
    if rng.random() < 0.5:
        wanted = np.sort(np.concatenate([wanted, numbers[::3]]))
    numbers = np.unique(numbers)
    return lambda: (sorted_numbers.places_among(wanted, numbers),)


def add_up(rng: Rng) -> Run:
    size = int(rng.integers(1, 300))
    places = np.flatnonzero(rng.random(size) < 0.4).astype(np.uint32)
    values = rng.random(places.size).astype(np.float32)
    before = rng.random(size).astype(np.float32)

    def run() -> tuple[Any, ...]:
        sums = before.copy()
        sorted_numbers.add_at(sums, places, values)
        return (sums,)

    return run


CASES: dict[str, Callable[[Rng], Run]] = {
    "bits are unpacked": unpack,
    "bits are packed": pack,
    "words are measured": measure,
    "FSST is decoded": decode_fsst,
    "FSST is encoded": encode_fsst,
    "ranges are copied": copy_ranges,
    "ranges are scattered": scatter_ranges,
    "entries are walked": walk_entries,
    "runs are repeated": repeat_runs,
    "split bytes are joined": join_bytes,
    "strings are joined": join_strings,
    "texts are searched": contains,
    "values are numbered": number_values,
    "levels are unpacked": unpack_levels,
    "chunks of levels are unpacked": unpack_level_chunks,
    "levels are unravelled": unravel,
    "tables are summed": sum_tables,
    "numbers are looked up": look_up,
    "values are added at places": add_up,
}


def outcome(form: Form, run: Run) -> tuple[Any, ...]:
    """Return what a form returns, as plain values, or the error that it raises."""
    with forced(form):
        try:
            found = run()
        except LanceError as error:
            return type(error), str(error)
    return tuple(
        (part.dtype.str, part.shape, part.tobytes()) if isinstance(part, np.ndarray) else part
        for part in found
    )
