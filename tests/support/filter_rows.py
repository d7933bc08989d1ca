"""A table whose values sit where filters go wrong: nulls, NaN, signed zeros, ends of ranges."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

WORDS = ("a", "b", "Abc", "", "a%b", "a_b", "12", "abc", "naïve", "データ", "x\ny", "a\\b")
FLOATS = (0.0, -0.0, 1.0, 2.5, -3.75, float("nan"), float("inf"), float("-inf"), 1e300, 0.1)
NULL_SHARE = 0.15


def filter_table(num_rows: int = 240, seed: int = 11) -> pa.Table:
    """Build one column per kind of type that a filter can use; ``id`` counts the rows."""
    rng = np.random.default_rng(seed)

    def some(values: list[Any], type_: pa.DataType) -> pa.Array:
        picked = [values[k] for k in rng.integers(0, len(values), num_rows)]
        lost = rng.random(num_rows) < NULL_SHARE
        return pa.array([None if no else one for one, no in zip(picked, lost, strict=True)], type_)

    small = [*range(-5, 12), 127, -128]
    start = datetime(2021, 1, 1)  # noqa: DTZ001
    moments = [start + timedelta(hours=6 * k, microseconds=k) for k in range(-8, 9)]
    moments += [datetime(1969, 12, 31, 23, 59, 59, 999_999)]  # noqa: DTZ001
    zoned = [one.replace(tzinfo=UTC) for one in moments]
    points = [{"x": x, "y": {"z": z}} for x in (1, 2, None) for z in ("p", "q", None)]
    cents = [Decimal(k).scaleb(-2) for k in (-300, 0, 110, 250, 99_999)]
    lists = [[], [1, 2], [None], [3, None], [2], [1, 1, 7]]
    return pa.table({
        "id": pa.array(np.arange(num_rows)),
        "i": some([*small, 2**40, -(2**62)], pa.int64()),
        "i8": some(small, pa.int8()),
        "i32": some([*small, 2**31 - 1], pa.int32()),
        "u8": some([0, 1, 5, 200, 255], pa.uint8()),
        "u64": some([0, 1, 5, 2**63, 2**64 - 1], pa.uint64()),
        "f": some(list(FLOATS), pa.float64()),
        "f32": some([*FLOATS[:-2], 0.1], pa.float32()),
        "s": some(list(WORDS), pa.string()),
        "t": some(list(WORDS), pa.large_string()),
        "b": some([True, False], pa.bool_()),
        "ts": some(moments, pa.timestamp("us")),
        "tz": some(zoned, pa.timestamp("us", "UTC")),
        "d": some([one.date() for one in moments], pa.date32()),
        "dec": some(cents, pa.decimal128(10, 2)),
        "bin": some([b"a", b"\x00\xff", b""], pa.binary()),
        "l": some(lists, pa.list_(pa.int64())),
        "ls": some([["a"], ["a", "b"], [], [None, "c"]], pa.list_(pa.string())),
        "st": some(points, pa.struct([("x", pa.int64()), ("y", pa.struct([("z", pa.string())]))])),
        "Mixed Case": some([1, 2, 3], pa.int16()),
        "vector": pa.FixedSizeListArray.from_arrays(
            pa.array(rng.normal(size=num_rows * 4).astype(np.float32)), 4,
            mask=pa.array(rng.random(num_rows) < NULL_SHARE),
        ),
    })  # fmt: skip


def write_filter_dataset(lance: Any, path: str) -> Any:
    """Write the table as three fragments with deleted rows."""
    dataset = lance.write_dataset(filter_table(), path, max_rows_per_file=100)
    dataset.delete("id % 13 = 4 OR id BETWEEN 150 AND 160")
    return lance.dataset(path)
