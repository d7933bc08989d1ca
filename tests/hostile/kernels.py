"""Run the compiled loops on sound, mutated and random input under AddressSanitizer.

    python -m tests.hostile.kernels 200000 [seed] [--seconds 600]

Builds the extension with AddressSanitizer and UndefinedBehaviorSanitizer into a temporary folder
(needs gcc), and runs itself again with that build. Half of the cases compare both forms of a loop,
as tests/property/encodings does; the others call a loop with sizes and positions that fit nothing.
Each seed stands for one case. Ends with 1 at the first finding, which the sanitizer prints.
"""

from __future__ import annotations

import argparse
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
NAME = "lance_nb.encodings.kernels._compiled"
SOURCE = ROOT / "lance_nb/encodings/kernels/_compiled.pyx"
FLAGS = "-O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all"
EDGES = np.array([-(1 << 63), -(1 << 40), -1, 0, 1, 2, 1 << 31, 1 << 62, (1 << 63) - 1])
Rng = np.random.Generator


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", type=int)
    parser.add_argument("seed", type=int, nargs="?", default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--built", type=Path, help="the extension, built with sanitizers")
    options = parser.parse_args()
    if options.built is None:
        sys.exit(_run_sanitized(options))
    _load(options.built)
    _run(options.cases, options.seed, options.seconds)


def _run_sanitized(options: argparse.Namespace) -> int:
    """Build the extension with sanitizers and run the cases with it, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        built = build(Path(folder))
        libraries = [_library("libasan.so"), _library("libubsan.so")]
        environment = os.environ | {
            "LD_PRELOAD": " ".join(libraries),
            "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:allocator_may_return_null=1",
            "UBSAN_OPTIONS": "print_stacktrace=1",
            "PYTHONMALLOC": "malloc",
            "ARROW_DEFAULT_MEMORY_POOL": "system",
            "OPENBLAS_NUM_THREADS": "1",
        }
        arguments = [str(options.cases), str(options.seed), "--seconds", str(options.seconds)]
        command = [sys.executable, "-m", "tests.hostile.kernels", *arguments, "--built", str(built)]
        return subprocess.run(command, env=environment, cwd=ROOT, check=False).returncode


def build(folder: Path) -> Path:
    """Compile the extension with sanitizers into a folder; return its path."""
    code = (
        "import sys\n"
        "from setuptools import Extension, setup\n"
        "from Cython.Build import cythonize\n"
        "name, source, folder = sys.argv.pop(1), sys.argv.pop(1), sys.argv.pop(1)\n"
        "loops = Extension(name, [source])\n"
        "setup(name='loops', ext_modules=cythonize([loops], build_dir=folder, force=True))\n"
    )
    command = [
        sys.executable, "-W", "ignore", "-c", code, NAME, SOURCE, folder,
        "--quiet", "build_ext", "--build-lib", folder, "--build-temp", folder,
    ]  # fmt: skip
    environment = os.environ | {"CFLAGS": FLAGS, "LDFLAGS": "-fsanitize=address,undefined"}
    subprocess.run(command, env=environment, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    (built,) = folder.rglob("_compiled*.so")
    return built


def _library(name: str) -> str:
    command = ["gcc", f"-print-file-name={name}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _load(built: Path) -> None:
    """Let ``compiled`` find this build instead of the one that is installed."""
    loader = importlib.machinery.ExtensionFileLoader(NAME, str(built))
    spec = importlib.util.spec_from_file_location(NAME, built, loader=loader)
    if spec is None:
        raise SystemExit(f"{built} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    sys.modules[NAME] = module


def _run(cases: int, seed: int, seconds: float) -> None:
    from lance_nb.encodings.kernels import compiled
    from tests.property.encodings.loop_cases import CASES, outcome
    from tests.support.compiled_forms import Form

    if compiled.loops is not sys.modules[NAME]:
        raise SystemExit("the sanitized build is not in use")
    names = [*CASES, *(f"{name}, any arguments" for name in ANY)]
    ran: Counter[str] = Counter()
    began = time.monotonic()
    for number in range(seed, seed + cases):
        if time.monotonic() - began > seconds:
            break
        rng = np.random.default_rng(number)
        name = names[number % len(names)]
        print(f"case {number}: {name}", end="\r", flush=True)  # the last line, if it crashes
        if name in CASES:
            run = CASES[name](rng)
            if outcome(Form.COMPILED, run) != outcome(Form.NUMPY, run):
                raise SystemExit(f"case {number}: the forms of {name!r} differ")
        else:
            name = name.partition(",")[0]
            arguments = ANY[name](rng)
            try:
                getattr(compiled.loops, name)(*arguments)
            except (ValueError, TypeError, OverflowError):
                ran["refused by type"] += 1
        ran[name] += 1
    for name, count in sorted(ran.items()):
        print(f"{count:9,} {name}")
    print(f"{sum(ran[name] for name in ran if name != 'refused by type'):9,} cases, no finding")


def _bytes(rng: Rng, most: int = 3000) -> np.ndarray:
    return rng.integers(0, 256, int(rng.integers(0, most)), np.uint8)


def _positions(rng: Rng, count: int, near: int) -> np.ndarray:
    found = rng.integers(0, max(near, 1) + 3, count)
    if rng.random() < 0.5:
        at = rng.random(count) < 0.2
        found[at] = rng.choice(EDGES, int(at.sum()))
    return found


def _number(rng: Rng, *usual: int) -> int:
    return int(rng.choice(usual)) if rng.random() < 0.9 else int(rng.integers(-3, 300))


def _any_unpack_bits(rng: Rng) -> tuple[Any, ...]:
    data, count = _bytes(rng, 10_000), int(rng.integers(0, 4))
    word = _number(rng, 1, 2, 4, 8)
    room = np.empty(max(count * 1024 * word + int(rng.choice([0, 0, 0, -1, 8])), 0), np.uint8)
    width = _number(rng, *range(1, 65))
    return data, _positions(rng, count, data.size - 128 * width), width, word, room


def _any_pack_bits(rng: Rng) -> tuple[Any, ...]:
    width, word, count = (
        _number(rng, *range(1, 65)),
        _number(rng, 1, 2, 4, 8),
        _number(rng, 0, 1, 2),
    )
    values = rng.integers(0, 256, max(count, 0) * 1024 * max(word, 0), np.uint8)
    rows = np.empty((max(count, 0), max(128 * width + int(rng.choice([0, 0, 8])), 0)), np.uint8)
    return values, width, word, rows


def _any_measure_words(rng: Rng) -> tuple[Any, ...]:
    data, word = _bytes(rng, 20_000), _number(rng, 1, 2, 4, 8)
    blocks = -(-data.size // (1024 * word)) if word > 0 else 1
    return data, word, np.empty(max(blocks + int(rng.choice([0, 0, 0, -1, 1])), 0), np.int64)


def _any_unpack_levels(rng: Rng) -> tuple[Any, ...]:
    data, count, width = _bytes(rng), int(rng.integers(0, 4)), _number(rng, 1, 2, 4, 8)
    starts = _positions(rng, count, data.size - 128 * width)
    return data, starts, width, np.empty(count * 1024 + _number(rng, 0, 0, 0, 1), np.uint8)


def _any_unpack_level_chunks(rng: Rng) -> tuple[Any, ...]:
    data, count, width = _bytes(rng), int(rng.integers(0, 4)), _number(rng, 1, 2, 4, 8)
    counts = rng.integers(0, 2200, count)
    blocks, tails = counts // 1024, counts % 1024
    raw = rng.random(count) < 0.5
    sizes = np.where(raw, blocks * 128 * width + 2 * tails, -(-counts // 1024) * 128 * width)
    if rng.random() < 0.3 and count:
        sizes[rng.integers(count)] += int(rng.choice([-1, 1, 1 << 40]))
    if rng.random() < 0.1 and count:
        counts[rng.integers(count)] = int(rng.choice([-1, 1 << 62]))
    starts = _positions(rng, count, data.size - int(sizes.max(initial=0)))
    room = int(np.clip(counts, 0, 3000).sum()) + 1024 + _number(rng, 0, 0, 0, 1)
    return data, starts, sizes, counts, width, np.empty(max(room, 0), np.uint8)


def _lengths(rng: Rng) -> np.ndarray:
    return rng.integers(0, 10 if rng.random() < 0.1 else 9, 256).astype(np.uint8)


def _any_measure_fsst(rng: Rng) -> tuple[Any, ...]:
    codes = _bytes(rng)
    codes[rng.random(codes.size) < rng.random()] = 255
    return codes, _lengths(rng)


def _any_decode_fsst(rng: Rng) -> tuple[Any, ...]:
    codes, lengths = _any_measure_fsst(rng)
    count = int(rng.integers(0, 20))
    offsets = np.sort(rng.integers(0, codes.size + 1, count + 1))
    offsets[0] = 0 if rng.random() < 0.9 else offsets[0]
    if rng.random() < 0.5:
        offsets = _positions(rng, count + 1, codes.size)
    offsets = offsets.astype(rng.choice(["i4", "i8"]))
    words = rng.integers(0, 1 << 63, 256).astype(np.uint64)
    ends = np.empty(count + 1 + int(rng.choice([0, 0, 0, -1, 1])), offsets.dtype)
    return codes, offsets, words, lengths, ends, np.empty(int(rng.integers(0, 9000)), np.uint8)


def _any_encode_fsst(rng: Rng) -> tuple[Any, ...]:
    from lance_nb.encodings.kernels import fsst_encode

    data, count = _bytes(rng), int(rng.integers(0, 80))
    lengths = rng.integers(1, 9, 300)
    words = rng.integers(0, 1 << 63, 300).astype(np.uint64)
    words &= np.uint64(0xFFFF_FFFF_FFFF_FFFF) >> (64 - 8 * lengths).astype(np.uint64)
    found = fsst_encode.build(*fsst_encode.select(words, lengths))
    starts = np.sort(rng.integers(0, data.size + 1, count))
    stops = np.minimum(starts + rng.integers(0, 257, count), data.size)
    if rng.random() < 0.3:
        starts, stops = _positions(rng, count, data.size), _positions(rng, count, data.size)
    size = int(np.abs(stops - starts).clip(0, 4000).sum())
    kind = rng.choice(["u1", "u2"])
    room = np.empty(size * (2 if kind == "u1" else 1) + int(rng.choice([0, 0, -1, 9])) % 99, kind)
    tables = found.singles, found.pairs, found.hash_words, found.hash_masks, found.hash_entries
    return data, starts, stops, *tables, room, np.zeros(count + 1, np.int64)


def _any_select_symbols(rng: Rng) -> tuple[Any, ...]:
    codes = rng.integers(0, _number(rng, 2, 300, 512, 520) % 600 + 1, int(rng.integers(0, 900)))
    ends = np.sort(rng.integers(0, codes.size + 1, int(rng.integers(0, 20))))
    if rng.random() < 0.3:
        ends = _positions(rng, ends.size, codes.size)
    lengths = rng.integers(1, 9, 512)
    if rng.random() < 0.1:
        lengths[rng.integers(0, 512)] = rng.integers(0, 256)
    words = rng.integers(0, 1 << 63, 512).astype(np.uint64)
    scratch = np.empty(int(rng.choice([0, 30, 6 * (codes.size // 2 + 512)])), np.uint64)
    pairs = np.zeros((1 << 18) - int(rng.choice([0, 0, 0, 1])), np.uint32)
    best = np.empty(255 - int(rng.choice([0, 0, 0, 1])), np.uint64), np.empty(255, np.uint8)
    return codes.astype(np.uint16), ends, words, lengths.astype(np.uint8), pairs, scratch, *best


def _any_copy_ranges(rng: Rng) -> tuple[Any, ...]:
    data, count = _bytes(rng), int(rng.integers(0, 30))
    sizes = _positions(rng, count, 30)
    room = np.empty(int(sizes.clip(0, 99).sum()), np.uint8)
    return data, _positions(rng, count, data.size - 30), sizes, room


def _any_scatter_ranges(rng: Rng) -> tuple[Any, ...]:
    data, starts, sizes, room = _any_copy_ranges(rng)
    return data, starts, sizes, room, _positions(rng, starts.size, room.size - 30)


def _any_walk_entries(rng: Rng) -> tuple[Any, ...]:
    data, count = _bytes(rng), int(rng.integers(0, 9))
    if rng.random() < 0.7:
        data[rng.random(data.size) < 0.9] = 0
    starts, stops = _positions(rng, count, data.size), _positions(rng, count, data.size)
    room, seen = int(rng.integers(0, 99)), int(rng.integers(0, 99))
    form = _number(rng, 0, 1, 2, 4), _number(rng, *range(17)), abs(_number(rng, 0, 1, 2))
    sizes = _number(rng, 0, 0, 1, 8), _number(rng, 4, 8)
    arrays = np.empty(room, np.uint32), np.empty(seen, np.int64), np.empty(seen, np.int64)
    return data, starts, stops, *form, *sizes, *arrays


def _any_levels(rng: Rng, count: int) -> tuple[np.ndarray, int]:
    width = _number(rng, 1, 2)
    levels = rng.integers(0, 4, max(count + int(rng.choice([0, 0, 0, 1])), 0))
    return levels.astype("u2" if width == 2 else "u1").view(np.uint8), width


def _any_count_lists(rng: Rng) -> tuple[Any, ...]:
    count = int(rng.integers(0, 5000 if rng.random() < 0.1 else 90))
    of_rep, of_definition = _any_levels(rng, count), _any_levels(rng, count)
    if rng.random() < 0.1:
        of_definition = np.zeros(0, np.uint8), 0
    return *of_rep, *of_definition, _number(rng, 1, 2, 3), _number(rng, 0, 1, 2, 3)


def _any_fold_lists(rng: Rng) -> tuple[Any, ...]:
    from lance_nb.encodings.kernels import compiled

    levels = _any_count_lists(rng)
    if compiled.loops is None:
        raise SystemExit("no extension")
    starts, lists = compiled.loops.count_lists(*levels) or (3, 3)
    lists += int(rng.choice([0, 0, 0, 0, 1]))
    starts += int(rng.choice([0, 0, 0, 0, 1]))
    rooms = [np.empty((starts + 1) * bytes_ * int(rng.choice([0, 1])), np.uint8)
             for bytes_ in (max(levels[1], 0), max(levels[3], 0))]  # fmt: skip
    numbers = [_number(rng, 0, 1, 2) for _ in range(3)]
    return (
        *levels[:5], numbers[0], levels[5], *numbers[1:], *rooms,
        np.empty(lists + 1, np.int64), np.empty(lists + 1, np.uint8),
    )  # fmt: skip


def _any_item_validity(rng: Rng) -> tuple[Any, ...]:
    levels, width = _any_levels(rng, int(rng.integers(0, 90)))
    visible = levels if width != 2 else levels.view(np.uint16)
    slots = int((visible <= 1).sum()) + int(rng.choice([0, 0, 0, 1]))
    return levels, width, 1, _number(rng, 0, 1), np.empty(slots + 1, np.uint8)


def _any_measure_strings(rng: Rng) -> tuple[Any, ...]:
    data, count, word = _bytes(rng), int(rng.integers(0, 6)), _number(rng, 4, 8)
    if rng.random() < 0.7:  # offsets that may be sound
        data[rng.random(data.size) < 0.9] = 0
    counts = _positions(rng, count, 9)
    starts, origins = _positions(rng, count, data.size), _positions(rng, count, data.size)
    limits = origins + 90 if rng.random() < 0.7 else _positions(rng, count, data.size)
    first = np.zeros(count, np.int64) if rng.random() < 0.7 else _positions(rng, count, 9)
    return data, starts, origins, limits, first, counts, word


def _any_join_strings(rng: Rng) -> tuple[Any, ...]:
    from lance_nb.encodings.kernels import compiled

    chunks = _any_measure_strings(rng)
    if compiled.loops is None:
        raise SystemExit("no extension")
    size = max(compiled.loops.measure_strings(*chunks), 0) + int(rng.choice([0, 0, 0, 1, -1]))
    rows = int(chunks[5].clip(0, 99).sum()) + int(rng.choice([0, 0, 0, 1, -1]))
    offsets = np.empty(max(rows + 1, 0), rng.choice(["i4", "i8"]))
    return *chunks, offsets, np.empty(min(max(size, 0), 10_000), np.uint8)


def _any_find_substring(rng: Rng) -> tuple[Any, ...]:
    data = rng.integers(97, 100, int(rng.integers(0, 900))).astype(np.uint8)
    count = int(rng.integers(0, 20))
    offsets = np.sort(rng.integers(0, data.size + 1, count + 1))
    if rng.random() < 0.3:
        offsets = _positions(rng, count + 1, data.size)
    piece = rng.integers(97, 100, int(rng.integers(0, 6))).astype(np.uint8)
    found = np.zeros(count + int(rng.choice([0, 0, 0, 1])), np.uint8)
    return data, offsets.astype(rng.choice(["i4", "i8"])), piece, found


def _any_table_sums(rng: Rng) -> tuple[Any, ...]:
    bits, count, rows = _number(rng, 4, 8), int(rng.integers(0, 3000)), int(rng.integers(0, 12))
    codes = rng.integers(0, 256, rows * count + int(rng.choice([0, 0, 0, 1]))).astype(np.uint8)
    width = rows * (256 if bits == 8 else 32)
    table = rng.random(max(width + int(rng.choice([0, 0, 0, -1, 1])), 0))
    return table.astype(np.float32), codes, bits, np.zeros(count, np.float32)


def _any_places_among(rng: Rng) -> tuple[Any, ...]:
    wanted, numbers = (
        rng.integers(0, int(rng.choice([9, 1 << 32])), int(rng.integers(0, 90))).astype(np.uint32)
        for _ in range(2)
    )
    if rng.random() < 0.7:
        numbers.sort()
    return wanted, numbers, np.empty(max(wanted.size + int(rng.choice([0, 0, 0, -1])), 0), np.int64)


def _any_add_at(rng: Rng) -> tuple[Any, ...]:
    size, count = int(rng.integers(0, 90)), int(rng.integers(0, 90))
    places = rng.integers(0, max(size, 1) + int(rng.choice([0, 0, 1, 1 << 31])), count)
    values = rng.random(max(count + int(rng.choice([0, 0, 0, 1])), 0)).astype(np.float32)
    return np.zeros(size, np.float32), places.astype(np.uint32), values


def _any_repeat_runs(rng: Rng) -> tuple[Any, ...]:
    word, count = _number(rng, 1, 2, 4, 8), int(rng.integers(0, 30))
    repeats = _positions(rng, count, 9)
    room = int(repeats.clip(0, 99).sum()) * max(word, 0) + _number(rng, 0, 0, 0, 8)
    values = rng.integers(0, 256, count * max(word, 0), np.uint8)
    return values, word, repeats, np.empty(max(room, 0), np.uint8)


def _any_join_bytes(rng: Rng) -> tuple[Any, ...]:
    data, count, width = _bytes(rng), int(rng.integers(0, 9)), _number(rng, 4, 8)
    counts = _positions(rng, count, 20)
    room = int(counts.clip(0, 99).sum()) * max(width, 0) + int(rng.choice([0, 0, 0, 1]))
    return data, _positions(rng, count, data.size - 99), counts, width, np.empty(room, np.uint8)


def _any_number_values(rng: Rng) -> tuple[Any, ...]:
    data = rng.integers(97, 100, int(rng.integers(0, 300))).astype(np.uint8)
    count, run, most = int(rng.integers(0, 30)), _number(rng, 1, 2, 5), int(rng.integers(0, 40))
    offsets = np.sort(rng.integers(0, data.size + 1, count + 1))
    if rng.random() < 0.3:
        offsets = _positions(rng, count + 1, data.size)
    starts = rng.integers(0, max(count - run, 1), int(rng.integers(0, 5)))
    if rng.random() < 0.3:
        starts = _positions(rng, starts.size, count)
    chosen = None if rng.random() < 0.3 else offsets.astype(rng.choice(["i4", "i8"]))
    room = starts.size * max(run, 0) + int(rng.choice([0, 0, 0, 1]))
    return (
        data, chosen, _number(rng, 1, 8, 16),
        starts, run, np.zeros(1 << int(rng.integers(0, 8)), np.uint64),
        np.empty(min(room, 9999), np.int32), np.empty(most, np.int64),
    )  # fmt: skip


ANY = {
    "unpack_bits": _any_unpack_bits,
    "pack_bits": _any_pack_bits,
    "measure_words": _any_measure_words,
    "unpack_levels": _any_unpack_levels,
    "unpack_level_chunks": _any_unpack_level_chunks,
    "measure_fsst": _any_measure_fsst,
    "decode_fsst": _any_decode_fsst,
    "encode_fsst": _any_encode_fsst,
    "select_symbols": _any_select_symbols,
    "copy_ranges": _any_copy_ranges,
    "scatter_ranges": _any_scatter_ranges,
    "walk_entries": _any_walk_entries,
    "count_lists": _any_count_lists,
    "fold_lists": _any_fold_lists,
    "item_validity": _any_item_validity,
    "number_values": _any_number_values,
    "measure_strings": _any_measure_strings,
    "join_strings": _any_join_strings,
    "find_substring": _any_find_substring,
    "table_sums": _any_table_sums,
    "places_among": _any_places_among,
    "add_at": _any_add_at,
    "repeat_runs": _any_repeat_runs,
    "join_bytes": _any_join_bytes,
}


if __name__ == "__main__":
    main()
