"""Index files whose parts do not fit each other are refused: values that somebody has changed."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import CorruptFileError
from lance_nb.indices.kinds.bitmap import Bitmap
from lance_nb.indices.kinds.btree import BTree
from lance_nb.indices.kinds.label_list import LabelList
from lance_nb.indices.kinds.zonemap import ZoneMap
from lance_nb.indices.leaf import leaf_of
from lance_nb.indices.row_sets import tree_maps
from lance_nb.indices.texts.postings import decode_positions, decode_posting
from lance_nb.table.predicate import compile_filter


class StoredTable:
    """A table in the place of an index file."""

    path = "_indices/x/file"

    def __init__(self, columns: dict[str, Any], **settings: str) -> None:
        self._table = pa.table(columns)
        self._settings = settings
        self.num_rows = self._table.num_rows
        self.names = self._table.column_names
        self.reader = SimpleNamespace(size_bytes=100)

    def setting(self, name: str, default: str = "") -> str:
        return self._settings.get(name, default)

    def number(self, name: str, default: int, _most: int) -> int:
        return int(self.setting(name, str(default)))

    def buffer(self, setting: str) -> bytes | None:
        text = self.setting(setting)
        return bytes.fromhex(text) if text else None

    def check_rows(self, _most: int) -> None:
        pass

    def type_of(self, name: str) -> pa.DataType:
        return self._table.schema.field(name).type

    def read(self, names: Any, starts: Any, stops: Any) -> list[pa.Array]:
        rows = np.concatenate([np.arange(*one) for one in zip(starts, stops, strict=True)])
        return [self._table[name].take(pa.array(rows)).combine_chunks() for name in names]

    def read_all(self, *names: str) -> list[pa.Array]:
        return [self._table[name].combine_chunks() for name in names]

    def read_rows(self, names: Any, rows: Any) -> list[pa.Array]:
        return self.read(names, rows, rows + 1)


def search(reader: Any, column: pa.Field, text: str) -> list[int]:
    condition = compile_filter(text, pa.schema([column]))
    assert condition.expression is not None
    leaf = leaf_of(condition.expression)
    assert leaf is not None
    return list(reader.search(leaf, with_nulls=False).rows)


def refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(CorruptFileError, match=words):
        make()


def btree(**changes: list[Any]) -> BTree:
    lookup = {
        "min": ["a", "c", "e"], "max": ["b", "d", "e"], "null_count": [0, 0, 0],
        "page_idx": [0, 1, 2],
    }  # fmt: skip
    data = {"values": ["a", "b", "c", "d", "e"], "ids": [4, 3, 2, 1, 0]}
    files = [{key: changes.get(key, one) for key, one in parts.items()} for parts in (lookup, data)]
    stored: list[Any] = [StoredTable(files[0], batch_size="2"), StoredTable(files[1])]
    return BTree(*stored)


def test_pages_of_a_b_tree_are_what_the_lookup_says() -> None:
    column = pa.field("s", pa.string())
    assert search(btree(), column, "s >= 'c'") == [0, 1, 2]
    shuffled = btree(page_idx=[2, 0, 1], min=["e", "a", "c"], max=["e", "b", "d"])
    assert search(shuffled, column, "s < 'b'") == [4]

    refused(lambda: btree(max=["b", "x", "e"]), 'page 2 starts at "e" after "x"')
    refused(lambda: btree(min=["a", "c", "f"]), 'page 2 from "f" to "e"')
    refused(lambda: btree(page_idx=[0, 2, 2]), "numbered from 0 on, found 2 after 2, at index 2")
    changed = btree(max=["b", "c", "e"])
    refused(
        lambda: search(changed, column, "s = 'c'"),
        '"c" as the last value in page 1, as in the lookup, found "d"',
    )
    changed = btree(null_count=[1, 0, 0])
    refused(
        lambda: search(changed, column, "s = 'a'"), "1 nulls in page 0, as in the lookup, found 0"
    )
    changed = btree(ids=[4, 4, 2, 1, 0])
    refused(lambda: search(changed, column, "s = 'a'"), "found row 4 twice")


def bitmap(keys: list[Any], sets: list[list[int]], kind: pa.DataType) -> StoredTable:
    counts = [len(one) for one in sets]
    rows = np.array([row for one in sets for row in one], np.uint64)
    stored = tree_maps(np.repeat(np.arange(len(sets)), counts), rows, len(sets))
    return StoredTable({"keys": pa.array(keys, kind), "bitmaps": stored})


def test_keys_ascend_and_share_no_row() -> None:
    column = pa.field("k", pa.int32())
    made: Any = bitmap([None, 1, 5], [[7], [0, 2], [1, 3]], pa.int32())
    assert search(Bitmap(made), column, "k > 1") == [1, 3]

    made = bitmap([1, 1, 5], [[7], [0, 2], [1, 3]], pa.int32())
    refused(lambda: Bitmap(made), "different keys in order, found 1 after 1")
    refused(lambda: LabelList(made), "different keys in order")
    made = bitmap([None, 1, 5], [[7], [0, 2], [1, 2]], pa.int32())
    refused(lambda: Bitmap(made), "found row 2 twice in fragment 0")
    LabelList(made)  # a list has several items
    made.reader.size_bytes = 1 << 28
    large = Bitmap(made)
    assert search(large, column, "k = 5") == [1, 2]
    refused(lambda: search(large, column, "k >= 1"), "each row in the set of one key")


def zone_map(**changes: list[Any]) -> ZoneMap:
    columns = {
        "min": [1, 5], "max": [4, 9], "null_count": [1, 0], "nan_count": [0, 0],
        "fragment_id": [0, 0], "zone_start": [0, 4], "zone_length": [4, 4],
    }  # fmt: skip
    nulls = tree_maps(np.zeros(1, np.int64), np.array([2], np.uint64), 1)[0].as_py()
    stored: Any = StoredTable(columns | changes, null_bitmap=nulls.hex())
    return ZoneMap(stored)


def test_zones_have_a_range_and_their_nulls() -> None:
    assert search(zone_map(), pa.field("n", pa.int64()), "n = 7") == [4, 5, 6, 7]

    refused(lambda: zone_map(max=[4, 2]), "zones from their least value on")
    refused(lambda: zone_map(min=[None, 5]), "zones from their least value on")
    refused(lambda: zone_map(null_count=[1, 1]), "expected 1 nulls in all zones.*found 2")
    refused(lambda: zone_map(nan_count=[5, 0]), "in zone 0, found 1 nulls and 5 NaN")


def test_a_word_is_in_a_text_at_different_positions() -> None:
    block = b"\0\0\0\0" + bytes([3, 2]) + bytes([2, 1])  # documents 3 and 5, twice and once
    posting = decode_posting(pa.array([block]), 2, 9, "x")
    chosen = np.array([0, 1])

    def positions(stream: bytes) -> Any:
        data = np.frombuffer(stream, np.uint8)
        return decode_positions(data, np.zeros(1, np.int64), posting, chosen, "x")

    assert [one.tolist() for one in positions(bytes([4, 3, 0]))] == [[0, 0, 1], [4, 7, 0]]
    assert [one.tolist() for one in positions(bytes([0, 0, 0]))] == [[0, 0, 1], [0, 0, 0]]
    refused(lambda: positions(bytes([4, 0, 0])), "different positions")


def test_a_text_has_no_word_more_often_than_words(tmp_path: Any) -> None:
    made = lance_nb.write_dataset(pa.table({"t": ["fox fox", "fox"]}), tmp_path / "d.lance")
    made.create_scalar_index("t", "INVERTED", stem=False)
    (file,) = (tmp_path / "d.lance/_indices").glob("*/part_*_invert.lance")
    data = file.read_bytes()
    block = bytes([0, 1, 2, 1])  # documents 0 and 1, twice and once
    assert data.count(block) == 1
    file.write_bytes(data.replace(block, bytes([0, 1, 1, 2])))

    with pytest.warns(UserWarning, match="no token more than 1 times, .*found token 0 2 times"):
        found = lance_nb.dataset(tmp_path / "d.lance").to_table(full_text_query="fox")

    assert found["t"].to_pylist() == ["fox fox", "fox"]


TYPES = (
    pa.int8(), pa.uint64(), pa.float16(), pa.float64(), pa.bool_(), pa.string(), pa.large_string(),
    pa.binary(), pa.large_binary(), pa.binary(1), pa.date32(), pa.timestamp("us"),
    pa.time64("ns"), pa.duration("s"), pa.decimal128(29, 2), pa.decimal256(40, 2),
)  # fmt: skip


def test_sound_files_of_every_type_are_read() -> None:
    texts, counts = ["0", "1", "1", None, "0"], pa.array([0, 1, 1, None, 0])
    for number, kind in enumerate(TYPES):
        if "string" in str(kind) or "binary" in str(kind):
            column = pa.array(texts).cast(pa.binary() if "binary" in str(kind) else kind).cast(kind)
        else:
            column = counts.cast(pa.int32() if pa.types.is_date(kind) else pa.int64()).cast(kind)
        rows = pa.table({"v": column, "id": range(5)})
        for index in ("BTREE", "BITMAP", "ZONEMAP"):
            made = lance_nb.write_dataset(rows, f"memory://damage/{index}{number}")
            made.create_scalar_index("v", index)
            found = made.to_table(["id"], filter="v IS NULL")
            assert found["id"].to_pylist() == [3], (index, kind)
            made.prewarm_index("v_idx")
