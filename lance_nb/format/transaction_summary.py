"""What a transaction did, for people: the envelope, the operation's name, a line and its details.

Layout: a ``.txn`` file is a bare ``Transaction`` message; the inline copy in a manifest file is the
same bytes in a section.

Limits: details are bounded (operation_details.py). An operation of a newer writer decodes to
"Unknown", with the number of its field.
Not supported: applying a transaction, or judging conflicts: that is the write side's business.
Source: message ``Transaction`` of lance.table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.unknown_fields import UnknownFieldSet

from lance_nb._pb import transaction as pb
from lance_nb.format.operation_details import DESCRIBERS, Described, shorten, shorten_map
from lance_nb.format.wire import parse

UNKNOWN = "Unknown"
MESSAGE_PROPERTY = "__lance_commit_message"
_FIRST_OPERATION = 100


@dataclass(frozen=True, slots=True)
class TransactionSummary:
    """The change that turned ``read_version`` (or a later one) into a new version.

    ``details`` holds JSON values only.
    """

    read_version: int
    uuid: str
    operation: str
    description: str
    details: Mapping[str, Any] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    tag: str = ""

    @property
    def message(self) -> str | None:
        """The commit message, None if there is none."""
        return self.properties.get(MESSAGE_PROPERTY)


def summarize_transaction(data: bytes | memoryview, path: str = "") -> TransactionSummary:
    """Decode a serialized Transaction. Raises CorruptFileError."""
    message = parse(pb.Transaction, data, path)
    arm = message.WhichOneof("operation")
    if arm is None:
        operation, (description, details) = UNKNOWN, _unknown(message)
    else:
        operation = operation_name(arm)
        description, details = DESCRIBERS[arm](getattr(message, arm))
    return TransactionSummary(
        message.read_version,
        shorten(message.uuid),
        operation,
        description,
        details,
        shorten_map(message.transaction_properties),
        shorten(message.tag),
    )


def cloned_place(data: bytes | memoryview, path: str = "") -> str | None:
    """Return the folder that a serialized Clone refers to, None for any other operation.

    Raises CorruptFileError.
    """
    message = parse(pb.Transaction, data, path)
    return message.clone.ref_path if message.WhichOneof("operation") == "clone" else None


def operation_name(arm: str) -> str:
    """Return the CamelCase name that pylance shows for an arm of the message."""
    return "".join(part.capitalize() for part in arm.split("_"))


def _unknown(message: pb.Transaction) -> Described:
    found = UnknownFieldSet(message)
    fields = {found[index].field_number for index in range(len(found))}
    numbers = sorted(number for number in fields if number >= _FIRST_OPERATION)
    if not numbers:
        return "no operation recorded", {}
    shown = ", ".join(map(str, numbers[:5]))
    return f"an operation this release does not know (field {shown})", {"fields": numbers[:5]}
