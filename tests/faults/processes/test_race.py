"""Real processes of ours and of pylance on one dataset: no row is lost, none is doubled."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from tests.faults.processes.race import (
    PAUSE_S,
    SCHEMA,
    Writer,
    check,
    rows,
    run,
    running,
    until_done,
)
from tests.support.requirements import require_pylance

pytestmark = [pytest.mark.interop, pytest.mark.slow]

COMMITS_EACH = 25  # times 8 processes: 200
SECONDS = 1.0
OURS_FIRST = 10_000_000
CLEAN_UPS, REMOVED = 4, 9  # clean-ups, and versions that they remove, while writers are at work
KEPT_VERSIONS = 30  # readers and stale writers need those that have just been the newest
Counts = dict[int, int]
Work = Callable[[str, int, Counts], None]


def test_four_processes_of_ours_and_four_of_pylance_lose_nothing(tmp_path: Path) -> None:
    require_pylance()
    counts = run(str(tmp_path / "t.lance"), COMMITS_EACH, ours=4, pylance=4)
    print(counts)
    assert counts["polls"] > 0


def test_nothing_is_lost_while_old_versions_are_cleaned_up(tmp_path: Path) -> None:
    lance = require_pylance()
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(rows([0]), uri)
    rounds = removed = 0
    with running(Writer(uri, "ours", 1), Writer(uri, "pylance", 2)) as processes:
        until = time.monotonic() + 120
        while rounds < CLEAN_UPS or removed < REMOVED:
            assert time.monotonic() < until, "the writers do not go on"
            stats = lance_nb.dataset(uri).cleanup_old_versions(timedelta(0), KEPT_VERSIONS)
            assert stats.failed_deletes == 0
            rounds, removed = rounds + 1, removed + stats.old_versions
            time.sleep(0.02)
        writers = processes.finished()
    assert lance_nb.dataset(uri).version == 1 + sum(writer.done for writer in writers)
    check(uri, {0: 0}, writers)
    print(f"{rounds} clean-ups removed {removed} versions")


# --- somebody else works on the dataset beside a writer -------------------------------------------


def compact(uri: str, number: int, mine: Counts) -> None:
    until_done(
        lambda: lance_nb.dataset(uri).optimize.compact_files(
            target_rows_per_fragment=(20, 1000)[number % 2], materialize_deletions_threshold=0
        )
    )


def clean_up(uri: str, number: int, mine: Counts) -> None:
    compact(uri, number, mine)
    lance_nb.dataset(uri).cleanup_old_versions(retain_versions=12)


def upsert(uri: str, number: int, mine: Counts) -> None:
    new, old = _new_and_old(number, mine)
    counts = {key: mine[key] + 1 for key in old} | dict.fromkeys(new, 0)
    source = pa.table(
        {"id": list(counts), "n": list(counts.values()), "word": ["up"] * len(counts)}, SCHEMA
    )

    def change() -> Any:
        builder = lance_nb.dataset(uri).merge_insert("id")
        return builder.when_matched_update_all().when_not_matched_insert_all().execute(source)

    done = until_done(change)
    assert (done["num_inserted_rows"], done["num_updated_rows"]) == (len(new), len(old))
    mine |= counts


def merge_branch(uri: str, number: int, mine: Counts) -> None:
    new, old = _new_and_old(number, mine)
    side = lance_nb.dataset(uri).create_branch(f"side{number}")
    side.insert(rows(new))
    side.update({"n": "n + 1"}, where=f"id IN ({', '.join(map(str, old))})")
    until_done(
        lambda: lance_nb.dataset(uri).branches.merge(
            f"side{number}", "main", key="id", copy=number % 2 == 0
        )
    )
    mine |= {key: mine[key] + 1 for key in old} | dict.fromkeys(new, 0)


def _new_and_old(number: int, mine: Counts) -> tuple[list[int], list[int]]:
    first = OURS_FIRST + number * 4
    return list(range(first, first + 4)), sorted(mine)[-3:]


WORK: dict[str, Work] = {work.__name__: work for work in (compact, clean_up, upsert, merge_branch)}


@pytest.mark.parametrize(
    ("work", "writer", "stable"),
    [
        (work, writer, (number + other) % 2 == 1)
        for number, work in enumerate(WORK)
        for other, writer in enumerate(("ours", "pylance"))
    ],
)
def test_nothing_is_lost_or_doubled(work: str, writer: str, stable: bool, tmp_path: Path) -> None:
    lance = require_pylance()
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(rows([0]), uri, enable_stable_row_ids=stable)
    mine: Counts = {0: 0}
    done = 0
    with running(Writer(uri, writer, 1, pause_s=PAUSE_S)) as processes:
        until = time.monotonic() + SECONDS
        while time.monotonic() < until or done < 3:
            WORK[work](uri, done, mine)
            done += 1
            time.sleep(PAUSE_S)
        writers = processes.finished()
    assert len(writers[0].rows) > 3
    check(uri, mine, writers)
    if stable:
        ids = lance.dataset(uri).to_table(columns=["_rowid"])["_rowid"].to_pylist()
        assert len(set(ids)) == len(ids)
