from __future__ import annotations

from dataclasses import replace

import pytest

from lance_nb.format.layout import ManifestName, NamingScheme
from lance_nb.table.versions import version_names
from lance_nb.transactions.new_version import prepare
from lance_nb.transactions.operation import Built
from lance_nb.transactions.operations.clone import Clone
from lance_nb.transactions.resume import find_transaction, resume
from tests.support.committing import Table
from tests.support.versions import Versions


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


def test_versions_before_the_read_version_are_not_read():
    table = Table()
    table.create()
    for version in range(1, 6):
        table.append(version)
    before = len(table.root.steps)
    assert resume(table.place, table.appending(5)) is None
    assert len([step for step in table.root.steps[before:] if step.method == "read"]) == 1


def test_a_version_that_cannot_be_read_is_passed_over():
    table = Table()
    made = table.create()
    table.append(1)
    table.inner.write(version_names(table.inner)[-1].path, b"garbage")
    assert find_transaction(table.sound, made.transaction.uuid) == 1


def test_a_clone_is_found_although_it_keeps_its_sources_number():
    """Its version is the one that it was read at, so nothing newer can be its own."""
    table = Table()
    for version in range(3):
        table.append(version) if version else table.create()
    source = table.sound
    clone = Table()
    operation = Clone(is_shallow=True, ref_name=None, ref_version=3, ref_path=source.home.uri)
    transaction = table.transaction(3, operation)
    context = Versions(1).context()
    manifest = replace(context.current, version=3, transaction_file=transaction.file_name)
    name = ManifestName(3, NamingScheme.V2)
    written = prepare(clone.inner, Built(manifest, ()), transaction, name)
    clone.inner.write(name.path, written.data)

    found = resume(clone.sound, transaction)

    assert found is not None
    assert (found.version, found.transaction.uuid) == (3, transaction.uuid)
    assert resume(clone.sound, table.appending(3)) is None


def test_a_version_that_vanishes_while_it_is_looked_at_is_passed_over():
    table = Table()
    made = table.create()
    table.append(1)
    newest = version_names(table.inner)[-1].path
    table.root.world.plan = lambda step: (
        table.inner.delete(newest) if step.method == "read" and step.path == newest else None
    )
    assert find_transaction(table.place, made.transaction.uuid) == 1


@pytest.mark.parametrize(("since", "found"), [(0, 2), (1, 2), (2, None), (3, None)])
def test_versions_up_to_since_are_not_looked_at(since: int, found: int | None):
    table = Table()
    table.create()
    made = table.append(1)
    table.append(2)
    assert find_transaction(table.sound, made.transaction.uuid, since) == found
