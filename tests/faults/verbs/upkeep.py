"""Verbs of upkeep: compaction, clean-up, checksums, repair, migration, removal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance_nb
from tests.faults.verbs.verb import (
    AT_ONCE,
    OPTIONS,
    Verb,
    add_checksums,
    branch,
    branched,
    clean_up_by_itself,
    indexed,
    make,
    newest_manifest,
    opened,
    rows,
    stable,
    with_blobs,
)

TARGET: dict[str, Any] = {"target_rows_per_fragment": 100}
SAME_ROWS = ("same rows",)
VERSIONS = ("versions",)


def _first_names(path: str) -> None:
    lance_nb.write_dataset(rows(0), f"{path}-first", enable_v2_manifest_paths=False)
    lance_nb.dataset(f"{path}-first").insert(rows(20))
    lance_nb.dataset(f"{path}-first").insert(rows(40))


def _compact(dataset: Any, **options: Any) -> None:
    dataset.optimize.compact_files(**TARGET, **options)


def _task_by_task(dataset: Any) -> None:
    plan = dataset.optimize.plan_compaction(**TARGET)
    dataset.optimize.commit_compaction([task.execute(dataset) for task in plan.tasks])


def _planned(dataset: Any) -> None:
    plan = lance_nb.Compaction.plan(dataset, TARGET)
    lance_nb.Compaction.commit(dataset, [task.execute(dataset) for task in plan.tasks])


def _indexed_and_compacted(path: str) -> None:
    """Write a dataset beside it whose fragment-reuse index has done its work.

    With stable row ids there is no such index, so the rows of this one have addresses only.
    """
    beside = f"{path}-addresses"
    lance_nb.write_dataset(rows(0, 30), beside, max_rows_per_file=10, storage_options=OPTIONS)
    opened(beside).insert(rows(50))
    opened(beside).delete("id = 3")
    indexed(beside)
    _compact(opened(beside), defer_index_remap=True)
    indexed(beside)


def _two_blob_fragments(path: str) -> None:
    with_blobs(path)
    opened(f"{path}-blobs").delete("id = 1")


def _many_versions(path: str) -> None:
    dataset = opened(path)
    dataset.insert(rows(60), mode="overwrite")
    dataset.insert(rows(90))


def _clean(dataset: Any) -> None:
    dataset.cleanup_old_versions(AT_ONCE, delete_unverified=True)


def _long_branch(path: str) -> None:
    branched(path)
    branch(path).insert(rows(600))


def _moved(path: str) -> None:
    """Make the dataset ``-moved``, whose branch names the folder in which it was before."""
    former = f"{path}-former"
    make(former, 2)
    branched(former)
    Path(former).rename(f"{path}-moved")


def _half_made(path: str) -> None:
    """Leave a branch that has its record and no versions."""
    branched(path)
    for file in Path(f"{path}/tree/dev/_versions").iterdir():
        file.unlink()


def _repair(path: str) -> None:
    lance_nb.plan_repair(path, older_than=AT_ONCE).run()


def _damaged(path: str) -> None:
    """Cut the newest manifest, as a power failure does to a writer that does not sync."""
    opened(path).insert(rows(900))
    newest = newest_manifest(path)
    content = newest.read_bytes()
    newest.write_bytes(content[: len(content) // 2])


def _left_over(path: str) -> None:
    """Leave what a dead writer of pylance leaves beside a manifest."""
    newest = newest_manifest(path)
    Path(f"{newest}#1").write_bytes(newest.read_bytes())


def _repaired(path: str) -> None:
    _left_over(path)
    _repair(path)


def _undo(path: str) -> None:  # found when it is called: a test counts calls
    lance_nb.undo_repair(path)


UPKEEP_VERBS: dict[str, Verb] = {
    "compact": Verb(_compact, between=SAME_ROWS),
    "compact an indexed dataset": Verb(_compact, indexed, between=SAME_ROWS),
    "compact without index remap": Verb(
        lambda ds: _compact(ds, defer_index_remap=False), indexed, between=SAME_ROWS
    ),
    "compact with stable row ids": Verb(
        _compact, stable, on="-stable", at="-stable", between=SAME_ROWS
    ),
    "compact with checksums": Verb(_compact, add_checksums, between=SAME_ROWS),
    "compact blobs": Verb(
        _compact, _two_blob_fragments, on="-blobs", at="-blobs", between=SAME_ROWS
    ),
    "commit_compaction": Verb(_task_by_task, between=SAME_ROWS),
    "Compaction.commit": Verb(_planned, between=SAME_ROWS),
    "Compaction.execute": Verb(
        lambda ds: lance_nb.Compaction.execute(ds, TARGET), between=SAME_ROWS
    ),
    "staged compact": Verb(lambda ds: ds.stage().compact(**TARGET).commit(), between=SAME_ROWS),
    "cleanup_frag_reuse_index": Verb(
        lambda ds: ds.optimize.cleanup_frag_reuse_index(), _indexed_and_compacted,
        on="-addresses", at="-addresses",
    ),
    "enable_auto_cleanup": Verb(clean_up_by_itself, on=None, between=("cleaned",)),
    "disable_auto_cleanup": Verb(
        lambda ds: ds.optimize.disable_auto_cleanup(), clean_up_by_itself
    ),
    "cleanup_old_versions": Verb(_clean, _many_versions, between=VERSIONS),
    "cleanup of a branch": Verb(_clean, _long_branch, on="dev", between=VERSIONS),
    "cleanup that retains versions": Verb(
        lambda ds: ds.cleanup_old_versions(retain_versions=2), _many_versions, between=VERSIONS
    ),
    "cleanup of chosen versions": Verb(
        lambda ds: ds.cleanup_old_versions(versions=[1, 3]), _many_versions, between=VERSIONS
    ),
    "add_checksums": Verb(add_checksums, on=None, between=SAME_ROWS),
    "migrate_manifest_paths_v2": Verb(
        lambda path: lance_nb.dataset(f"{path}-first", 1).migrate_manifest_paths_v2(),
        _first_names, on=None, at="-first", between=("refused",),
    ),
    "repair_moved": Verb(
        lambda ds: ds.repair_moved(), _moved, on="-moved", at="-moved", foreign_before=False
    ),
    "repair of an unfinished branch": Verb(_repair, _half_made, on=None, between=("unfinished",)),
    "repair of a damaged version": Verb(
        _repair, _damaged, on=None, between=("refused", "same rows")
    ),
    "repair of leftovers": Verb(_repair, _left_over, on=None, commits=False),
    "undo_repair": Verb(_undo, _repaired, on=None, commits=False),
    "drop": Verb(
        lambda path: lance_nb.LanceDataset.drop(f"{path}-stable", OPTIONS, ignore_not_found=True),
        stable, on=None, at="-stable", between=("refused",),
    ),
}  # fmt: skip
