"""What the doctor says of datasets that pylance made: stale indices, unmerged rows, leavings."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.explorer.storage.storage_report import storage_health
from lance_nb.magic.command_line import main
from tests.support.requirements import require_pylance

pytestmark = [
    pytest.mark.interop,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # pylance's own
]


def examine(path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Run ``lance-nb doctor`` in a terminal."""
    capsys.readouterr()
    status = main(["doctor", str(path), "--quick", "--json"])
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert status == (0 if answer["ok"] else 1)
    return answer


def rows(first: int, count: int) -> pa.Table:
    vectors = np.random.default_rng(first).normal(size=(count, 8)).astype("f4").reshape(-1)
    return pa.table(
        {
            "id": np.arange(first, first + count),
            "v": pa.FixedSizeListArray.from_arrays(pa.array(vectors), 8),
        }
    )


def test_stale_indices_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pylance = require_pylance()
    path = tmp_path / "d.lance"
    theirs = pylance.write_dataset(rows(0, 5000), str(path))
    theirs.create_scalar_index("id", "BTREE")
    assert examine(path, capsys)["advice"] == []

    pylance.write_dataset(rows(5000, 90_000), str(path), mode="append")

    reason = "index 'id_idx' does not cover 90,000 of 95,000 rows: they are scanned"
    assert examine(path, capsys)["advice"] == [f"{reason}; run lance-nb index optimize"]
    (summary,) = lance_nb.database(str(tmp_path)).summaries()
    assert summary.health == reason
    lance_nb.dataset(path).optimize.optimize_indices()
    assert examine(path, capsys)["advice"] == []


def test_a_stale_index_that_only_pylance_extends_is_left_to_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pylance = require_pylance()
    path = tmp_path / "d.lance"
    theirs = pylance.write_dataset(rows(0, 200), str(path))
    theirs.create_index("v", "IVF_HNSW_FLAT", num_partitions=1)
    pylance.write_dataset(rows(200, 1000), str(path), mode="append")

    (advice,) = examine(path, capsys)["advice"]

    assert advice == (
        "index 'v_idx' does not cover 1,000 of 1,200 rows: they are scanned; optimize_indices of "
        "pylance extends an index of this kind"
    )


def test_rows_of_a_log_that_are_not_merged_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pylance = require_pylance()
    key = {"lance-schema:unenforced-primary-key": "true"}
    schema = pa.schema(
        [pa.field("id", pa.int64(), nullable=False, metadata=key), pa.field("v", pa.float32())]
    )

    def batch(first: int, count: int) -> pa.Table:
        return pa.table({"id": range(first, first + count), "v": [0.5] * count}, schema=schema)

    path, while_open = tmp_path / "d.lance", tmp_path / "open.lance"
    theirs = pylance.write_dataset(batch(0, 100), str(path))
    theirs.initialize_mem_wal(unsharded=True)
    assert examine(path, capsys)["advice"] == []
    shard = str(uuid4())
    with pylance.dataset(str(path)).mem_wal_writer(shard) as writer:
        writer.put(batch(1000, 50))
    with pylance.dataset(str(path)).mem_wal_writer(shard, durable_write=True) as writer:
        writer.put(batch(2000, 10))
        shutil.copytree(path, while_open)

    (advice,) = examine(while_open, capsys)["advice"]
    assert advice.startswith(
        "60 rows of the write-ahead log are not merged, and no scan returns them (50 in _mem_wal/"
    )
    assert ", 10 in the log only); merge them with pylance" in advice
    (advice,) = examine(path, capsys)["advice"]
    assert advice.startswith("60 rows of the write-ahead log are not merged")
    (card,) = (one for one in storage_health(lance_nb.dataset(path)) if one.key == "log")
    assert "60 rows" in card.text
    table = eval(card.python, {"lance_nb": lance_nb})  # noqa: S307 (ours, not a user's)
    assert table.count_rows() == 50

    sstables = pylance.mem_wal.CompactedSsTable(shard, 2)
    merging = pylance.dataset(str(path)).merge_insert("id").when_matched_update_all()
    merging = merging.when_not_matched_insert_all().mark_sstables_as_compacted([sstables])
    merging.execute(pa.concat_tables([batch(1000, 50), batch(2000, 10)]))
    assert examine(path, capsys)["advice"] == []
    assert lance_nb.dataset(path).count_rows() == 160


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize(
    ("gone", "code"),
    [
        (["_versions"], "no-versions"),
        (["_versions", "data", "_transactions"], "no-versions"),
        (["_versions", "data", "_transactions", "_deletions"], "no-versions"),
        (["data"], "half-dropped"),
        (["data", "_indices", "_transactions"], "half-dropped"),
    ],
)
def test_what_a_drop_left_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], gone: list[str], code: str, stable: bool
) -> None:
    pylance = require_pylance()
    path = tmp_path / "d.lance"
    theirs = pylance.write_dataset(
        rows(0, 300), str(path), max_rows_per_file=100, enable_stable_row_ids=stable
    )
    theirs.create_scalar_index("id", "BTREE")
    theirs.delete("id = 7")
    for folder in gone:
        shutil.rmtree(path / folder)

    findings = {row["code"]: row for row in examine(path, capsys)["findings"]}

    assert "as a drop that was interrupted leaves" in findings[code]["message"]
    assert "drop" in findings[code]["remedy"]
