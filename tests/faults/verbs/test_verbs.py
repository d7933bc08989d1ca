"""The rig's list of verbs holds every public method that writes, and every kind of transaction."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

import lance_nb
from lance_nb.dataset.merge_insert import MergeInsertBuilder
from lance_nb.dataset.staging import Stage, StagedMerge
from lance_nb.merging.merge_plan import MergePlan
from lance_nb.transactions.registry import OPERATIONS
from lance_nb.transactions.transaction import Transaction
from tests.faults import verbs
from tests.faults.verbs.verb import make

# A public name is either in the list below, because it does not write a dataset, or some verb of
# the rig calls it.
CLASSES: dict[type, str] = {
    lance_nb.LanceDataset: """
        all_files base_paths bisect branch branches changes check check_versions checkout_latest
        checkout_version config count_rows data_storage_version delta describe_data_file
        describe_indices diff expectations explain_cleanup_old_versions export filter
        fragment_ids
        from_opened get_fragment get_fragments get_transactions get_version has_index
        has_stable_row_ids head history index_coverage index_statistics initial_storage_options
        inspect io_stats_incremental io_stats_snapshot lance_schema latest_storage_options
        latest_version list_indices max_field_id metadata name new_file_session opened optimize
        partition_expression read_blob_ranges read_blobs read_transaction remap_row_addrs
        row_history sample scanner schema schema_metadata session slice sort_by space sql stats
        storage_options_accessor stored_schema tags take take_blobs take_rows to_batches
        to_pandas to_table tracked_files transaction uri validate verify version version_info
        version_numbers version_refs versions
        prewarm_index value_counts near_duplicates label_doubts
        join join_asof merge_index_metadata replace_schema""",  # the last line: not supported
    lance_nb.DatasetOptimizer: "",
    lance_nb.Branches: "compare explain_delete list list_ordered names review reviews",
    lance_nb.Tags: "get_version list list_ordered marks names readable",
    lance_nb.LanceFragment: """
        count_rows data_files dataset deletion_file fragment_id head metadata num_deletions
        open_session partition_expression physical_rows physical_schema scanner schema take
        to_batches to_pandas to_table validate""",
    MergeInsertBuilder: """
        analyze_plan analyze_plan_batches conflict_retries data_storage_version explain_plan
        retry_timeout target_all_bases target_bases use_index when_matched_fail
        mark_sstables_as_compacted""",  # settings that change no call to the disk
    StagedMerge: "when_matched_delete when_matched_fail when_not_matched_by_source_delete",
    Stage: """
        branch check check_usable edits include lance_schema look_again meetings newest_version
        opened
        preview
        read_version settle staged state""",
    MergePlan: """
        again base cells check conflict_rows conflicts ends fragments kind merged message notes
        num_rows_after num_rows_before on_commit operation options outcome pin properties record
        schema_after session source source_files source_transactions strategy target
        target_transactions title transactions unresolved version""",
    lance_nb.RepairPlan: "ready steps uri verification",
    lance_nb.Compaction: "",
    lance_nb.CompactionTask: "fragments from_json json num_rows options read_version task",
    lance_nb.LanceFileWriter: "add_global_buffer add_schema_metadata close",
}
FUNCTIONS = """
    batch_udf bfloat16_array blob_array blob_field bytes_read_counter cast database dataset
        diff explore
    iops_counter json_to_schema load_ipython_extension sanitize_ts schema_to_json
    serialize_row_addrs stable_version td_to_micros unload_ipython_extension vec_to_table verify"""
NOT_WRITTEN = {"data_overlay", "update_mem_wal_state"}  # kinds that this library only reads


def public_names(thing: Any) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


def counted(called: set[str], name: str, function: Any) -> Any:
    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        called.add(name)
        return function(*arguments, **options)

    return call


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return the public functions and methods that are called, as "Class.method"."""
    names: set[str] = set()
    for cls in CLASSES:
        for name in public_names(cls):
            found = next(vars(one)[name] for one in cls.__mro__ if name in vars(one))
            title = f"{cls.__name__}.{name}"
            if isinstance(found, (staticmethod, classmethod)):
                wrapped: Any = type(found)(counted(names, title, found.__func__))
            elif callable(found):
                wrapped = counted(names, title, found)
            else:
                continue
            monkeypatch.setattr(cls, name, wrapped)
    for name in public_names(lance_nb):
        function = getattr(lance_nb, name)
        if name[0].islower() and callable(function) and not isinstance(function, type):
            monkeypatch.setattr(lance_nb, name, counted(names, name, function))
    return names


@pytest.mark.slow
def test_every_public_method_that_writes_is_called_by_a_verb(
    called: set[str], tmp_path: Path
) -> None:
    arms = set()
    for number, verb in enumerate(verbs.VERBS.values()):
        place = str(tmp_path / str(number) / "t.lance")
        make(place, number)
        verb.prepare(place)
        verb.run(place)
        arms |= arms_of(tmp_path / str(number))
    expected = {f"{cls.__name__}.{name}" for cls in CLASSES for name in public_names(cls)}
    expected |= {
        name
        for name in public_names(lance_nb)
        if name[0].islower() and callable(getattr(lance_nb, name))
    }
    reads = {f"{cls.__name__}.{name}" for cls, names in CLASSES.items() for name in names.split()}
    reads |= set(FUNCTIONS.split())
    assert " ".join(reads - expected) == "", "these are public no longer"
    missing = " ".join(sorted(expected - reads - called))
    assert missing == "", "they write, and no verb calls them"
    assert {*OPERATIONS} - arms == NOT_WRITTEN


def arms_of(folder: Path) -> set[str]:
    """Return the kinds of the transactions of all datasets and branches below a folder."""
    return {
        Transaction.from_bytes(one.read_bytes(), one.name).operation.arm
        for one in folder.rglob("*.txn")
    }
