"""Random schemas, values and pasts of datasets, all from a seed.

Types nest to a depth of three in every way that a file version takes; every level has nulls, and
lists and maps are empty here and there.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

Random = np.random.Generator
NULL_SHARE = 0.2

_DOUBLES = (0.0, float("nan"), float("-inf"), 1.0, 1e300)
_START = datetime(2020, 2, 29, 12)  # noqa: DTZ001
_LEAVES: dict[pa.DataType, Callable[[Random], Any]] = {
    pa.int8(): lambda rng: int(rng.integers(-128, 128)),
    pa.uint16(): lambda rng: int(rng.integers(0, 1 << 16)),
    pa.int32(): lambda rng: int(rng.integers(-5, 6)),
    pa.int64(): lambda rng: int(rng.integers(-(1 << 62), 1 << 62)),
    pa.uint64(): lambda rng: int(rng.integers(0, 1 << 63)) * 2 + 1,
    pa.float32(): lambda rng: float(np.float32(rng.normal())),
    pa.float64(): lambda rng: _DOUBLES[int(rng.integers(5))] * rng.normal(),
    pa.bool_(): lambda rng: bool(rng.integers(2)),
    pa.string(): lambda rng: _text(rng, 12),
    pa.large_string(): lambda rng: _text(rng, 400),
    pa.binary(): lambda rng: rng.bytes(int(rng.integers(0, 9))),
    pa.large_binary(): lambda rng: rng.bytes(int(rng.integers(0, 9))),
    pa.binary(3): lambda rng: rng.bytes(3),
    pa.date32(): lambda rng: date(2000, 1, 1) + timedelta(days=int(rng.integers(-9000, 9000))),
    pa.timestamp("us"): lambda rng: _START + timedelta(microseconds=int(rng.integers(1 << 50))),
    pa.timestamp("ms", "UTC"): lambda rng: int(rng.integers(1 << 40)),
    pa.time32("ms"): lambda rng: int(rng.integers(86_400_000)),
    pa.duration("ns"): lambda rng: int(rng.integers(1 << 60)),
    pa.decimal128(12, 3): lambda rng: Decimal(int(rng.integers(-(10**9), 10**9))).scaleb(-3),
    pa.decimal256(50, 0): lambda rng: Decimal(int(rng.integers(1 << 62))),
    pa.dictionary(pa.int16(), pa.string()): lambda rng: ["red", "green", ""][int(rng.integers(3))],
}  # fmt: skip
_LEAF_TYPES = list(_LEAVES)
_FIXED = [pa.int8(), pa.int32(), pa.float32(), pa.float64(), pa.bool_()]


def _text(rng: Random, longest: int) -> str:
    letters = string.ascii_lowercase + "äデ'% "
    count = int(rng.integers(0, longest))
    return "".join(letters[k] for k in rng.integers(0, len(letters), count))


def random_type(rng: Random, depth: int, *, maps: bool) -> pa.DataType:
    """Choose a type; ``maps`` for file version 2.2, which alone has maps and lists of structs."""
    if depth == 0 or rng.random() < 0.35:
        return _LEAF_TYPES[int(rng.integers(len(_LEAF_TYPES)))]

    def inner() -> pa.DataType:
        return random_type(rng, depth - 1, maps=maps)

    kinds: list[Callable[[], pa.DataType]] = [
        lambda: pa.list_(inner()),
        lambda: pa.large_list(inner()),
        lambda: pa.struct([(f"f{k}", inner()) for k in range(int(rng.integers(1, 4)))]),
        lambda: pa.list_(pa.struct([("a", inner()), ("b", inner())])),
        lambda: pa.list_(_FIXED[int(rng.integers(len(_FIXED)))], int(rng.integers(1, 5))),
    ]
    if maps:
        kinds.append(lambda: pa.map_(pa.string(), inner()))
    return kinds[int(rng.integers(len(kinds)))]()


def random_value(rng: Random, kind: pa.DataType) -> Any:
    """Build a value in the form that ``pa.array`` takes; None now and then."""
    if rng.random() < NULL_SHARE:
        return None
    if kind in _LEAVES:
        return _LEAVES[kind](rng)
    if pa.types.is_struct(kind):
        return {field.name: random_value(rng, field.type) for field in kind}
    if pa.types.is_map(kind):
        count = int(rng.integers(0, 4))
        return [(f"k{k}", random_value(rng, kind.item_type)) for k in range(count)]
    count = kind.list_size if pa.types.is_fixed_size_list(kind) else int(rng.integers(0, 4))
    return [random_value(rng, kind.value_type) for _ in range(count)]


def random_array(rng: Random, kind: pa.DataType, num_rows: int) -> pa.Array:
    """Build a column; about one in ten has no null at its top."""
    values = [random_value(rng, kind) for _ in range(num_rows)]
    if rng.random() < 0.1 and any(one is not None for one in values):
        first = next(one for one in values if one is not None)
        values = [first if one is None else one for one in values]
    return pa.array(values, kind)


def random_table(rng: Random, schema: pa.Schema, start: int, num_rows: int) -> pa.Table:
    """Build rows of a schema; the column ``id`` counts them from ``start`` on."""
    columns = [
        pa.array(range(start, start + num_rows), pa.int64())
        if field.name == "id"
        else random_array(rng, field.type, num_rows)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def random_schema(rng: Random, *, maps: bool) -> pa.Schema:
    """Choose columns: ``id`` somewhere among two to five others."""
    fields = [
        pa.field(f"c{k}", random_type(rng, 3, maps=maps)) for k in range(int(rng.integers(2, 6)))
    ]
    fields.insert(int(rng.integers(len(fields) + 1)), pa.field("id", pa.int64()))
    return pa.schema(fields)


class Past:
    """Does random things to a dataset of pylance's; ``done`` lists them."""

    def __init__(self, lance: Any, rng: Random, path: str) -> None:
        self._lance = lance
        self._rng = rng
        self._path = path
        self._next = 0
        self.done: list[str] = []

    @property
    def now(self) -> Any:
        return self._lance.dataset(self._path)

    def begin(self, *, maps: bool, **options: Any) -> None:
        """Write the first version, with a schema that pylance manages to write."""
        while not self.done:
            schema = random_schema(self._rng, maps=maps)
            if self._manages(
                lambda schema=schema: self._lance.write_dataset(
                    self._rows(schema), self._path, mode="overwrite", **options
                )
            ):
                self.done.append(f"write {schema} {options}")

    def _manages(self, action: Callable[[], object]) -> bool:
        """Do something; pylance fails at some nestings of nulls."""
        try:
            return action() is not False
        except OSError as error:
            if "null" not in str(error):
                raise
            return False

    def step(self) -> None:
        """Do one thing."""
        steps = (self.append, self.append_part, self.delete, self.add, self.drop, self.again,
                 self.replace, self.merge, self.compact, self.restore)  # fmt: skip
        chosen = steps[int(self._rng.integers(len(steps)))]
        if self._manages(chosen):
            self.done.append(chosen.__name__)

    def _rows(self, schema: pa.Schema) -> pa.Table:
        count = int(self._rng.integers(1, 120))
        self._next += count
        return random_table(self._rng, schema, self._next - count, count)

    def append(self) -> bool:
        self.now.insert(self._rows(self.now.schema), max_rows_per_file=50)
        return True

    def append_part(self) -> bool:
        """Leave columns out, in another order: missing columns read as null."""
        fields = list(self.now.schema)
        kept = [fields[k] for k in self._rng.permutation(len(fields))]
        kept = kept[: max(2, len(kept) - 1)]
        if all(one.name != "id" for one in kept):
            return False
        self.now.insert(self._rows(pa.schema(kept)))
        return True

    def delete(self) -> bool:
        if self.now.count_rows() > 40:
            self.now.delete(f"id % {int(self._rng.integers(2, 9))} = 1")
        return True

    def add(self) -> bool:
        name = f"n{len(self.done)}"
        self.now.add_columns({name: "id * 3" if self._rng.random() < 0.5 else "cast(id as string)"})
        return True

    def drop(self) -> bool:
        names = [name for name in self.now.schema.names if name != "id"]
        if len(names) < 3:
            return False
        self.now.drop_columns([names[int(self._rng.integers(len(names)))]])
        return True

    def again(self) -> bool:
        """Drop a column and add another of that name: a new field id."""
        if "again" in self.now.schema.names:
            self.now.drop_columns(["again"])
        self.now.add_columns({"again": f"id + {len(self.done)}"})
        return True

    def replace(self) -> bool:
        """Rewrite a column of one fragment: its old place in the file becomes a tombstone."""
        numbers = [f.name for f in self.now.schema if f.name != "id" and f.type == pa.int64()]
        fragments = self.now.get_fragments()
        if not numbers or not fragments or self.now.has_stable_row_ids:
            return False
        fragment = fragments[int(self._rng.integers(len(fragments)))]
        ids = fragment.to_table(["id"])["id"].combine_chunks()
        new = pa.table({"id": ids, numbers[0]: pa.array(range(len(ids)), pa.int64())})
        version = self.now.version
        updated, fields = fragment.update_columns(new, left_on="id", right_on="id")
        operation = self._lance.LanceOperation.Update(
            updated_fragments=[updated], fields_modified=fields
        )
        self._lance.LanceDataset.commit(self._path, operation, read_version=version)
        return True

    def merge(self) -> bool:
        ids = range(0, self._next, 3)
        extra = pa.table(
            {"id": pa.array(ids, pa.int64()), f"m{len(self.done)}": [f"m{k}" for k in ids]}
        )
        self.now.merge(extra, "id")
        return True

    def compact(self) -> bool:
        self.now.optimize.compact_files(target_rows_per_fragment=80)
        return True

    def restore(self) -> bool:
        version = int(self._rng.integers(1, self.now.version + 1))
        self._lance.dataset(self._path, version=version).restore()
        return True
