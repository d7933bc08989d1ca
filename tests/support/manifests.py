"""Hand-made manifests, and the one mutation that tests of damage use."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pyarrow as pa

from lance_nb.format.fragment import (
    ColumnSequence,
    DataFile,
    DeletionFile,
    DeletionFileType,
    Fragment,
    InlineSequence,
    RowDatasetVersionMeta,
    RowIdMeta,
)
from lance_nb.format.fragment_list import FragmentList
from lance_nb.format.manifest import BasePath, DataStorageFormat, Manifest, WriterVersion
from lance_nb.format.schema import Schema

SCHEMA = Schema.from_arrow(
    pa.schema([("id", pa.int64()), ("s", pa.struct([("a", pa.string())]))], metadata={"k": "v"})
)


def fragment(identity: int, rows: int = 100, deleted: int = 0, files: int = 1) -> Fragment:
    """Build a plausible fragment."""
    deletion = None
    if deleted:
        deletion = DeletionFile(3, 2**64 - 1, DeletionFileType.BITMAP, deleted, base_id=0)
    return Fragment(
        identity,
        tuple(
            DataFile(f"{identity}-{n}.lance", (0, 2), (0, 1), 2, 2, 1000 + n, None)
            for n in range(files)
        ),
        rows,
        deletion,
    )


def manifest(num_fragments: int = 3) -> Manifest:
    """Build a manifest that uses most fields."""
    fragments = [fragment(n, 100 + n, n % 3, 1 + n % 2) for n in range(num_fragments)]
    rich = Fragment(
        num_fragments,
        (DataFile("x.lance", (0, -2), (0, 1), 2, 1, 0, 7),),
        5,
        None,
        RowIdMeta(InlineSequence(b"\x0a\x04\x0a\x02\x10\x05")),
        RowDatasetVersionMeta(ColumnSequence(-4)),
        None,
        clustering_id=3,
        metadata={"a": "b"},
    )
    return Manifest(
        version=7,
        schema=SCHEMA,
        fragments=FragmentList.of([*fragments, rich]),
        timestamp_ns=1_795_230_129_147_127_079,
        tag="t",
        reader_feature_flags=17,
        writer_feature_flags=25,
        max_fragment_id=num_fragments,
        transaction_file="6-u.txn",
        writer_version=WriterVersion("lance", "14.0.2", "beta.1"),
        next_row_id=12,
        data_format=DataStorageFormat("lance", "2.2"),
        config={"a": "1", "b": "2"},
        base_paths=(BasePath(0, "/abs/root", True), BasePath(7, "s3://b/x", False, "side")),
        table_metadata={"x": "y"},
        branch="dev",
        max_allocated_field_id=9,
        clustering=(b"\x08\x01",),
        max_clustering_id=1,
        version_aux_data=4,
        unknown=b"\xfa\x3f\x03abc",
    )


def flipped(data: bytes, count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """Yield ``count`` copies with one bit flipped, and some cut short or doubled in place."""
    rng = random.Random(seed)
    for _ in range(count):
        kind = rng.random()
        at = rng.randrange(len(data))
        if kind < 0.85:
            bit = rng.randrange(8)
            changed = bytearray(data)
            changed[at] ^= 1 << bit
            yield f"bit {bit} of byte {at}", bytes(changed)
        elif kind < 0.93:
            yield f"cut at {at}", data[:at]
        else:
            yield f"byte {at} set", data[:at] + b"\xff" + data[at + 1 :]
