"""Commit several appends as one version.

The merged transaction is made for the oldest version that any of them was made for, so nothing that
was committed since is overlooked. Its uuid follows from theirs, so that a batch whose outcome was
not known can be committed again without being there twice.

Limits: appends only. Properties are joined; where two transactions give a key different values, the
later one counts.
Source: ``LanceDataset.commit_batch`` of pylance 14.0.2.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.format.fragment import Fragment
from lance_nb.transactions.commit import DEFAULTS, commit
from lance_nb.transactions.commit_options import CommitOptions, CommitPlace, Committed
from lance_nb.transactions.operation import operation_name
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.transaction import Transaction

_NAMESPACE = uuid.UUID("6c8f1f4e-9d0f-5d0c-9a39-4b6f6d2f5a10")  # of merged transactions


@dataclass(frozen=True, slots=True)
class BatchCommitted:
    """What a batch made: the version, and the one transaction that the others became."""

    committed: Committed
    merged: Transaction


def commit_batch(
    place: CommitPlace, transactions: Sequence[Transaction], options: CommitOptions = DEFAULTS
) -> BatchCommitted:
    """Commit appends as one. Raises InvalidInputError, NotSupportedError, and as ``commit``."""
    merged = merge_appends(transactions)
    committed = commit(place, merged, options)
    return BatchCommitted(committed, committed.transaction)


def merge_appends(transactions: Sequence[Transaction]) -> Transaction:
    """Make one append of several, their fragments in the order given."""
    if not transactions:
        raise InvalidInputError("no transactions to commit")
    fragments: list[Fragment] = []
    properties: dict[str, str] = {}
    for one in transactions:
        if not isinstance(one.operation, Append) or one.unknown or one.operation.unknown:
            name = operation_name(one.operation.arm)
            raise NotSupportedError(
                f"only appends that this release knows can be committed in a batch, not {name}"
            )
        fragments += one.operation.fragments
        properties |= one.properties
    read_version = min(one.read_version for one in transactions)
    name = str(uuid.uuid5(_NAMESPACE, " ".join(one.uuid for one in transactions)))
    return Transaction(
        read_version, Append(tuple(fragments)), name, transaction_properties=properties
    )
