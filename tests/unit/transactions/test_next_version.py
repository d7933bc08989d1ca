"""From a transaction to the version it makes."""

from __future__ import annotations

from dataclasses import replace

from lance_nb.transactions.next_version import build
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.transaction import Transaction
from tests.support.versions import Versions

TRANSACTION = Transaction(1, Append(()), "u", tag="v1")


def test_the_version_names_its_transaction() -> None:
    manifest = build(TRANSACTION, Versions(1).context()).manifest
    assert (manifest.transaction_file, manifest.tag) == ("1-u.txn", "v1")


def test_an_inline_only_transaction_has_no_file() -> None:
    context = Versions(1).context(no_transaction_file=True)
    assert build(TRANSACTION, context).manifest.transaction_file == ""


def test_building_is_repeatable() -> None:
    context = Versions(1).context()
    assert build(TRANSACTION, context) == build(replace(TRANSACTION), context)
