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

COMMITS_AT_ONCE = 8
ROUNDS, REMOVED = 4, 9  # clean-ups, and versions that they remove, while the writers are at work
PATIENCE_S = 120.0  # a busy machine may take long
KEPT = 30  # versions: readers and stale writers need those that have just been the newest


def _worker(queue: Any, enough: Any, uri: str, number: int, *, ours: bool) -> None:
    """Write until somebody says that it is enough; tell what was acknowledged, and how often."""
    until = time.monotonic() + PATIENCE_S
    rows: dict[int, int] = {}
    commits = 0
    while not enough.is_set() and time.monotonic() < until:
        rows |= work(uri, number + commits, COMMITS_AT_ONCE, ours=ours)["rows"]
        commits += COMMITS_AT_ONCE
    queue.put((rows, commits))


def _clean_until(uri: str, results: Any, enough: Any, workers: int) -> tuple[list[Any], int, int]:
    """Clean up again and again until every worker has told what was acknowledged."""
    found: list[Any] = []
    rounds = removed = 0
    until = time.monotonic() + 2 * PATIENCE_S
    while len(found) < workers:
        assert time.monotonic() < until, "a writer says nothing"
        if not results.empty():
            found.append(results.get())
            continue
        dataset = lance_nb.dataset(uri)
        stats = dataset.cleanup_old_versions(timedelta(0), KEPT)
        assert stats.failed_deletes == 0
        rounds, removed = rounds + 1, removed + stats.old_versions
        if rounds >= ROUNDS and removed >= REMOVED:
            enough.set()
        time.sleep(0.02)
    return found, rounds, removed


@pytest.mark.interop
def test_writers_of_both_engines_lose_nothing_while_old_versions_are_cleaned_up(tmp_path: Path):
    lance = require_pylance()
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(rows_of(99, 0), uri)
    context = multiprocessing.get_context("spawn")
    results, enough = context.Queue(), context.Event()
    workers = [
        context.Process(
            target=_worker,
            args=(results, enough, uri, number * 50_000),
            kwargs={"ours": number % 2 == 0},
        )
        for number in (1, 2)
    ]
    for process in workers:
        process.start()
    try:
        found, rounds, removed = _clean_until(uri, results, enough, len(workers))
    finally:
        enough.set()
        for process in workers:
            process.join(30)
            if process.is_alive():
                process.kill()
    assert rounds >= ROUNDS
    assert removed >= REMOVED
    wanted = dict.fromkeys(rows_of(99, 0)["id"].to_pylist(), 0)
    for rows, _ in found:
        wanted |= rows
    ours, theirs = lance_nb.dataset(uri), lance.dataset(uri)
    assert ours.version == theirs.version == 1 + sum(commits for _, commits in found)
    for dataset in (ours, theirs):
        table = dataset.to_table().sort_by("id")
        have = zip(table["id"].to_pylist(), table["n"].to_pylist(), strict=True)
        assert list(have) == sorted(wanted.items())
    report = ours.verify()
    assert report.ok, report
    for number in ours.version_numbers():
        assert (
            theirs.checkout_version(number).to_table() == ours.checkout_version(number).to_table()
        )
    print(f"{rounds} clean-ups removed {removed} versions")
