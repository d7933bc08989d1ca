"""Columns to hold both readers against: type x values x nulls, each built for any number of rows.

A *shape* builds an array without outer nulls from (random generator, rows); a *pattern* then makes
some rows null. ``columns(family, rows, seed)`` builds every combination of one family.

Sizes lie around the borders of chunks (1024, 4096) and include none and one row.
"""

from __future__ import annotations

import os
from bisect import bisect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

# How much more than in CI to test: `make test-interop SIZE=100` sets it.
SCALE = float(os.environ.get("LANCE_NB_TEST_SCALE", "1"))
ROUNDS = max(1, round(SCALE))
SIZES = (0, 1, 2, 7, 1023, 1024, 1025, 4095, 4097, 20_000)
VERSIONS = ("2.1", "2.2")
# Both versions share their chunks: CI gives each half of the sizes, a larger run all of them.
SIZES_OF = (
    {"2.1": (0, 2, 1024, 4095), "2.2": (1, 7, 1023, 1025, 4097, 20_000)}
    if SCALE <= 1
    else dict.fromkeys(VERSIONS, SIZES)
)

Random = np.random.Generator
Build = Callable[[Random, int], pa.Array]


@dataclass(frozen=True, slots=True)
class Shape:
    """One kind of values. ``rows_max`` keeps wide ones small; ``since`` is the file version."""

    name: str
    build: Build
    rows_max: int = 20_000
    since: str = "2.1"


def columns(
    family: str, num_rows: int, version: str, seed: int, *, in_turns: bool = False
) -> Iterator[tuple[str, pa.Array]]:
    """Build every column of a family: each shape with each null pattern.

    ``in_turns``: of the patterns with nulls, each shape has two at each size, and all within any
    three sizes that follow each other; a larger run has all at each.
    """
    for number, shape in enumerate(FAMILIES[family]):
        if version < shape.since:
            continue
        rng = np.random.default_rng([seed, number, num_rows])
        rows = min(num_rows, shape.rows_max)
        base = shape.build(rng, rows)
        turn = number + bisect(SIZES, num_rows)
        left_out = {WITH_NULLS[turn % 4], WITH_NULLS[(turn + 1) % 4]}
        for pattern, mask in PATTERNS.items():
            if in_turns and SCALE <= 1 and pattern in left_out:
                continue
            array = with_nulls(base, mask(rng, rows)) if pattern != "full" else base
            yield f"{shape.name}/{pattern}", array


def with_nulls(array: pa.Array, mask: np.ndarray[Any, Any]) -> pa.Array:
    """Make the rows of the mask null, whatever the type."""
    if isinstance(array.type, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(array.type, with_nulls(array.storage, mask))
    return array.take(pa.array(np.arange(len(array)), mask=mask))


def _runs(rng: Random, n: int) -> np.ndarray[Any, Any]:
    return np.repeat(rng.random(n // 300 + 1) < 0.5, 300)[:n]


PATTERNS: dict[str, Callable[[Random, int], np.ndarray[Any, Any]]] = {
    "full": lambda _, n: np.zeros(n, bool),
    "some": lambda rng, n: rng.random(n) < 0.15,
    "most": lambda rng, n: rng.random(n) < 0.98,
    "runs": _runs,
    "all": lambda _, n: np.ones(n, bool),
}
WITH_NULLS = [name for name in PATTERNS if name != "full"]


# --- numbers -----------------------------------------------------------------------------------


def _integers(kind: str, share: float) -> Build:
    bounds = np.iinfo(kind)
    low, high = int(bounds.min * share), int(bounds.max * share)
    return lambda rng, n: pa.array(rng.integers(low, high, n, dtype=kind, endpoint=True))


def _float_bits(kind: str) -> Build:
    """Any bit pattern at all: NaN payloads, infinities, subnormals, both zeros."""
    word = {"float16": "u2", "float32": "u4", "float64": "u8"}[kind]

    def build(rng: Random, n: int) -> pa.Array:
        bits = rng.integers(0, np.iinfo(word).max, n, dtype=word, endpoint=True)
        values = bits.view(kind)
        values[::5] = rng.choice(np.array([0.0, -0.0, np.inf, -np.inf, np.nan], kind), n)[::5]
        return pa.Array.from_buffers(getattr(pa, kind)(), n, [None, pa.py_buffer(values.tobytes())])

    return build


def _of(kind: pa.DataType, high: int) -> Build:
    """Build integers below ``high``, seen as another fixed-width type."""
    word = f"int{kind.bit_width}"
    return lambda rng, n: pa.array(rng.integers(0, high, n).astype(word)).view(kind)


def _decimal(kind: pa.DataType, digits: int) -> Build:
    def build(rng: Random, n: int) -> pa.Array:
        text = ["".join(map(str, rng.integers(0, 10, digits))) for _ in range(n)]
        return pa.array([Decimal(one).scaleb(-kind.scale) for one in text], kind)

    return build


def _shaped(kind: str, how: str) -> Build:
    def build(rng: Random, n: int) -> pa.Array:
        values = {
            "constant": lambda: np.full(n, 42),
            "runs": lambda: np.repeat(rng.integers(-9, 9, n // 100 + 1), 100)[:n],
            "sorted": lambda: np.arange(n) * 3,
            "few": lambda: rng.choice([-5, 17, 2_000_000_000, 5_000], n),
            "many": lambda: rng.integers(0, 1500, n),
        }[how]()
        return pa.array(values.astype(kind))

    return build


_WORDS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
_HOWS = ("constant", "runs", "sorted", "few", "many")
_NUMBERS = [Shape(f"{kind} full", _integers(kind, 1)) for kind in _WORDS]
_NUMBERS += [Shape(f"{kind} small", _integers(kind, 0.1)) for kind in _WORDS]
_NUMBERS += [Shape(kind, _float_bits(kind)) for kind in ("float16", "float32", "float64")]
_NUMBERS += [Shape("bool", lambda rng, n: pa.array(rng.random(n) < 0.5))]
_NUMBERS += [Shape("bool constant", lambda _, n: pa.array(np.ones(n, bool)))]
_NUMBERS += [Shape("null", lambda _, n: pa.nulls(n))]
_SHAPES = [
    Shape(f"{kind} {how}", _shaped(kind, how))
    for kind in ("int32", "int64", "float32", "float64")
    for how in _HOWS
]
_TIMES = [
    *(pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC")),
    pa.timestamp("us", "Europe/Zurich"),
    *(pa.duration(unit) for unit in ("s", "ms", "us", "ns")),
    pa.date32(),
    pa.time32("s"),
    pa.time32("ms"),
    pa.time64("us"),
    pa.time64("ns"),
]
_MONEY = pa.decimal128(20, 0)
_TEMPORAL = [Shape(str(kind), _of(kind, 80_000)) for kind in _TIMES]
_TEMPORAL += [
    Shape("date64", lambda rng, n: pa.array(rng.integers(0, 9999, n) * 86_400_000).view("date64")),
    Shape("decimal128", _decimal(pa.decimal128(38, 2), 36), 2000),
    Shape("decimal128 few", lambda rng, n: _shaped("int64", "few")(rng, n).cast(_MONEY)),
    Shape("decimal256", _decimal(pa.decimal256(60, 5), 55), 2000),
]


# --- byte strings ------------------------------------------------------------------------------


def _texts(make: Callable[[Random, int], list[str]], kind: pa.DataType) -> Build:
    return lambda rng, n: pa.array(make(rng, n), pa.string()).cast(kind)


def _words(rng: Random, n: int) -> list[str]:
    return [f"row {i} holds {k}" for i, k in enumerate(rng.integers(0, 10**9, n))]


def _picked(*choices: str) -> Callable[[Random, int], list[str]]:
    return lambda rng, n: [choices[k] for k in rng.integers(0, len(choices), n)]


def _wide(rng: Random, n: int) -> list[str]:
    return [f"x{i} " * int(k) for i, k in enumerate(rng.integers(0, 150, n))]


def _huge(rng: Random, n: int) -> list[str]:
    return [f"payload {i} " * int(k) for i, k in enumerate(rng.integers(0, 6000, n))]


_TEXT_SHAPES: dict[str, tuple[Callable[[Random, int], list[str]], int]] = {
    "short": (_picked("", "a", "bc", "def"), 20_000),
    "unicode": (_picked("naïve", "データ", "🦀 crab", "", "plain"), 20_000),
    "words": (_words, 20_000),
    "few": (_picked(*(f"category number {k}" for k in range(40))), 20_000),
    "constant": (_picked("the same text every time, over 32 bytes"), 20_000),
    "empty": (_picked(""), 20_000),
    "wide": (_wide, 4097),
    "huge": (_huge, 40),
}
_TEXTS = [
    Shape(f"{kind} {name}", _texts(make, kind), rows)
    for kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
    for name, (make, rows) in _TEXT_SHAPES.items()
]
_TEXTS += [
    Shape(
        f"bytes {k}", lambda rng, n, k=k: pa.array([rng.bytes(k) for _ in range(n)], pa.binary(k))
    )
    for k in (1, 3, 16, 40)
]
_TEXTS += [
    Shape("random", lambda rng, n: pa.array([rng.bytes(int(k)) for k in rng.integers(0, 30, n)])),
    Shape("random wide", lambda rng, n: pa.array([rng.bytes(700) for _ in range(n)]), 1025),
    Shape("constant bytes", lambda _, n: pa.array([b"\0" * 40] * n, pa.binary(40))),
]


def _dictionary(index: pa.DataType, make: Callable[[Random, int], list[str]]) -> Build:
    def build(rng: Random, n: int) -> pa.Array:
        encoded = pa.array(make(rng, n), pa.string()).dictionary_encode()
        return pa.DictionaryArray.from_arrays(encoded.indices.cast(index), encoded.dictionary)

    return build


_DICTIONARIES = [
    Shape(f"dictionary {index}", _dictionary(index, _picked("red", "green", "blue", "")))
    for index in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32())
]
_DICTIONARIES += [
    Shape("dictionary words", _dictionary(pa.int32(), _words)),
    Shape("dictionary constant", _dictionary(pa.int32(), _picked("only"))),
    Shape("dictionary wide", _dictionary(pa.int32(), _picked("a" * 300, "b" * 300))),
]


# --- nested ------------------------------------------------------------------------------------


def _fixed_lists(kind: str, dimension: int, *, item_nulls: bool = False) -> Build:
    def build(rng: Random, n: int) -> pa.Array:
        values = (rng.random(n * dimension) * 100).astype(kind)
        mask = rng.random(n * dimension) < 0.2 if item_nulls else None
        return pa.FixedSizeListArray.from_arrays(pa.array(values, mask=mask), dimension)

    return build


_VECTORS = [
    Shape("vector 2", _fixed_lists("float32", 2)),
    Shape("vector 3 item nulls", _fixed_lists("int32", 3, item_nulls=True), 4097),
    Shape("vector 63", _fixed_lists("float32", 63), 4097),
    Shape("vector 64", _fixed_lists("float32", 64), 4097),
    Shape("vector 64 item nulls", _fixed_lists("float32", 64, item_nulls=True), 1025),
    Shape("vector 768", _fixed_lists("float32", 768), 1025),
    Shape("vector half", _fixed_lists("float16", 128), 4097),
    Shape("vector bytes", _fixed_lists("uint8", 16)),
    Shape("vector bool", _fixed_lists("bool", 8)),
]


def _lists(items: Build, sizes: Callable[[Random, int], Any], *, large: bool = False) -> Build:
    """Lists of items, about one in ten null items inside, the outer nulls come later."""
    array = pa.LargeListArray if large else pa.ListArray

    def build(rng: Random, n: int) -> pa.Array:
        counts = np.asarray(sizes(rng, n), np.int64)
        offsets = np.concatenate(([0], np.cumsum(counts)))
        total = int(offsets[-1])
        inner = with_nulls(items(rng, total), rng.random(total) < 0.1)
        return array.from_arrays(pa.array(offsets, "int64" if large else "int32"), inner)

    return build


def _few(rng: Random, n: int) -> Any:
    return rng.integers(0, 5, n)


def _some_giant(rng: Random, n: int) -> Any:
    counts = rng.integers(0, 3, n)
    counts[:: max(1, n // 3)] = 9000
    return counts


def _none(rng: Random, n: int) -> Any:
    return np.zeros(n, np.int64)


def _structs(**fields: Build) -> Build:
    def build(rng: Random, n: int) -> pa.Array:
        children = [with_nulls(one(rng, n), rng.random(n) < 0.1) for one in fields.values()]
        return pa.StructArray.from_arrays(children, list(fields))

    return build


def _maps(rng: Random, n: int) -> pa.Array:
    counts = rng.integers(0, 4, n)
    offsets = np.concatenate(([0], np.cumsum(counts)))
    keys = pa.array([f"k{i}" for i in range(int(offsets[-1]))], pa.string())
    values = _integers("int32", 0.1)(rng, int(offsets[-1]))
    return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), keys, values)


_INT = _integers("int32", 0.01)
_TEXT = _texts(_words, pa.string())
_WIDE = _texts(_wide, pa.string())
_POINT = _structs(x=_INT, y=_TEXT)
_NESTED = [
    Shape("list int", _lists(_INT, _few)),
    Shape("list long", _lists(_integers("int64", 1), _few, large=True)),
    Shape("list text", _lists(_TEXT, _few), 4097),
    Shape("list wide text", _lists(_WIDE, _few), 1025),
    Shape("list bool", _lists(lambda rng, n: pa.array(rng.random(n) < 0.5), _few)),
    Shape("list giant rows", _lists(_INT, _some_giant), 4097),
    Shape("list empty", _lists(_INT, _none)),
    Shape("list of list", _lists(_lists(_INT, _few), _few), 4097),
    Shape("list of list of list", _lists(_lists(_lists(_TEXT, _few), _few), _few), 1025),
    Shape("list of wide lists", _lists(_lists(_WIDE, _few), _few), 300),
    Shape("list of vectors", _lists(_fixed_lists("float32", 4), _few), 4097),
    Shape("list of wide vectors", _lists(_fixed_lists("float32", 64), _few), 300),
    Shape("list of dictionary", _lists(_dictionary(pa.int8(), _picked("a", "b")), _few), 4097),
    Shape("struct", _POINT),
    Shape("struct of struct", _structs(a=_POINT, b=_structs(c=_INT))),
    Shape("struct of list", _structs(a=_lists(_INT, _few), b=_TEXT)),
    Shape("struct of vector", _structs(a=_fixed_lists("float32", 64), b=_INT), 1025),
    Shape("struct of nulls", _structs(a=lambda _, n: pa.nulls(n, pa.int32()), b=_INT)),
    Shape("struct of dictionary", _structs(a=_dictionary(pa.int8(), _picked("a", "b")))),
    Shape("list of struct", _lists(_POINT, _few), 4097),
    Shape("list of struct of list", _lists(_structs(a=_lists(_INT, _few), b=_TEXT), _few), 4097),
    Shape("struct of list of struct", _structs(a=_lists(_POINT, _few), b=_INT), 4097),
    Shape("map", _maps, 4097, "2.2"),
    Shape("list of map", _lists(_maps, _few), 1025, "2.2"),
    Shape("map in struct", _structs(a=_maps, b=_INT), 1025, "2.2"),
]

FAMILIES: dict[str, list[Shape]] = {
    "numbers": _NUMBERS,
    "shapes": _SHAPES,
    "temporal": _TEMPORAL,
    "texts": _TEXTS,
    "dictionaries": _DICTIONARIES,
    "vectors": _VECTORS,
    "nested": _NESTED,
}
