"""bfloat16 numbers, arrays, casts, and their pandas column."""

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
from lance_nb.errors import ArgumentError, InvalidInputError, NotSupportedError
from lance_nb.format import bfloat16

NAN = float("nan")


@pytest.mark.parametrize(
    ("bits", "expected"),
    [
        (0x7F800001, 0x7FC0),  # a signalling NaN becomes quiet
        (0xFF800001, 0xFFC0),
        (0x7FFFFFFF, 0x7FFF),
        (0x7F800000, 0x7F80),
        (0x3F808000, 0x3F80),  # ties go to even
        (0x3F818000, 0x3F82),
        (0x3F808001, 0x3F81),
    ],
)
def test_bits_are_rounded_to_nearest_even_and_nan_stays_nan(bits: int, expected: int) -> None:
    values = np.array([bits], np.uint32).view(np.float32)
    assert bfloat16._rounded(values).tolist() == [expected]


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


def test_numpy_arrays_are_those_of_ml_dtypes() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = lance_nb.bfloat16_array([1.5, -0.0, float("inf"), 3.14159])
    found = array.to_numpy()
    assert found.dtype == ml_dtypes.bfloat16
    assert np.asarray(found, np.float32).tolist() == [1.5, -0.0, float("inf"), 3.140625]
    assert array[1:3].to_numpy().tobytes() == found[1:3].tobytes()
    assert lance_nb.BFloat16Array.from_numpy(found).equals(array)
    every_second = np.array([1, 2, 3], ml_dtypes.bfloat16)[::2]
    assert lance_nb.BFloat16Array.from_numpy(every_second).equals(lance_nb.bfloat16_array([1, 3]))
    assert lance_nb.bfloat16_array([]).to_numpy().shape == (0,)
    with pytest.raises(InvalidInputError, match="expected one dimension, not 2"):
        lance_nb.BFloat16Array.from_numpy(np.zeros((2, 2), ml_dtypes.bfloat16))


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


def test_a_number_is_shown_and_compared_by_its_value() -> None:
    assert [repr(lance_nb.BFloat16(one)) for one in (float("inf"), -float("inf"), 0.5, -0.0)] == [
        "inf", "-inf", "0.5", "-0",
    ]  # fmt: skip
    assert float(lance_nb.BFloat16(2)) == 2.0
    one, same, other = lance_nb.BFloat16(1), lance_nb.BFloat16(1), lance_nb.BFloat16(2)
    assert (one < same, one <= same, one > same, one >= same) == (False, True, False, True)
    assert (other < one, other <= one, other > one, other >= one) == (False, False, True, True)
    assert lance_nb.BFloat16(np.float64(1.5)) == lance_nb.BFloat16(1.5)
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


def test_scalars_equal_what_they_hold() -> None:
    array = lance_nb.bfloat16_array([1.5, None, 2])
    assert array[0] == lance_nb.BFloat16(1.5) == array[0].as_py()
    assert array[0] == lance_nb.bfloat16_array([1.5])[0]
    assert array[0] != array[2]
    assert array[0] != 1.5
    assert array[1].as_py() is None
    assert array[1] != lance_nb.BFloat16(0)


class NumpyLike(np.float16):
    """Stands for a value of ``ml_dtypes.bfloat16``: a NumPy scalar of two bytes and that name."""


NumpyLike.__name__ = "bfloat16"
NUMPY_ONE_AND_A_HALF = NumpyLike(np.array([0x3FC0], np.uint16).view(np.float16)[0])


def test_a_scalar_equals_a_number_of_ml_dtypes() -> None:
    assert lance_nb.bfloat16_array([1.5])[0] == NUMPY_ONE_AND_A_HALF
    assert lance_nb.bfloat16_array([2])[0] != NUMPY_ONE_AND_A_HALF


class Bits(np.ndarray):
    """Stands for an array of ``ml_dtypes.bfloat16``: its dtype has that name."""

    class _Dtype:
        name = "bfloat16"

    @property
    def dtype(self) -> Any:  # type: ignore[override]
        return self._Dtype()


def test_numpy_arrays_of_one_dimension_are_taken() -> None:
    bits = np.array([0x3FC0, 0x4000, 0x4040, 0], "<u2")
    made = lance_nb.BFloat16Array.from_numpy(bits.view(Bits))
    assert made.to_pylist() == [lance_nb.BFloat16(one) for one in (1.5, 2, 3, 0)]
    with pytest.raises(InvalidInputError, match="one dimension, not 2"):
        lance_nb.BFloat16Array.from_numpy(bits.reshape(2, 2).view(Bits))
    pandas = lance_nb.PandasBFloat16Array.from_numpy(bits.view(Bits))
    assert pandas.data.to_pylist() == made.to_pylist()


def test_values_out_of_a_floats_range_are_infinite_and_nan_stays() -> None:
    values = [1e39, -1e39, 3.4e38, 1e-45, NAN]
    made = lance_nb.cast(lance_nb.bfloat16_array(values), pa.float64()).to_pylist()
    assert made[:2] == [float("inf"), -float("inf")]
    assert made[2] == float("inf")  # the nearest of 8 bits
    assert made[3] == 0.0
    assert np.isnan(made[4])


@pytest.mark.parametrize("count", [20, 21, 22])
def test_long_arrays_are_shown_by_their_ends(count: int) -> None:
    lines = str(lance_nb.bfloat16_array(range(count))).splitlines()
    if count <= 21:
        assert [one.strip(" ,") for one in lines[1:-1]] == [str(n) for n in range(count)]
    else:
        assert lines[1].strip(" ,") == "0"
        assert lines[10:13] == ["  9,", "...,", f"  {count - 10},"]
        assert lines[-2].strip() == str(count - 1)
    assert repr(lance_nb.bfloat16_array([1])).startswith("<lance_nb.BFloat16Array object at 0x")


def test_empty_arrays_have_a_numpy_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bfloat16, "_numpy_dtype", lambda: np.dtype("<u2"))
    assert lance_nb.bfloat16_array([]).to_numpy().tolist() == []
    assert lance_nb.bfloat16_array([1])[1:].to_numpy().tolist() == []


def test_chosen_rows_and_equality_of_a_pandas_column(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    kind = lance_nb.PandasBFloat16Array
    array = kind._from_sequence([1, 2, None, 4])
    assert array.dtype.kind == "f"
    assert array.dtype.type is lance_nb.BFloat16
    assert array.dtype.construct_array_type() is kind
    assert array.nbytes == array.data.nbytes
    assert array[np.int64(1)] == lance_nb.BFloat16(2)
    assert [array[-1], array[2]] == [lance_nb.BFloat16(4), None]
    assert array[1:3].data.to_pylist() == [lance_nb.BFloat16(2), None]
    assert array[::-2].data.to_pylist() == [lance_nb.BFloat16(4), lance_nb.BFloat16(2)]
    assert array[[-1, 0]].data.to_pylist() == [lance_nb.BFloat16(4), lance_nb.BFloat16(1)]
    assert array.take([-1, 1]).data.to_pylist() == [lance_nb.BFloat16(4), lance_nb.BFloat16(2)]
    assert kind._from_sequence([]).take([]).data.to_pylist() == []
    assert (array == array.copy()).tolist() == [True] * 4
    assert (array == [lance_nb.BFloat16(1), 2, None, 5]).tolist() == [True, False, True, False]
    with pytest.raises(TypeError, match="is not the dtype"):
        type(array.dtype).construct_from_string("float32")
    monkeypatch.setattr(bfloat16, "_numpy_dtype", lambda: np.dtype("<u2"))
    whole = array[:2]
    assert whole.to_numpy().tolist() == [0x3F80, 0x4000]
    assert whole.to_numpy(np.int64).dtype == np.int64
    assert kind(pa.chunked_array([array.data, array.data])).data.null_count == 2


def test_a_module_has_no_other_names() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        _ = bfloat16.nope
    assert bfloat16.PandasBFloat16Array is lance_nb.PandasBFloat16Array
    assert pa.binary(2) == lance_nb.BFloat16Type().storage_type
    assert lance_nb.BFloat16Type().to_pandas_dtype().name == "lance.bfloat16"
