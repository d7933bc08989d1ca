"""From a transaction to the version it makes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lance_nb.errors import InternalError
from lance_nb.transactions.next_version import build
from lance_nb.transactions.operation import ApplyContext, Built
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


def test_an_outcome_that_names_another_transaction_is_corrected() -> None:
    def apply(context: ApplyContext) -> Built:
        built = Append(()).apply(context)
        manifest = replace(built.manifest, transaction_file="other.txn", tag="other")
        return replace(built, manifest=manifest)

    manifest = build(TRANSACTION, Versions(1).context(), apply).manifest
    assert (manifest.transaction_file, manifest.tag) == ("1-u.txn", "v1")


def test_an_outcome_that_no_dataset_may_have_is_not_returned() -> None:
    def apply(context: ApplyContext) -> Built:
        built = Append(()).apply(context)
        return replace(built, manifest=replace(built.manifest, version=1))

    with pytest.raises(InternalError):
        build(TRANSACTION, Versions(1).context(), apply)


@pytest.mark.parametrize("part", ["transaction_file", "tag"])
def test_either_name_is_corrected_by_itself(part: str) -> None:
    def apply(context: ApplyContext) -> Built:
        built = Append(()).apply(context)
        return replace(built, manifest=replace(built.manifest, **{part: "other"}))

    manifest = build(TRANSACTION, Versions(1).context(), apply).manifest
    assert (manifest.transaction_file, manifest.tag) == ("1-u.txn", "v1")
