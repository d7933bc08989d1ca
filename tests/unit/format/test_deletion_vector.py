"""Deletion files: both forms, exactness, damage."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from lance_nb.errors import CorruptFileError, LanceError
from lance_nb.format.deletion_vector import ARROW_SCHEMA, DeletionVector
from lance_nb.format.fragment import DeletionFileType
from tests.support.manifests import flipped

ARROW, BITMAP = DeletionFileType.ARROW, DeletionFileType.BITMAP


def arrow_file(
    values: object,
    schema: pa.Schema = ARROW_SCHEMA,
    compression: str | None = None,
    batches: int = 1,
) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(sink, schema, options=options) as writer:
        for _ in range(batches):
            column = pa.array(values, schema.field(0).type)
            writer.write_batch(pa.RecordBatch.from_arrays([column], schema=schema))
    return sink.getvalue().to_pybytes()


@given(st.sets(st.integers(0, 200_000), max_size=200), st.sampled_from(DeletionFileType))
def test_both_forms_round_trip(offsets: set[int], file_type: DeletionFileType):
    vector = DeletionVector.of(offsets)
    data = vector.to_bytes(file_type)
    again = DeletionVector.from_bytes(
        data, file_type, physical_rows=200_001, num_deleted_rows=len(offsets)
    )
    assert again == vector
    assert again.offsets().tolist() == sorted(offsets)
    assert len(again) == len(offsets)


@given(st.sets(st.integers(0, 300), max_size=80), st.integers(0, 301))
def test_views_agree_with_the_set(offsets: set[int], num_rows: int):
    vector = DeletionVector.of(offsets)
    live = [row for row in range(num_rows) if row not in offsets]
    mask = vector.to_mask(num_rows)
    assert [row for row in range(num_rows) if not mask[row]] == live
    asked = np.arange(310)
    assert vector.contains(asked).tolist() == [row in offsets for row in range(310)]
    assert all((row in vector) == (row in offsets) for row in range(310))


def test_the_worked_example_of_the_bitmap():
    vector = DeletionVector.of(range(0, 100_000, 20))
    data = vector.to_bytes()
    assert len(data) == 10_024
    assert data[:16].hex() == "3a300000020000000000cc0c0100ba06"
    assert data == BitMap(range(0, 100_000, 20)).serialize()


def test_the_form_follows_the_number_of_rows():
    assert DeletionVector.of(range(4999)).to_bytes()[:6] == b"ARROW1"
    assert DeletionVector.of(range(5000)).to_bytes()[:4] == (12346).to_bytes(4, "little")


@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
def test_arrow_files_are_read_unsorted_and_compressed(compression: str | None):
    data = arrow_file([5, 1, 3], compression=compression)
    vector = DeletionVector.from_bytes(data, ARROW, physical_rows=10, num_deleted_rows=3)
    assert vector.offsets().tolist() == [1, 3, 5]


def test_run_containers_are_read():
    bitmap = BitMap(range(100, 70_000))
    bitmap.run_optimize()
    data = bitmap.serialize()
    assert data[:2] == (12347).to_bytes(2, "little")
    assert len(DeletionVector.from_bytes(data, BITMAP, physical_rows=70_000)) == 69_900


@given(st.lists(st.tuples(st.lists(st.integers(0, 99)), st.booleans()), min_size=2, max_size=2))
def test_vectors_of_any_form_are_joined(parts: list[tuple[list[int], bool]]):
    rows = sorted({row for offsets, _ in parts for row in offsets})
    left, right = (
        DeletionVector(BitMap(offsets)) if is_bitmap else DeletionVector.of(np.array(offsets, int))
        for offsets, is_bitmap in parts
    )
    joined = left | right
    assert joined.offsets().tolist() == rows
    assert joined.to_bytes(ARROW) == DeletionVector.of(rows).to_bytes(ARROW)


def test_vectors_are_joined_and_pickled():
    joined = DeletionVector.of([1, 2]) | DeletionVector.of([2, 3])
    assert joined == DeletionVector.of([1, 2, 3])
    assert pickle.loads(pickle.dumps(joined)) == joined  # noqa: S301
    assert DeletionVector.of([]).to_mask(3).tolist() == [False] * 3


INT32 = pa.schema([pa.field("row_id", pa.int32(), nullable=False)])
NAMED = pa.schema([pa.field("rowid", pa.uint32(), nullable=False)])
NULLABLE = pa.schema([pa.field("row_id", pa.uint32())])


@pytest.mark.parametrize(
    ("data", "file_type", "reason"),
    [
        (arrow_file([1], INT32), ARROW, "uint32 not null"),
        (arrow_file([1], NAMED), ARROW, "uint32 not null"),
        (arrow_file([1], NULLABLE), ARROW, "uint32 not null"),
        (arrow_file([1], batches=2), ARROW, "one record batch"),
        (arrow_file([1], batches=0), ARROW, "one record batch"),
        (arrow_file([1, 1]), ARROW, "differ"),
        (arrow_file([10]), ARROW, "below 10"),
        (arrow_file(range(11)), ARROW, "at most 10"),
        (b"", ARROW, "Arrow deletion file"),
        (b"ARROW1\0\0", ARROW, "Arrow deletion file"),
        (b"", BITMAP, "Roaring"),
        (b"\xff" * 100, BITMAP, "Roaring"),
        (BitMap([10]).serialize(), BITMAP, "below 10"),
        (BitMap([1]).serialize() + b"x", BITMAP, "end of the bitmap"),
        (BitMap([1]).serialize()[:-1], BITMAP, "end of the file"),
        ((12346).to_bytes(4, "little") + b"\xff\xff\xff\xff", BITMAP, "containers"),
        ((12346).to_bytes(4, "little") + b"\xff\xff\x00\x00", BITMAP, "containers"),
    ],
)
def test_what_is_not_exactly_a_deletion_file_is_damage(
    data: bytes, file_type: DeletionFileType, reason: str
):
    with pytest.raises(CorruptFileError, match=reason) as caught:
        DeletionVector.from_bytes(data, file_type, physical_rows=10, path="_deletions/x")
    assert caught.value.path == "_deletions/x"


def test_the_count_of_the_manifest_must_be_exact():
    for file_type in DeletionFileType:
        data = DeletionVector.of([1, 2]).to_bytes(file_type)
        for count in (0, 1, 3, 2**60):
            with pytest.raises(CorruptFileError, match="as the manifest says"):
                DeletionVector.from_bytes(data, file_type, physical_rows=10, num_deleted_rows=count)


SAMPLES = {
    "arrow": (DeletionVector.of(range(0, 600, 7)).to_bytes(ARROW), ARROW),
    "zstd": (arrow_file(range(0, 600, 7), compression="zstd"), ARROW),
    "array": (DeletionVector.of(range(0, 600, 7)).to_bytes(BITMAP), BITMAP),
    "bitmap": (DeletionVector.of(range(0, 60_000, 7)).to_bytes(BITMAP)[:8300], BITMAP),
    "runs": (bytes.fromhex("3b3001000200000a000300ff00640005000001002000"), BITMAP),
}


@pytest.mark.parametrize("kind", SAMPLES)
def test_any_damage_is_a_lance_error_or_a_vector(kind: str):
    data, file_type = SAMPLES[kind]
    for what, broken in flipped(data, 300, seed=len(data)):
        try:
            vector = DeletionVector.from_bytes(broken, file_type, physical_rows=60_000)
            assert (vector.offsets() < 60_000).all()
            assert len(vector.to_mask(60_000)) == 60_000
        except LanceError:
            continue
        except Exception as error:
            raise AssertionError(f"{what} escaped as {type(error).__name__}") from error


def test_bits_and_mask_make_the_same_vector():
    mask = np.random.default_rng(1).random(200_001) < 0.1
    assert DeletionVector.from_bits(np.packbits(mask, bitorder="little")) == (
        DeletionVector.from_mask(mask)
    )


def test_a_fragment_may_lose_every_row():
    every = DeletionVector.of(range(5))
    for kind in DeletionFileType:
        data = every.to_bytes(kind)
        assert DeletionVector.from_bytes(data, kind, physical_rows=5, num_deleted_rows=5) == every
        with pytest.raises(CorruptFileError):
            DeletionVector.from_bytes(data, kind, physical_rows=4)


def test_what_it_says_of_itself():
    vector = DeletionVector.of([7, 1, 7])
    assert repr(vector) == "DeletionVector(2 rows)"
    assert (7 in vector, 2 in vector) == (True, False)
    assert vector.size_bytes >= vector.offsets().nbytes
    mask = np.zeros(20_000, np.bool_)
    mask[::2] = True
    packed = DeletionVector.from_mask(mask)
    assert packed.size_bytes == len(packed.to_bytes(DeletionFileType.BITMAP)) < 20_000
    assert vector != {1, 7}
    assert vector | DeletionVector.of([2]) == DeletionVector.of([1, 2, 7])


@pytest.mark.parametrize("rows", [[], [3], [0, 1, 5]])
def test_offsets_are_looked_up_together(rows: list[int]):
    vector = DeletionVector.of(rows)
    asked = np.array([5, 0, 9, 3, 0, 1], np.int64)
    assert vector.contains(asked).tolist() == [one in rows for one in asked.tolist()]
    assert vector.contains(asked[:0]).tolist() == []


@pytest.mark.parametrize(("count", "kind"), [(4999, "arrow"), (5000, "bin")])
def test_the_form_is_that_of_pylance(count: int, kind: str):
    vector = DeletionVector.of(range(0, 3 * count, 3))
    assert vector.to_bytes().startswith(b"ARROW1") is (kind == "arrow")


def test_a_bitmap_without_a_row_is_the_shortest_file():
    data = BitMap().serialize()

    assert len(data) == 8
    assert len(DeletionVector.from_bytes(data, BITMAP, physical_rows=10)) == 0


@pytest.mark.parametrize("file_type", DeletionFileType)
def test_offsets_beyond_the_rows_are_left_out_on_request(file_type: DeletionFileType):
    data = DeletionVector.of([1, 9, 10, 40]).to_bytes(file_type)

    vector = DeletionVector.from_bytes(
        data, file_type, physical_rows=10, num_deleted_rows=4, ignore_beyond=True
    )

    assert vector.offsets().tolist() == [1, 9]
