"""Tables of many columns: all kinds that are stored together, and what stands between them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def mixed_table(rows: int, repeats: int, *, structs_of_nulls: bool = True) -> pa.Table:
    """Return 24 kinds of columns, ``repeats`` times 4 of each: with and without nulls, nested.

    The repeats of a kind differ in their values: some are the same in all rows, some have few
    different values, some come in runs. Without ``structs_of_nulls`` no struct is null.
    """
    random = np.random.default_rng(rows)
    columns: dict[str, pa.Array] = {}
    for number in range(4 * repeats):
        wholes = _whole_numbers(random, rows, number)
        texts = [f"{'' if number % 5 else 'long ' * 60}{whole % 97}" for whole in wholes.tolist()]
        mask = random.random(rows) < (0.3 if number % 3 else 1.0)
        moments = pa.array(wholes % 10**9).cast(pa.timestamp("ms", "UTC"))
        plain = {
            "int64": pa.array(wholes),
            "int32": pa.array((wholes % 2**31).astype(np.int32)),
            "uint8": pa.array((wholes % 256).astype(np.uint8)),
            "double": pa.array(random.random(rows)),
            "half": pa.array((wholes % 100).astype(np.float16)),
            "flag": pa.array(wholes % (number + 2) == 0),
            "text": pa.array(texts),
            "bytes": pa.array([text.encode() for text in texts]),
            "moment": moments,
        }
        for kind, values in plain.items():
            columns[f"{kind}{number}"] = values
            as_list = values.to_pylist()
            columns[f"{kind}{number}?"] = pa.array(as_list, values.type, mask=mask)
        inner = pa.StructArray.from_arrays(
            [columns[f"int64{number}?"], columns[f"text{number}"]],
            names=["i", "t"],
            mask=pa.array(mask) if structs_of_nulls else None,
        )
        columns[f"struct{number}"] = inner
        columns[f"list{number}"] = pa.array(
            [None if whole % 11 == 0 else [whole, 1][: whole % 3] for whole in wholes.tolist()],
            pa.list_(pa.int64()),
        )
        columns[f"vector{number}"] = pa.FixedSizeListArray.from_arrays(
            pa.array(random.random(2 * rows)), 2
        )
        columns[f"category{number}"] = plain["text"].dictionary_encode()
        columns[f"large{number}"] = plain["text"].cast(pa.large_string())
        columns[f"decimal{number}"] = pa.array(wholes % 1000).cast(pa.decimal128(30, 2))
    return pa.table(columns)


def _whole_numbers(random: np.random.Generator, rows: int, number: int) -> np.ndarray:
    kinds = (
        random.integers(0, 2**62, rows),
        np.full(rows, 7),
        random.integers(0, 9, rows),
        np.sort(random.integers(0, 4, rows)),
    )
    return kinds[number % 4]
