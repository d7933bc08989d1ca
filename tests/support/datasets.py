"""Tables with something of everything, and datasets that pylance writes from them.

Everything is made from a seed, small, and returned as pyarrow so that both readers can be held
against it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tests.support.requirements import require_pylance

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
WORDS = ("", "a", "lance", "naïve", "データ", "a rather longer piece of text " * 3)
NULL_SHARE = 0.15


def everything_table(num_rows: int = 1000, seed: int = 7) -> pa.Table:
    """Build one column per kind of type that the default format stores, nulls in all but ``id``."""
    rng = np.random.default_rng(seed)
    columns: dict[str, pa.Array] = {"id": pa.array(np.arange(num_rows, dtype=np.int64))}
    for name in INTEGERS:
        bounds = np.iinfo(name)
        values = rng.integers(bounds.min, bounds.max, num_rows, dtype=name, endpoint=True)
        columns[name] = pa.array(values, mask=_mask(rng, num_rows))
    for name in ("float16", "float32", "float64"):
        values = rng.normal(size=num_rows).astype(name)
        columns[name] = pa.array(values, mask=_mask(rng, num_rows))
    columns["bool"] = pa.array(rng.random(num_rows) < 0.5, mask=_mask(rng, num_rows))
    words = [WORDS[pick] for pick in rng.integers(0, len(WORDS), num_rows)]
    for kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary()):
        columns[str(kind)] = pa.array(_with_nulls(rng, words), pa.string()).cast(kind)
    columns.update(_times(rng, num_rows))
    columns.update(_nested(rng, num_rows))
    return pa.table(columns)


def history_dataset(path: Path, seed: int = 7) -> Any:
    """Write a dataset with a past: three fragments, both deletion file kinds, a tag, a branch.

    Versions of main: 1 write, 2 append, 3 append, 4 delete few (Arrow file), 5 delete many
    (Roaring file). Tag ``first`` is version 1. Branch ``side`` starts at 3 and has one append.
    Columns: those of ``everything_table``, but only the small embedding.
    """
    lance = require_pylance()
    table = everything_table(17_000, seed).drop_columns(["embedding_768"])
    dataset = lance.write_dataset(table.slice(0, 5000), path, commit_message="the first rows")
    dataset.tags.create("first", 1)
    dataset.insert(table.slice(5000, 9000))
    dataset.insert(table.slice(14_000, 2000))
    side = dataset.create_branch("side", 3)
    side.insert(table.slice(16_000, 1000), commit_message="only on the side")
    dataset.delete("id % 97 = 3 AND id < 5000")
    # pylance stores more than 5,000 deleted rows of a fragment as a bitmap.
    dataset.delete("id >= 5000 AND id < 14000 AND id % 3 > 0")
    return dataset


def _mask(rng: np.random.Generator, num_rows: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    return rng.random(num_rows) < NULL_SHARE


def _with_nulls(rng: np.random.Generator, values: list[Any]) -> list[Any]:
    return [
        None if lost else value for value, lost in zip(values, _mask(rng, len(values)), strict=True)
    ]


def _times(rng: np.random.Generator, num_rows: int) -> dict[str, pa.Array]:
    start = datetime(2021, 5, 17, 9, 30, tzinfo=UTC)
    moments = [start + timedelta(seconds=int(s)) for s in rng.integers(0, 1 << 28, num_rows)]
    kinds = [pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")]
    kinds += [pa.timestamp("us", "UTC"), pa.date32(), pa.date64()]
    columns = {str(kind): pa.array(_with_nulls(rng, moments)).cast(kind) for kind in kinds}
    waits = [timedelta(microseconds=int(us)) for us in rng.integers(0, 1 << 40, num_rows)]
    columns["duration"] = pa.array(_with_nulls(rng, waits), pa.duration("us"))
    cents = [Decimal(int(number)).scaleb(-2) for number in rng.integers(-(10**9), 10**9, num_rows)]
    columns["decimal"] = pa.array(_with_nulls(rng, cents), pa.decimal128(12, 2))
    return columns


def _nested(rng: np.random.Generator, num_rows: int) -> dict[str, pa.Array]:
    lists = [rng.integers(0, 100, size).tolist() for size in rng.integers(0, 6, num_rows)]
    draws = rng.normal(size=num_rows).tolist()
    points = [{"x": x, "y": None if x < -1 else int(x * 9)} for x in draws]
    sizes = rng.integers(0, 4, num_rows)
    steps = [points[start : start + size] for start, size in enumerate(sizes)]
    point = pa.struct([("x", pa.float64()), ("y", pa.int32())])
    columns = {
        "list": pa.array(_with_nulls(rng, lists), pa.list_(pa.int32())),
        "struct": pa.array(_with_nulls(rng, points), point),
        "list_of_struct": pa.array(_with_nulls(rng, steps), pa.list_(point)),
    }
    for dim in (64, 768):
        flat = pa.array(rng.normal(size=num_rows * dim).astype(np.float32))
        columns[f"embedding_{dim}"] = pa.FixedSizeListArray.from_arrays(flat, dim)
    return columns
