"""What a commit does about versions that were committed since its read version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.errors import (
    CommitConflictError,
    RetryableCommitConflictError,
    VersionNotFoundError,
)
from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.format.feature_flags import STABLE_ROW_IDS
from lance_nb.format.fragment import DeletionFile, DeletionFileType, InlineSequence, RowIdMeta
from lance_nb.format.fragment_reuse import REUSE_INDEX, moves
from lance_nb.format.merged_logs import merged_logs, with_merged_logs
from lance_nb.format.row_sequences import RowIdSegments
from lance_nb.transactions.operation import Built, Operation
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.operations.create_index import CreateIndex
from lance_nb.transactions.operations.delete import Delete
from lance_nb.transactions.operations.overwrite import Overwrite
from lance_nb.transactions.operations.rewrite import Rewrite, RewriteGroup
from lance_nb.transactions.operations.update import Update, UpdateMode
from lance_nb.transactions.operations.update_mem_wal_state import UpdateMemWalState
from lance_nb.transactions.rebase import (
    RebaseContext,
    gap_problem,
    inserts_rows,
    merge_deletions,
    rebase,
    rebase_index,
    rebase_rewrite,
    with_reuse_index,
)
from lance_nb.transactions.transaction import Transaction
from tests.support.sample_operations import LOG, log_index
from tests.support.versions import (
    FIRST,
    SCHEMA,
    SECOND,
    THIRD,
    Versions,
    deleted,
    details,
    index,
    new_fragment,
)

Rows = Mapping[int, tuple[int, ...]]


def follow(
    versions: Versions, ours: Operation, *theirs: Operation, rows: Rows | None = None,
    now: Rows | None = None,
) -> Transaction:  # fmt: skip
    """Commit ``theirs`` and rebase ``ours``, which was made before."""
    read_version = versions.manifest.version
    for one in theirs:
        versions.apply(one)
    seen = [(read_version + 1 + at, Transaction(1, one, "o")) for at, one in enumerate(theirs)]
    return rebase(Transaction(read_version, ours, "u"), seen, versions.rebasing(rows, now))


def test_nothing_happened_nothing_changes() -> None:
    transaction = Transaction(1, Append(()), "u")
    assert rebase(transaction, [], Versions(1).rebasing()) is transaction


def test_an_append_goes_on_top_as_it_is() -> None:
    transaction = follow(Versions(1), Append((new_fragment(),)), Append((new_fragment(),)))
    assert transaction.read_version == 1


def test_a_delete_elsewhere_takes_over_the_new_read_version() -> None:
    versions = Versions(2)
    ours = Delete((deleted(versions.fragment(0), 1),))
    theirs = Delete((deleted(versions.fragment(1), 1),))
    transaction = follow(versions, ours, theirs)
    assert transaction == Transaction(2, ours, "u")


def test_deletions_of_different_rows_are_merged() -> None:
    versions = Versions(1)
    one = Delete((deleted(versions.fragment(0), 1),))
    transaction = follow(versions, one, one, rows={0: (3,)}, now={0: (5,)})
    (fragment,) = transaction.operation.updated_fragments
    assert fragment.deletion_file.num_deleted_rows == 2
    assert fragment.deletion_file.read_version == 2
    assert versions.apply(transaction.operation).manifest.fragments[0].num_rows == 8


def test_the_same_row_is_a_retry_that_names_it() -> None:
    versions = Versions(1)
    one = Delete((deleted(versions.fragment(0), 1),))
    with pytest.raises(RetryableCommitConflictError, match="row 3") as failed:
        follow(versions, one, one, rows={0: (3,)}, now={0: (3,)})
    assert "version 2" in str(failed.value)


def test_a_fragment_without_any_row_left_is_removed() -> None:
    versions = Versions(2)
    theirs = Delete((deleted(versions.fragment(0), 6),))
    ours = Delete((deleted(versions.fragment(0), 4),))
    now = {0: (0, 1, 2, 3, 4, 5)}
    transaction = follow(versions, ours, theirs, rows={0: (6, 7, 8, 9)}, now=now)
    assert transaction.operation == Delete((), (0,))


def test_an_update_of_rows_merges_its_deletions_too() -> None:
    versions = Versions(1)
    ours = Update((), (deleted(versions.fragment(0), 1),), (new_fragment("moved", 1),))
    theirs = Delete((deleted(versions.fragment(0), 1),))
    transaction = follow(versions, ours, theirs, rows={0: (3,)}, now={0: (5,)})
    assert transaction.operation.updated_fragments[0].num_deleted_rows == 2
    assert transaction.operation.new_fragments == ours.new_fragments


@pytest.mark.parametrize("reason", ["unknown rows", "row not listed", "columns", "files"])
def test_deletions_that_cannot_be_merged_are_a_retry(reason: str) -> None:
    versions = Versions(1)
    fragment = deleted(versions.fragment(0), 1)
    rows: Rows | None = {0: (3,)}
    ours: Operation = Delete((fragment,))
    theirs: Operation = ours
    if reason == "unknown rows":
        rows = None
    elif reason == "row not listed":
        rows = {}
    elif reason == "columns":
        ours = Update((), (fragment,), (), (1,), (), UpdateMode.REWRITE_COLUMNS)
    else:
        other = replace(fragment, files=(replace(fragment.files[0], path="other.lance"),))
        theirs = Update((), (other,), ())
    with pytest.raises(RetryableCommitConflictError, match="fragment 0"):
        follow(versions, ours, theirs, rows=rows, now={0: (5,)})


def test_an_incompatible_change_in_between_ends_it() -> None:
    with pytest.raises(CommitConflictError, match="Overwrite"):
        follow(Versions(1), Append(()), Append(()), Overwrite(SCHEMA, ()))


def test_an_index_leaves_fragments_whose_column_was_rewritten() -> None:
    versions = Versions(3)
    theirs = Update((), (versions.fragment(1),), (), (0,), (), UpdateMode.REWRITE_COLUMNS)
    transaction = follow(versions, CreateIndex((index("a", 0), index("b", 1))), theirs)
    covered = [sorted(one.fragment_ids) for one in transaction.operation.new_indices]
    assert covered == [[0, 2], [0, 1, 2]]
    assert transaction.read_version == 1


def test_two_upserts_that_do_not_name_their_keys_are_a_retry() -> None:
    versions = Versions(2)
    upsert = Update((), (deleted(versions.fragment(0), 1),), (new_fragment("u", 2),))
    theirs = replace(upsert, updated_fragments=(deleted(versions.fragment(1), 1),))
    with pytest.raises(RetryableCommitConflictError, match="both insert rows"):
        follow(versions, upsert, theirs)


def test_two_plain_updates_of_different_fragments_are_fine() -> None:
    versions = Versions(2)
    update = Update((), (deleted(versions.fragment(0), 2),), (new_fragment("u", 2),))
    theirs = replace(update, updated_fragments=(deleted(versions.fragment(1), 2),))
    assert follow(versions, update, theirs).read_version == 2


def test_upserts_whose_versions_were_cleaned_up_are_a_retry() -> None:
    versions = Versions(2)
    update = Update((), (deleted(versions.fragment(0), 2),), (new_fragment("u", 2),))
    theirs = replace(update, updated_fragments=(deleted(versions.fragment(1), 2),))
    versions.apply(theirs)

    def gone(version: int) -> None:
        raise VersionNotFoundError("here", version)

    context = replace(versions.rebasing(), load_version=gone)
    with pytest.raises(RetryableCommitConflictError, match="both insert rows"):
        rebase(Transaction(1, update, "u"), [(2, Transaction(1, theirs, "o"))], context)


def test_a_reuse_index_that_a_rewrite_does_not_name_is_found_in_its_version() -> None:
    versions = Versions(3)
    first, second = (
        Rewrite((RewriteGroup((versions.fragment(at),), (new_fragment(f"c{at}"),)),))
        for at in (0, 1)
    )
    theirs = replace(first, frag_reuse_index=index("__lance_frag_reuse", covers=(0,)))
    ours = replace(second, frag_reuse_index=index("__lance_frag_reuse", covers=(1,)))
    versions.apply(theirs)
    seen = [(2, Transaction(1, first, "o"))]  # as pylance writes it: the index is in the manifest

    with pytest.raises(RetryableCommitConflictError):
        rebase(Transaction(1, ours, "u"), seen, versions.rebasing())


def test_no_file_is_written_unless_all_fragments_can_be_merged() -> None:
    versions = Versions(2)
    ours = Delete(tuple(deleted(versions.fragment(one), 1) for one in (0, 1)))
    written = []

    def write(fragment_id: int, version: int, vector: DeletionVector) -> DeletionFile:
        written.append((fragment_id, version, vector.offsets().tolist()))
        return DeletionFile(version, 1, DeletionFileType.BITMAP, len(vector))

    def merge(*rows: int) -> RebaseContext:
        return RebaseContext(
            versions.manifest,
            (),
            versions.load,
            lambda one: DeletionVector.of([5 + one.id]),
            write,
            {0: DeletionVector.of([1]), 1: DeletionVector.of(rows)},
        )

    unchanged, problem = merge_deletions(ours, [0, 1], merge(6))
    assert unchanged is ours
    assert (problem.fragment_id, problem.text) == (1, "fragment 1: both change row 6")
    assert written == []
    merged, problem = merge_deletions(ours, [0, 1], merge(2))
    assert problem is None
    assert written == [(0, 1, [1, 5]), (1, 1, [2, 6])]
    assert [one.num_deleted_rows for one in merged.updated_fragments] == [2, 2]


def test_a_fragment_that_is_gone_is_a_problem() -> None:
    versions = Versions(1)
    ours = Delete((replace(deleted(versions.fragment(0), 1), id=9),))
    merge = RebaseContext(
        versions.manifest, (), versions.load, DeletionVector.of, DeletionVector.of, {}
    )
    _, problem = merge_deletions(ours, [9], merge)
    assert "no longer exists" in problem.text


REUSE = index(REUSE_INDEX, kind="FragmentReuse")


def test_the_log_index_takes_up_what_was_merged_meanwhile() -> None:
    ours = log_index()
    theirs = UpdateMemWalState((LOG,))
    (merged,) = rebase_index(ours, [(4, theirs)], ()).added
    assert merged_logs(merged.details) == (LOG,)
    ahead = replace(LOG, generation=99)
    details_ahead = with_merged_logs(b"", [ahead])
    ours = CreateIndex((replace(ours.added[0], details=details_ahead),))
    (merged,) = rebase_index(ours, [(4, theirs)], ()).added
    assert merged_logs(merged.details) == (ahead,)


def test_a_singleton_that_appeared_meanwhile_is_replaced() -> None:
    there = replace(log_index().added[0], uuid="11111111-1111-1111-1111-111111111111")
    rebased = rebase_index(log_index(), [], (there, index("i", 0)))
    assert rebased.removed == (there,)


def test_a_clean_up_keeps_the_rewrite_that_came_meanwhile() -> None:
    ours = CreateIndex((replace(REUSE, details=details(SECOND)),))
    theirs = Rewrite((), frag_reuse_index=replace(REUSE, details=details(FIRST, SECOND, THIRD)))
    (merged,) = rebase_index(ours, [(4, theirs)], ()).added
    assert moves(merged.details) == moves(details(SECOND, THIRD))
    assert sorted(merged.fragment_ids()) == [6, 7, 8]


def test_a_rewrite_drops_what_was_cleaned_up_meanwhile() -> None:
    ours = Rewrite((), frag_reuse_index=replace(REUSE, details=details(FIRST, SECOND, THIRD)))
    theirs = CreateIndex((replace(REUSE, details=details(SECOND)),))
    rebased = rebase_rewrite(ours, [(4, theirs)])
    assert moves(rebased.frag_reuse_index.details) == moves(details(SECOND, THIRD))
    assert rebase_rewrite(Rewrite(()), [(4, theirs)]) == Rewrite(())


def test_that_a_rewrite_changed_the_reuse_index_is_seen_in_the_versions() -> None:
    versions = Versions(1)
    plain = versions.newest
    versions.built[2] = Built(plain.manifest, (REUSE,))
    versions.built[3] = Built(plain.manifest, (REUSE,))
    assert with_reuse_index(Rewrite(()), 2, versions.load).frag_reuse_index == REUSE
    assert with_reuse_index(Rewrite(()), 3, versions.load).frag_reuse_index is None
    assert with_reuse_index(Rewrite(()), 1, versions.load).frag_reuse_index is None


def test_rows_beyond_those_deleted_are_new() -> None:
    versions = Versions(2)
    before = versions.manifest
    changed = (deleted(versions.fragment(0), 3),)
    for rows, inserts in ((3, False), (4, True)):
        assert inserts_rows(Update((), changed, (new_fragment(rows=rows),)), before) is inserts
        new = (new_fragment(rows=rows + 10),)
        assert inserts_rows(Update((1,), changed, new), before) is inserts


def test_beside_rewritten_columns_every_written_row_is_new() -> None:
    before = Versions(1).manifest
    mode = UpdateMode.REWRITE_COLUMNS
    assert inserts_rows(Update(new_fragments=(new_fragment(),), update_mode=mode), before)
    assert not inserts_rows(Update(update_mode=mode), before)


def test_an_update_of_every_field_may_insert_as_many_rows_as_it_deletes() -> None:
    versions = Versions(2)
    before = versions.manifest
    every = tuple(one.id for one in before.schema.walk())
    changed, new = (deleted(versions.fragment(0), 3),), (new_fragment(rows=3),)
    named = {"fields_for_preserving_frag_bitmap": every}
    assert inserts_rows(Update((), changed, new, **named), before)
    assert not inserts_rows(Update((), changed, (), **named), before)
    fewer = {"fields_for_preserving_frag_bitmap": every[:-1]}
    assert not inserts_rows(Update((), changed, new, **fewer), before)


def test_with_stable_row_ids_new_rows_are_those_without_an_id() -> None:
    before = replace(Versions(2).manifest, reader_feature_flags=STABLE_ROW_IDS)
    ids = InlineSequence(RowIdSegments.from_numpy(np.arange(3, dtype=np.uint64)).to_bytes())
    for rows, inserts in ((3, False), (4, True)):
        new = (replace(new_fragment(rows=rows), row_id_meta=RowIdMeta(ids)),)
        assert inserts_rows(Update(new_fragments=new), before) is inserts
    assert inserts_rows(Update(new_fragments=(new_fragment(rows=1),)), before)


_NUMBERS = count()
ROWS = pa.table({"id": range(4), "name": list("abcd")})
Change = Callable[[LanceDataset], Any]


@pytest.fixture
def uri() -> str:
    return f"memory://lost/{next(_NUMBERS)}.lance"


def stale(uri: str, *changes: Change, keep: int = 1) -> LanceDataset:
    """Return a handle at version 2; others made changes, of which only the newest is left."""
    lance_nb.write_dataset(ROWS, uri)
    lance_nb.write_dataset(ROWS, uri, mode="append").update_config({"before": "1"})
    lance_nb.dataset(uri).update_schema_metadata({"s": "1"})
    lance_nb.dataset(uri).update_field_metadata({"name": {"f": "1"}})
    handle = lance_nb.dataset(uri)
    for change in (*changes, lambda one: one.update_config({"last": "1"})):
        change(lance_nb.dataset(uri))
    lance_nb.dataset(uri).cleanup_old_versions(timedelta(0), retain_versions=keep)
    assert len(lance_nb.dataset(uri).versions()) == keep
    assert handle.version == 5
    return handle


SETTINGS: dict[str, Change] = {
    "update_config": lambda one: one.update_config({"k": "v"}),
    "delete": lambda one: one.delete_config_keys(["before"]),
    "table metadata": lambda one: one.update_metadata({"k": "v"}),
    "replaced": lambda one: one.update_schema_metadata({"k": "v"}, replace=True),
    "field metadata": lambda one: one.update_field_metadata({"name": {"k": "v"}}),
}
OTHERS: dict[str, Change] = {
    "rows": lambda one: one.insert(ROWS),
    "compaction": lambda one: one.optimize.compact_files(),
    "settings": lambda one: one.update_config({"other": "1"}),
    "column": lambda one: one.add_columns({"more": "id + 1"}),
}


@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize("name", SETTINGS)
def test_settings_that_nobody_changed_are_changed(uri: str, name: str, others: str) -> None:
    handle = stale(uri, OTHERS[others])
    SETTINGS[name](handle)
    newest = lance_nb.dataset(uri)
    assert handle.version == newest.version == 8
    config = newest.config()
    assert config["last"] == "1"
    assert ("before" in config) == (name != "delete")
    assert config.get("k") == ("v" if name == "update_config" else None)
    assert newest.count_rows() == (12 if others == "rows" else 8)
    expected = {"k": "v"} if name == "replaced" else {"s": "1"}
    assert {k.decode(): v.decode() for k, v in newest.schema.metadata.items()} == expected
    field = {b"f": b"1"} | ({b"k": b"v"} if name == "field metadata" else {})
    assert newest.schema.field("name").metadata == field


@pytest.mark.parametrize(
    ("name", "other", "message"),
    [
        ("update_config", {"k": "theirs"}, "config key 'k' is not what it was"),
        ("delete", {"before": "2"}, "config key 'before' is not what it was"),
    ],
)
def test_a_key_that_somebody_changed_is_a_conflict(uri, name, other, message) -> None:
    handle = stale(uri, lambda one: one.update_config(other))
    with pytest.raises(RetryableCommitConflictError, match=message):
        SETTINGS[name](handle)
    assert lance_nb.dataset(uri).version == 7
    SETTINGS[name](handle.checkout_latest())


def test_metadata_that_would_be_replaced_or_of_another_column_is_a_conflict(uri: str) -> None:
    handle = stale(uri, lambda one: one.update_schema_metadata({"t": "2"}))
    with pytest.raises(RetryableCommitConflictError, match="schema metadata, which would be repl"):
        SETTINGS["replaced"](handle)
    other = stale(f"{uri}-2", lambda one: one.alter_columns({"path": "name", "name": "label"}))
    with pytest.raises(RetryableCommitConflictError, match="not the column that it was"):
        SETTINGS["field metadata"](other)


def test_a_key_of_a_column_that_somebody_changed_is_a_conflict(uri: str) -> None:
    handle = stale(uri, lambda one: one.update_field_metadata({"name": {"f": "2"}}))
    with pytest.raises(RetryableCommitConflictError, match="field metadata key 'f' is not what"):
        handle.update_field_metadata({"name": {"f": "3"}})


@pytest.mark.parametrize("others", OTHERS)
@pytest.mark.parametrize("way", ["insert", "write_dataset"])
def test_rows_are_appended(uri: str, others: str, way: str) -> None:
    handle = stale(uri, OTHERS[others])
    before = lance_nb.dataset(uri).count_rows()
    if way == "insert":
        handle.insert(ROWS)
    else:
        lance_nb.write_dataset(ROWS, handle, mode="append")
    found = lance_nb.dataset(uri)
    assert found.count_rows() == before + 4
    assert found.to_table(["id"])["id"].to_pylist()[-4:] == [0, 1, 2, 3]
    assert found.verify().ok


def test_fragments_are_committed_for_a_version_that_is_there(uri: str) -> None:
    stale(uri, OTHERS["rows"])  # versions up to 6 are gone
    operation = lance_nb.LanceOperation.Append(lance_nb.write_fragments(ROWS, uri))
    with pytest.raises(RetryableCommitConflictError, match="removed in the meantime"):
        LanceDataset.commit(uri, operation, read_version=5)
    lance_nb.dataset(uri).tags.create("kept", 7)
    lance_nb.dataset(uri).update_config({"a": "1"})
    lance_nb.dataset(uri).update_config({"b": "1"})
    lance_nb.dataset(uri).cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)
    assert lance_nb.dataset(uri).version_numbers() == [7, 9]
    assert LanceDataset.commit(uri, operation, read_version=7).count_rows() == 16


def test_files_that_are_there_are_not_appended_again(uri: str) -> None:
    handle = stale(uri)
    made = lance_nb.write_fragments(ROWS, uri)
    LanceDataset.commit(uri, lance_nb.LanceOperation.Append(made), read_version=6)
    problem = gap_problem(
        lance_nb.LanceOperation.Append(tuple(made)),
        handle.opened[1].manifest,
        lance_nb.dataset(uri).opened[1].manifest,
    )
    assert problem == "the files of this change are in the dataset already"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda one: one.drop_columns(["name"]), "column 'name' is not what it was"),
        (lambda one: one.alter_columns({"path": "id", "name": "number"}), "'id' is not what it"),
        (lambda one: one.alter_columns({"path": "id", "data_type": pa.int32()}), "'id' is not"),
        (lambda one: one.insert(ROWS.select(["id"]), mode="overwrite"), "'name' is not what"),
    ],
)
def test_rows_are_not_appended_to_another_table(uri: str, change: Change, message: str) -> None:
    handle = stale(uri, change)
    with pytest.raises(RetryableCommitConflictError, match=message):
        handle.insert(ROWS)
    assert lance_nb.dataset(uri).version == 7


def test_an_overwrite_fits_always(uri: str) -> None:
    handle = stale(uri, OTHERS["column"])
    handle.insert(ROWS, mode="overwrite")
    assert lance_nb.dataset(uri).to_table() == ROWS


@pytest.mark.parametrize(
    "verb",
    [
        lambda one: one.delete("id = 1"),
        lambda one: one.update({"name": "'z'"}, where="id = 1"),
        lambda one: one.add_columns({"new": "id * 2"}),
        lambda one: one.drop_columns(["name"]),
        lambda one: one.optimize.compact_files(),
        lambda one: one.create_scalar_index("id", "BTREE"),
    ],
)
def test_other_verbs_plan_again_on_the_newest_version(uri: str, verb: Change) -> None:
    handle = stale(uri, OTHERS["rows"])
    verb(handle)
    assert handle.version == lance_nb.dataset(uri).version > 7
    assert lance_nb.dataset(uri).verify().ok


def test_a_handle_whose_own_version_is_gone_reads_and_cleans_up(uri: str) -> None:
    handle = stale(uri)
    handle.cleanup_old_versions(timedelta(0))
    assert handle.to_table(["id"]).num_rows == 8
    assert handle.checkout_version(5).version == handle.checkout_version(5).version == 5
    assert handle.checkout_version(5) is not handle
    assert handle.checkout_latest().version == 6
    with pytest.raises(VersionNotFoundError):
        handle.checkout_version(5)
