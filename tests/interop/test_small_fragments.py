"""Scans of many small fragments, which are decoded together, agree with pylance."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.table import scan
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

SEEDS = range(24)
WORDS = ["alpha", "beta", "", "a longer word of some thirty bytes", "γδ", "z" * 300]


def _column(kind: str, rows: int, rng: random.Random) -> pa.Array:
    """Return values of a kind, of which some fragments have nulls, repeats or nothing else."""
    nulls = rng.choice([0.0, 0.0, 0.2, 1.0])
    same = rng.random() < 0.2

    def each(make: Any) -> list[Any]:
        one = make()
        return [None if rng.random() < nulls else one if same else make() for _ in range(rows)]

    match kind:
        case "int":
            return pa.array(
                each(lambda: rng.randrange(-(10 ** rng.randrange(1, 18)), 10**6)), pa.int64()
            )
        case "small":
            return pa.array(each(lambda: rng.randrange(100)), pa.int8())
        case "float":
            return pa.array(each(rng.random), pa.float32())
        case "bool":
            return pa.array(each(lambda: rng.random() < 0.5), pa.bool_())
        case "decimal":
            return pa.array(each(lambda: rng.randrange(10**9)), pa.decimal128(20, 0))
        case "word":
            return pa.array(each(lambda: rng.choice(WORDS)), pa.string())
        case "text":
            return pa.array(
                each(lambda: " ".join(rng.choices(WORDS, k=rng.randrange(12)))), pa.large_string()
            )
        case "vector":
            values = np.random.default_rng(rng.randrange(10**6)).random(rows * 24, np.float32)
            return pa.FixedSizeListArray.from_arrays(pa.array(values), 24)
        case "wide":
            return pa.array(each(lambda: [rng.random()] * 300), pa.list_(pa.float64(), 300))
        case "list":
            return pa.array(
                each(lambda: [rng.randrange(9) for _ in range(rng.randrange(4))]),
                pa.list_(pa.int16()),
            )
        case "words":
            return pa.array(
                each(lambda: rng.choices([*WORDS, None], k=rng.randrange(3))), pa.list_(pa.string())
            )
        case "struct":
            kind_of = pa.struct([("x", pa.int32()), ("l", pa.list_(pa.float64()))])
            return pa.array(
                each(lambda: {"x": rng.randrange(50), "l": [0.5] * rng.randrange(3)}), kind_of
            )
        case _:
            return pa.array(
                each(lambda: {"a": rng.randrange(7), "b": [{"c": rng.choice(WORDS)}]}),
                pa.struct([("a", pa.int64()), ("b", pa.list_(pa.struct([("c", pa.string())])))]),
            )


KINDS = ["int", "small", "float", "bool", "decimal", "word", "text", "vector", "wide", "list",
         "words", "struct", "nested"]  # fmt: skip


def _dataset(lance: Any, uri: Path, seed: int) -> Any:
    rng = random.Random(seed)
    kinds = rng.sample(KINDS, rng.randrange(2, 7))
    version = rng.choice(["2.1", "2.2", "2.2"])
    count = rng.randrange(3, 14)
    dataset, row = None, 0
    for number in range(count):
        rows = rng.choice([1, 2, 20, 20, 20, 500, 3000])
        columns = {"id": pa.array(range(row, row + rows))}
        columns |= {f"{kind} {place}": _column(kind, rows, rng) for place, kind in enumerate(kinds)}
        dataset = lance.write_dataset(
            pa.table(columns),
            uri,
            mode="append" if number else "create",
            data_storage_version=version,
            enable_stable_row_ids=seed % 3 == 0,
        )
        row += rows
    assert dataset is not None
    if rng.random() < 0.5:
        dataset.delete(f"id % {rng.randrange(2, 9)} = 1")
    if rng.random() < 0.3:
        dataset.add_columns({"later": "id * 2"})
    return dataset


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Ids of the fragments that were read by themselves."""
    found: list[int] = []
    read_task = scan.read_task

    def noting(snapshot: Any, projection: Any, task: Any) -> pa.Table:
        found.append(task.fragment.id)
        return read_task(snapshot, projection, task)

    monkeypatch.setattr(scan, "read_task", noting)
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_every_read_agrees(tmp_path: Path, seed: int, alone: list[int]) -> None:
    theirs = _dataset(require_pylance(), tmp_path / "d.lance", seed)
    ours = lance_nb.dataset(tmp_path / "d.lance")
    rng = random.Random(seed)

    expected = theirs.to_table(with_row_id=True, with_row_address=True)
    found = ours.to_table(with_row_id=True, with_row_address=True)
    found.validate(full=True)
    assert found.equals(expected)
    assert not alone  # all were read together

    names = rng.sample(expected.column_names[:-2], 2)
    assert ours.to_table(columns=names).equals(theirs.to_table(columns=names))
    sizes = [batch.num_rows for batch in theirs.to_batches(batch_size=64)]
    batches = list(ours.to_batches(batch_size=64))
    assert [batch.num_rows for batch in batches] == sizes
    assert pa.Table.from_batches(batches).equals(theirs.to_table())

    for text in ("id % 7 = 3", "id >= 25", "id < 0", "id % 5 = 1 OR id > 40"):
        assert ours.count_rows(text) == theirs.count_rows(text), text
        assert ours.to_table(filter=text).equals(theirs.to_table(filter=text)), text
        limited = {"filter": text, "limit": 7, "offset": 2, "with_row_id": True}
        assert ours.to_table(**limited).equals(theirs.to_table(**limited)), text
    window = {"limit": 31, "offset": 13}
    assert ours.to_table(**window).equals(theirs.to_table(**window))


@pytest.mark.parametrize("seed", SEEDS[:6])
def test_deletes_hit_the_same_rows(tmp_path: Path, seed: int) -> None:
    lance = require_pylance()
    _dataset(lance, tmp_path / "d.lance", seed)
    ours = lance_nb.dataset(tmp_path / "d.lance")
    expected = ours.count_rows() - ours.count_rows("id % 3 = 0")
    ours.delete("id % 3 = 0")
    theirs = lance.dataset(tmp_path / "d.lance")
    assert theirs.count_rows() == expected == ours.count_rows()
    assert theirs.to_table().equals(ours.to_table())


def test_dictionaries_of_fragments_stay_apart(tmp_path: Path) -> None:
    """Words that are number 3 in one fragment are another number in the next."""
    lance = require_pylance()
    for number in range(12):
        words = [f"word {number} {place % (5 + number)}" for place in range(2000)]
        words = words if number % 3 else [*words[:-1], None]
        table = pa.table({"word": pa.array(words, pa.string())})
        lance.write_dataset(table, tmp_path / "d.lance", mode="append" if number else "create")
    theirs = lance.dataset(tmp_path / "d.lance").to_table()
    assert lance_nb.dataset(tmp_path / "d.lance").to_table().equals(theirs)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_rows_of_many_small_pages_with_tables_of_their_own(tmp_path: Path, version: str) -> None:
    """Lists of text end pages early, and each page has its own symbol table."""
    lance = require_pylance()
    rng = random.Random(5)
    words = ["".join(rng.choices("etaoin shrdlu", k=rng.randrange(2, 14))) for _ in range(3000)]
    rows = [
        None if number % 97 == 0 else rng.choices(words, k=rng.randrange(5))
        for number in range(200_000)
    ]
    table = pa.table({"id": range(len(rows)), "words": pa.array(rows, pa.list_(pa.string()))})
    theirs = lance.write_dataset(table, tmp_path / "d.lance", data_storage_version=version)
    ours = lance_nb.dataset(tmp_path / "d.lance")
    assert len(list(ours.get_fragments())) == 1
    for count in (1, 3, 40, 2000):
        places = sorted(rng.sample(range(len(rows)), count))
        assert ours.take(places).equals(theirs.take(places))
    for text in ("id % 1000 = 7", "id % 3 = 1", "id < 90000 AND id % 7 = 0", "id > 60000"):
        assert ours.to_table(filter=text).equals(theirs.to_table(filter=text)), text
    window = {"limit": 150_000, "offset": 25_001}
    assert ours.to_table(**window).equals(theirs.to_table(**window))
