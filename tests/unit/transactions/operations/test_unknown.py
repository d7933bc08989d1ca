"""Operations of newer writers."""

from __future__ import annotations

import pytest

from lance_nb._pb import transaction as pb
from lance_nb.errors import NotSupportedError
from lance_nb.transactions.operations.unknown import Unknown
from lance_nb.transactions.transaction import Transaction
from tests.support.versions import Versions


def test_an_operation_of_a_newer_writer_is_recognised_and_carried() -> None:
    data = pb.Transaction(read_version=4, uuid="u").SerializeToString() + b"\xa2\x07\x01x"
    transaction = Transaction.from_bytes(data)
    assert transaction.operation == Unknown((116,))
    assert "field 116" in transaction.operation.describe()
    assert transaction.to_bytes() == data


def test_no_operation_at_all_is_unknown_too() -> None:
    transaction = Transaction.from_bytes(b"")
    assert transaction.operation == Unknown()
    assert transaction.operation.describe() == "no operation recorded"


def test_it_cannot_be_applied_or_written() -> None:
    with pytest.raises(NotSupportedError, match="newer lance_nb"):
        Versions(1).apply(Unknown((116,)))
    with pytest.raises(NotSupportedError, match="newer lance_nb"):
        Unknown().to_pb()
    assert Unknown.from_pb(None) == Unknown()
