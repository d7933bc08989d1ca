"""Datasets of version 0.1 ("legacy"), written by pylance, read as pylance reads them.

The version has no validity, so what is compared is what pylance returns, not what was written: a
null number is the number in its place, a null string and an empty one are both null.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import LanceError
from lance_nb.file.columns import assemble, leaves_of
from lance_nb.file.opening import open_data_file
from lance_nb.file.v0_1_reader import LegacyReader
from lance_nb.storage.registry import open_store
from tests.interop.matrix import FAMILIES, PATTERNS, columns
from tests.interop.predicates import filtered_differences
from tests.support.reading import (
    RemoteLikeStore,
    decoded,
    first_difference,
    positions_of,
    rows_of,
    same,
    single_rows,
)
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop
SEED = 1
SIZES = (1, 7, 1023, 4097)
# Not in the format: maps, fixed-size lists of anything but fixed-width values.
REFUSED = ("unsupported data type", "fixed stride", "No support for")
READ = {"nested": 0.85, "vectors": 1.0}


def tables(family: str, size: int) -> Iterator[pa.Table]:
    """One table per shape, with one column per null pattern."""
    found = list(columns(family, size, "2.1", SEED))
    for first in range(0, len(found), len(PATTERNS)):
        names = [f"c{i}" for i in range(len(PATTERNS))]
        yield pa.table([array for _, array in found[first : first + len(PATTERNS)]], names)


def write(folder: Path, table: pa.Table, rows_per_batch: int) -> Any:
    """Write a dataset with several batches; None where the reference refuses the type."""
    lance = require_pylance()
    try:
        lance.write_dataset(
            table,
            str(folder),
            data_storage_version="legacy",
            max_rows_per_group=rows_per_batch,
        )
    except (OSError, ValueError, NotImplementedError) as exc:
        if not any(text in str(exc) for text in REFUSED):
            raise
        return None
    # Opened anew: the handle that wrote still knows empty strings of dictionaries from nulls.
    return lance.dataset(str(folder))


def differences(folder: Path, expected: pa.Table, rng: Any) -> Iterator[str]:
    """Read the data file itself: whole, single rows, ranges; mapped and range by range."""
    (name,) = [path.name for path in (folder / "data").iterdir()]
    store = open_store(str(folder / "data"))
    for kind in (store, RemoteLikeStore(store, 4096)):
        reader = open_data_file(kind, name)
        assert isinstance(reader, LegacyReader)
        assert reader.num_rows == expected.num_rows
        n = expected.num_rows
        cuts = np.unique(rng.integers(0, n, 21))
        ranges = cuts[: cuts.size // 2 * 2].reshape(-1, 2).tolist()
        scattered = rows_of(*map(tuple, ranges))
        for rows in (rows_of(), rows_of((0, n)), single_rows(rng.integers(0, n, 30)), scattered):
            wanted = expected.take(pa.array(positions_of(rows)))
            for field, arrow in zip(reader.schema, reader.schema.to_arrow(), strict=True):
                leaves = list(leaves_of(field, arrow.type, {}))
                place = f"{field.name} {arrow.type}, {rows.num_rows} rows"
                try:
                    found = reader.read_leaves(leaves, {}, rows, n)
                    got = assemble(field, arrow.type, found, rows.num_rows)
                except LanceError as exc:
                    yield f"{place}: {exc}"
                    continue
                for chunk in got.chunks:
                    chunk.validate(full=True)
                assert got.type == wanted[field.name].type
                pair = decoded(got), decoded(wanted[field.name])
                if not same(*pair):
                    yield f"{place}: {first_difference(*pair)}"


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("size", SIZES)
def test_a_file_of_pylance_reads_as_pylance_reads_it(
    size: int, family: str, tmp_path: Path
) -> None:
    wrong, asked, read = [], 0, 0
    rng = np.random.default_rng([SEED, size])
    for number, table in enumerate(tables(family, size)):
        asked += 1
        theirs = write(tmp_path / str(number), table, (1024, 1000, 700)[number % 3])
        if theirs is None:
            continue
        read += 1
        expected = theirs.to_table()
        wrong += differences(tmp_path / str(number), expected, rng)
        snapshot = lance_nb.dataset(tmp_path / str(number))._snapshot
        wrong += filtered_differences(snapshot, expected, rng, share=len(PATTERNS))
    assert not wrong
    assert read >= READ.get(family, 1.0) * asked


def everything(rng: Any, n: int) -> pa.Table:
    words = [None if k == 0 else "" if k == 1 else f"word {k}" for k in rng.integers(0, 9, n)]
    sizes = rng.integers(0, 4, n)
    offsets = pa.array(np.concatenate(([0], np.cumsum(sizes))), pa.int32())
    total = int(sizes.sum())
    point = pa.StructArray.from_arrays(
        [pa.array(rng.integers(0, 99, total)), pa.array([f"p{i}" for i in range(total)])],
        ["x", "y"],
    )
    keys = pa.array(rng.integers(0, 3, n).astype(np.int8))
    return pa.table(
        {
            "id": pa.array(np.arange(n)),
            "w": pa.array(words, pa.string()),
            "f": pa.array(rng.normal(size=n), mask=rng.random(n) < 0.2),
            "b": pa.array(rng.random(n) < 0.5),
            "l": pa.ListArray.from_arrays(offsets, point),
            "s": pa.StructArray.from_arrays([pa.array(words, pa.string()), keys], ["a", "k"]),
            "d": pa.DictionaryArray.from_arrays(keys, pa.array(["x", "y", "z"])),
            "v": pa.FixedSizeListArray.from_arrays(pa.array(rng.random(4 * n)), 4),
        }
    )


def equal(ours: pa.Table, theirs: pa.Table) -> bool:
    assert ours.column_names == theirs.column_names
    return all(same(decoded(ours[name]), decoded(theirs[name])) for name in theirs.column_names)


def test_a_dataset_with_a_past_reads_as_pylance_reads_it(tmp_path: Path) -> None:
    lance = require_pylance()
    rng = np.random.default_rng(SEED)
    uri = str(tmp_path / "d")
    lance.write_dataset(
        everything(rng, 3000), uri, data_storage_version="legacy", max_rows_per_group=512
    )
    lance.write_dataset(everything(rng, 1500), uri, mode="append", max_rows_per_file=700)
    theirs = lance.dataset(uri)
    theirs.delete("id % 5 = 2")
    theirs.add_columns({"twice": "f * 2"})
    theirs.drop_columns(["v"])
    theirs.alter_columns({"path": "f", "data_type": pa.float32()})
    for version in range(1, theirs.version + 1):
        old, ours = lance.dataset(uri, version=version), lance_nb.dataset(uri, version=version)
        assert ours.data_storage_version == old.data_storage_version == "0.1"
        expected, got = old.to_table(), ours.to_table()
        assert got.schema.equals(expected.schema, check_metadata=True)
        assert equal(got, expected), version
        assert ours.count_rows() == old.count_rows()
        picked = rng.integers(0, expected.num_rows, 60).tolist()
        assert equal(ours.take(picked), old.take(picked))
        for names in (["id"], ["w", "s"], ["l", "id"], ["s.a", "b"], ["d"]):
            assert equal(ours.to_table(columns=names), old.to_table(columns=names)), names
        sliced = old.to_table(limit=700, offset=1111)
        assert equal(ours.to_table(limit=700, offset=1111), sliced)


def test_statistics_bound_the_values_of_each_page(tmp_path: Path) -> None:
    table = everything(np.random.default_rng(4), 1000)
    write(tmp_path / "d", table, 400)
    (name,) = [path.name for path in (tmp_path / "d" / "data").iterdir()]
    reader = open_data_file(open_store(str(tmp_path / "d" / "data")), name)
    assert isinstance(reader, LegacyReader)
    statistics = reader.statistics()
    assert statistics is not None

    ids = statistics["0"].to_pylist()
    assert [(one["min_value"], one["max_value"]) for one in ids] == [
        (0, 399),
        (400, 799),
        (800, 999),
    ]
    nulls = [table["f"][start : start + 400].null_count for start in (0, 400, 800)]
    assert [one["null_count"] for one in statistics["2"].to_pylist()] == nulls
    pages = lance_nb.dataset(str(tmp_path / "d")).inspect.pages(name)
    shown = [one for one in pages.to_pylist() if one["name"] == "id"]
    assert [(one["num_rows"], one["min_value"], one["max_value"]) for one in shown] == [
        (400, "0", "399"),
        (400, "400", "799"),
        (200, "800", "999"),
    ]
    assert {one["encoding"] for one in pages.to_pylist()} == {"plain", "var_binary", "dictionary"}
