"""Encodings asked for by field metadata: what we write then is read by pylance and by us.

One file per (metadata, file version), with a column of every kind in it, with and without nulls and
inside lists and structs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.errors import InvalidInputError
from tests.interop.matrix import PATTERNS, with_nulls
from tests.support.written_files import differences, write_file

pytestmark = pytest.mark.interop

PREFIX = "lance-encoding:"
KEYS: list[dict[str, str]] = [
    {"compression": "zstd"},
    {"compression": "zstd", "compression-level": "5"},
    {"compression": "lz4"},
    {"compression": "none"},
    {"compression": "fsst"},
    {"structural-encoding": "fullzip"},
    {"structural-encoding": "miniblock"},
    {"structural-encoding": "fullzip", "compression": "zstd"},
    {"structural-encoding": "fullzip", "compression": "lz4"},
    {"rle-threshold": "1.0"},
    {"rle-threshold": "0.0"},
    {"bss": "on", "compression": "lz4"},
    {"bss": "on", "compression": "zstd"},
    {"bss": "off", "compression": "zstd"},
    {"dict-divisor": "2"},
    {"dict-divisor": "100000"},
    {"dict-size-ratio": "1.0"},
    {"dict-max-size": "64"},
    {"dict-values-compression": "zstd", "dict-values-compression-level": "3"},
    {"dict-values-compression": "none"},
    {"minichunk-size": "64"},
    {"minichunk-size": "1024"},
    {"minichunk-size": "30000"},
]
ROWS = 3000


def columns() -> Iterator[tuple[str, pa.Array]]:
    rng = np.random.default_rng(5)
    words = pa.array([f"row {k % 700} and more" for k in range(ROWS)])
    offsets = np.concatenate(([0], np.cumsum(np.arange(ROWS) % 3))).astype(np.int32)
    base = {
        "int8": pa.array(rng.integers(-9, 9, ROWS).astype("i1")),
        "int32": pa.array(rng.integers(0, 1000, ROWS).astype("i4")),
        "int64": pa.array(rng.integers(-(2**62), 2**62, ROWS)),
        "few": pa.array(rng.choice([-5, 17, 2**40], ROWS)),
        "runs": pa.array(np.repeat(rng.integers(0, 99, ROWS // 100), 100)),
        "float32": pa.array(rng.random(ROWS).astype("f4")),
        "float64": pa.array(np.repeat(rng.random(ROWS // 10), 10)),
        "bool": pa.array(rng.random(ROWS) < 0.5),
        "words": words,
        "large": words.cast(pa.large_string()),
        "short": pa.array([str(k % 7) for k in range(ROWS)]),
        "bytes": pa.array([rng.bytes(k % 40) for k in range(ROWS)]),
        "fixed": pa.array([rng.bytes(12) for _ in range(ROWS)], pa.binary(12)),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(rng.random(ROWS * 6)), 6),
    }
    for name, array in base.items():
        yield name, array
        yield f"{name} with nulls", with_nulls(array, PATTERNS["some"](rng, ROWS))
    for name in ("int32", "words"):
        items = base[name].take(pa.array(np.arange(offsets[-1]) % ROWS))
        yield f"list {name}", pa.ListArray.from_arrays(pa.array(offsets), items)
    yield "struct", pa.StructArray.from_arrays([base["int32"], words], ["a", "b"])


@pytest.mark.parametrize("keys", KEYS, ids=lambda keys: " ".join(map("=".join, keys.items())))
@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_what_is_asked_for_reads_equal(version: str, keys: dict[str, str], tmp_path: Path) -> None:
    metadata = {PREFIX + key: value for key, value in keys.items()}
    found = dict(columns())
    schema = pa.schema(
        [pa.field(name, array.type, metadata=metadata) for name, array in found.items()]
    )
    table = pa.table(list(found.values()), schema=schema)
    path = write_file(tmp_path, table, version, 1 << 23, 1000)
    assert not differences(path, table, np.random.default_rng(1))


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_pages_of_numbers_as_they_lie_read_equal(version: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    bits = rng.integers(0, 2**63, 140_000)
    table = pa.table(
        {
            "int": bits - 2**62,
            "double": rng.random(bits.size),
            "float": rng.random(bits.size * 2).astype("f4")[: bits.size],
            "time": pa.array(bits).view(pa.timestamp("us", "UTC")),
            "decimal": pa.array(bits // 10).cast(pa.decimal128(38, 2)),
            "fixed": pa.FixedSizeBinaryArray.from_buffers(
                pa.binary(16), bits.size, [None, pa.py_buffer(rng.bytes(bits.size * 16))]
            ),
            "nulls": pa.array(bits, mask=bits % 7 == 0),
        }
    )
    path = write_file(tmp_path, table, version, 1 << 21, 100_000)
    assert not differences(path, table, np.random.default_rng(1))


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_packed_structs_read_equal(version: str, tmp_path: Path) -> None:
    children = {"a": pa.array(np.arange(ROWS, dtype="i2")), "b": pa.array(np.arange(ROWS) / 7)}
    fixed = pa.StructArray.from_arrays(list(children.values()), list(children))
    rows = {"fixed": fixed}
    if version != "2.0":
        rows["nulls"] = with_nulls(fixed, np.arange(ROWS) % 5 == 0)
    if version == "2.2":
        texts = pa.array([f"text {k}" * (k % 3) for k in range(ROWS)])
        mixed = pa.StructArray.from_arrays([children["a"], texts], ["a", "t"])
        rows["mixed"] = mixed
        rows["mixed with nulls"] = with_nulls(mixed, np.arange(ROWS) % 5 == 0)
    marks = {"lance-encoding:packed": "true"}
    schema = pa.schema([pa.field(name, one.type, metadata=marks) for name, one in rows.items()])
    table = pa.table(list(rows.values()), schema=schema)
    path = write_file(tmp_path, table, version, 1 << 23, 1000)
    assert not differences(path, table, np.random.default_rng(1))


@pytest.mark.parametrize(
    ("key", "value"),
    [("compression", "snappy"), ("structural-encoding", "x"), ("rle-threshold", "2"), ("bss", "")],
)
def test_values_without_meaning_are_refused(key: str, value: str, tmp_path: Path) -> None:
    field = pa.field("a", pa.int64(), metadata={PREFIX + key: value})
    table = pa.table([pa.array([1])], schema=pa.schema([field]))
    with pytest.raises(InvalidInputError, match=key):
        write_file(tmp_path, table, "2.2", 1 << 20, 100)
    assert list(tmp_path.iterdir()) == []
