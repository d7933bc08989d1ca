"""Index files that we write against those of pylance: settings, schema and rows are the same."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import InvalidInputError
from lance_nb.indices.index_file import open_file
from lance_nb.indices.row_sets import tree_map_rows
from lance_nb.table.indices import read_indices
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop
NUM_ROWS = 3000
NAN = float("nan")
NUMBERS = [3, None, 1, 2, 1]
DECIMALS = [Decimal("1.5"), None, Decimal("2.5"), Decimal("0.5"), Decimal("2.5")]
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
TEXTS = ["bcd abc", None, "\u00c6on \u212bng\u2102", "", "abc"]
PLAIN = {
    **{name: pa.array(NUMBERS, getattr(pa, name)()) for name in INTEGERS},
    **{
        name: pa.array([1.5, None, NAN, -2.0, 1.5]).cast(getattr(pa, name)())
        for name in ("float16", "float32", "float64")
    },
    "bool": pa.array([True, None, False, True, False]),
    "string": pa.array(TEXTS),
    "large_string": pa.array(TEXTS, pa.large_string()),
    "binary": pa.array([b"b", None, b"a", b"", b"a"]),
    "large_binary": pa.array([b"b", None, b"a", b"", b"a"], pa.large_binary()),
    "fixed": pa.array([b"bb", None, b"aa", b"cc", b"aa"], pa.binary(2)),
    "date32": pa.array(NUMBERS, pa.int32()).cast(pa.date32()),
    "date64": pa.array([None if n is None else n * 86_400_000 for n in NUMBERS]).cast(pa.date64()),
    "moment": pa.array(NUMBERS).cast(pa.timestamp("us")),
    "moment_utc": pa.array(NUMBERS).cast(pa.timestamp("ns", "UTC")),
    "time32": pa.array(NUMBERS, pa.int32()).cast(pa.time32("s")),
    "time64": pa.array(NUMBERS).cast(pa.time64("us")),
    "duration": pa.array(NUMBERS).cast(pa.duration("us")),
    "decimal128": pa.array(DECIMALS, pa.decimal128(9, 2)),
    "decimal256": pa.array(DECIMALS, pa.decimal256(40, 2)),
}
LISTS = {
    "list": pa.array([[1], None, [], [1, None], [2, 2]], pa.list_(pa.int32())),
    "large_list": pa.array([["a"], None, [], ["b", None], ["a"]], pa.large_list(pa.string())),
    "list_of_floats": pa.array([[1.0], None, [], [NAN, None], [2.0]]),
    "list_of_flags": pa.array([[True], None, [], [False], [True, False]]),
}
NO_ORDER = {
    "fixed_list": pa.array([[1, 2], None, [3, 4], [1, None], [5, 6]], pa.list_(pa.int32(), 2)),
    "list_of_lists": pa.array([[[1]], None, [], [[1]], [[2]]]),
    "struct": pa.array([{"x": 1}, None, {"x": 2}, {"x": 3}, {"x": 4}]),
}
COLUMNS = {**PLAIN, **LISTS, **NO_ORDER}
KINDS: dict[str, dict[str, Any]] = {
    "BTREE": {},
    "BITMAP": {},
    "LABEL_LIST": {},
    "NGRAM": {},
    "ZONEMAP": {"rows_per_zone": 500},
    "BLOOMFILTER": {"number_of_items": 500, "probability": 0.01},
}


def files_of(uri: str, name: str) -> tuple[Any, dict[str, Any]]:
    """Return the metadata of an index, and the rows, schema and sets of its files."""
    lance = require_pylance()
    _, snapshot = lance_nb.dataset(uri).opened
    (index,) = (one for one in read_indices(snapshot) if one.name == name)
    found: dict[str, Any] = {}
    for file in index.files:
        reader = lance.file.LanceFileReader(f"{uri}/_indices/{index.uuid}/{file.path}")
        schema = reader.metadata().schema
        ours = open_file(snapshot, index, file.path)
        sets = [ours.buffer(one) for one in ("null_bitmap", "lance:label_list_nulls")]
        rows = [None if one is None else tree_map_rows(one, "").tolist() for one in sets]
        found[file.path] = reader.read_all().to_table().to_pylist(), schema, schema.metadata, rows
    return index, found


def same_rows(kind: str, one: list[Any], other: list[Any]) -> bool:
    """Compare rows; equal values of a B-tree come in any order. NaN prints alike."""
    if kind == "BTREE":
        one, other = (sorted(map(str, rows)) for rows in (one, other))
    return str(one) == str(other)


@pytest.mark.parametrize("column", COLUMNS)
def test_files_are_those_of_pylance(tmp_path: Path, column: str) -> None:
    lance = require_pylance()
    from lance.indices import IndexConfig

    uri = str(tmp_path / "t.lance")
    is_stable = list(COLUMNS).index(column) % 2 == 1
    rows = pa.array([(at * 7 + at // 11) % 5 for at in range(NUM_ROWS)])
    table = pa.table({"c": COLUMNS[column].take(rows), "k": pa.array(range(NUM_ROWS))})
    made = lance.write_dataset(
        table, uri, max_rows_per_file=1300, enable_stable_row_ids=is_stable
    )  # fmt: skip
    made.delete("k % 17 = 0")
    ours = lance_nb.dataset(uri)
    num_built = 0
    for kind, options in KINDS.items():
        made.checkout_latest()
        try:
            wanted = IndexConfig(kind.lower(), options) if options else kind
            made.create_scalar_index("c", wanted, name=f"{kind}_theirs")
        except (TypeError, ValueError):
            with pytest.raises(InvalidInputError, match="column 'c' is"):
                ours.create_scalar_index("c", kind)
            continue
        num_built += 1
        ours.checkout_latest()
        ours.create_scalar_index("c", kind, f"{kind}_ours", **options)
        their_index, theirs = files_of(uri, f"{kind}_theirs")
        our_index, found = files_of(uri, f"{kind}_ours")
        assert found.keys() == theirs.keys()
        for name, (rows_of, schema, settings, sets) in found.items():
            assert schema == theirs[name][1], (kind, name)
            assert settings == theirs[name][2], (kind, name)
            assert sets == theirs[name][3], (kind, name)
            # pylance has no bounds of fixed-size binary, and bounds of structs that say nothing.
            if kind != "ZONEMAP" or column not in ("fixed", "struct"):
                assert same_rows(kind, rows_of, theirs[name][0]), (kind, name)
        assert our_index.details_url == their_index.details_url
        assert our_index.details == their_index.details
        assert our_index.index_version == their_index.index_version
    assert num_built == {True: 4, False: 1}[column in PLAIN] + (column in LISTS) - {
        "float16": 1, "bool": 1, "fixed": 1, "duration": 1, "decimal128": 1, "decimal256": 1,
        "string": -1, "large_string": -1,
    }.get(column, 0)  # fmt: skip
    assert not ours.verify().findings


def test_folding_of_letters_is_that_of_pylance(tmp_path: Path) -> None:
    lance = require_pylance()
    uri = str(tmp_path / "t.lance")
    letters = [chr(code) for code in (*range(128, 0xD800), *range(0xE000, 0x1F800))]
    texts = pa.array([f"zq{letter}qz" for letter in letters if letter.isprintable()])
    lance.write_dataset(pa.table({"t": texts}), uri).create_scalar_index("t", "NGRAM", "theirs")
    lance_nb.dataset(uri).create_scalar_index("t", "NGRAM", "ours")
    (theirs,), (ours,) = (files_of(uri, name)[1].values() for name in ("theirs", "ours"))
    assert len(ours[0]) > 200
    assert ours[0] == theirs[0]
