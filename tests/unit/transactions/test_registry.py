"""Every registered operation keeps the contract of operations."""

from __future__ import annotations

import pytest

from lance_nb._pb import transaction as pb
from lance_nb.format.transaction_summary import DESCRIBERS
from lance_nb.transactions.registry import OPERATIONS
from tests.conformance.operation_tests import OperationTests


@pytest.mark.parametrize("arm", OPERATIONS)
class TestEveryOperation(OperationTests):
    pass


def test_every_arm_of_the_message_has_its_operation() -> None:
    arms = [one.name for one in pb.Transaction.DESCRIPTOR.oneofs_by_name["operation"].fields]
    assert set(OPERATIONS) == set(arms) == set(DESCRIBERS)
