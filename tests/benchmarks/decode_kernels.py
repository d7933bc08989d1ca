"""Measure every decoding kernel on one page's worth of data, numpy beside compiled.

Times are the best of the repeats; GB/s count the bytes that come out. The first line is a plain
copy of 8 MB, the speed of light here.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import lz4.block
import numpy as np

from lance_nb.encodings.base import (
    ChunkBuffer,
    Chunks,
    DataBlock,
    FixedWidth,
    ValuePlaces,
    VariableWidth,
)
from lance_nb.encodings.registry import codecs
from tests.benchmarks.timing import best, timed
from tests.property.encodings import reference_encoders as ref
from tests.support.compiled_forms import Form, forced

OPTIONS = {"--repeat": {"type": int, "default": 7}}
VALUES = 1 << 20
RNG = np.random.default_rng(5)


@dataclass(frozen=True, slots=True)
class Case:
    """One thing to decode."""

    name: str
    num_values: int
    run: Callable[[], DataBlock | np.ndarray]
    is_compiled: bool = False


def framed(chunk_bytes: bytes | np.ndarray, count: int, header: int = 8) -> tuple[np.ndarray, ...]:
    """Repeat a chunk ``count`` times with a header in front of each, as in a page."""
    chunk = np.frombuffer(chunk_bytes, np.uint8)
    page = np.zeros((count, header + chunk.size), np.uint8)
    page[:, header:] = chunk
    starts = np.arange(count, dtype=np.int64) * page.shape[1] + header
    return page.reshape(-1), starts, np.full(count, chunk.size, np.int64)


def chunks(chunk_bytes: bytes | np.ndarray, per_chunk: int, header: int = 8) -> Chunks:
    count = VALUES // per_chunk
    buffer = ChunkBuffer(*framed(chunk_bytes, count, header))
    return Chunks((buffer,), np.full(count, per_chunk, np.int64))


def random_bytes(count: int) -> bytes:
    return RNG.integers(0, 256, count, np.uint8).tobytes()


def decoding(name: str, encoding: ref.Encoding, data: Chunks, *, compiled: bool = False) -> Case:
    total = int(data.num_values.sum())
    return Case(name, total, lambda: codecs.decode_chunks(encoding, data), compiled)


def bit_packed(bits: int, width: int) -> Case:
    chunk = ref.to_words([width], bits) + random_bytes(128 * width)
    page = chunks(chunk, 1024)
    name = f"inline bit packing u{bits}, {width} bits"
    return decoding(name, ref.inline_bitpacking(bits), page, compiled=True)


def strings(name: str, lengths: np.ndarray, encoding: ref.Encoding, highest: int) -> Case:
    """Make a page of 128 strings per chunk out of random codes up to ``highest``."""
    parts = [
        ref.variable_chunk([RNG.integers(0, highest, n, np.uint8).tobytes() for n in part])
        for part in lengths.reshape(-1, 128)
    ]
    data = ref.chunks_of([[part] for part in parts], [128] * len(parts))
    return decoding(name, encoding, data, compiled=encoding.HasField("fsst"))


def cases() -> Iterator[Case]:
    plain = np.zeros(1 << 23, np.uint8)
    hot = np.empty_like(plain)
    yield Case("copy of 8 MB", VALUES, lambda: np.add(plain, 0, out=hot))
    yield decoding("flat 64", ref.flat(64), chunks(random_bytes(4096), 512))
    yield decoding("flat 1 (bool)", ref.flat(1), chunks(random_bytes(512), 4096))
    for bits, width in ((64, 10), (64, 51), (64, 62), (32, 7), (32, 13), (16, 5), (8, 3)):
        yield bit_packed(bits, width)
    levels = chunks(random_bytes(128), 1024)
    blocks = ref.out_of_line_bitpacking(16, 1)
    decode = lambda: codecs.decode_blocks(blocks, levels)
    yield Case("levels, 16 to 1 bit", VALUES, decode, is_compiled=True)
    lengths = RNG.integers(10, 30, VALUES // 4)
    yield strings("variable, 20 bytes", lengths, ref.variable(), 255)
    symbols = [random_bytes(n) for n in RNG.choice([1, 2, 2, 3, 3, 4, 5, 8], 255)]
    table = ref.fsst(ref.symbol_table(symbols))
    yield strings("fsst, 7 codes", lengths // 3, table, 255)
    yield strings("fsst, 30 codes", lengths * 3 // 2, table, 255)
    escaped = ref.fsst(ref.symbol_table([b"abc"] * 254 + [b"d"]))
    yield escaped_strings(escaped)
    split = lz4.block.compress(random_bytes(4096))
    yield decoding(
        "lz4 over byte stream split 64",
        ref.general(ref.LZ4, ref.byte_stream_split(64)),
        chunks(split, 512),
        compiled=True,
    )
    yield decoding(
        "byte stream split 64", ref.byte_stream_split(64), chunks(random_bytes(4096), 512),
        compiled=True,
    )  # fmt: skip
    yield runs()
    wanted = ValuePlaces(RNG.integers(0, 1024, 1000), RNG.integers(0, 1024, 1000))
    packed = chunks(ref.to_words([10], 64) + random_bytes(1280), 1024)
    encoding = ref.inline_bitpacking(64)
    yield Case("gather 1000 of bit packed", 1000, lambda: codecs.gather(encoding, packed, wanted))


def escaped_strings(encoding: ref.Encoding) -> Case:
    """One code in ten is an escape with its literal."""
    chunk = ref.variable_chunk([b"\1\2\3\4\xffz\5\6\7\x08\x09"] * 128)
    return decoding("fsst with escapes, 10 codes", encoding, chunks(chunk, 128), compiled=True)


def runs() -> Case:
    values, lengths = ref.rle_chunk(np.repeat(np.arange(20), 100).tolist()[:2048], 32)
    count = VALUES // 2000
    buffers = tuple(ChunkBuffer(*framed(part, count)) for part in (values, lengths))
    data = Chunks(buffers, np.full(count, 2000, np.int64))
    return decoding("runs of 100, 32 bits", ref.rle(32), data, compiled=True)


def size_of(block: DataBlock | np.ndarray) -> int:
    match block:
        case FixedWidth():
            return block.data.size
        case VariableWidth():
            return block.data.size + block.offsets.nbytes
    return block.nbytes


def best_seconds(case: Case, form: Form, repeat: int) -> tuple[float, int]:
    with forced(form):
        size = size_of(case.run())
        return best(timed(case.run) for _ in range(repeat)).cpu, size


def run(options: Namespace) -> None:
    """Print a line for each kernel."""
    print(f"{'kernel':34} {'numpy ns/value':>15} {'GB/s':>6} {'compiled ns/value':>18} {'GB/s':>6}")
    for case in cases():
        line = f"{case.name:34}"
        forms = [Form.NUMPY, Form.COMPILED] if case.is_compiled else [Form.NUMPY]
        for form, width in zip(forms, (15, 18), strict=False):
            seconds, size = best_seconds(case, form, options.repeat)
            line += f" {seconds / case.num_values * 1e9:{width}.2f} {size / seconds / 1e9:6.2f}"
        print(line)
