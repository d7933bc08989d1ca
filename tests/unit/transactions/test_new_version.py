from __future__ import annotations

from lance_nb.format.layout import HINT_PATH, ManifestName, NamingScheme
from lance_nb.format.manifest import Manifest, parse_manifest
from lance_nb.transactions.new_version import (
    prepare,
    with_message,
    write_hint,
    write_transaction_file,
)
from lance_nb.transactions.operation import Built
from tests.support.committing import SCHEMA, Table
from tests.support.faulty_store import Fault, on

NAME = ManifestName(4, NamingScheme.V2)


def test_what_is_prepared_is_what_will_be_read():
    table = Table()
    transaction = table.appending(3)
    manifest = Manifest(4, SCHEMA, transaction_file=transaction.file_name)
    found = prepare(table.root, Built(manifest, ()), transaction, NAME)
    assert table.inner.list_recursive("") == []
    read = parse_manifest(found.data, f"{table.root.uri}/{NAME.path}")
    assert read == found.committed.manifest
    assert read.transaction_section == found.committed.manifest.transaction_section
    assert (read.size_bytes, read.path) == (
        found.committed.manifest.size_bytes,
        found.committed.manifest.path,
    )
    assert write_transaction_file(table.root, found) == transaction.file_name
    assert bytes(table.inner.read(f"_transactions/{transaction.file_name}")) == found.inline


def test_a_version_without_a_transaction_file_writes_none():
    table = Table()
    found = prepare(table.root, Built(Manifest(4, SCHEMA), ()), table.appending(3), NAME)
    assert write_transaction_file(table.root, found) == ""
    assert table.inner.list_recursive("") == []


def test_a_hint_that_cannot_be_written_is_left():
    table = Table(on("write", "", Fault.NO_SPACE))
    write_hint(table.root, 3)
    write_hint(table.root, 4)
    assert bytes(table.inner.read(HINT_PATH)) == b'{"version":4}'


def test_a_message_is_a_property_and_none_changes_nothing():
    transaction = Table().appending(1)
    assert with_message(transaction, None) is transaction
    assert with_message(transaction, "").message == ""
