"""Which form of a loop runs, and what a compiled loop refuses."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lance_nb.encodings.kernels import compiled
from tests.support.compiled_forms import Form, forced

ROOT = Path(compiled.__file__).parents[3]


def printed(code: str) -> str:
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, check=True, cwd=ROOT, text=True)
    return done.stdout.strip()


def test_the_form_is_restored_after_forced() -> None:
    before = compiled.loops
    with forced(Form.NUMPY):
        assert compiled.loops is None
        with forced(Form.COMPILED):
            assert compiled.loops is before
        assert compiled.loops is None
    assert compiled.loops is before


def test_without_the_extension_numpy_does_the_work() -> None:
    code = (
        "import sys; sys.modules['lance_nb.encodings.kernels._compiled'] = None;"
        "from lance_nb.encodings.kernels import compiled;"
        "print(compiled.loops)"
    )
    assert printed(code) == "None"


def test_a_machine_of_the_other_byte_order_uses_numpy() -> None:
    code = (
        "import numpy, sys; sys.byteorder = 'big';"
        "from lance_nb.encodings.kernels import compiled;"
        "print(compiled.loops)"
    )
    assert printed(code) == "None"


def test_an_extension_of_an_older_source_is_not_used() -> None:
    code = (
        "import sys, types; name = 'lance_nb.encodings.kernels._compiled';"
        "sys.modules[name] = types.ModuleType(name);"
        "from lance_nb.encodings.kernels import compiled;"
        "print(compiled.loops)"
    )
    assert printed(code) == "None"


def test_every_loop_is_looked_for() -> None:
    text = (ROOT / "lance_nb/encodings/kernels/_compiled.pyi").read_text()
    assert set(compiled._LOOPS) == set(re.findall(r"^def (\w+)", text, re.MULTILINE))


def test_importing_the_codecs_does_not_import_compute() -> None:
    code = (
        "import sys; import lance_nb.encodings.registry;"
        "print([m for m in ('pyarrow.compute', 'lz4', 'zstandard') if m in sys.modules])"
    )
    assert printed(code) == "[]"


needs_extension = pytest.mark.skipif(compiled.loops is None, reason="no extension built")


@needs_extension
def test_blocks_outside_of_the_data_and_wrong_sizes_are_refused() -> None:
    loops = compiled.loops
    data, out = np.zeros(1280, np.uint8), np.zeros(2048, np.uint8)
    for start in (-1, 1, 1 << 62, -(1 << 63)):
        assert not loops.unpack_bits(data, np.array([start]), 10, 2, out)
    fits = np.zeros(1, np.int64)
    assert loops.unpack_bits(data, fits, 10, 2, out)
    for width, word in ((0, 2), (17, 2), (10, 1), (10, 3), (10, 0)):
        assert not loops.unpack_bits(data, fits, width, word, out)
    assert not loops.unpack_bits(data, fits, 10, 2, out[:-2])
    assert not loops.unpack_bits(data, fits, 10, 2, np.zeros(2049, np.uint8)[1:])
    rows = np.zeros((1, 1280), np.uint8)
    assert loops.pack_bits(out, 10, 2, rows)
    for width, word in ((0, 2), (17, 2), (9, 2), (10, 4), (10, 3)):
        assert not loops.pack_bits(out, width, word, rows)


@needs_extension
def test_words_are_measured_only_where_the_sizes_fit() -> None:
    loops = compiled.loops
    words, widths = np.arange(1025, dtype=np.uint32).view(np.uint8), np.zeros(2, np.int64)
    assert loops.measure_words(words, 4, widths) == 1025
    assert widths.tolist() == [10, 11]
    for data, word, out in (
        (words, 3, widths),
        (words, 0, widths),
        (words[:-1], 4, widths),
        (words[1:-3], 4, widths),
        (words, 4, widths[:1]),
        (words, 8, widths),
        (words, 4, np.zeros(3, np.int64)),
    ):
        assert loops.measure_words(data, word, out) == -1


@needs_extension
def test_codes_and_offsets_that_do_not_fit_are_refused() -> None:
    loops = compiled.loops
    words, lengths = np.zeros(256, np.uint64), np.zeros(256, np.uint8)
    lengths[:2] = 3
    codes = np.array([0, 1, 255, 7], np.uint8)
    out, ends = np.zeros(7 + 32, np.uint8), np.zeros(3, np.int32)

    def decoded(offsets: list[int], room: np.ndarray = out, kind: type = np.int32) -> int:
        return loops.decode_fsst(
            codes, np.array(offsets, kind), words, lengths, ends.astype(kind), room
        )

    assert loops.measure_fsst(codes, lengths) == 7
    assert decoded([0, 1, 4]) == decoded([0, 1, 4], kind=np.int64) == 7
    for offsets in ([1, 1, 4], [0, 5, 4], [0, 3, 4], [0, -1, 4], [0, 1, 5], [0, 2, 1]):
        assert decoded(offsets) == -1
    assert decoded([0, 1, 4], out[:-2]) == -1
    assert decoded([0, 1, 4], out[:31]) == -1
    assert loops.measure_fsst(np.array([0, 2], np.uint8), lengths) == -1
    assert loops.measure_fsst(codes, lengths[:-1]) == -1
    assert decoded([0, 4]) == -1  # another number of ends
    with pytest.raises(ValueError, match="mismatch"):
        loops.decode_fsst(codes, np.zeros(3, np.int32), words.view(np.int64), lengths, ends, out)


@needs_extension
def test_strings_outside_of_the_data_are_not_encoded() -> None:
    loops = compiled.loops
    longer = (np.ones(4096, np.uint64), np.zeros(4096, np.uint64), np.zeros(4096, np.uint16))
    literals = np.arange(256, dtype=np.uint16) + np.uint16(256 | 1 << 12)
    tables = (literals, np.tile(literals, 256), *longer)
    data = np.frombuffer(b"abc", np.uint8)

    def encoded(start: int, stop: int, room: np.ndarray) -> int:
        ends = np.zeros(2, np.int64)
        return loops.encode_fsst(data, np.array([start]), np.array([stop]), *tables, room, ends)

    assert encoded(0, 3, np.zeros(3, np.uint16)) == 3
    assert encoded(0, 3, np.zeros(6, np.uint8)) == 6
    for start, stop in ((-1, 2), (0, 4), (2, 1), (1 << 62, 1 << 62)):
        assert encoded(start, stop, np.zeros(9, np.uint16)) == -1
    assert encoded(0, 3, np.zeros(2, np.uint16)) == -1
    assert encoded(0, 3, np.zeros(5, np.uint8)) == -1


@needs_extension
def test_symbols_are_not_selected_from_codes_that_do_not_fit() -> None:
    loops = compiled.loops
    words, lengths = np.arange(512, dtype=np.uint64), np.ones(512, np.uint8)
    pairs, scratch = np.zeros(1 << 18, np.uint32), np.empty(6 * 600, np.uint64)
    best = np.empty(255, np.uint64), np.empty(255, np.uint8)

    def selected(codes: list[int], ends: list[int], room: np.ndarray = scratch) -> int:
        given = np.array(codes, np.uint16), np.array(ends, np.int64)
        return loops.select_symbols(*given, words, lengths, pairs, room, *best)

    assert selected([7, 8, 7, 8], [0, 4]) == 3
    assert (best[0][:3].tolist(), best[1][:3].tolist()) == ([7, 8, 0x807], [1, 1, 2])
    assert not pairs.any()
    assert selected([7, 8, 7, 8], [0, 2, 4]) == 3
    assert selected([7, 8, 7, 8], [0, 1, 3, 4]) == 2  # no pair of one string twice
    for codes, ends in (([512], [0, 1]), ([1], [0, 2]), ([1], [-1, 1]), ([1, 2], [0, 2, 1])):
        assert selected(codes, ends) == -1
    assert selected([7, 8], [0, 2], scratch[:11]) == -1  # there is room for one candidate only
    lengths[7] = 9
    assert selected([7], [0, 1]) == -1


@needs_extension
def test_strings_outside_of_their_chunk_are_not_joined() -> None:
    loops = compiled.loops
    data = np.frombuffer(struct.pack("<3I", 12, 14, 15) + b"abc" + b"?", np.uint8)
    sound = {"at": 0, "origin": 0, "limit": 15, "first": 12, "count": 2}

    def joined(offsets: list[int] | None = None, word: int = 4, **changed: int) -> object:
        given = {key: np.array([value]) for key, value in (sound | changed).items()}
        given_data = data.copy()
        if offsets is not None:
            given_data[:12] = np.array(offsets, "<u4").view(np.uint8)
        size = loops.measure_strings(given_data, *given.values(), word)
        if size < 0:
            return size
        ends, out = np.zeros(given["count"][0] + 1, np.int32), np.zeros(size, np.uint8)
        if not loops.join_strings(given_data, *given.values(), word, ends, out):
            return False
        return ends.tolist(), out.tobytes()

    assert joined() == ([0, 2, 3], b"abc")
    assert joined(count=0, limit=12) == ([0], b"")
    for changed in (
        {"at": -1}, {"at": 5}, {"at": 1 << 62}, {"count": 3}, {"count": -1}, {"count": 1 << 62},
        {"origin": -1}, {"origin": 1}, {"limit": 14}, {"limit": 17}, {"limit": -1}, {"first": 11},
        {"word": 8}, {"word": 5},
    ):  # fmt: skip
        assert joined(**changed) == -1
    assert joined([12, 16, 15]) is False
    assert joined([12, 11, 15]) is False
    assert joined([12, 11, 11]) == -1
    one = [np.array([value]) for value in sound.values()]
    for ends, size in ((3, 2), (3, 4), (2, 3), (4, 3), (0, 3)):
        room = np.zeros(ends, np.int32), np.zeros(size, np.uint8)
        assert not loops.join_strings(data, *one, 4, *room)


@needs_extension
def test_ranges_outside_of_what_is_there_are_refused() -> None:
    loops = compiled.loops
    data, out = np.arange(10, dtype=np.uint8), np.zeros(6, np.uint8)
    ints = lambda *values: np.array(values, np.int64)

    assert loops.copy_ranges(data, ints(7, 0), ints(3, 3), out)
    assert out.tolist() == [7, 8, 9, 0, 1, 2]
    assert not loops.copy_ranges(data, ints(7), ints(3), out)  # not full
    assert not loops.copy_ranges(data, ints(7, 0), ints(3), out)
    assert loops.scatter_ranges(data, ints(7, 0), ints(3, 3), out, ints(3, 0))
    assert out.tolist() == [0, 1, 2, 7, 8, 9]
    assert not loops.scatter_ranges(data, ints(7, 0), ints(3, 3), out, ints(3))
    for start, size in (
        (8, 3),
        (-1, 3),
        (0, -1),
        (1 << 62, 1 << 62),
        (0, 1 << 62),
        (-(1 << 63), 3),
    ):
        assert not loops.copy_ranges(data, ints(0, start), ints(3, size), out)
        assert not loops.scatter_ranges(data, ints(0, start), ints(3, size), out, ints(0, 0))
    for place in (4, -1, 1 << 62, -(1 << 63)):
        assert not loops.scatter_ranges(data, ints(0), ints(3), out, ints(place))


@needs_extension
def test_entries_outside_of_their_rows_are_refused() -> None:
    loops = compiled.loops
    data = np.frombuffer(b"\2\0\0\0ab\1\0\0\0c", np.uint8)

    def walked(starts: list[int], stops: list[int], room: int = 9) -> object:
        arrays = np.empty(room, np.uint32), np.empty(room, np.int64), np.empty(room, np.int64)
        rows = np.array(starts, np.int64), np.array(stops, np.int64)
        found = loops.walk_entries(data, *rows, 0, 0, 0, 0, 4, *arrays)
        return found if found is None else (found, arrays[1].tolist(), arrays[2].tolist())

    assert walked([0, 6], [6, 11], 2) == ((2, 2), [4, 10], [2, 1])
    assert walked([0], [11], 2) == ((2, 2), [4, 10], [2, 1])
    assert walked([0], [11], 1) == ((2, 2), [4], [2])  # the rest is counted
    for start, stop in ((0, 5), (0, 3), (-1, 6), (6, 12), (6, 10), (0, 1 << 62), (1 << 62, 0)):
        assert walked([start], [stop]) is None
    assert walked([0, 6], [6]) is None


@needs_extension
def test_levels_and_rooms_that_do_not_fit_are_refused() -> None:
    loops = compiled.loops
    rep, levels = np.array([1, 0, 1], np.uint8), np.array([0, 0, 1], np.uint8)

    def folded(rep: np.ndarray, levels: np.ndarray, lists: int = 2, number: int = 1) -> object:
        offsets, validity = np.zeros(lists + 1, np.int64), np.zeros(lists + 1, np.uint8)
        rooms = np.zeros(3, np.uint8), np.zeros(3, np.uint8), offsets, validity
        found = loops.fold_lists(rep, 1, levels, 1, number, 0, 1, 0, -1, *rooms)
        return found if found < 0 else (found, offsets.tolist(), validity.tolist()[:lists])

    assert loops.count_lists(rep, 1, levels, 1, 1, 1) == (2, 2)
    assert folded(rep, levels) == (1, [0, 2, 2], [1, 0])
    assert folded(rep[1:], levels[1:]) == -1  # begins inside of a list
    assert folded(rep, np.array([0, 1, 1], np.uint8)) == -1  # without a slot, inside of a list
    assert folded(rep, levels[:2]) == -1
    assert folded(rep, levels, lists=1) == -1
    assert folded(rep, levels, number=256) == -1
    assert loops.count_lists(rep, 2, levels, 1, 1, 1) is None
    assert loops.count_lists(rep, 3, levels, 1, 1, 1) is None
    room = np.zeros(3, np.uint8)
    assert loops.item_validity(levels, 1, 0, 0, room) == 2
    assert loops.item_validity(levels, 1, 1, 0, room) == -1  # another number of slots
    assert loops.item_validity(levels, 3, 0, 0, room) == -1
    assert loops.item_validity(levels, 1, 0, 0, room[:0]) == -1
    out = np.zeros(1024, np.uint8)
    for start, width in ((1, 1), (-1, 1), (1 << 62, 1), (0, 3), (0, 2)):
        assert not loops.unpack_levels(np.zeros(128, np.uint8), np.array([start]), width, out)
    ints = lambda *values: np.array(values, np.int64)
    data, room = np.zeros(130, np.uint8), np.zeros(1024 + 1024, np.uint8)
    assert loops.unpack_level_chunks(data, ints(2), ints(128), ints(1024), 1, room)
    for starts, sizes, counts, width in (
        (ints(3), ints(128), ints(1024), 1),  # ends outside
        (ints(-1), ints(128), ints(1024), 1),
        (ints(1 << 62), ints(128), ints(1024), 1),
        (ints(0), ints(127), ints(1024), 1),  # of another size
        (ints(0), ints(128), ints(1023), 1),  # leaves room
        (ints(0), ints(128), ints(-1), 1),
        (ints(0, 0), ints(128), ints(1024), 1),
        (ints(0), ints(128), ints(1024), 3),
    ):
        assert not loops.unpack_level_chunks(data, starts, sizes, counts, width, room)
    assert not loops.unpack_level_chunks(data, ints(0), ints(128), ints(1024), 1, room[1:])


@needs_extension
def test_runs_and_split_bytes_that_do_not_fit_are_refused() -> None:
    loops = compiled.loops
    ints = lambda *values: np.array(values, np.int64)
    values, out = np.array([1, 0, 2, 0], np.uint8), np.zeros(6, np.uint8)

    assert loops.repeat_runs(values, 2, ints(1, 2), out)
    assert out.view(np.uint16).tolist() == [1, 2, 2]
    for repeats in (ints(1, 1), ints(2, 2), ints(-1, 4), ints(1 << 62, 1), ints(3), ints(1, 1, 1)):
        assert not loops.repeat_runs(values, 2, repeats, out)
    assert not loops.repeat_runs(values, 2, ints(1, 2), out[1:])
    assert not loops.repeat_runs(values, 3, ints(1, 2), out)
    data, joined = np.arange(9, dtype=np.uint8), np.zeros(8, np.uint8)
    assert loops.join_bytes(data, ints(1), ints(2), 4, joined)
    assert joined.tolist() == [1, 3, 5, 7, 2, 4, 6, 8]
    for start, count in ((2, 2), (-1, 2), (1, 1), (1, 3), (1, -1), (1 << 62, 2), (1, 1 << 62)):
        assert not loops.join_bytes(data, ints(start), ints(count), 4, joined)
    assert not loops.join_bytes(data, ints(1, 1), ints(2), 4, joined)
    assert not loops.join_bytes(data, ints(1), ints(1), 5, joined[:5])


@needs_extension
def test_places_and_sums_that_do_not_fit_are_refused() -> None:
    loops = compiled.loops
    numbers, places = np.array([2, 5, 9], np.uint32), np.zeros(4, np.int64)
    wanted = np.array([1, 5, 9, 10], np.uint32)
    assert loops.places_among(wanted, numbers, places)
    assert places.tolist() == [-1, 1, 2, -1]
    assert loops.places_among(wanted[::-1].copy(), numbers, places)
    assert places.tolist() == [-1, 2, 1, -1]
    assert not loops.places_among(wanted, numbers, places[:3])
    sums, values = np.zeros(10, np.float32), np.ones(3, np.float32)
    assert loops.add_at(sums, numbers, values)
    assert np.flatnonzero(sums).tolist() == [2, 5, 9]
    assert not loops.add_at(sums[:9], numbers, values)
    assert not loops.add_at(sums, numbers, values[:2])
    assert sums.sum() == 3
