"""Every type of pyarrow, alone and inside every kind of nesting: what pylance accepts, we read.

What pylance refuses to write is listed too, so that a release that accepts more is noticed.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from tests.support.reading import decoded, same
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

TYPES = [
    pa.null(), pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(),
    pa.uint32(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.date32(), pa.date64(),
    pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"), pa.timestamp("s"),
    pa.timestamp("us"), pa.timestamp("ns", "UTC"), pa.timestamp("ms", "Europe/Zurich"),
    pa.duration("ms"), pa.month_day_nano_interval(), pa.binary(), pa.binary(4), pa.large_binary(),
    pa.binary_view(), pa.string(), pa.large_string(), pa.string_view(), pa.decimal32(5, 2),
    pa.decimal64(10, 2), pa.decimal128(20, 3), pa.decimal256(50, 1),
    pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.int64()),
    pa.dictionary(pa.uint16(), pa.large_string()), pa.list_view(pa.int32()),
    pa.large_list_view(pa.int32()), pa.run_end_encoded(pa.int32(), pa.int64()), pa.struct([]),
    pa.struct([("x", pa.int32()), ("y", pa.string())]), pa.list_(pa.int32()),
    pa.large_list(pa.string()), pa.list_(pa.float32(), 2), pa.map_(pa.string(), pa.int32()),
    pa.json_(), pa.uuid(), pa.bool8(), pa.fixed_shape_tensor(pa.float32(), [2, 2]),
    pa.opaque(pa.int32(), "a", "b"), pa.list_(pa.struct([("x", pa.int32())]), 2),
    pa.list_(pa.list_(pa.int32()), 2), pa.list_(pa.list_(pa.float32(), 2), 2),
]  # fmt: skip
PLACES: dict[str, Callable[[pa.DataType], pa.DataType]] = {
    "alone": lambda kind: kind,
    "in a list": pa.list_,
    "in a struct": lambda kind: pa.struct([("f", kind)]),
    "in a map": lambda kind: pa.map_(pa.string(), kind),
    "in a fixed-size list": lambda kind: pa.list_(kind, 2),
}
# Never written, wherever they stand; an interval among them.
NEVER = {
    "month_day_nano_interval", "decimal32(5, 2)", "decimal64(10, 2)", "list_view<item: int32>",
    "large_list_view<item: int32>", "run_end_encoded<run_ends: int32, values: int64>",
    "fixed_size_list<item: list<item: int32>>[2]",
}  # fmt: skip


def value(kind: pa.DataType) -> Any:
    """Build a value of a type, in the form that ``pa.array`` takes."""
    if isinstance(kind, pa.BaseExtensionType):
        return "{}" if kind == pa.json_() else value(kind.storage_type)
    is_ = pa.types
    if is_.is_struct(kind):
        return {field.name: value(field.type) for field in kind}
    if is_.is_map(kind):
        return [("k", value(kind.item_type))]
    if is_.is_dictionary(kind) or is_.is_run_end_encoded(kind):
        return value(kind.value_type)
    if is_.is_nested(kind):
        return [value(kind.value_type)] * 2
    if is_.is_fixed_size_binary(kind):
        return b"x" * kind.byte_width
    found: dict[str, Any] = {
        "null": None, "bool": True, "string": "ab", "large_string": "ab", "string_view": "ab",
        "binary": b"ab", "large_binary": b"ab", "binary_view": b"ab",
        "month_day_nano_interval": pa.MonthDayNano([1, 2, 3]),
    }  # fmt: skip
    if str(kind) in found:
        return found[str(kind)]
    for test, one in (
        (is_.is_decimal, Decimal(1)),
        (is_.is_date, dt.date(2020, 1, 1)),
        (is_.is_time, dt.time(1)),
        (is_.is_timestamp, 1),
        (is_.is_duration, dt.timedelta(1)),
    ):
        if test(kind):
            return one
    return 1


def column(kind: pa.DataType, *, nulls: bool) -> pa.Array | None:
    """Build three values, the middle one null if ``nulls``, or None where pyarrow itself cannot."""
    values = [value(kind), None if nulls else value(kind), value(kind)]
    try:
        if isinstance(kind, pa.BaseExtensionType):
            storage = pa.array(values, kind.storage_type)
            return pa.ExtensionArray.from_storage(kind, storage)
        return pa.array(values, kind)
    except (pa.ArrowException, TypeError):
        return None


@pytest.mark.parametrize("version", ["0.1", "2.0", "2.1", "2.2"])
@pytest.mark.parametrize("place", PLACES)
def test_what_pylance_accepts_reads_equal(version: str, place: str, tmp_path: Path) -> None:
    lance = require_pylance()
    from lance.arrow import BFloat16Type

    wrong, accepted = [], 0
    for number, kind in enumerate([*TYPES, BFloat16Type()]):
        path = tmp_path / str(number)
        for nulls in (True, False):  # 2.0 has no null structs
            array = column(PLACES[place](kind), nulls=nulls)
            if array is None:
                break
            if _works(lambda array=array, path=path: lance.write_dataset(
                    pa.table({"c": array}), path, data_storage_version=version)):  # fmt: skip
                break
        else:
            continue
        if array is None:
            continue
        if str(kind) in NEVER:
            wrong.append(f"{kind} is accepted")
        read: list[pa.Table] = []
        if not _works(lambda path=path, read=read: read.append(lance.dataset(path).to_table())):
            continue  # written, but pylance cannot read it back
        accepted += 1
        ours = lance_nb.dataset(path).to_table()
        if not ours.schema.equals(read[0].schema, check_metadata=True):
            wrong.append(f"{kind}: {ours.schema} instead of {read[0].schema}")
        elif not same(decoded(ours["c"]), decoded(read[0]["c"])):
            wrong.append(f"{kind}: {ours['c']} instead of {read[0]['c']}")
    assert wrong == []
    assert accepted >= (0 if version < "2.2" and place == "in a map" else 20)


def _works(action: Callable[[], object]) -> bool:
    try:
        action()
    except (OSError, ValueError, NotImplementedError, pa.ArrowException):
        return False
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        return False
    return True


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_fixed_size_lists_of_structs_inside_lists_are_not_read_by_pylance_either(
    version: str, tmp_path: Path
) -> None:
    lance = require_pylance()
    kind = pa.list_(pa.list_(pa.struct([("x", pa.int32())]), 2))
    table = pa.table({"c": pa.array([[[{"x": 1}, {"x": 2}]]], kind), "id": pa.array([7])})
    if _works(lambda: lance.write_dataset(table, tmp_path / "d", data_storage_version=version)):
        assert not _works(lambda: lance.dataset(tmp_path / "d").to_table())
        with pytest.raises(NotImplementedError, match="fixed-size lists of structs inside lists"):
            lance_nb.dataset(tmp_path / "d").to_table()
        assert lance_nb.dataset(tmp_path / "d").to_table(["id"])["id"].to_pylist() == [7]
