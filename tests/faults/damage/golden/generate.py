"""Write the small data files that the hostile tests damage. Run it with pylance 14.0.2 only:

python tests/faults/damage/golden/generate.py
"""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import numpy as np
import pyarrow as pa

HERE = Path(__file__).parent
VERSIONS = ("2.0", "2.1", "2.2")
ROWS = 300


def tables() -> dict[str, pa.Table]:
    """Build the tables: every layout, every codec that is chosen by default or by request."""
    rng = np.random.default_rng(3)
    n = ROWS
    lost = rng.random(n) < 0.2
    numbers = {
        "small": pa.array(rng.integers(0, 200, n)),
        "full": pa.array(rng.integers(-(2**62), 2**62, n)),
        "some": pa.array(rng.integers(0, 9, n).astype("int32"), mask=lost),
        "runs": pa.array(np.repeat(rng.integers(0, 99, 6), n // 6).astype("int32")),
        "few": pa.array(rng.choice([-5, 7, 2**40], n)),
        "constant": pa.array(np.full(n, 7), mask=lost),
        "lost": pa.nulls(n, pa.int16()),
        "flags": pa.array(rng.random(n) < 0.5, mask=lost),
        "vector": pa.array(
            [None if i % 9 == 0 else [i % 200, None, 2] for i in range(n)], pa.list_(pa.uint8(), 3)
        ),
    }
    words = [f"w{k}" * int(k % 9) for k in rng.integers(0, 999, n)]
    texts = {
        "words": pa.array(words, mask=lost),
        "unicode": pa.array([("é" if i % 2 else "日本") for i in range(n)], pa.large_string()),
        "fsst": pa.array(
            [f"https://example.org/{i % 7}/{words[i]}/some/long/path" * 3 for i in range(n)]
        ),
        "category": pa.array([f"category {i % 5}" for i in range(n)]).dictionary_encode(),
        "bytes": pa.array([rng.bytes(5) for _ in range(n)], pa.binary(5)),
    }
    wide = {
        "vector": pa.array(
            [[float(i)] * 64 if i % 5 else None for i in range(12)], pa.list_(pa.float32(), 64)
        ),
        "text": pa.array([f"{i} " * 130 if i % 5 else None for i in range(12)]),
        "blob": pa.array([rng.bytes(400) if i % 5 else None for i in range(12)], pa.large_binary()),
        "lists": pa.array(
            [None if i % 5 == 1 else ["x" * 300, None, ""][: i % 4] for i in range(12)],
            pa.list_(pa.string()),
        ),
        "vectors": pa.array(
            [None if i % 5 == 1 else [[float(i)] * 64] * (i % 3) for i in range(12)],
            pa.list_(pa.list_(pa.float32(), 64)),
        ),
        "huge": pa.array(["y" * 33_000 if i == 3 else "z" for i in range(12)]),
    }
    point = pa.struct([("x", pa.int32()), ("y", pa.string())])
    inner = [[None if k == 2 else {"x": k, "y": f"{i}"} for k in range(i % 5)] for i in range(n)]
    nested = {
        "list": pa.array([[], None, [1, 2], [None, 4000]] * (n // 4), pa.list_(pa.int32())),
        "lists": pa.array(
            [[[], None, [1]], None, [], [[2, 3]]] * (n // 4), pa.list_(pa.list_(pa.int64()))
        ),
        "empty": pa.array([[]] * n, pa.list_(pa.int32())),
        "struct": pa.array([None if i % 9 == 0 else {"x": i, "y": "t"} for i in range(n)], point),
        "points": pa.array([None if i % 7 == 1 else inner[i] for i in range(n)], pa.list_(point)),
        "giant": pa.array([list(range(3000)) if i % 150 == 3 else [i] for i in range(n)]),
    }
    packed = {
        "zstd": _field(numbers["full"], {"lance-encoding:compression": "zstd"}, pa.float64()),
        "lz4 text": _field(texts["fsst"], {"lance-encoding:compression": "lz4"}),
        "bss": _field(
            numbers["full"],
            {"lance-encoding:bss": "on", "lance-encoding:compression": "lz4"},
            pa.float32(),
        ),
        "fullzip": _field(numbers["some"], {"lance-encoding:structural-encoding": "fullzip"}),
    }
    schema = pa.schema([field.with_name(name) for name, (field, _) in packed.items()])
    return {
        "numbers": pa.table(numbers),
        "texts": pa.table(texts),
        "wide": pa.table(wide),
        "nested": pa.table(nested),
        "packed": pa.table([array for _, array in packed.values()], schema=schema),
    }


def _field(array: pa.Array, metadata: dict[str, str], kind: pa.DataType | None = None) -> tuple:
    array = array.cast(kind, safe=False) if kind else array
    return pa.field("", array.type, metadata=metadata), array


def is_stored(column: pa.ChunkedArray, version: str) -> bool:
    """Tell whether a file version can hold the column: 2.0 knows no null structs."""
    kind = column.type
    inner = kind.value_type if pa.types.is_list(kind) else kind
    return version != "2.0" or not pa.types.is_struct(inner)


def main() -> None:
    """Write every table in every version."""
    if importlib.metadata.version("pylance") != "14.0.2":
        raise SystemExit("these files are defined as what pylance 14.0.2 writes")
    from lance.file import LanceFileWriter

    for name, table in tables().items():
        for version in VERSIONS:
            chosen = [one for one in table.column_names if is_stored(table.column(one), version)]
            path = HERE / f"{name}-{version}.lance"
            with LanceFileWriter(str(path), table.select(chosen).schema, version=version) as writer:
                writer.write_batch(table.select(chosen))


if __name__ == "__main__":
    main()
