"""Detached versions: committed beside the history, found only by their number.

A detached version has a random number with bit 63 set and the file name ``d<number>.manifest``. It
is built on the version that its transaction was made for, is never the latest, and conflicts with
nothing.

Limits: nobody lists it; whoever needs it keeps the number. Source: pylance 14.0.2.
"""

from __future__ import annotations

from dataclasses import replace

from lance_nb.errors import DatasetNotFoundError, InvalidInputError, TooMuchWriteContentionError
from lance_nb.format.layout import DETACHED_BIT, ManifestName, NamingScheme
from lance_nb.transactions.commit_options import CommitOptions, CommitPlace, Committed
from lance_nb.transactions.new_version import prepare, write_transaction_file
from lance_nb.transactions.next_version import build
from lance_nb.transactions.operation import ApplyContext
from lance_nb.transactions.slot_claim import claim_under_lock
from lance_nb.transactions.transaction import Transaction
from lance_nb.transactions.version_source import VersionSource

_TRIES_MAX = 3  # two equal random numbers of 63 bits: the source of chance is broken


def commit_detached(
    place: CommitPlace, transaction: Transaction, options: CommitOptions
) -> Committed:
    """Commit a transaction on the version it was made for, as a version outside of the history.

    Raises VersionNotFoundError, StorageError, CommitStateUnknownError.
    """
    if transaction.read_version == 0:
        raise InvalidInputError("a detached version needs a version to be built on")
    source = VersionSource(place.slots, place.locations)
    if source.head(transaction.read_version) is None:
        raise DatasetNotFoundError(place.home.uri)
    current = source.load(transaction.read_version)
    for _ in range(_TRIES_MAX):
        number = DETACHED_BIT | random_63_bits(options)
        context = ApplyContext(
            current.manifest,
            current.indices,
            source.snapshotted,
            options.environment.clock(),
            replace(options.build, detached_version=number),
            open_snapshot=place.snapshot,
        )
        built = build(transaction, context)
        name = ManifestName(number, NamingScheme.V2)
        version = prepare(place.home, built, transaction, name)
        write_transaction_file(place.home, version)
        claimed = claim_under_lock(
            options.commit_lock or place.commit_lock,
            place.slots,
            name,
            version.data,
            uuid=transaction.uuid,
            environment=options.environment,
        )
        if claimed:
            return version.committed
    raise TooMuchWriteContentionError(f"no free number for a detached version of {place.home.uri}")


def random_63_bits(options: CommitOptions) -> int:
    """Return a random number below 2**63, from the ids of the environment."""
    return int(options.environment.new_uuid().replace("-", ""), 16) % DETACHED_BIT
