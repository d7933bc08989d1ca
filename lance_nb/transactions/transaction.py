"""A transaction: the change that turns the version it was made for into a new one.

Layout: a ``.txn`` file is the bare ``Transaction`` message; the inline copy in a manifest file is
the same bytes with a length prefix (format/manifest.py).

Limits: what we do not know is carried in ``unknown``, an operation of a newer writer too; such a
transaction is written back as it was read and cannot be applied.
Source: message ``Transaction`` of lance.table. The commit message is the property
``__lance_commit_message``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any
from uuid import uuid4

from google.protobuf.unknown_fields import UnknownFieldSet

from lance_nb._pb import transaction as pb
from lance_nb.errors import ArgumentError
from lance_nb.format import layout
from lance_nb.format.transaction_summary import MESSAGE_PROPERTY
from lance_nb.format.wire import parse, unknown_bytes
from lance_nb.transactions.operation import Operation
from lance_nb.transactions.operations.unknown import Unknown
from lance_nb.transactions.registry import OPERATIONS
from lance_nb.value_classes import dataclass

_FIRST_OPERATION = 100


@dataclass(frozen=True, slots=True)
class Transaction:
    """What is to change, and the version that the change was made for.

    Commit one with ``LanceDataset.commit`` or ``commit_batch``; ``read_transaction`` and
    ``get_transactions`` return those of a dataset. Without ``uuid`` it gets a new one.

    Raises ArgumentError for properties that are no texts.

    Examples:
        >>> from lance_nb import LanceOperation, Transaction
        >>> restore = LanceOperation.Restore(1)
        >>> made = Transaction(1, restore, transaction_properties={"author": "ada"})
        >>> made.operation, made.properties, made.message
        (LanceOperation.Restore(version=1), {'author': 'ada'}, None)
        >>> made.file_name == f"1-{made.uuid}.txn"
        True
        >>> Transaction.from_bytes(made.to_bytes()) == made
        True
    """

    read_version: int
    operation: Operation
    uuid: str = field(default_factory=lambda: str(uuid4()))
    transaction_properties: Mapping[str, str] = field(default_factory=dict)
    tag: str = field(default="", repr=False)
    unknown: bytes = field(default=b"", repr=False)

    def __post_init__(self) -> None:
        properties = self.transaction_properties or {}
        wrong = [text for pair in properties.items() for text in pair if not isinstance(text, str)]
        if wrong:
            kind = type(wrong[0]).__name__
            raise ArgumentError(f"transaction_properties are texts, not {kind}: {wrong[0]!r:.40}")
        object.__setattr__(self, "transaction_properties", properties)

    @property
    def properties(self) -> Mapping[str, str]:
        """The transaction's properties: ``transaction_properties``."""
        return self.transaction_properties

    @property
    def message(self) -> str | None:
        """The commit message, None if there is none."""
        return self.properties.get(MESSAGE_PROPERTY)

    @property
    def file_name(self) -> str:
        """The name of its file, as a manifest records it."""
        return layout.transaction_name(self.read_version, self.uuid)

    @classmethod
    def from_bytes(cls, data: bytes | memoryview, path: str = "") -> Transaction:
        """Parse a serialized Transaction.

        Args:
            data: the content of a ``.txn`` file.
            path: named in errors.

        Raises CorruptFileError.
        """
        message = parse(pb.Transaction, data, path)
        arm = message.WhichOneof("operation")
        operation: Operation = Unknown(_unknown_numbers(message))
        if arm is not None:
            operation = OPERATIONS[arm].from_pb(getattr(message, arm), path)
        return cls(
            message.read_version,
            operation,
            message.uuid,
            transaction_properties=dict(message.transaction_properties),
            tag=message.tag,
            unknown=unknown_bytes(message),
        )

    def to_bytes(self) -> bytes:
        """Serialize; equal transactions give equal bytes."""
        message: Any = pb.Transaction(
            read_version=self.read_version,
            uuid=self.uuid,
            tag=self.tag,
        )
        if self.properties:
            message.transaction_properties.update(self.properties)
        if not isinstance(self.operation, Unknown):
            arm = getattr(message, self.operation.arm)
            arm.CopyFrom(self.operation.to_pb())
            arm.SetInParent()
        message.MergeFromString(self.unknown)
        return bytes(message.SerializeToString(deterministic=True))


def _unknown_numbers(message: pb.Transaction) -> tuple[int, ...]:
    unknown_fields = UnknownFieldSet(message)
    numbers = {unknown_fields[index].field_number for index in range(len(unknown_fields))}
    return tuple(sorted(number for number in numbers if number >= _FIRST_OPERATION))
