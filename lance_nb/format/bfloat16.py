"""bfloat16 values: the Arrow extension type ``lance.bfloat16``, its arrays, and casts.

Layout: two bytes, the upper half of a float32, little endian; storage ``fixed_size_binary(2)``.
Floats are rounded to the nearest value, ties to the even one, as in pylance.

Limits: NumPy has no bfloat16 of its own: ``to_numpy`` and ``from_numpy`` need ``ml_dtypes``.
Everything else, casts included, works without it. pandas is imported only where it is needed.
The type is registered with Arrow when this module is loaded; if pylance has registered its own
already, its classes stay registered and columns are read as them.
Source: ``lance.arrow`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.arrow_casts import with_items
from lance_nb.errors import ArgumentError, InvalidInputError, MissingPackageError
from lance_nb.format.arrow_schema import register_extension_type
from lance_nb.format.logical_types import BFLOAT16 as _NAME

if TYPE_CHECKING:
    PandasBFloat16Array: Any

_WIDTH = 2
_SHOWN = 10
_NAMES = ("bfloat16", "bf16")
T = TypeVar("T")


class BFloat16:
    """One bfloat16 number.

    Examples:
        >>> from lance_nb import BFloat16
        >>> BFloat16(1.1), BFloat16(1.1).as_float()
        (1.1015625, 1.1015625)
        >>> BFloat16(1.1) < BFloat16(2), float(BFloat16(2))
        (True, 2.0)
        >>> BFloat16.from_bytes(bytes(BFloat16(2)))
        2
    """

    __slots__ = ("_bits",)

    def __init__(self, value: float) -> None:
        """Round a number. Raises ArgumentError for other values."""
        if not isinstance(value, int | float | np.number):
            raise ArgumentError(f"BFloat16 takes a number, not {type(value).__name__}")
        with np.errstate(over="ignore"):
            self._bits = int(_rounded(np.array([value], np.float32))[0])

    @classmethod
    def from_bytes(cls, bytes: bytes) -> BFloat16:
        """Read two bytes, the low one first.

        Args:
            bytes: as a file holds them.

        Raises InvalidInputError for another length.
        """
        if len(bytes) != _WIDTH:
            raise InvalidInputError(f"a bfloat16 has 2 bytes, not {len(bytes)}")
        number = cls.__new__(cls)
        number._bits = int.from_bytes(bytes, "little")  # noqa: SLF001
        return number

    def as_float(self) -> float:
        """Return the number as a float, which holds it exactly."""
        return float(np.array([self._bits << 16], np.uint32).view(np.float32)[0])

    def __float__(self) -> float:
        return self.as_float()

    def __bytes__(self) -> bytes:
        return self._bits.to_bytes(_WIDTH, "little")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BFloat16):
            return NotImplemented
        return self.as_float() == other.as_float()

    def __lt__(self, other: BFloat16) -> bool:
        return self.as_float() < _other(other)

    def __le__(self, other: BFloat16) -> bool:
        return self.as_float() <= _other(other)

    def __gt__(self, other: BFloat16) -> bool:
        return self.as_float() > _other(other)

    def __ge__(self, other: BFloat16) -> bool:
        return self.as_float() >= _other(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        value = np.float32(self.as_float())
        if np.isnan(value):
            return "NaN"
        return np.format_float_positional(value, trim="-") if np.isfinite(value) else str(value)

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        return BFloat16.from_bytes, (bytes(self),)


def _other(value: object) -> float:
    if not isinstance(value, BFloat16):
        raise ArgumentError(f"BFloat16 is compared with BFloat16, not {type(value).__name__}")
    return value.as_float()


# --- Arrow ----------------------------------------------------------------------------------------


class BFloat16Array(pa.ExtensionArray):  # type: ignore[misc]
    """An Arrow array of bfloat16 numbers; ``bfloat16_array`` makes one of Python numbers.

    Examples:
        >>> lance_nb.bfloat16_array([1.5, None]).to_pylist()
        [1.5, None]
    """

    @classmethod
    def from_numpy(cls, array: np.ndarray) -> BFloat16Array:
        """Return a NumPy array of ``ml_dtypes.bfloat16`` as an Arrow array.

        Args:
            array: one dimension.

        Raises InvalidInputError for another dtype or more than one dimension.
        """
        if array.dtype.name != "bfloat16":
            raise InvalidInputError(f"expected an array of dtype bfloat16, not {array.dtype}")
        if array.ndim != 1:
            raise InvalidInputError(f"expected one dimension, not {array.ndim}")
        return _array(np.ascontiguousarray(array).view(np.uint16))

    def to_numpy(self, zero_copy_only: bool = False) -> np.ndarray:
        """Return a NumPy array of ``ml_dtypes.bfloat16``, a view of the values.

        Args:
            zero_copy_only: no effect: nothing is ever copied.

        Raises InvalidInputError if a value is null, MissingPackageError without ``ml_dtypes``.
        """
        if self.null_count:
            raise InvalidInputError("an array with nulls has no NumPy form; drop or fill them")
        return _bits(self.storage).view(_numpy_dtype())

    def __repr__(self) -> str:
        return f"<lance_nb.BFloat16Array object at 0x{id(self):016x}>\n{self}"

    def __str__(self) -> str:
        if len(self) <= 2 * _SHOWN + 1:
            lines = [f"  {number}" for number in self.to_pylist()]
            return "[\n" + ",\n".join(lines) + "\n]"
        first = [f"  {number}" for number in self[:_SHOWN].to_pylist()]
        last = [f"  {number}" for number in self[-_SHOWN:].to_pylist()]
        return "[\n" + ",\n".join([*first, "...", *last]) + "\n]"


class BFloat16Scalar(pa.ExtensionScalar):  # type: ignore[misc]
    """One value of a BFloat16Array.

    Examples:
        >>> lance_nb.bfloat16_array([1.5])[0].as_py()
        1.5
    """

    def as_py(self, *, maps_as_pydicts: str | None = None) -> BFloat16 | None:
        """Return the BFloat16, None for null.

        Args:
            maps_as_pydicts: pyarrow's argument, without effect.
        """
        return None if self.value is None else BFloat16.from_bytes(self.value.as_py())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, BFloat16Scalar):
            other = other.as_py()
        if type(other).__name__ == "bfloat16":
            other = BFloat16.from_bytes(np.asarray(other).tobytes())
        return isinstance(other, BFloat16) and self.as_py() == other

    __hash__ = pa.ExtensionScalar.__hash__


class BFloat16Type(pa.ExtensionType):  # type: ignore[misc]
    """The Arrow type of bfloat16 columns.

    Examples:
        >>> lance_nb.BFloat16Type().storage_type == pa.binary(2)
        True
        >>> lance_nb.BFloat16Type().to_pandas_dtype().name
        'lance.bfloat16'
    """

    def __init__(self) -> None:
        super().__init__(pa.binary(_WIDTH), _NAME)

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, _: bytes) -> BFloat16Type:
        if storage_type != pa.binary(_WIDTH):
            raise InvalidInputError(f"bfloat16 is stored as 2 bytes, not as {storage_type}")
        return cls()

    def __arrow_ext_class__(self) -> type[BFloat16Array]:
        return BFloat16Array

    def __arrow_ext_scalar_class__(self) -> type[BFloat16Scalar]:
        return BFloat16Scalar

    def to_pandas_dtype(self) -> Any:
        """Return the pandas dtype ``lance.bfloat16``."""
        return _pandas_classes()[0]()


register_extension_type(BFloat16Type())


def bfloat16_array(values: Sequence[float | None]) -> BFloat16Array:
    """Return numbers as an Arrow array of bfloat16; None is null.

    Raises ArgumentError for other values.

    >>> from lance_nb import bfloat16_array
    >>> bfloat16_array([1.1, None]).to_pylist()
    [1.1015625, None]
    """
    if not hasattr(values, "__len__") or isinstance(values, str | bytes):
        raise ArgumentError(f"expected a list of numbers, not {type(values).__name__}")
    try:
        floats = pa.array(values, pa.float64())
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise ArgumentError(f"expected a list of numbers: {error}") from error
    return _from_floats(floats)


def cast(
    arr: pa.Array,
    target_type: pa.DataType | str,
    safe: bool | None = None,
    options: Any = None,
    memory_pool: pa.MemoryPool | None = None,
) -> pa.Array:
    """Cast an array as ``pyarrow.compute.cast``, and between bfloat16 and other floats.

    Args:
        arr: the array; fixed-size lists of floats are cast to ones of the same size.
        target_type: an Arrow type or its name; also "bfloat16" or "bf16".
        safe, options, memory_pool: as for ``pyarrow.compute.cast``.

    Raises InvalidInputError for other casts of bfloat16.

    Examples:
        >>> lance_nb.cast(pa.array([1.1]), "bf16").to_pylist()
        [1.1015625]
    """
    if isinstance(arr, pa.ChunkedArray):
        arr = arr.combine_chunks()
    if _is_bfloat16(arr.type):
        if isinstance(target_type, str) or not pa.types.is_floating(target_type):
            raise InvalidInputError(f"bfloat16 is cast to floats only, not to {target_type}")
        return _to_floats(arr).cast(target_type)
    if (isinstance(target_type, str) and target_type in _NAMES) or _is_bfloat16(target_type):
        if not pa.types.is_floating(arr.type):
            raise InvalidInputError(f"only floats are cast to bfloat16, not {arr.type}")
        return _from_floats(arr)
    fixed = pa.types.is_fixed_size_list
    if fixed(arr.type) and not isinstance(target_type, str) and fixed(target_type):
        if arr.type.list_size != target_type.list_size:
            raise InvalidInputError(f"{arr.type} is cast to lists of its own size only")
        if _is_bfloat16(arr.type.value_type) or _is_bfloat16(target_type.value_type):
            size = arr.type.list_size
            values = arr.values.slice(arr.offset * size, len(arr) * size)
            array = cast(values, target_type.value_type)
            mask = arr.is_null() if arr.null_count else None
            return pa.FixedSizeListArray.from_arrays(array, type=target_type, mask=mask)
    if isinstance(target_type, pa.DataType):
        arr = with_items(arr, target_type)
    return arr.cast(target_type, safe, options, memory_pool)


def _is_bfloat16(arrow: object) -> bool:
    return isinstance(arrow, pa.BaseExtensionType) and arrow.extension_name == _NAME


# --- bits -----------------------------------------------------------------------------------------


def _rounded(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """Return the upper halves of float32 values, rounded to nearest even; NaN stays NaN."""
    bits = values.view(np.uint32)
    lifted = bits + (((bits >> 16) & 1) + np.uint32(0x7FFF))
    upper = (lifted >> 16).astype(np.uint16)
    quiet = ((bits >> 16) | 0x40).astype(np.uint16)
    return np.where(np.isnan(values), quiet, upper)


def _from_floats(floats: pa.Array) -> BFloat16Array:
    filled = floats.fill_null(0.0) if floats.null_count else floats
    with np.errstate(over="ignore"):
        numbers = filled.to_numpy(zero_copy_only=False).astype(np.float32)
    validity = floats.is_valid() if floats.null_count else None
    return _array(_rounded(numbers), validity)


def _array(bits: npt.NDArray[np.uint16], validity: pa.BooleanArray | None = None) -> BFloat16Array:
    mask = None if validity is None else pa.array(validity).buffers()[1]
    values = pa.py_buffer(np.ascontiguousarray(bits.astype("<u2", copy=False)))
    storage = pa.Array.from_buffers(pa.binary(_WIDTH), len(bits), [mask, values])
    return pa.ExtensionArray.from_storage(BFloat16Type(), storage)  # type: ignore[no-any-return]


def _bits(storage: pa.FixedSizeBinaryArray) -> npt.NDArray[np.uint16]:
    data = storage.buffers()[1]
    if data is None:
        return np.empty(0, np.uint16)
    return np.frombuffer(data, "<u2", len(storage), storage.offset * _WIDTH)


def _to_floats(array: pa.ExtensionArray) -> pa.Array:
    storage = array.storage
    wide = (_bits(storage).astype(np.uint32) << 16).view(np.float32)
    return pa.array(wide, mask=storage.is_null().to_numpy(zero_copy_only=False))


def _numpy_dtype() -> Any:
    try:
        from ml_dtypes import bfloat16
    except ImportError as error:
        raise MissingPackageError(
            "a NumPy array of bfloat16 (lance_nb.cast(array, pa.float32()) gives floats)",
            "ml_dtypes", "ml_dtypes",
        ) from error  # fmt: skip
    return np.dtype(bfloat16)


# --- pandas ---------------------------------------------------------------------------------------


def __getattr__(name: str) -> Any:
    if name == "PandasBFloat16Array":
        return _pandas_classes()[1]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@cache
def _pandas_classes() -> tuple[Any, Any]:
    """Return the pandas dtype and array, which cannot be declared without pandas."""
    from pandas.api import extensions

    @extensions.register_extension_dtype
    class PandasBFloat16Type(extensions.ExtensionDtype):  # type: ignore[misc]
        """The pandas dtype of bfloat16 columns."""

        kind = "f"
        na_value = None
        name = _NAME
        names = None
        _is_numeric = True

        def __from_arrow__(self, array: pa.Array | pa.ChunkedArray) -> Any:
            return PandasBFloat16Array(array)

        @classmethod
        def construct_array_type(cls) -> Any:
            """Return the array class."""
            return PandasBFloat16Array

        @property
        def type(self) -> Any:
            """The class of a value."""
            return BFloat16

        @classmethod
        def construct_from_string(cls, string: str) -> Any:
            """Return the dtype. Raises ArgumentError for another name."""
            if string != _NAME:
                raise ArgumentError(f"{string!r:.60} is not the dtype {_NAME}")
            return cls()

    class PandasBFloat16Array(extensions.ExtensionArray):  # type: ignore[misc]  # noqa: PLW1641
        """The values of a pandas column of bfloat16, kept as an Arrow array."""

        dtype = PandasBFloat16Type()

        def __init__(self, data: pa.Array | pa.ChunkedArray) -> None:
            """Wrap a BFloat16Array."""
            array = data.combine_chunks() if isinstance(data, pa.ChunkedArray) else data
            self.data = array

        @classmethod
        def _from_sequence(cls, scalars: Any, *, dtype: Any = None, copy: bool = False) -> Any:
            numbers = [None if scalar is None else float(scalar) for scalar in scalars]
            return cls(bfloat16_array(numbers))

        @classmethod
        def from_numpy(cls, array: np.ndarray) -> Any:
            """Wrap a NumPy array of ``ml_dtypes.bfloat16``. Raises InvalidInputError."""
            return cls(BFloat16Array.from_numpy(array))

        def __getitem__(self, item: Any) -> Any:
            if isinstance(item, int | np.integer):
                return self.data[int(item)].as_py()
            if isinstance(item, slice):
                rows = np.arange(len(self))[item]
            else:
                rows = np.asarray(item)
                rows = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows % len(self)
            return type(self)(self.data.take(pa.array(rows, pa.int64())))

        def __len__(self) -> int:
            return len(self.data)

        def __eq__(self, other: object) -> Any:
            return np.array([mine == theirs for mine, theirs in zip(self, other, strict=True)])  # type: ignore[call-overload]

        @property
        def nbytes(self) -> int:
            """Bytes of the values."""
            return int(self.data.nbytes)

        def isna(self) -> np.ndarray:
            """Return which values are null."""
            return self.data.is_null().to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]

        def copy(self) -> Any:
            """Return a copy; Arrow arrays do not change."""
            return type(self)(self.data)

        def take(self, indices: Any, *, allow_fill: bool = False, fill_value: Any = None) -> Any:
            """Return the values at positions; with ``allow_fill``, -1 is null."""
            rows = np.asarray(indices, np.int64)
            mask = rows < 0 if allow_fill else None
            chosen = rows if allow_fill else rows % max(len(self), 1)
            return type(self)(self.data.take(pa.array(chosen, pa.int64(), mask=mask)))

        @classmethod
        def _concat_same_type(cls, to_concat: Any) -> Any:
            return cls(pa.chunked_array([array.data for array in to_concat]).combine_chunks())

        def to_numpy(
            self, dtype: Any = None, copy: bool = False, na_value: Any = None
        ) -> np.ndarray:
            """Return a NumPy array; see ``BFloat16Array.to_numpy``."""
            return np.array(self.data.to_numpy(), dtype, copy=copy or None)

        def __arrow_array__(self, type: pa.DataType | None = None) -> pa.Array:
            return self.data

    return PandasBFloat16Type, PandasBFloat16Array
