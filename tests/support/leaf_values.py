"""Leaf arrays of every type that a page can hold, of any length, with and without nulls."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

Maker = Callable[[int, np.random.Generator], pa.Array]
COLOURS = ("red", "green", "blue", "")


def integers(kind: str, low: int, high: int) -> Maker:
    def make(count: int, rng: np.random.Generator) -> pa.Array:
        return pa.array(rng.integers(low, high, count, dtype=np.int64).astype(kind))

    return make


def strings(make: Callable[[int], str | bytes], type_: pa.DataType) -> Maker:
    return lambda count, _rng: pa.array([make(i) for i in range(count)], type_)


def runs(count: int, rng: np.random.Generator) -> pa.Array:
    lengths = rng.integers(1, 700, count // 100 + 1)
    values = np.repeat(rng.integers(0, 9, lengths.size), lengths)
    return pa.array(np.resize(values, count).astype(np.int32))


def lists(width: int, kind: str, *, null_items: bool = False) -> Maker:
    def make(count: int, rng: np.random.Generator) -> pa.Array:
        values = rng.integers(0, 100, count * width).astype(kind)
        mask = rng.random(values.size) < 0.2 if null_items else None
        return pa.FixedSizeListArray.from_arrays(pa.array(values, mask=mask), width)

    return make


def nested_lists(count: int, rng: np.random.Generator) -> pa.Array:
    inner = lists(3, "int16", null_items=True)(count * 2, rng)
    return pa.FixedSizeListArray.from_arrays(inner, 2)


def booleans(width: int) -> Maker:
    def make(count: int, rng: np.random.Generator) -> pa.Array:
        values = pa.array(rng.random(count * max(width, 1)) < 0.5)
        return pa.FixedSizeListArray.from_arrays(values, width) if width else values

    return make


def decimals(type_: pa.DataType, high: int) -> Maker:
    def make(count: int, rng: np.random.Generator) -> pa.Array:
        return pa.array(rng.integers(-high, high, count)).cast(type_)

    return make


def keys(index: pa.DataType, items: pa.Array) -> Maker:
    def make(count: int, rng: np.random.Generator) -> pa.Array:
        indices = pa.array(rng.integers(0, len(items), count)).cast(index)
        return pa.DictionaryArray.from_arrays(indices, items)

    return make


def few(maker: Maker, distinct: int) -> Maker:
    """Repeat a few values in random order."""

    def make(count: int, rng: np.random.Generator) -> pa.Array:
        return maker(distinct, rng).take(pa.array(rng.integers(0, distinct, count)))

    return make


def words(count: int, rng: np.random.Generator) -> pa.Array:
    picked = rng.choice(["lance", "arrow", "column", "page", "chunk", "row"], (count, 4))
    return pa.array([" ".join(row) + f" {i}" for i, row in enumerate(picked)], pa.string())


MAKERS: dict[str, Maker] = {
    "int64, all bits": integers("int64", -(2**62), 2**62),
    "int64, ten bits": integers("int64", 0, 1000),
    "int64, ascending": lambda count, _rng: pa.array(np.arange(count) + 2**40),
    "int64, few": few(integers("int64", -(2**62), 2**62), 20),
    "int64, one": lambda count, _rng: pa.array(np.full(count, -7)),
    "int32, runs": runs,
    "int16": integers("int16", -300, 300),
    "uint8": integers("uint8", 0, 9),
    "float16": lambda count, rng: pa.array(rng.random(count).astype(np.float16)),
    "float32": lambda count, rng: pa.array(rng.standard_normal(count).astype(np.float32)),
    "float64": lambda count, rng: pa.array(rng.standard_normal(count)),
    "bool": booleans(0),
    "bool, one": lambda count, _rng: pa.array([True] * count, pa.bool_()),
    "decimal128": decimals(pa.decimal128(30, 2), 10**9),
    "decimal128, few": few(decimals(pa.decimal128(30, 2), 10**9), 9),
    "decimal256": decimals(pa.decimal256(50, 2), 10**9),
    "timestamp": lambda count, rng: pa.array(rng.integers(0, 2**50, count)).cast(
        pa.timestamp("us", "UTC")
    ),
    "binary(3)": strings(lambda i: b"%03d" % (i % 1000), pa.binary(3)),
    "binary(40), one": strings(lambda _i: b"x" * 40, pa.binary(40)),
    "string, short": strings(lambda i: f"s{i}"[: i % 4], pa.string()),
    "string, few": few(strings(lambda i: COLOURS[i % 4], pa.string()), 4),
    "string, empty": strings(lambda _i: "", pa.string()),
    "string, one": strings(lambda _i: "same value", pa.string()),
    "string, words": words,
    "string, ragged": strings(lambda i: "é" * (i * 37 % 120), pa.string()),
    "string, wide": strings(lambda i: f"{i}," * (i * 37 % 300), pa.string()),
    "large_binary": strings(lambda i: bytes([i % 251]) * (i % 90), pa.large_binary()),
    "binary, random": lambda count, rng: pa.array([rng.bytes(20) for _ in range(count)]),
    "list of 4 float32": lists(4, "float32"),
    "list of 64 float32": lists(64, "float32"),
    "list of 3 int16, null items": lists(3, "int16", null_items=True),
    "list of 90 int32, null items": lists(90, "int32", null_items=True),
    "list of 3 bool": booleans(3),
    "list of lists": nested_lists,
    "dictionary of int8": keys(pa.int8(), pa.array(["a", "", "ccc"])),
    "dictionary of uint32": keys(pa.uint32(), pa.array([2**40, -1, 5])),
    "null": lambda count, _rng: pa.nulls(count),
}


def with_nulls(array: pa.Array, share: float, rng: np.random.Generator) -> pa.Array:
    """Return the array with that share of its values replaced by nulls."""
    if pa.types.is_null(array.type) or not share:
        return array
    hidden = rng.random(len(array)) < share
    positions = pa.array(np.arange(len(array)), mask=hidden)
    return array.take(positions)


def make(name: str, count: int, share: float = 0.0, seed: int = 1) -> pa.Array:
    """Return ``count`` values of the named kind, a share of them null."""
    rng = np.random.default_rng(seed)
    return with_nulls(MAKERS[name](count, rng), share, rng)
