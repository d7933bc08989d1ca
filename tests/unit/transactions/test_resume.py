from __future__ import annotations

from lance_nb.table.versions import version_names
from lance_nb.transactions.resume import find_transaction, resume
from tests.support.committing import Table


def test_a_transaction_is_found_wherever_it_landed():
    table = Table()
    first = table.create()
    made = [table.append(version) for version in (1, 2, 3)]
    for one in (first, *made):
        assert find_transaction(table.sound, one.transaction.uuid) == one.version
        found = resume(table.sound, one.transaction)
        assert (found.version, found.transaction) == (one.version, one.transaction)
        assert found.manifest == one.manifest


def test_a_transaction_that_did_not_land_is_not_found():
    table = Table()
    table.create()
    assert find_transaction(table.sound, "nobody") is None
    assert resume(table.sound, table.appending(1)) is None
    assert resume(Table().sound, table.appending(1)) is None


def test_only_newer_versions_are_read():
    table = Table()
    made = table.create()
    for version in range(1, 6):
        table.append(version)
    assert find_transaction(table.place, made.transaction.uuid, since=4) is None
    assert len([step for step in table.root.steps if step.method == "read"]) == 2


def test_a_version_that_cannot_be_read_is_passed_over():
    table = Table()
    made = table.create()
    table.append(1)
    table.inner.write(version_names(table.inner)[-1].path, b"garbage")
    assert find_transaction(table.sound, made.transaction.uuid) == 1
