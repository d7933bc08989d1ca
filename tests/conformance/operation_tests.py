"""What every operation has to do, whatever it does. The registry's test runs it for each."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest

from lance_nb.errors import DatasetNotFoundError
from lance_nb.transactions.new_version import build
from lance_nb.transactions.operation import Operation
from lance_nb.transactions.transaction import Transaction
from tests.support.sample_operations import UNKNOWN_FIELD, log_index, samples
from tests.support.versions import Versions

CREATES = ("overwrite", "clone")
NEVER_APPLIED = "data_overlay"


class OperationTests:
    """A test class sets ``arm`` by parametrisation."""

    def sample(self, arm: str, *, stable_row_ids: bool = False) -> tuple[Versions, Operation]:
        versions = Versions(stable_row_ids=stable_row_ids)
        if arm == "update_mem_wal_state":
            versions.apply(log_index())
        return versions, samples(versions)[arm]

    def test_its_bytes_give_the_same_value(self, arm: str) -> None:
        _, operation = self.sample(arm)
        transaction = Transaction(3, operation, "u", {"p": "q"}, "t")
        read = Transaction.from_bytes(transaction.to_bytes())
        assert read == transaction
        assert read.to_bytes() == transaction.to_bytes()

    def test_fields_of_a_newer_writer_are_carried(self, arm: str) -> None:
        _, operation = self.sample(arm)
        message = operation.to_pb()
        message.MergeFromString(UNKNOWN_FIELD)
        read = type(operation).from_pb(message)
        assert UNKNOWN_FIELD in read.to_pb().SerializeToString()

    def test_it_describes_itself_in_one_line(self, arm: str) -> None:
        _, operation = self.sample(arm)
        assert operation.describe()
        assert "\n" not in operation.describe()

    def test_it_is_a_value(self, arm: str) -> None:
        _, operation = self.sample(arm)
        assert operation == self.sample(arm)[1]
        with pytest.raises((FrozenInstanceError, AttributeError)):
            operation.unknown = b"x"

    def test_it_makes_a_whole_version_and_changes_nothing_that_was_there(self, arm: str) -> None:
        if arm == NEVER_APPLIED:
            pytest.skip("it is refused, which its own test shows")
        for stable in (False, True):
            versions, operation = self.sample(arm, stable_row_ids=stable)
            context = versions.context()
            if arm == "clone":
                context = replace(context, current=None, indices=())
            before = [one.to_bytes() for one in versions.manifest.fragments]
            transaction = Transaction(1, operation, "u")
            built = build(transaction, context)  # checks what must be true of a version
            again = build(transaction, context)
            assert built.manifest == again.manifest
            assert [one.to_bytes() for one in versions.manifest.fragments] == before
            assert built.manifest.transaction_file == "1-u.txn"

    def test_it_needs_a_dataset_or_creates_one(self, arm: str) -> None:
        if arm in (*CREATES, NEVER_APPLIED):
            pytest.skip("it creates, or is refused")
        versions, operation = self.sample(arm)
        with pytest.raises(DatasetNotFoundError):
            operation.apply(replace(versions.context(), current=None))
