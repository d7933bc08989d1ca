"""Edits of cells on datasets of pylance: it reads what they write, and nothing of it is lost."""

from __future__ import annotations

import random
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import CommitConflictError, LanceError
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop


def written(lance: Any, uri: Path, version: str, *, stable: bool, count: int = 300) -> str:
    table = pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "label": [None if n % 7 == 0 else f"name {n}" for n in range(count)],
            "when": pa.array([n * 10**6 for n in range(count)], pa.timestamp("us", "UTC")),
            "price": pa.array(range(count), pa.int32()).cast(pa.decimal128(12, 2)),
            "tags": [[n, None] if n % 3 else [] for n in range(count)],
            "point": pa.array([{"x": n / 2, "y": None} for n in range(count)]),
            "vector": pa.FixedSizeListArray.from_arrays(
                pa.array([float(n) for n in range(count * 4)]), 4
            ),
        }
    )
    lance.write_dataset(
        table, str(uri), max_rows_per_file=110, data_storage_version=version,
        enable_stable_row_ids=stable,
    )  # fmt: skip
    return str(uri)


@pytest.mark.parametrize(
    ("version", "stable"), [("2.0", False), ("2.1", True), ("2.2", False), ("2.2", True)]
)
def test_pylance_reads_random_edits(tmp_path: Path, version: str, stable: bool) -> None:
    lance = require_pylance()
    seed = random.randrange(10**6)
    print("seed", seed)
    chance = random.Random(seed)
    nullable = {"label", "when", "price"}  # 2.0 stores no null structs
    nullable |= {"tags", "point", "vector"} if version != "2.0" else set()
    uri = written(lance, tmp_path / "d.lance", version, stable=stable)
    lance.dataset(uri).create_scalar_index("id", "BTREE")
    expected = {row["id"]: row for row in lance.dataset(uri).to_table().to_pylist()}
    for step in range(4):
        ds = lance_nb.dataset(uri)
        table = ds.to_table(columns=["id"], with_row_id=True)
        rows = dict(zip(table["id"].to_pylist(), table["_rowid"].to_pylist(), strict=True))
        samples = list(expected.values())
        chosen = chance.sample(sorted(rows), 40)
        cells, gone = chosen[: chance.randrange(1, 30)], chosen[30 : 30 + 3 * (step % 2)]
        edits = {}
        for one in cells:
            names = chance.sample(["label", "when", "price", "tags", "point", "vector"], 3)
            other = chance.choice(samples)
            edits[rows[one]] = {
                name: None if name in nullable and chance.random() < 0.5 else other[name]
                for name in names
            }
            expected[one] |= edits[rows[one]]
        new = [{"id": 1000 + step, "label": "new"}] if step % 2 and version != "2.0" else None
        ds.edit(edits, add=new, delete=[rows[one] for one in gone])
        for one in gone:
            del expected[one]
        if new:
            blank = dict.fromkeys(samples[0])
            expected[1000 + step] = blank | new[0]
    judge = lance.dataset(uri)
    judge.validate()
    found = {row["id"]: row for row in judge.to_table().to_pylist()}
    assert found == expected
    some = next(iter(chosen[:1]))
    assert judge.to_table(filter=f"id = {some}").num_rows == int(some in expected)
    if stable:
        ids = judge.to_table(columns=["id"], with_row_id=True)
        kept = dict(zip(ids["id"].to_pylist(), ids["_rowid"].to_pylist(), strict=True))
        assert all(kept[one] == rows[one] for one in rows if one in kept)


@pytest.mark.parametrize("stable", [False, True])
def test_two_editors_and_pylance_lose_nothing(tmp_path: Path, stable: bool) -> None:
    """Each of three writers counts acknowledged changes of its own rows; all must be there."""
    lance = require_pylance()
    uri = written(lance, tmp_path / "d.lance", "2.2", stable=stable, count=90)
    counts = dict.fromkeys(range(90), 0)
    failures: list[BaseException] = []

    def edit(first: int) -> None:
        for turn in range(1, 5):
            for _ in range(30):
                try:
                    ds = lance_nb.dataset(uri)
                    table = ds.to_table(columns=["id"], with_row_id=True)
                    at = table["id"].to_pylist().index(first + turn)
                    ds.edit({table["_rowid"][at].as_py(): {"label": f"edit {turn}"}})
                except CommitConflictError:
                    continue  # another writer moved the row's neighbours or the row: read again
                except LanceError as error:
                    failures.append(error)
                else:
                    counts[first + turn] = turn
                break

    def update() -> None:
        for turn in range(1, 4):
            lance.dataset(uri).update({"label": f"'edit {turn}'"}, where=f"id = {60 + turn}")
            counts[60 + turn] = turn

    threads = [Thread(target=edit, args=(0,)), Thread(target=edit, args=(30,)),
               Thread(target=update)]  # fmt: skip
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not failures
    rows = {row["id"]: row["label"] for row in lance.dataset(uri).to_table().to_pylist()}
    assert len(rows) == 90
    assert sum(map(bool, counts.values())) == 11
    assert all(rows[one] == f"edit {turn}" for one, turn in counts.items() if turn)


def test_what_pylance_wrote_meanwhile_is_not_written_over(tmp_path: Path) -> None:
    lance = require_pylance()
    uri = written(lance, tmp_path / "d.lance", "2.2", stable=True)
    ds = lance_nb.dataset(uri)
    lance.dataset(uri).update({"label": "'theirs'"}, where="id = 7")
    with pytest.raises(CommitConflictError, match=r"'label': None became 'theirs'"):
        ds.edit({7: {"label": "ours"}})
    ds.edit({8: {"label": "ours"}})
    found = lance.dataset(uri).to_table(filter="id IN (7, 8)").to_pylist()
    assert {row["id"]: row["label"] for row in found} == {7: "theirs", 8: "ours"}
