"""Rebase."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from lance_nb.errors import (
    CommitConflictError,
    RetryableCommitConflictError,
    VersionNotFoundError,
)
from lance_nb.transactions.operation import Operation
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.operations.create_index import CreateIndex
from lance_nb.transactions.operations.delete import Delete
from lance_nb.transactions.operations.overwrite import Overwrite
from lance_nb.transactions.operations.rewrite import Rewrite, RewriteGroup
from lance_nb.transactions.operations.update import Update, UpdateMode
from lance_nb.transactions.rebase import rebase
from lance_nb.transactions.transaction import Transaction
from tests.support.versions import SCHEMA, Versions, deleted, index, new_fragment

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
        theirs = Delete((other,))
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
