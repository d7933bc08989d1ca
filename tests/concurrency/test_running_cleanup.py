"""Clean-ups run all the while writers of ours and of pylance commit: nothing they write is lost."""

from __future__ import annotations

import multiprocessing
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import lance_nb
from tests.concurrency.processes import rows_of, work
from tests.support.requirements import require_pylance

COMMITS_EACH = 12
KEPT = 6  # versions: readers and stale writers need those that have just been the newest


def _worker(queue: Any, uri: str, number: int, *, ours: bool) -> None:
    queue.put(work(uri, number, COMMITS_EACH, ours=ours))


def _clean_until(uri: str, results: Any, workers: int) -> tuple[list[dict[str, Any]], int, int]:
    """Clean up again and again until every worker has told what was acknowledged."""
    found: list[dict[str, Any]] = []
    rounds = removed = 0
    while len(found) < workers:
        if not results.empty():
            found.append(results.get())
            continue
        dataset = lance_nb.dataset(uri)
        stats = dataset.cleanup_old_versions(timedelta(0), KEPT)
        assert stats.failed_deletes == 0
        rounds, removed = rounds + 1, removed + stats.old_versions
        time.sleep(0.02)
    return found, rounds, removed


@pytest.mark.interop
def test_writers_of_both_engines_lose_nothing_while_old_versions_are_cleaned_up(tmp_path: Path):
    lance = require_pylance()
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(rows_of(99, 0), uri)
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    workers = [
        context.Process(
            target=_worker, args=(results, uri, number), kwargs={"ours": number % 2 == 0}
        )
        for number in range(2)
    ]
    for process in workers:
        process.start()
    try:
        found, rounds, removed = _clean_until(uri, results, len(workers))
    finally:
        for process in workers:
            process.join(20)
            if process.is_alive():
                process.kill()
    assert rounds > 3
    assert removed > 8
    wanted = sorted(
        [*rows_of(99, 0)["id"].to_pylist(), *(one for part in found for one in part["ids"])]
    )
    ours, theirs = lance_nb.dataset(uri), lance.dataset(uri)
    assert ours.version == theirs.version == 1 + COMMITS_EACH * len(workers)
    assert sorted(ours.to_table()["id"].to_pylist()) == wanted
    assert sorted(theirs.to_table()["id"].to_pylist()) == wanted
    report = ours.verify()
    assert report.is_whole, report
    for number in ours.version_numbers():
        assert (
            theirs.checkout_version(number).to_table() == ours.checkout_version(number).to_table()
        )
    print(f"{rounds} clean-ups removed {removed} versions")
