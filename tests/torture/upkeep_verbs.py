"""Verbs of upkeep: compaction, clean-up, checksums, repair, migration, removal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance_nb
from tests.torture.verb import (
    AT_ONCE,
    OPTIONS,
    Verb,
    add_checksums,
    branch,
    branched,
    clean_up_by_itself,
    indexed,
    make,
    opened,
    rows,
    stable,
    with_blobs,
)

TARGET: dict[str, Any] = {"target_rows_per_fragment": 100}
SAME_ROWS = ("same rows",)


def _first_names(place: str) -> None:
    lance_nb.write_dataset(rows(0), f"{place}-first", enable_v2_manifest_paths=False)
    lance_nb.dataset(f"{place}-first").insert(rows(20))
    lance_nb.dataset(f"{place}-first").insert(rows(40))


def _compact(place: str, **options: Any) -> None:
    opened(place).optimize.compact_files(**TARGET, **options)


def _task_by_task(place: str) -> None:
    dataset = opened(place)
    plan = dataset.optimize.plan_compaction(**TARGET)
    dataset.optimize.commit_compaction([one.execute(dataset) for one in plan.tasks])


def _planned(place: str) -> None:
    dataset = opened(place)
    plan = lance_nb.Compaction.plan(dataset, TARGET)
    lance_nb.Compaction.commit(dataset, [one.execute(dataset) for one in plan.tasks])


def _indexed_and_compacted(place: str) -> None:
    """Write a dataset beside it whose fragment-reuse index has done its work.

    With stable row ids there is no such index, so the rows of this one have addresses only.
    """
    beside = f"{place}-addresses"
    lance_nb.write_dataset(rows(0, 30), beside, max_rows_per_file=10, storage_options=OPTIONS)
    opened(beside).insert(rows(50))
    opened(beside).delete("id = 3")
    indexed(beside)
    _compact(beside, defer_index_remap=True)
    indexed(beside)


def _two_blob_fragments(place: str) -> None:
    with_blobs(place)
    opened(f"{place}-blobs").delete("id = 1")


def _many_versions(place: str) -> None:
    dataset = opened(place)
    dataset.insert(rows(60), mode="overwrite")
    dataset.insert(rows(90))


def _clean(place: str) -> None:
    opened(place).cleanup_old_versions(AT_ONCE, delete_unverified=True)


def _long_branch(place: str) -> None:
    branched(place)
    branch(place).insert(rows(600))


def _clean_branch(place: str) -> None:
    branch(place).cleanup_old_versions(AT_ONCE, delete_unverified=True)


def _moved(place: str) -> None:
    """Make the dataset ``-moved``, whose branch names the folder in which it was before."""
    former = f"{place}-former"
    make(former, 2)
    branched(former)
    Path(former).rename(f"{place}-moved")


def _half_made(place: str) -> None:
    """Leave a branch that has its record and no versions."""
    branched(place)
    for one in Path(f"{place}/tree/dev/_versions").iterdir():
        one.unlink()


def _repair(place: str) -> None:
    lance_nb.plan_repair(place, older_than=AT_ONCE).run()


def _newest_of(place: str) -> Path:
    number = opened(place).version
    names = (f"{number}.manifest", f"{2**64 - 1 - number:020}.manifest")
    return next(path for name in names if (path := Path(place, "_versions", name)).exists())


def _damaged(place: str) -> None:
    """Cut the newest manifest, as a power failure does to a writer that does not sync."""
    opened(place).insert(rows(900))
    newest = _newest_of(place)
    content = newest.read_bytes()
    newest.write_bytes(content[: len(content) // 2])


def _left_over(place: str) -> None:
    """Leave what a dead writer of pylance leaves beside a manifest."""
    newest = _newest_of(place)
    Path(f"{newest}#1").write_bytes(newest.read_bytes())


def _repaired(place: str) -> None:
    _left_over(place)
    _repair(place)


def _undo(place: str) -> None:
    lance_nb.undo_repair(place)


def _drop(place: str) -> None:
    lance_nb.LanceDataset.drop(f"{place}-stable", OPTIONS, ignore_not_found=True)


UPKEEP_VERBS: dict[str, Verb] = {
    "compact": Verb(_compact, between=SAME_ROWS),
    "compact an indexed dataset": Verb(_compact, indexed, between=SAME_ROWS),
    "compact without index remap": Verb(
        lambda place: _compact(place, defer_index_remap=False), indexed, between=SAME_ROWS
    ),
    "compact with stable row ids": Verb(
        lambda place: _compact(f"{place}-stable"), stable, at="-stable", between=SAME_ROWS
    ),
    "compact with checksums": Verb(_compact, add_checksums, between=SAME_ROWS),
    "compact blobs": Verb(
        lambda place: _compact(f"{place}-blobs"),
        _two_blob_fragments,
        at="-blobs",
        between=SAME_ROWS,
    ),
    "commit_compaction": Verb(_task_by_task, between=SAME_ROWS),
    "Compaction.commit": Verb(_planned, between=SAME_ROWS),
    "Compaction.execute": Verb(
        lambda place: lance_nb.Compaction.execute(opened(place), TARGET), between=SAME_ROWS
    ),
    "staged compact": Verb(
        lambda place: opened(place).stage().compact(**TARGET).commit(), between=SAME_ROWS
    ),
    "cleanup_frag_reuse_index": Verb(
        lambda place: opened(f"{place}-addresses").optimize.cleanup_frag_reuse_index(),
        _indexed_and_compacted,
        at="-addresses",
    ),
    "enable_auto_cleanup": Verb(clean_up_by_itself, between=("cleaned",)),
    "disable_auto_cleanup": Verb(
        lambda place: opened(place).optimize.disable_auto_cleanup(), clean_up_by_itself
    ),
    "cleanup_old_versions": Verb(_clean, _many_versions, between=("versions",)),
    "cleanup of a branch": Verb(_clean_branch, _long_branch, between=("versions",), on_branch=True),
    "cleanup that retains versions": Verb(
        lambda place: opened(place).cleanup_old_versions(retain_versions=2),
        _many_versions,
        between=("versions",),
    ),
    "cleanup of chosen versions": Verb(
        lambda place: opened(place).cleanup_old_versions(versions=[1, 3]),
        _many_versions,
        between=("versions",),
    ),
    "add_checksums": Verb(add_checksums, between=SAME_ROWS),
    "migrate_manifest_paths_v2": Verb(
        lambda place: lance_nb.dataset(f"{place}-first", 1).migrate_manifest_paths_v2(),
        _first_names,
        at="-first",
        between=("refused",),
    ),
    "repair_moved": Verb(
        lambda place: opened(f"{place}-moved").repair_moved(),
        _moved,
        at="-moved",
        foreign_before=False,
    ),
    "repair of an unfinished branch": Verb(_repair, _half_made, between=("unfinished",)),
    "repair of a damaged version": Verb(_repair, _damaged, between=("refused", "same rows")),
    "repair of leftovers": Verb(_repair, _left_over, commits=False),
    "undo_repair": Verb(_undo, _repaired, commits=False),
    "drop": Verb(_drop, stable, at="-stable", between=("refused",)),
}
