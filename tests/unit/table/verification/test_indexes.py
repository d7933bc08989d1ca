"""Checks of indices: files, rows, zones and keys, and the values that they are about."""

from __future__ import annotations

import struct
import sys
from collections import Counter
from collections.abc import Callable
from itertools import count
from types import FrameType
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.format.index_metadata import IndexFile, IndexMetadata
from lance_nb.table.verification import indexes
from lance_nb.table.verification.findings import Verification
from lance_nb.table.verification.indexes import Keys, PartEntries, U64s, Zones
from lance_nb.transactions.operations.create_index import CreateIndex
from tests.support.damages import row_set, write_index_file

_NUMBERS = count()
NAMES = {
    "ZoneMap": "zonemap.lance", "BloomFilter": "bloomfilter.lance", "BTree": "page_data.lance",
    "Bitmap": "bitmap_page_lookup.lance", "Vector": "auxiliary.idx",
}  # fmt: skip


@pytest.fixture
def dataset() -> LanceDataset:
    """Ten rows in two fragments, of which row 3 of the first is deleted; g is the fragment."""
    made = lance_nb.write_dataset(
        pa.table({"n": range(10), "g": [n // 5 for n in range(10)]}), f"memory://index-checks/{next(_NUMBERS)}.lance",
        max_rows_per_file=5,
    )  # fmt: skip
    made.delete("n = 3")
    return lance_nb.dataset(made.uri)


def told(
    made: LanceDataset, kind: str, rows: pa.Table, *, field: int = 0, **more: object
) -> list[str]:
    """Add an index with such a file, and return what a verification says of it."""
    identity = str(uuid4())
    size = write_index_file(made.uri, identity, NAMES[kind], rows)
    index = IndexMetadata(
        identity, "i", (field,), made.version, BitMap([0, 1]).serialize(),
        f"/lance.table.{kind}IndexDetails", files=(IndexFile(NAMES[kind], size),), **more,
    )  # fmt: skip
    made._change(CreateIndex((index,)))
    findings = lance_nb.verify(made.uri).findings
    prefix = "index 'i': "
    return [f"{one.code}: {one.message.removeprefix(prefix)}" for one in findings]


def zone_table(*zones: tuple[int, int, int]) -> pa.Table:
    names = ("fragment_id", "zone_start", "zone_length")
    columns = zip(*zones, strict=True)
    return pa.table(
        {name: pa.array(one, pa.uint64()) for name, one in zip(names, columns, strict=True)}
    )


@pytest.mark.parametrize("kind", ["ZoneMap", "BloomFilter"])
@pytest.mark.parametrize(
    ("held", "said"),
    [
        (zone_table((0, 0, 5), (1, 0, 3), (1, 3, 2)), None),
        (zone_table((0, 0, 5), (1, 3, 3)), "a zone ends at row 6 of fragment 1 of 5 rows"),
        (zone_table((0, 0, 5), (2, 0, 3)), "a zone is of fragment 2, which never was"),
    ],
    ids=["whole", "beyond the end", "no fragment"],
)
def test_zones_lie_in_fragments(
    dataset: LanceDataset, kind: str, held: pa.Table, said: str | None
) -> None:
    found = told(dataset, kind, held)
    assert found == ([] if said is None else [f"index-rows-unknown: {said}"])


WHOLE_ZONES = zone_table((0, 0, 5), (1, 0, 5)).add_column(3, "min", pa.array([0, 5]))
WHOLE_ZONES = WHOLE_ZONES.add_column(4, "max", pa.array([4, 9]))


def replaced(rows: pa.Table, name: str, values: list[object], type_: pa.DataType) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index(name), name, pa.array(values, type_))


@pytest.mark.parametrize("name", ["fragment_id", "zone_start", "zone_length"])
@pytest.mark.parametrize(
    ("values", "type_", "problem"),
    [
        ([None, 0], pa.uint64(), "expected numbers without nulls, found null in 1 of 2 values"),
        (["a", "b"], pa.string(), "expected whole numbers, found string"),
    ],
    ids=["null", "text"],
)
def test_places_of_zones_are_numbers(
    dataset: LanceDataset, name: str, values: list[object], type_: pa.DataType, problem: str
) -> None:
    (finding,) = told(dataset, "ZoneMap", replaced(WHOLE_ZONES, name, values, type_))
    assert finding.startswith("index-damaged")
    assert problem in finding


@pytest.mark.parametrize("name", ["min", "max"])
@pytest.mark.parametrize("is_there", [True, False], ids=["of another type", "missing"])
def test_zones_without_both_bounds_are_not_compared(
    dataset: LanceDataset, name: str, is_there: bool
) -> None:
    texts = replaced(WHOLE_ZONES, name, ["a", "b"], pa.string())
    assert told(dataset, "ZoneMap", texts if is_there else texts.drop_columns([name])) == []


def test_rows_of_a_btree_are_numbers(dataset: LanceDataset) -> None:
    rows = pa.table({"values": ["0"], "ids": ["a"]})
    (finding,) = told(dataset, "BTree", rows)
    assert "expected whole numbers, found string" in finding


def test_keys_are_not_nested(dataset: LanceDataset) -> None:
    rows = pa.table({"keys": [{"a": 1}], "bitmaps": [row_set([0, 1])]})
    (finding,) = told(dataset, "Bitmap", rows)
    assert "expected keys of a type that is not nested" in finding


LIVE = [0, 1, 2, 4, *(1 << 32 | n for n in range(5))]


@pytest.mark.parametrize("rows_at_once", [1, 4, 9, 4_000_000])
@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (LIVE, []),
        (LIVE[1:], ["index-rows-missing: row 0 of fragment 0 is not in it"]),
        (LIVE[:-3], ["index-rows-missing: row 2 of fragment 1 is not in it (3 rows are missing)"]),
        ([*LIVE, 2 << 32], ["index-rows-unknown: row 0 of fragment 2 never was"]),
        ([*LIVE, 1, 1], ["index-rows-repeated: row 1 of fragment 0 is in it several times"]),
    ],
    ids=["whole", "first missing", "three missing", "no fragment", "repeated"],
)
def test_each_live_row_is_in_a_btree_once(
    dataset: LanceDataset, monkeypatch: pytest.MonkeyPatch, rows: list[int], said: list[str],
    rows_at_once: int,
) -> None:  # fmt: skip
    monkeypatch.setattr(indexes, "ROWS_AT_ONCE", rows_at_once)
    assert told(dataset, "BTree", btree_table(rows), index_version=1) == said


def btree_table(rows: list[int], **changed: object) -> pa.Table:
    """Return a page of a B-tree on column n; ``changed`` are other values, by place."""
    values: list[object] = [(row >> 32) * 5 + (row & 0xFFFFFFFF) for row in rows]
    for place, value in changed.items():
        values[int(place.removeprefix("at"))] = value
    return pa.table({"values": pa.array(values, pa.int64()), "ids": pa.array(rows, pa.uint64())})


@pytest.mark.parametrize("value", [7, None])
def test_a_row_with_another_value_in_a_btree_is_named(dataset: LanceDataset, value: object) -> None:
    assert told(dataset, "BTree", btree_table(LIVE, at5=value), index_version=1) == [
        "index-values-wrong: row 1 of fragment 1 has another value in it"
    ]


@pytest.mark.parametrize(
    ("values", "others", "place"),
    [
        ([1.0, float("nan"), None], [1.0, float("nan"), None], None),
        ([0.0, -0.0], [-0.0, 0.0], None),
        ([1.0, 2.0], [1.0, float("nan")], 1),
        ([None, 2.0], [1.0, 2.0], 0),
        ([], [], None),
    ],
)
@pytest.mark.parametrize("type_", [pa.float16(), pa.float32(), pa.float64()], ids=str)
def test_null_equals_null_and_nan_equals_nan(
    values: list[float | None], others: list[float | None], place: int | None, type_: pa.DataType
) -> None:
    both = (pa.array(one, pa.float32()).cast(type_) for one in (values, others))

    assert indexes._first_difference(*both) == place


def test_keys_of_another_type_are_not_compared() -> None:
    assert indexes._first_difference(pa.array(["1"]), pa.array([2])) is None
    assert indexes._first_difference(pa.array(["a", "b"]).dictionary_encode(), pa.array(["a", "c"]))


def _bitmaps(*sets: bytes) -> pa.Table:
    return pa.table({"keys": range(len(sets)), "bitmaps": pa.array(sets, pa.binary())})


WHOLE = struct.pack("<III", 1, 1, 0)  # all rows of fragment 1


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        ([row_set(LIVE[:4]), WHOLE], []),
        ([row_set(LIVE[:4])],
         ["index-rows-missing: row 0 of fragment 1 is not in it (5 rows are missing)"]),
        ([b"\1"], ["index-damaged: a set of rows, found 1 bytes"]),
        ([struct.pack("<I", 2) + WHOLE[4:]],
         ["index-damaged: 2 entries in a set of rows, found 1"]),
        ([struct.pack("<III", 1, 1, 9) + b"123"],
         ["index-damaged: a bitmap of 9 bytes, found 3 bytes"]),
    ],
    ids=["whole", "missing", "cut", "fewer", "short"],
)  # fmt: skip
def test_sets_of_rows_are_read_to_their_end(
    dataset: LanceDataset, sets: list[bytes], said: list[str]
) -> None:
    found = told(dataset, "Bitmap", _bitmaps(*sets), field=1)
    assert [one.partition(":")[0] for one in found] == [one.partition(":")[0] for one in said]
    for one, wanted in zip(found, said, strict=True):
        assert wanted.partition(": ")[2] in one.replace("expected ", "")


def test_rows_of_vectors_exist(dataset: LanceDataset) -> None:
    rows = pa.array([*LIVE, None, 7 << 32 | 1], pa.uint64())
    assert told(dataset, "Vector", pa.table({"_rowid": rows})) == [
        "index-rows-unknown: row 1 of fragment 7 never was"
    ]


def test_what_this_release_does_not_know_is_not_judged(dataset: LanceDataset) -> None:
    rows = pa.table({"ids": pa.array([99], pa.uint64())})
    assert told(dataset, "BTree", rows, index_version=2) == []


def test_row_ids_that_were_never_given_out_are_unknown() -> None:
    made = lance_nb.write_dataset(
        pa.table({"n": range(10)}), f"memory://index-checks/{next(_NUMBERS)}.lance",
        max_rows_per_file=5, enable_stable_row_ids=True,
    )  # fmt: skip
    rows = pa.table({"values": range(11), "ids": pa.array([*range(10), 10], pa.uint64())})
    assert told(made, "BTree", rows, index_version=0) == [
        "index-rows-unknown: the row with id 10 never was"
    ]
    (index,) = lance_nb.dataset(made.uri).list_indices()
    assert index["name"] == "i"


SECOND = 1 << 32


def u64(*rows: int) -> U64s:
    return np.array(rows, np.uint64)


@pytest.fixture
def zones() -> Zones:
    """Return rows 5 to 9 of fragment 0 and rows 0 to 3 of fragment 1, in the other order."""
    return Zones.of(
        {
            "fragment_id": pa.array([1, 0], pa.uint64()),
            "zone_start": pa.array([0, 5], pa.uint64()),
            "zone_length": pa.array([4, 5], pa.uint64()),
            "min": pa.array([None, 10]),
            "max": pa.array([None, 20]),
        }
    )


def test_a_row_is_in_the_zone_that_it_lies_in(zones: Zones) -> None:
    rows = u64(4, 5, 9, 10, SECOND, SECOND | 3, SECOND | 4)

    assert zones.positions_of(rows).tolist() == [-1, 0, 0, -1, 1, 1, -1]


@pytest.mark.parametrize(
    ("value", "row", "found"),
    [(10, 5, None), (20, 9, None), (9, 5, 5), (21, 9, 9), (None, 6, None), (99, SECOND, None),
     (99, 4, None)],
)  # fmt: skip
def test_a_value_outside_of_its_zone_is_found(
    zones: Zones, value: int | None, row: int, found: int | None
) -> None:
    assert zones.row_outside(pa.array([15, value], pa.int64()), u64(5, row)) == found


def test_only_numbers_and_times_of_the_same_type_are_compared(zones: Zones) -> None:
    assert zones.compares(pa.int64())
    assert not any(map(zones.compares, (pa.int32(), pa.string(), pa.bool_(), pa.float64())))
    assert not Zones(u64(), u64()).compares(pa.int64())


def entries(keys: pa.Array, rows: U64s, *sets: U64s, of_lists: bool = False) -> PartEntries:
    """Return what an index has of some live rows, with a set of rows for each key."""
    held = PartEntries(rows, Keys.of(keys, "x", of_lists=of_lists))
    for number, members in enumerate(sets):
        held.add(np.full(members.size, number), members)
    return held


@pytest.mark.parametrize(
    ("values", "lost", "surplus"),
    [
        (pa.array(["a", "b", "a"]), None, None),
        (pa.array(["a", "b", "a"]).dictionary_encode(), None, None),
        (pa.array(["a", "a", "a"]), 8, 8),
        (pa.array(["a", None, "a"]), None, 8),
        (pa.array(["a", "b", "new"]), 9, 9),
        (pa.array([["a"], ["b", "b"], ["a"]]), None, None),
        (pa.array([["a"], [], ["a", "b"]]), 9, 8),
        (pa.array([["a"], None, [None]]), None, 8),
        (
            pa.ListArray.from_arrays(
                pa.array([0, 1, 2, 3], pa.int32()),
                pa.array(["a", "new", "a"]),
                mask=pa.array([False, True, False]),
            ),
            None,
            8,
        ),
        (pa.array([1, 2, 1]), None, None),
    ],
)
@pytest.mark.parametrize("has_null_key", [False, True])
def test_sets_are_compared_with_values(
    values: pa.Array, lost: int | None, surplus: int | None, has_null_key: bool
) -> None:
    keys = [None, "a", "b", "gone"] if has_null_key else ["a", "b", "gone"]
    sets = [u64(7, 9), u64(8), u64(1)]
    if has_null_key:
        sets.insert(0, u64())
    is_list = pa.types.is_list(values.type)
    held = entries(pa.array(keys), u64(7, 8, 9), *sets, of_lists=is_list)
    if has_null_key and not is_list and values.null_count:
        lost = 8  # a null that is not in the set of null

    assert held.row_under_other_key(values, u64(7, 8, 9)) == lost
    assert held.surplus_row() == surplus


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()], ids=str)
def test_nan_is_left_alone_and_zeros_are_equal(kind: pa.DataType) -> None:
    keys = pa.array([np.nan, -0.0, 1.0], pa.float32()).cast(kind)
    values = pa.array([np.nan, 1.0, 0.0], pa.float32()).cast(kind)
    held = entries(keys, u64(3, 4, 5), u64(5), u64(5), u64(4))

    assert held.row_under_other_key(values, u64(3, 4, 5)) is None
    assert held.surplus_row() is None
    assert entries(keys, u64(3, 4, 5), u64(), u64(5), u64(3)).row_under_other_key(
        values, u64(3, 4, 5)
    ) == 4  # fmt: skip


def test_rows_whose_values_could_not_be_read_are_not_surplus() -> None:
    held = entries(pa.array(["a"]), u64(7, 8), u64(7, 8))

    assert held.row_under_other_key(pa.array(["a"]), u64(7)) is None
    assert held.surplus_row() is None
    assert held.row_under_other_key(pa.array(["b"]), u64(8)) == 8
    assert held.surplus_row() == 8


@pytest.mark.parametrize(("limit", "has_pairs"), [(2, True), (1, False)])
def test_pairs_are_held_up_to_a_limit(
    monkeypatch: pytest.MonkeyPatch, limit: int, has_pairs: bool
) -> None:
    monkeypatch.setattr(indexes, "PAIRS_AT_ONCE", limit)
    assert entries(pa.array(["a", "b"]), u64(7, 8), u64(7), u64(8)).has_pairs == has_pairs


def test_rows_are_counted_up_to_two() -> None:
    held = PartEntries(u64(3, 4, 5, 9), None)
    for rows in (u64(9, 4, 4, 7), u64(1, 9, 3), *[u64(3)] * 300):
        held.add(np.zeros(rows.size, np.int64), rows)
    assert held.times.tolist() == [2, 2, 0, 2]


@pytest.mark.parametrize("kind", ["BITMAP", "LABEL_LIST"])
def test_the_work_does_not_grow_with_the_keys(kind: str) -> None:
    """Count calls and reads: a loop over keys makes more of both, on any machine."""
    costs = {}
    for num_keys in (200, 4000):
        words = pa.array([f"word{number % num_keys}" for number in range(8000)])
        column = words
        if kind == "LABEL_LIST":
            column = pa.ListArray.from_arrays(pa.array(range(0, 8001, 2), pa.int32()), words)
        uri = f"memory://index-checks/{next(_NUMBERS)}.lance"
        made = lance_nb.write_dataset(pa.table({"w": column}), uri, max_rows_per_file=1000)
        made.create_scalar_index("w", kind)
        costs[num_keys] = calls_and_reads(lambda uri=uri: lance_nb.dataset(uri).verify())
    for few, more in zip(*costs.values(), strict=True):
        assert more < 1.5 * few, costs


def calls_and_reads(verify: Callable[[], Verification]) -> tuple[int, int]:
    """Return how many Python functions are called, and how often a file is read."""
    calls: Counter[str] = Counter()

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            calls[frame.f_code.co_name] += 1

    sys.setprofile(profile)
    try:
        report = verify()
    finally:
        sys.setprofile(None)
    assert report.ok, report
    return calls.total(), calls["read_range"] + calls["read_ranges"] + calls["read"]


@pytest.mark.parametrize("kind", ["ZoneMap", "BloomFilter"])
def test_a_live_row_in_no_zone_is_named(dataset: LanceDataset, kind: str) -> None:
    assert told(dataset, kind, zone_table((0, 0, 5), (1, 0, 3))) == [
        "index-rows-missing: row 3 of fragment 1 is in no zone"
    ]
