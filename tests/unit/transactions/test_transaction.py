"""The transaction around an operation."""

from __future__ import annotations

from typing import Any

import pytest

from lance_nb._pb import transaction as pb
from lance_nb.errors import ArgumentError, CorruptFileError
from lance_nb.format.transaction_summary import MESSAGE_PROPERTY
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.operations.unknown import Unknown
from lance_nb.transactions.transaction import Transaction
from tests.support.versions import new_fragment

APPEND = Append((new_fragment(),))


def test_the_file_is_named_after_read_version_and_uuid() -> None:
    assert Transaction(4, APPEND, "abc").file_name == "4-abc.txn"


def test_the_commit_message_is_a_property() -> None:
    assert Transaction(4, APPEND, "u").message is None
    assert Transaction(4, APPEND, "u", {MESSAGE_PROPERTY: "why"}).message == "why"


def test_an_operation_without_content_is_still_that_operation() -> None:
    empty = Transaction(1, Append(()), "u")
    assert Transaction.from_bytes(empty.to_bytes()) == empty


def test_fields_of_a_newer_writer_are_carried() -> None:
    message = pb.Transaction(read_version=4, uuid="u")
    message.append.SetInParent()
    data = message.SerializeToString() + b"\x4a\x01x"
    assert Transaction.from_bytes(data).to_bytes().count(b"\x4a\x01x") == 1


def test_other_bytes_are_refused_with_the_name_of_the_file() -> None:
    with pytest.raises(CorruptFileError, match=r"3-u\.txn"):
        Transaction.from_bytes(b"\xff\xff", "3-u.txn")


@pytest.mark.parametrize("properties", [{"a": 1}, {1: "a"}, {"a": None}])
def test_properties_are_texts(properties: Any) -> None:
    with pytest.raises(ArgumentError, match="transaction_properties are texts, not"):
        Transaction(1, APPEND, "u", properties)


def test_no_properties_are_none() -> None:
    assert Transaction(1, APPEND, "u", None).properties == {}
    assert Transaction(1, APPEND).uuid != Transaction(1, APPEND).uuid


@pytest.mark.parametrize(
    ("fields", "numbers"),
    [
        (b"", ()),
        (b"\x9a\x06\x00", ()),
        (b"\xa2\x07\x00\x9a\x06\x00", (116,)),
    ],
    ids=["none", "field 99", "fields 116 and 99"],
)
def test_an_operation_of_a_newer_writer_is_known_by_its_number(
    fields: bytes, numbers: tuple[int, ...]
) -> None:
    read = Transaction.from_bytes(b"\x08\x04" + fields)
    assert read.operation == Unknown(numbers)
    assert read.to_bytes() == b"\x08\x04" + fields
