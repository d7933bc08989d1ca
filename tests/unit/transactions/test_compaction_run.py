"""One task of a compaction, run."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyroaring import BitMap64

import lance_nb
from lance_nb.transactions.compaction import (
    CompactionMetrics,
    CompactionOptions,
    CompactionTask,
    Rewritten,
    plan_compaction,
    run_task,
)


def run(uri: str, *, stable: bool = False, **options: Any) -> tuple[Any, Rewritten]:
    made = lance_nb.write_dataset(
        pa.table({"id": range(10)}), uri, max_rows_per_file=4, enable_stable_row_ids=stable
    )
    made.delete("id IN (1, 9)")
    wanted = CompactionOptions(**options)
    snapshot = made.opened[1]
    (task,) = plan_compaction(snapshot, (), wanted)
    return made, run_task(snapshot, task, wanted, (2, 2))


def test_the_result_says_which_rows_moved() -> None:
    _, result = run("memory://run/moved")
    assert result.row_addrs is not None
    moved = [divmod(one, 1 << 32) for one in BitMap64.deserialize(result.row_addrs)]
    assert moved == [(0, 0), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2), (1, 3), (2, 0)]
    assert result.metrics == CompactionMetrics(3, 1, 5, 1)
    assert (result.read_version, result.num_deleted_rows) == (2, 2)
    assert [(one.id, one.physical_rows) for one in result.new_fragments] == [(0, 8)]


def test_stable_rows_do_not_move() -> None:
    _, result = run("memory://run/stable", stable=True)
    assert result.row_addrs is None
    assert result.new_fragments[0].row_ids is not None


def test_rows_are_shared_out_evenly() -> None:
    _, result = run("memory://run/even", target_rows_per_fragment=5)
    assert [one.physical_rows for one in result.new_fragments] == [8]


def test_a_task_without_rows_writes_no_file() -> None:
    made = lance_nb.write_dataset(pa.table({"id": range(3)}), "memory://run/none")
    snapshot = made.opened[1]
    result = run_task(snapshot, CompactionTask(1, ()), CompactionOptions(), (2, 2))
    assert result.new_fragments == ()
    assert result.metrics == CompactionMetrics(0, 0, 0, 0)


def test_metrics_add_up() -> None:
    assert CompactionMetrics(1, 2, 3, 4) + CompactionMetrics(1, 1, 1, 1) == CompactionMetrics(
        2, 3, 4, 5
    )


def test_when_it_goes_wrong_no_file_remains(monkeypatch: pytest.MonkeyPatch) -> None:
    from lance_nb.transactions import compaction

    def stopped(*_args: Any) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(compaction, "_row_addrs", stopped)
    with pytest.raises(KeyboardInterrupt):
        run("memory://run/stopped")
    files = lance_nb.dataset("memory://run/stopped").all_files().read_all()
    assert sum(path.startswith("data/") for path in files["path"].to_pylist()) == 3
