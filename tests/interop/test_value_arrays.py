"""Arrays of extension types that users make: written and read by both libraries alike."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from tests.support.api_comparison import without_tqdm
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop
lance = require_pylance()
import lance.arrow as their_arrow  # noqa: E402
import lance.blob as their_blob  # noqa: E402

with without_tqdm():
    import lance.vector as their_vector

ENGINES = [lance, lance_nb]
NUMBERS = [1.1, None, 2, -0.0, 1e39, -1e39, 1e-40, 1.00390625, 1.01171875, 3.14159, 65504, 0.1]


def arrow(engine: Any) -> Any:
    return lance_nb if engine is lance_nb else their_arrow


def blobs(engine: Any) -> Any:
    return lance_nb if engine is lance_nb else their_blob


def test_bfloat16_arrays_have_the_same_bytes() -> None:
    ours, theirs = (arrow(one).bfloat16_array(NUMBERS) for one in (lance_nb, lance))
    assert ours.storage == theirs.storage
    assert [str(one) for one in ours.to_pylist()] == [str(one) for one in theirs.to_pylist()]
    assert str(ours) == str(theirs)
    random = np.random.default_rng(3).integers(0, 2**32, 10_000, np.uint32).view(np.float32)
    finite = random[np.isfinite(random)].tolist()
    assert lance_nb.bfloat16_array(finite).storage == their_arrow.bfloat16_array(finite).storage
    nan = lance_nb.bfloat16_array([math.nan]).storage[0].as_py()
    assert nan == their_arrow.bfloat16_array([math.nan]).storage[0].as_py()


@pytest.mark.parametrize("value", ["x", None, b"ab", [1.0]])
def test_what_is_no_number_is_refused_alike(value: Any) -> None:
    for engine in ENGINES:
        with pytest.raises(TypeError):
            arrow(engine).BFloat16(value)


def table_of(engine: Any) -> pa.Table:
    make = arrow(engine)
    pixels = np.arange(12, dtype=np.uint8).reshape(3, 2, 2)
    vectors = lance_nb.cast(
        pa.array([[1.0, 2.0], [3.0, 4.0], [5.5, 6.0]], pa.list_(pa.float32(), 2)),
        pa.list_(lance_nb.BFloat16Type(), 2),
    )
    return pa.table(
        {
            "x": make.bfloat16_array([1.5, None, -3]),
            "v": vectors,
            "u": make.ImageURIArray.from_uris(["a", "b", "c"]),
            "e": make.ImageArray.from_array(pa.array([b"a", None, b"c"])),
            "t": make.ImageArray.from_array(pa.FixedShapeTensorArray.from_numpy_ndarray(pixels)),
        }
    )


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_extension_columns_are_written_and_read_by_both(version: str, tmp_path: Path) -> None:
    for writer in ENGINES:
        uri = str(tmp_path / writer.__name__)
        writer.write_dataset(table_of(writer), uri, data_storage_version=version)
        ours, theirs = lance_nb.dataset(uri), lance.dataset(uri)
        assert ours.schema.equals(theirs.schema, check_metadata=True)
        assert ours.to_table().equals(theirs.to_table())
        assert str(ours.to_table()["v"].to_pylist()) == "[[1, 2], [3, 4], [5.5, 6]]"
        assert ours.to_table(filter="u = 'b'")["x"].to_pylist() == [None]
        assert ours.take([2], columns=["t"]).equals(theirs.take([2], columns=["t"]))


def test_image_arrays_have_the_types_and_values_of_pylance() -> None:
    for name in ("u", "e", "t"):
        ours, theirs = table_of(lance_nb)[name], table_of(lance)[name]
        assert ours.type.extension_name == theirs.type.extension_name
        assert ours.type.storage_type == theirs.type.storage_type
        assert ours.type.__arrow_ext_serialize__() == theirs.type.__arrow_ext_serialize__()
        assert ours.chunk(0).storage == theirs.chunk(0).storage
        assert ours[0].as_py() == theirs[0].as_py()
    tensors = [table_of(one)["t"].chunk(0) for one in ENGINES]
    assert tensors[0].to_numpy().tolist() == tensors[1].to_numpy().tolist()


# --- blobs ----------------------------------------------------------------------------------------


def test_blob_arrays_and_fields_are_the_same() -> None:
    made = []
    for engine in ENGINES:
        make = blobs(engine)
        values = [b"a", bytearray(b"b"), "uri", None, make.Blob.empty(), make.Blob(uri="x"),
                  make.Blob.from_uri("y", 3, 4), make.Blob.from_bytes(b"z")]  # fmt: skip
        array = make.blob_array(values)
        fields = [
            make.blob_field("b"),
            make.blob_field("b", nullable=False, inline_size_threshold=0),
            make.blob_field("b", dedicated_size_threshold=5, pack_file_size_threshold=9),
        ]
        made.append((array.storage, [(one.nullable, one.metadata) for one in fields]))
        assert array.type.extension_name == "lance.blob.v2"
    assert made[0] == made[1]


@pytest.mark.parametrize(
    "arguments",
    [{}, {"data": b"", "uri": "x"}, {"uri": ""}, {"uri": "x", "position": 1},
     {"uri": "x", "size": 1}, {"data": b"x", "position": 1, "size": 1},
     {"uri": "x", "position": 0, "size": 0}],
    ids=str,
)  # fmt: skip
def test_blobs_that_mean_nothing_are_refused_alike(arguments: dict[str, Any]) -> None:
    for engine in ENGINES:
        with pytest.raises(ValueError, match="lob"):
            blobs(engine).Blob(**arguments)


@pytest.mark.parametrize("option", ["inline", "dedicated", "pack_file"])
@pytest.mark.parametrize("value", [-1, 0, True, "1", 2**64, 1.5])
def test_sizes_are_refused_alike(option: str, value: Any) -> None:
    ours, theirs = (accepts(engine, option, value) for engine in (lance_nb, lance))
    assert ours == theirs


def accepts(engine: Any, option: str, value: Any) -> str:
    try:
        blobs(engine).blob_field("b", **{f"{option}_size_threshold": value})
    except (TypeError, OverflowError):  # in ours, one error that is both
        return "wrong type or too large"
    except ValueError:
        return "wrong value"
    return "accepted"


@pytest.mark.parametrize("writer", ENGINES, ids=lambda one: one.__name__)
def test_blobs_made_by_either_are_written_by_either(writer: Any, tmp_path: Path) -> None:
    payload = b"x" * 5000
    for maker in ENGINES:
        make = blobs(maker)
        uri = str(tmp_path / f"{writer.__name__}-{maker.__name__}")
        schema = pa.schema([("id", pa.int64()), make.blob_field("b", inline_size_threshold=100)])
        values = make.blob_array([b"small", payload, None, make.Blob.empty()])
        rows = pa.table([pa.array(range(4)), values], schema=schema)
        writer.write_dataset(rows, uri, data_storage_version="2.2")
        for engine in ENGINES:
            found = engine.dataset(uri).read_blobs("b", indices=[0, 1, 2, 3])
            assert [data for _, data in found] == [b"small", payload, None, b""]
        assert lance_nb.dataset(uri).schema.equals(lance.dataset(uri).schema, check_metadata=True)


def test_a_binary_column_is_read_as_files_alike() -> None:
    for column in (pa.array([b"a", b"bc"]), pa.chunked_array([[b"a"], [b"bc"]], pa.large_binary())):
        for engine in ENGINES:
            assert [one.read() for one in engine.BlobColumn(column)] == [b"a", b"bc"]
    for engine in ENGINES:
        for wrong in (pa.array(["a"]), [b"a"]):
            with pytest.raises(ValueError, match="xpected"):
                engine.BlobColumn(wrong)


# --- vectors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "options"),
    [
        ({"a": [1, 2], "b": np.array([3.5, 4])}, {}),
        ({1: [1, 2]}, {"names": ["key", "vec"]}),
        ([[1, 2], [3, 4]], {}),
        ([np.array([1.0, 2]), np.array([3.0, 4])], {"names": "emb"}),
        (np.arange(6).reshape(2, 3), {"names": ["emb"]}),
        (np.arange(6, dtype=np.float16).reshape(3, 2), {"ndim": 2}),
        (np.arange(6).reshape(2, 3), {"ndim": 3, "check_ndim": False}),
    ],
    ids=str,
)
def test_vectors_become_the_same_table(data: Any, options: dict[str, Any]) -> None:
    ours, theirs = (
        lance_nb.vec_to_table(data, **options),
        their_vector.vec_to_table(data, **options),
    )
    assert ours.schema == theirs.schema
    assert ours.equals(theirs)


@pytest.mark.parametrize(
    ("data", "options"),
    [([[1, 2], [3]], {}), ([[1, 2]], {"ndim": 3}), ("ab", {}), (3, {}), ({}, {}), ([], {})],
    ids=str,
)
def test_what_is_no_table_of_vectors_is_refused_alike(data: Any, options: dict[str, Any]) -> None:
    with pytest.raises((ValueError, NotImplementedError, TypeError, StopIteration)):
        their_vector.vec_to_table(data, **options)
    with pytest.raises((ValueError, NotImplementedError)):
        lance_nb.vec_to_table(data, **options)
