"""Maintenance, upserts and merges beside a process that writes on: no row lost, none doubled."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from tests.concurrency.running_writer import PAUSE_S, SCHEMA, rows, running, until_done
from tests.support.requirements import require_pylance

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SECONDS = 1.0
OURS_FIRST, THEIRS_FIRST = 10_000_000, 1
Counts = dict[int, int]
Work = Callable[[str, int, Counts], None]


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
    new = [OURS_FIRST + number * 4 + at for at in range(4)]
    old = sorted(mine)[-3:]
    counts = {one: mine[one] + 1 for one in old} | dict.fromkeys(new, 0)
    source = pa.table(
        {"id": list(counts), "count": list(counts.values()), "word": ["up"] * len(counts)}, SCHEMA
    )

    def change() -> Any:
        builder = lance_nb.dataset(uri).merge_insert("id")
        return builder.when_matched_update_all().when_not_matched_insert_all().execute(source)

    done = until_done(change)
    assert (done["num_inserted_rows"], done["num_updated_rows"]) == (len(new), len(old))
    mine |= counts


def merge_branch(uri: str, number: int, mine: Counts) -> None:
    new = [OURS_FIRST + number * 4 + at for at in range(4)]
    old = sorted(mine)[-3:]
    side = lance_nb.dataset(uri).create_branch(f"side{number}")
    side.insert(rows(new))
    side.update({"count": "count + 1"}, where=f"id IN ({', '.join(map(str, old))})")
    until_done(
        lambda: lance_nb.dataset(uri).branches.merge(
            f"side{number}", "main", key="id", copy=number % 2 == 0
        )
    )
    mine |= {one: mine[one] + 1 for one in old} | dict.fromkeys(new, 0)


WORK: dict[str, Work] = {one.__name__: one for one in (compact, clean_up, upsert, merge_branch)}


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
    with running(uri, writer, THEIRS_FIRST) as process:
        until = time.monotonic() + SECONDS
        while time.monotonic() < until or done < 3:
            WORK[work](uri, done, mine)
            done += 1
            time.sleep(PAUSE_S)
        theirs = process.finished()
    assert len(theirs) > 3
    expected = mine | theirs
    found = lance.dataset(uri)
    found.validate()
    for dataset in (found, lance_nb.dataset(uri)):
        table = dataset.to_table()
        assert (
            dict(zip(table["id"].to_pylist(), table["count"].to_pylist(), strict=True)) == expected
        )
        assert table.num_rows == len(expected)
    for one in found.versions()[-20:]:
        number = one["version"]
        old = lance_nb.dataset(uri, number).to_table()
        assert old.equals(lance.dataset(uri, number).to_table())
        assert len(set(old["id"].to_pylist())) == old.num_rows
    if stable:
        ids = found.to_table(columns=["_rowid"])["_rowid"].to_pylist()
        assert len(set(ids)) == len(ids)
