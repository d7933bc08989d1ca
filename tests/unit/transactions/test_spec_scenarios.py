"""The three conflicts that the specification of transactions works through, committed for real."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import replace

import pytest

from lance_nb.errors import CommitConflictError, RetryableCommitConflictError
from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.format.manifest import Manifest
from lance_nb.storage.memory import MemoryStore
from lance_nb.transactions.commit import commit
from lance_nb.transactions.commit_options import CommitOptions, CommitPlace, Committed
from lance_nb.transactions.deletion_files import read_deletion_file, write_deletion_file
from lance_nb.transactions.environment import Environment
from lance_nb.transactions.operation import Operation
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.operations.delete import Delete
from lance_nb.transactions.operations.overwrite import Overwrite
from lance_nb.transactions.operations.restore import Restore
from lance_nb.transactions.operations.rewrite import Rewrite, RewriteGroup
from lance_nb.transactions.operations.update import Update
from lance_nb.transactions.transaction import Transaction
from tests.support.versions import SCHEMA, new_fragment

ROWS = 1000


class Table:
    """A table that several writers change. Each writer knows the version it has read."""

    def __init__(self) -> None:
        self.place = CommitPlace.of(MemoryStore(f"scenarios-{uuid.uuid4()}"))
        first = Overwrite(SCHEMA, (new_fragment("v1", ROWS),))
        self.commit(first, read_version=0)

    def commit(
        self, operation: Operation, read_version: int, rows: dict[int, Iterable[int]] | None = None
    ) -> Committed:
        affected = rows and {key: DeletionVector.of(one) for key, one in rows.items()}
        transaction = Transaction(read_version, operation, str(uuid.uuid4()))
        return commit(self.place, transaction, CommitOptions(affected_rows=affected))

    def delete_rows(self, manifest: Manifest, fragment_id: int, rows: Iterable[int]) -> Delete:
        """Return the operation of a writer that has read ``manifest`` and deletes some rows."""
        vector = DeletionVector.of(rows)
        fragment = manifest.fragments.with_ids([fragment_id])[fragment_id]
        file = write_deletion_file(
            self.place.home, fragment_id, manifest.version, vector, environment=Environment()
        )
        return Delete((replace(fragment, deletion_file=file),), predicate="some rows")

    def deleted(self, manifest: Manifest, fragment_id: int) -> list[int]:
        fragment = manifest.fragments.with_ids([fragment_id])[fragment_id]
        vector = read_deletion_file(self.place.locations(manifest), fragment)
        return vector.offsets().tolist()


def test_rebasable_two_deletes_of_different_rows_in_one_fragment() -> None:
    table = Table()
    v2 = table.commit(Append((new_fragment("v2", 5),)), read_version=1).manifest
    writer_a = table.delete_rows(v2, 0, range(100, 200))
    writer_b = table.delete_rows(v2, 0, range(500, 600))

    v3 = table.commit(writer_a, read_version=2, rows={0: range(100, 200)})
    v4 = table.commit(writer_b, read_version=2, rows={0: range(500, 600)})

    assert (v3.version, v4.version) == (3, 4)
    assert v4.transaction.read_version == 3
    assert table.deleted(v4.manifest, 0) == [*range(100, 200), *range(500, 600)]
    assert v4.manifest.fragments[0].num_deleted_rows == 200


def test_retryable_an_update_in_a_fragment_that_was_compacted() -> None:
    table = Table()
    more = tuple(new_fragment(f"f{one}", 10) for one in range(1, 6))
    v2 = table.commit(Append(more), read_version=1).manifest
    fragments = v2.fragments.with_ids(range(1, 6))
    writer_a = Rewrite((RewriteGroup(tuple(fragments.values()), (new_fragment("all", 50),)),))
    update = table.delete_rows(v2, 3, [2])
    writer_b = Update(
        updated_fragments=update.updated_fragments, new_fragments=(new_fragment("moved", 1),)
    )

    v3 = table.commit(writer_a, read_version=2)

    with pytest.raises(RetryableCommitConflictError, match="fragment 3") as failed:
        table.commit(writer_b, read_version=2, rows={3: [2]})
    assert "Read version 3 and do the change again" in str(failed.value)

    update = table.delete_rows(v3.manifest, 6, [22])
    again = Update(
        updated_fragments=update.updated_fragments, new_fragments=(new_fragment("moved", 1),)
    )
    v4 = table.commit(again, read_version=3, rows={6: [22]})
    assert [one.id for one in v4.manifest.fragments] == [0, 6, 7]


def test_incompatible_a_delete_of_rows_that_a_restore_took_away() -> None:
    table = Table()
    table.commit(Append((new_fragment("v2", 10),)), read_version=1)
    v3 = table.commit(Append((new_fragment("v3", 10),)), read_version=2).manifest
    writer_b = Delete(deleted_fragment_ids=(1, 2), predicate="rows added in v2 and v3")
    assert [one.id for one in v3.fragments] == [0, 1, 2]

    v4 = table.commit(Restore(1), read_version=3)

    assert [one.id for one in v4.manifest.fragments] == [0]
    with pytest.raises(CommitConflictError, match="incompatible with the Restore") as failed:
        table.commit(writer_b, read_version=3)
    assert "version 4" in str(failed.value)
    assert "deciding anew" in str(failed.value)
