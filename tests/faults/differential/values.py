"""Values of any type in a given distribution, from a seed.

A column is made of a type, a distribution and a share of nulls. Repeated values are made once and
taken by index, so that every type, nested ones too, has columns with few distinct values or runs.
A null may hide a value: the bytes, items or children below it are then not empty.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from tests.faults.differential.schemas import BFloat16Type, BlobType, type_source

Random = np.random.Generator

# constant, 2 to 7 distinct, 300 distinct, runs of few values, ascending, all different, special
# values of the type only, very long or deep values among short ones, nothing but nulls
DISTRIBUTIONS = ("constant", "few", "many", "runs", "sorted", "random", "edges", "long", "null")
NULL_SHARES = (0.0, 0.0, 0.02, 0.2, 0.9, 1.0)
_LONG_BYTES = 9000
_WORDS = ["", "a", "bb", "it's", "Ünïcode", "データ", "🦀", "row ", "NULL", "\0", "a%", "a_b", " "]


@dataclass(frozen=True, slots=True, repr=False)
class Column:
    """One column of generated rows."""

    name: str
    kind: pa.DataType
    values: str = "random"
    nulls: float = 0.0
    seed: int = 0
    nullable: bool = True
    metadata: tuple[tuple[str, str], ...] = ()

    @property
    def field(self) -> pa.Field:
        """The field of the column."""
        return pa.field(self.name, self.kind, self.nullable, dict(self.metadata) or None)

    def build(self, num_rows: int) -> pa.Array:
        """Make the values."""
        rng = np.random.default_rng(self.seed)
        nulls = self.nulls if self.nullable else 0.0
        return build(rng, self.kind, num_rows, self.values, nulls, required=not self.nullable)

    def __repr__(self) -> str:
        parts = [repr(self.name), type_source(self.kind), repr(self.values)]
        numbers = (("nulls", self.nulls), ("seed", self.seed))
        parts += [f"{name}={value!r}" for name, value in numbers if value]
        if not self.nullable:
            parts.append("nullable=False")
        if self.metadata:
            parts.append(f"metadata={self.metadata!r}")
        return f"Column({', '.join(parts)})"


@dataclass(frozen=True, slots=True, repr=False)
class Rows:
    """The rows that an operation takes: ``uid`` counts from ``start``, ``key`` is small."""

    count: int
    columns: tuple[Column, ...] = ()
    start: int | None = 0
    key: bool = True
    chunks: int = 1
    sliced: bool = False
    order: tuple[str, ...] = field(default=())

    def table(self) -> pa.Table:
        """Make the table."""
        extra = 3 if self.sliced else 0
        total = self.count + 2 * extra
        arrays: list[Any] = []
        fields: list[pa.Field] = []
        if self.start is not None:
            arrays.append(pa.array(range(self.start - extra, self.start + self.count + extra)))
            fields.append(pa.field("uid", pa.int64()))
        if self.key:
            numbers = (np.arange(total) * 7 + (self.start or 0)) % 11
            arrays.append(pa.array(numbers, pa.int64(), mask=numbers == 10))
            fields.append(pa.field("key", pa.int64()))
        for column in self.columns:
            arrays.append(column.build(total))
            fields.append(column.field)
        table = pa.Table.from_arrays(arrays, schema=pa.schema(fields)).slice(extra, self.count)
        if self.chunks > 1:
            bounds = np.linspace(0, self.count, self.chunks + 1).astype(int).tolist()
            pieces = [table.slice(a, b - a) for a, b in pairwise(bounds)]
            table = pa.concat_tables(pieces)
        return table.select(list(self.order)) if self.order else table

    def without(self, name: str) -> Rows:
        """Leave a column out."""
        columns = tuple(one for one in self.columns if one.name != name)
        order = tuple(one for one in self.order if one != name)
        return replace(
            self, columns=columns, order=order, key=self.key and name != "key",
            start=None if name == "uid" else self.start,
        )  # fmt: skip

    def __repr__(self) -> str:
        parts = [str(self.count)]
        if self.columns:
            parts.append(f"({', '.join(map(repr, self.columns))},)")
        defaults = {"start": 0, "key": True, "chunks": 1, "sliced": False, "order": ()}
        parts += [
            f"{name}={value!r}" for name, default in defaults.items()
            if (value := getattr(self, name)) != default or (value is None)
        ]  # fmt: skip
        if not self.columns:
            return f"Rows({', '.join(parts)})"
        return f"Rows({', '.join([parts[0], f'columns={parts[1]}', *parts[2:]])})"


def build(
    rng: Random, kind: pa.DataType, num_rows: int, values: str, nulls: float, *,
    required: bool = False,
) -> pa.Array:  # fmt: skip
    """Make an array in a distribution; ``nulls`` is the share of null rows."""
    if num_rows == 0 or (values == "null" and not required) or pa.types.is_null(kind):
        return _nulls(kind, num_rows)
    values = "random" if values == "null" else values
    inner = 0.0 if required else _inner_nulls(rng)
    if values in ("constant", "few", "many", "runs"):
        distinct = {"constant": 1, "few": int(rng.integers(2, 8)), "many": 300,
                    "runs": int(rng.integers(2, 40))}[values]  # fmt: skip
        pool = fresh(rng, kind, min(distinct, 2 * num_rows), "random", inner)
        array = take(pool, _indices(rng, values, num_rows, len(pool)))
    else:
        array = fresh(rng, kind, num_rows, values, inner)
    if not nulls:
        return array
    return with_nulls(array, _null_mask(rng, num_rows, nulls), hide=bool(rng.random() < 0.4))


def _inner_nulls(rng: Random) -> float:
    return float(rng.choice((0.0, 0.0, 0.1, 0.5)))


def _indices(rng: Random, values: str, num_rows: int, distinct: int) -> np.ndarray[Any, Any]:
    if values == "runs":
        lengths = rng.integers(1, int(rng.choice((3, 40, 400))), num_rows)
        return np.repeat(rng.integers(0, distinct, num_rows), lengths)[:num_rows]
    return rng.integers(0, distinct, num_rows)


def _null_mask(rng: Random, num_rows: int, share: float) -> np.ndarray[Any, Any]:
    if rng.random() < 0.25:  # in one piece, as at the end of a dataset
        mask = np.zeros(num_rows, bool)
        count = max(1, int(share * num_rows))
        start = int(rng.integers(0, num_rows - count + 1))
        mask[start : start + count] = True
        return mask
    return rng.random(num_rows) < share


def _nulls(kind: pa.DataType, num_rows: int) -> pa.Array:
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, pa.nulls(num_rows, kind.storage_type))
    return pa.nulls(num_rows, kind)


def take(array: pa.Array, indices: np.ndarray[Any, Any]) -> pa.Array:
    """Take rows of an array of any type."""
    if isinstance(array.type, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(array.type, take(array.storage, indices))
    if array.type in (pa.string_view(), pa.binary_view()):
        plain = pa.large_string() if array.type == pa.string_view() else pa.large_binary()
        return array.cast(plain).take(pa.array(indices)).cast(array.type)
    return array.take(pa.array(indices))


def with_nulls(array: pa.Array, mask: np.ndarray[Any, Any], *, hide: bool) -> pa.Array:
    """Make rows null; ``hide`` keeps what the rows held below the null."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, with_nulls(array.storage, mask, hide=hide))
    if pa.types.is_null(kind):
        return array
    hide = hide or _has_required_child(kind)
    if hide and array.offset == 0 and kind not in (pa.string_view(), pa.binary_view()):
        valid = ~mask & np.asarray(array.is_valid())
        bitmap = pa.py_buffer(np.packbits(valid, bitorder="little").tobytes())
        children, own = _parts(array)
        if pa.types.is_dictionary(kind):
            keys = pa.Array.from_buffers(kind.index_type, len(array), [bitmap, *own[1:]])
            return pa.DictionaryArray.from_arrays(keys, array.dictionary)
        return pa.Array.from_buffers(kind, len(array), [bitmap, *own[1:]], children=children)
    if pa.types.is_string(kind) or not pa.types.is_nested(kind):
        return _masked(array, mask)
    return array.take(pa.array(np.arange(len(array)), mask=mask))


def _masked(array: pa.Array, mask: np.ndarray[Any, Any]) -> pa.Array:
    if array.type in (pa.string_view(), pa.binary_view()):
        plain = pa.large_string() if array.type == pa.string_view() else pa.large_binary()
        return _masked(array.cast(plain), mask).cast(array.type)
    return array.take(pa.array(np.arange(len(array)), mask=mask))


def _has_required_child(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(not one.nullable or _has_required_child(one.type) for one in kind)
    if pa.types.is_fixed_size_list(kind):
        return not kind.value_field.nullable or _has_required_child(kind.value_type)
    return False


def _parts(array: pa.Array) -> tuple[list[pa.Array], list[Any]]:
    """Return the children of an array and the buffers of its own."""
    kind = array.type
    buffers = array.buffers()
    if pa.types.is_struct(kind):
        return [array.field(at) for at in range(kind.num_fields)], buffers[:1]
    if pa.types.is_map(kind):
        entries = pa.StructArray.from_arrays(
            [array.keys, array.items], fields=[kind.key_field, kind.item_field]
        )
        return [entries], buffers[:2]
    if pa.types.is_fixed_size_list(kind):
        return [array.values], buffers[:1]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [array.values], buffers[:2]
    return [], buffers


# --- different values --------------------------------------------------------------------------


def fresh(rng: Random, kind: pa.DataType, n: int, values: str, inner_nulls: float) -> pa.Array:
    """Make an array without outer nulls; ``inner_nulls`` is the share below the top."""
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return _extension(rng, kind, n, values)
    if types.is_struct(kind):
        return _struct(rng, kind, n, values, inner_nulls)
    if types.is_map(kind):
        return _map(rng, kind, n, values, inner_nulls)
    if types.is_fixed_size_list(kind):
        items = _child(rng, kind.value_field, n * kind.list_size, values, inner_nulls)
        return pa.Array.from_buffers(kind, n, [None], children=[items])
    if types.is_list(kind) or types.is_large_list(kind):
        offsets = _offsets(rng, n, values)
        items = _child(rng, kind.value_field, int(offsets[-1]), values, inner_nulls)
        word = np.int64 if types.is_large_list(kind) else np.int32
        buffers = [None, pa.py_buffer(offsets.astype(word).tobytes())]
        return pa.Array.from_buffers(kind, n, buffers, children=[items])
    if types.is_dictionary(kind):
        return _dictionary(rng, kind, n, values, has_nulls=inner_nulls > 0)
    return _leaf(rng, kind, n, values)


def _child(rng: Random, of: pa.Field, n: int, values: str, inner_nulls: float) -> pa.Array:
    if n > 60_000:  # wide lists: repeat a part
        part = _child(rng, of, 10_000, values, inner_nulls)
        return take(part, np.arange(n) % len(part))
    distribution = values if rng.random() < 0.7 else str(rng.choice(DISTRIBUTIONS[:6]))
    nulls = inner_nulls if of.nullable else 0.0
    return build(rng, of.type, n, distribution, nulls, required=not of.nullable)


def _offsets(rng: Random, n: int, values: str) -> np.ndarray[Any, Any]:
    shape = int(rng.integers(0, 6))
    if shape == 0:
        counts = np.full(n, int(rng.integers(0, 4)))
    elif shape == 1:
        counts = np.where(rng.random(n) < 0.9, 0, rng.integers(0, 6, n))
    else:
        counts = rng.integers(0, 5, n)
    if values in ("long", "edges") and n:
        counts[:: max(1, n // 2)] = int(rng.choice((300, 1500)))
    return np.concatenate(([0], np.cumsum(counts)))


def _struct(rng: Random, kind: pa.DataType, n: int, values: str, inner_nulls: float) -> pa.Array:
    children = [_child(rng, one, n, values, inner_nulls) for one in kind]
    return pa.Array.from_buffers(kind, n, [None], children=children)


def _map(rng: Random, kind: pa.DataType, n: int, values: str, inner_nulls: float) -> pa.Array:
    counts = rng.integers(0, 4, n)
    offsets = np.concatenate(([0], np.cumsum(counts)))
    total = int(offsets[-1])
    # Different keys in one map, as Arrow asks.
    keys = pa.array(np.arange(total) - np.repeat(offsets[:-1], counts), pa.int32())
    keys = keys if kind.key_type == pa.int32() else keys.cast(pa.string()).cast(kind.key_type)
    items = _child(rng, kind.item_field, total, values, inner_nulls)
    entries = pa.StructArray.from_arrays([keys, items], fields=[kind.key_field, kind.item_field])
    buffers = [None, pa.py_buffer(offsets.astype(np.int32).tobytes())]
    return pa.Array.from_buffers(kind, n, buffers, children=[entries])


def _dictionary(
    rng: Random, kind: pa.DataType, n: int, values: str, *, has_nulls: bool
) -> pa.Array:
    size = min(n, int(rng.choice((1, 3, 100))), 127)
    items = fresh(rng, kind.value_type, size, values, 0.0)
    if rng.random() < 0.8:
        items = items.unique()
    if has_nulls and rng.random() < 0.3:
        items = with_nulls(items, rng.random(len(items)) < 0.3, hide=False)
    keys = pa.array(rng.integers(0, len(items), n)).cast(kind.index_type)
    return pa.DictionaryArray.from_arrays(keys, items)


def _extension(rng: Random, kind: pa.DataType, n: int, values: str) -> pa.Array:
    if isinstance(kind, BlobType):
        data = _leaf(rng, pa.large_binary(), n, values)
        absent = [pa.nulls(n, one.type) for one in list(kind.storage_type)[1:]]
        storage = pa.StructArray.from_arrays([data, *absent], fields=list(kind.storage_type))
    elif isinstance(kind, pa.JsonType):
        storage = pa.array([_json(rng) for _ in range(n)], pa.string()).cast(kind.storage_type)
    else:
        storage = fresh(rng, kind.storage_type, n, values, 0.0)
    return pa.ExtensionArray.from_storage(kind, storage)


def _json(rng: Random, depth: int = 0) -> str:
    """Make a JSON text; objects at the top mostly."""
    shape = int(rng.integers(0, 9)) if depth or rng.random() < 0.3 else 8
    if depth < 3 and shape == 8:
        names = ("k", "b", "longer name")[: int(rng.integers(0, 4))]
        inside = ", ".join(f'"{name}": {_json(rng, depth + 1)}' for name in names)
        return f"{{{inside}}}"
    if depth < 3 and shape == 7:
        return f"[{', '.join(_json(rng, depth + 1) for _ in range(int(rng.integers(0, 3))))}]"
    return [
        "null", "true", "false", str(int(rng.integers(-300, 300))), str(int(rng.integers(1 << 62))),
        repr(float(rng.normal())), json.dumps(str(rng.choice(_WORDS)), ensure_ascii=False), "0",
        "7",
    ][shape]  # fmt: skip


def _leaf(rng: Random, kind: pa.DataType, n: int, values: str) -> pa.Array:
    types = pa.types
    if types.is_null(kind):
        return pa.nulls(n)
    if types.is_boolean(kind):
        bits = np.sort(rng.random(n)) if values == "sorted" else rng.random(n)
        return pa.array(bits < rng.choice((0.5, 0.05)))
    if kind in (pa.string_view(), pa.binary_view()):
        plain = pa.large_string() if kind == pa.string_view() else pa.large_binary()
        return _leaf(rng, plain, n, values).cast(kind)
    if types.is_string(kind) or types.is_large_string(kind):
        return pa.array(_texts(rng, n, values), kind)
    if types.is_binary(kind) or types.is_large_binary(kind):
        return pa.array(_bytes(rng, n, values), kind)
    if types.is_decimal(kind):
        return _decimals(rng, kind, n, values)
    if types.is_fixed_size_binary(kind):
        words = rng.integers(0, 256, n * kind.byte_width, dtype=np.uint8)
        if values == "edges":
            words = np.where(words < 128, 0, 255).astype(np.uint8)
        return pa.Array.from_buffers(kind, n, [None, pa.py_buffer(words.tobytes())])
    if types.is_floating(kind):
        return _floats(rng, kind, n, values)
    return _integers(rng, kind, n, values)


def _integers(rng: Random, kind: pa.DataType, n: int, values: str) -> pa.Array:
    signed = not str(kind).startswith("uint")
    word = np.dtype(f"{'' if signed else 'u'}int{kind.bit_width}")
    low, high = np.iinfo(word).min, np.iinfo(word).max
    if pa.types.is_time(kind):
        low, high = 0, 86_400 * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit] - 1
    day = 86_400_000 if kind == pa.date64() else 1
    if kind in (pa.date32(), pa.date64()):
        low, high = -100_000, 200_000  # years that can be printed
    elif pa.types.is_timestamp(kind):
        low, high = low >> 2, high >> 2
    if values == "edges":
        numbers = rng.choice(np.array([low, high, 0, 1, max(low, -1), high - 1], dtype=object), n)
        numbers = numbers.astype(word)
    else:
        bits = int(rng.integers(1, 65))
        most = min(high, (1 << bits) - 1)
        least = max(low, -(1 << bits)) if signed and rng.random() < 0.5 else max(low, 0)
        numbers = rng.integers(least, most, n, dtype=word, endpoint=True)
        if rng.random() < 0.3:  # far from 0, near each other
            span = max(1, min(1000, (high - low) // 4))
            numbers = (low // 2 + high // 4 + rng.integers(0, span, n)).astype(word)
    if values == "sorted":
        numbers = np.sort(numbers)
    stored = (numbers * day).astype(word)
    return pa.Array.from_buffers(kind, n, [None, pa.py_buffer(stored.tobytes())])


def _floats(rng: Random, kind: pa.DataType, n: int, values: str) -> pa.Array:
    word, real = np.dtype(f"u{kind.bit_width // 8}"), np.dtype(f"f{kind.bit_width // 8}")
    bits = rng.integers(0, np.iinfo(word).max, n, dtype=word, endpoint=True)
    limits = np.finfo(real)
    nan = np.array([np.nan], real).view(word)
    payloads = np.concatenate([nan, nan | word.type(5), ~np.zeros(1, word)]).view(real)
    special = np.concatenate([
        np.array([0.0, -0.0, np.inf, -np.inf, limits.max, limits.min, limits.tiny, 1.0], real),
        payloads,
    ])  # fmt: skip
    if values == "edges":
        numbers = special[rng.integers(0, len(special), n)]
    elif rng.random() < 0.3:
        numbers = bits.view(real)
    else:
        numbers = (rng.integers(-40, 40, n) / 4).astype(real)
        if values != "sorted" and rng.random() < 0.3:
            numbers[::7] = special[rng.integers(0, len(special), len(numbers[::7]))]
    if values == "sorted":
        numbers = np.sort(numbers)
    return pa.Array.from_buffers(kind, n, [None, pa.py_buffer(numbers.tobytes())])


def _decimals(rng: Random, kind: pa.DataType, n: int, values: str) -> pa.Array:
    digits = int(rng.integers(1, kind.precision + 1))
    limit = 10**kind.precision - 1
    size = kind.bit_width // 8
    if values == "edges":
        choices = (0, limit, -limit, 1, -1)
        numbers = [choices[at] for at in rng.integers(0, len(choices), n).tolist()]
    else:
        parts = rng.integers(-(1 << 62), 1 << 62, (n, 4)).tolist()
        bound = 10**digits
        numbers = [
            ((a << 186 | b << 124 | c << 62 | d) % (2 * bound - 1)) - bound + 1
            for a, b, c, d in parts
        ]
    if values == "sorted":
        numbers.sort()
    data = b"".join(one.to_bytes(size, "little", signed=True) for one in numbers)
    return pa.Array.from_buffers(kind, n, [None, pa.py_buffer(data)])


def _lengths(rng: Random, n: int, values: str) -> list[int]:
    most = int(rng.choice((1, 5, 30, 30, 270)))
    lengths = rng.integers(0, most + 1, n)
    if values == "long" and n:
        lengths[:: max(1, n // 3)] = int(rng.choice((300, 5000, _LONG_BYTES, 40_000)))
    if values == "edges":
        lengths = rng.choice(np.array([0, 0, 1, 31, 32, 33, 127, 128, 255, 256]), n)
    return lengths.tolist()


def _texts(rng: Random, n: int, values: str) -> list[str]:
    lengths = _lengths(rng, n, values)
    if rng.random() < 0.5:  # compressible: words
        source = "".join(_WORDS[at] + " " for at in rng.integers(0, len(_WORDS), 500).tolist())
    else:
        source = rng.integers(33, 126, 2000, dtype=np.uint8).tobytes().decode()
    texts = _pieces(rng, source, lengths)
    return sorted(texts) if values == "sorted" else texts


def _bytes(rng: Random, n: int, values: str) -> list[bytes]:
    found = _pieces(rng, rng.bytes(2000), _lengths(rng, n, values))
    return sorted(found) if values == "sorted" else found


def _pieces(rng: Random, source: Any, lengths: Sequence[int]) -> list[Any]:
    starts = rng.integers(0, len(source), len(lengths)).tolist()
    longest = max(lengths, default=0)
    source = source * (2 + longest // len(source))
    return [source[at : at + length] for at, length in zip(starts, lengths, strict=True)]


__all__ = ["DISTRIBUTIONS", "NULL_SHARES", "BFloat16Type", "BlobType", "Column", "Rows", "build"]
