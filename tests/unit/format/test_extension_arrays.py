"""Extension arrays that users make: bfloat16, images, blobs."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_nb
from lance_nb.errors import ArgumentError, InvalidInputError, NotSupportedError, StorageError
from lance_nb.format import bfloat16

NAN = float("nan")


# --- bfloat16 -------------------------------------------------------------------------------------


@given(st.floats(width=32))
def test_rounding_gives_one_of_the_two_neighbours(value: float) -> None:
    bits = np.array([value], np.float32).view(np.uint32)[0]
    below, above = (np.array([(int(bits) >> 16 << 16) + step], np.uint64).astype(np.uint32)
                    .view(np.float32)[0] for step in (0, 0x10000))  # fmt: skip
    found = lance_nb.BFloat16(value).as_float()
    if np.isnan(value):
        assert np.isnan(found)
        return
    assert found in (below, above)
    if np.isfinite(above) and found != value:
        assert abs(found - value) <= abs(float(above) - float(below)) / 2


@pytest.mark.parametrize(
    ("value", "rounded"),
    [(1.00390625, 1.0), (1.01171875, 1.015625), (1e39, float("inf")), (-0.0, -0.0), (3, 3.0)],
)
def test_ties_go_to_the_even_value(value: float, rounded: float) -> None:
    assert lance_nb.BFloat16(value).as_float() == rounded
    assert np.signbit(lance_nb.BFloat16(value).as_float()) == np.signbit(rounded)
    assert lance_nb.bfloat16_array([value]).to_pylist() == [lance_nb.BFloat16(rounded)]


def test_a_number_is_compared_shown_and_pickled() -> None:
    one, two = lance_nb.BFloat16(1.1), lance_nb.BFloat16(2)
    assert (repr(one), repr(two), repr(lance_nb.BFloat16(NAN))) == ("1.1015625", "2", "NaN")
    assert one < two
    assert one <= two
    assert two > one
    assert two >= one
    assert one != two
    assert one != 1.1015625
    assert lance_nb.BFloat16(NAN) != lance_nb.BFloat16(NAN)
    assert pickle.loads(pickle.dumps(one)) == one == lance_nb.BFloat16.from_bytes(bytes(one))  # noqa: S301
    for wrong in ("1", None, b""):
        with pytest.raises(ArgumentError):
            lance_nb.BFloat16(wrong)
    with pytest.raises(TypeError):
        _ = one < 2.0
    with pytest.raises(InvalidInputError, match="2 bytes, not 3"):
        lance_nb.BFloat16.from_bytes(b"abc")


def test_an_array_has_nulls_slices_and_text() -> None:
    array = lance_nb.bfloat16_array([1.1, None, 2, NAN])
    assert array.type.extension_name == "lance.bfloat16"
    assert str(array.to_pylist()) == "[1.1015625, None, 2, NaN]"
    assert array[1:3].to_pylist() == [None, lance_nb.BFloat16(2)]
    assert str(array) == "[\n  1.1015625,\n  None,\n  2,\n  NaN\n]"
    assert "...\n" not in str(lance_nb.bfloat16_array([0] * 21))
    assert str(lance_nb.bfloat16_array(range(30))).count("\n") == 22
    assert len(lance_nb.bfloat16_array([])) == 0
    for wrong in ("12", 3, [lambda: 3], ["x"], iter([1])):
        with pytest.raises(ArgumentError):
            lance_nb.bfloat16_array(wrong)


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()], ids=str)
def test_casts_keep_nulls_slices_and_what_fits(kind: pa.DataType) -> None:
    values = pa.array([7, 1.5, None, -2, 0.25], kind)
    there = lance_nb.cast(values.slice(1), "bf16")
    assert lance_nb.cast(there, kind).to_pylist() == values.slice(1).to_pylist()
    assert lance_nb.cast(pa.chunked_array([values, values]), "bfloat16").null_count == 2
    lists = pa.FixedSizeListArray.from_arrays(pa.array([9, 9, 1, 2, 3, 4], kind), 2)
    narrow = lance_nb.cast(lists.slice(1), pa.list_(lance_nb.BFloat16Type(), 2))
    assert lance_nb.cast(narrow, pa.list_(kind, 2)).to_pylist() == [[1, 2], [3, 4]]


def test_a_list_that_is_null_stays_null() -> None:
    lists = pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float32(), 2))
    made = lance_nb.cast(lists, pa.list_(lance_nb.BFloat16Type(), 2))
    assert lance_nb.cast(made, lists.type).to_pylist() == lists.to_pylist()


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (pa.array([1]), "bf16"),
        (lance_nb.bfloat16_array([1]), pa.int32()),
        (lance_nb.bfloat16_array([1]), "int32"),
        (pa.array([[1.0]], pa.list_(pa.float32(), 1)), pa.list_(lance_nb.BFloat16Type(), 2)),
    ],
)
def test_other_casts_are_refused(array: pa.Array, kind: Any) -> None:
    with pytest.raises(InvalidInputError):
        lance_nb.cast(array, kind)


def test_other_types_are_cast_by_arrow() -> None:
    assert lance_nb.cast(pa.array([1]), pa.string()).to_pylist() == ["1"]


def test_numpy_arrays_are_views(monkeypatch: pytest.MonkeyPatch) -> None:
    array = lance_nb.bfloat16_array([1.5, 2, 3])
    monkeypatch.setattr(bfloat16, "_numpy_dtype", lambda: np.dtype("<u2"))
    assert array[1:].to_numpy().tolist() == [0x4000, 0x4040]
    with pytest.raises(InvalidInputError, match="nulls"):
        lance_nb.bfloat16_array([1, None]).to_numpy()
    with pytest.raises(InvalidInputError, match="uint16"):
        lance_nb.BFloat16Array.from_numpy(np.array([1], np.uint16))


def test_without_ml_dtypes_the_message_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ml_dtypes", None)
    with pytest.raises(NotSupportedError, match="pip install ml_dtypes"):
        lance_nb.bfloat16_array([1]).to_numpy()


def test_a_pandas_column_holds_bfloat16() -> None:
    pandas = pytest.importorskip("pandas")
    array = lance_nb.PandasBFloat16Array._from_sequence([1.5, None, 3])
    assert [array[0], len(array), array.isna().tolist()] == [
        lance_nb.BFloat16(1.5), 3, [False, True, False],
    ]  # fmt: skip
    assert array[np.array([True, False, True])].data.to_pylist() == [
        lance_nb.BFloat16(1.5), lance_nb.BFloat16(3),
    ]  # fmt: skip
    assert array.take([0, -1], allow_fill=True).isna().tolist() == [False, True]
    series = pandas.concat([pandas.Series(array), pandas.Series(array[1:])], ignore_index=True)
    assert (len(series), str(series.dtype)) == (5, "lance.bfloat16")
    assert pa.array(series.array).to_pylist()[-1] == lance_nb.BFloat16(3)
    assert pandas.api.types.pandas_dtype("lance.bfloat16").name == series.dtype.name


def stored(column: pa.ChunkedArray) -> list[Any]:
    """What is below the extension type, of whichever library it is."""
    array = column.combine_chunks()
    array = array.flatten() if pa.types.is_fixed_size_list(array.type) else array
    return array.storage.to_pylist()


def test_columns_are_written_and_read(tmp_path: Path) -> None:
    table = pa.table(
        {
            "x": lance_nb.bfloat16_array([1.5, None]),
            "v": lance_nb.cast(
                pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2)),
                pa.list_(lance_nb.BFloat16Type(), 2),
            ),
            "u": lance_nb.ImageURIArray.from_uris(["file:///a", None]),
            "e": lance_nb.ImageArray.from_array(pa.array([b"a", None])),
            "t": lance_nb.ImageArray.from_array(
                pa.FixedShapeTensorArray.from_numpy_ndarray(
                    np.arange(8, dtype="u1").reshape(2, 2, 2)
                )
            ),
        }
    )
    ds = lance_nb.write_dataset(table, tmp_path / "d")
    found = ds.to_table()
    assert [getattr(one.type, "extension_name", "list") for one in found.schema] == [
        "lance.bfloat16", "list", "lance.arrow.image_uri", "lance.arrow.encoded_image",
        "lance.arrow.fixed_shape_image_tensor",
    ]  # fmt: skip
    for name in table.column_names:
        assert stored(found[name]) == stored(table[name])


# --- images ---------------------------------------------------------------------------------------


def test_images_take_the_form_that_fits(tmp_path: Path) -> None:
    make = lance_nb.ImageArray.from_array
    uris = make([tmp_path / "a.png", "http://x/b.png"])
    assert isinstance(uris, lance_nb.ImageURIArray)
    assert make(uris) is uris
    assert isinstance(make(pa.array([b"x"])), lance_nb.EncodedImageArray)
    assert make(pa.array([b"x"], pa.large_binary())).type.storage_type == pa.large_binary()
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    tensor = make(pa.FixedShapeTensorArray.from_numpy_ndarray(pixels))
    assert tensor.type.shape == (3, 4)
    assert tensor[1:].to_numpy().tolist() == pixels[1:].tolist()
    assert pickle.loads(pickle.dumps(tensor.type)) == tensor.type  # noqa: S301
    for wrong in (3, None, pa.scalar(3)):
        with pytest.raises(ArgumentError):
            make(wrong)


def test_uris_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"png")
    array = lance_nb.ImageURIArray.from_uris([(tmp_path / "a.png").as_uri(), None])
    assert array.read_uris(pa.large_binary()).to_pylist() == [b"png", None]
    for uri in ((tmp_path / "missing").as_uri(), "nope://x", "relative"):
        with pytest.raises(StorageError) as caught:
            lance_nb.ImageURIArray.from_uris([uri]).read_uris()
        assert caught.value.path == uri


def test_images_are_decoded_and_encoded_by_functions() -> None:
    encoded = lance_nb.ImageArray.from_array(pa.array([b"\1\2", b"\3\4"]))

    def decode(images: pa.Array) -> np.ndarray:
        return np.array([list(one) for one in images.to_pylist()], np.uint8)

    tensor = encoded.to_tensor(decode)
    assert tensor.to_numpy().tolist() == [[1, 2], [3, 4]]
    back = tensor.to_encoded(lambda all_of_them: [one.tobytes() for one in all_of_them])
    assert back.to_pylist() == [b"\1\2", b"\3\4"]
    assert "2 images" in repr(encoded)
    assert "0 images" in repr(encoded[:0])


def test_without_pillow_the_message_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    with pytest.raises(NotSupportedError, match="pip install pillow"):
        lance_nb.ImageArray.from_array(pa.array([b"x"])).to_tensor()


@pytest.mark.parametrize(
    "make",
    [
        lambda: lance_nb.ImageURIType(pa.binary()),
        lambda: lance_nb.EncodedImageType(pa.string()),
        lambda: lance_nb.FixedShapeImageTensorType(pa.uint8(), ()),
        lambda: lance_nb.FixedShapeImageTensorType(pa.uint8(), (2**20, 2**20)),
        lambda: lance_nb.FixedShapeImageTensorType(pa.uint8(), ("a",)),
        lambda: lance_nb.BlobType.__arrow_ext_deserialize__(pa.string(), b""),
        lambda: lance_nb.BFloat16Type.__arrow_ext_deserialize__(pa.binary(3), b""),
        *(
            lambda data=data: lance_nb.FixedShapeImageTensorType.__arrow_ext_deserialize__(
                pa.list_(pa.uint8(), 4), data
            )
            for data in (b"", b"{}", b"[]", b'{"shape": [5]}', b'{"shape": 3}')
        ),
    ],
)
def test_types_that_do_not_fit_are_refused(make: Any) -> None:
    with pytest.raises(InvalidInputError):
        make()


# --- blobs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"data": b"", "uri": "x"},
        {"uri": ""},
        {"uri": "x", "position": 1},
        {"uri": "x", "size": 1},
        {"data": b"x", "position": 1, "size": 1},
        {"uri": "x", "position": 0, "size": 0},
        {"uri": "x", "position": -1, "size": 2},
        {"uri": "x", "position": 2**64, "size": 2},
    ],
    ids=str,
)
def test_blobs_that_mean_nothing_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        lance_nb.Blob(**arguments)


def test_blobs_are_made_of_every_kind_of_value() -> None:
    part = lance_nb.Blob.from_uri("x", 1, 2)
    array = lance_nb.blob_array([b"a", bytearray(b"b"), memoryview(b"c"), "uri", part, None])
    assert array.null_count == 1
    assert array.storage.to_pylist()[3:5] == [
        {"data": None, "uri": "uri", "position": None, "size": None},
        {"data": None, "uri": "x", "position": 1, "size": 2},
    ]
    assert array.type == lance_nb.BlobType()
    assert pickle.loads(pickle.dumps(array.type)) == array.type  # noqa: S301
    with pytest.raises(ArgumentError, match="not int"):
        lance_nb.blob_array([3])


def test_a_field_of_blobs_names_its_sizes() -> None:
    field = lance_nb.blob_field(
        "b", nullable=False, inline_size_threshold=0, dedicated_size_threshold=10,
        pack_file_size_threshold=99,
    )  # fmt: skip
    assert (field.name, field.nullable) == ("b", False)
    assert sorted(field.metadata.values()) == [b"0", b"10", b"99"]
    assert lance_nb.blob_field("b").metadata is None
    for wrong, error in ((-1, InvalidInputError), (True, TypeError), ("1", TypeError),
                         (2**64, OverflowError)):  # fmt: skip
        with pytest.raises(error):
            lance_nb.blob_field("b", inline_size_threshold=wrong)
    with pytest.raises(InvalidInputError):
        lance_nb.blob_field("b", dedicated_size_threshold=0)


def test_a_column_is_read_as_files() -> None:
    for column in (pa.array([b"a", None]), pa.chunked_array([[b"a"], [None]], pa.large_binary())):
        files = list(lance_nb.BlobColumn(column))
        assert [file and file.read() for file in files] == [b"a", None]
    for wrong in (pa.array(["a"]), [b"a"]):
        with pytest.raises(InvalidInputError):
            lance_nb.BlobColumn(wrong)
