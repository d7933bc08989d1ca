"""Find out whether a transaction landed, after an answer was lost.

``find_transaction`` looks through the versions for its uuid. ``resume`` does so for a transaction
that is at hand and returns what ``commit`` would have returned. To have it committed if it was not,
commit it again: ``commit`` recognises its own uuid and commits nothing twice.

Limits: None means "not there now": a request that is still on its way may arrive until its slot is
taken by somebody else. Versions that have been cleaned up are not found.
"""

from __future__ import annotations

from lance_nb.errors import CorruptFileError, NotSupportedError, ObjectNotFoundError
from lance_nb.transactions.commit_options import CommitPlace, Committed
from lance_nb.transactions.slot_claim import transaction_uuid
from lance_nb.transactions.transaction import Transaction
from lance_nb.transactions.version_source import VersionSource


def find_transaction(place: CommitPlace, uuid: str, since: int = 0) -> int | None:
    """Return the version that a transaction made, None if none did.

    Looks at the versions after ``since``, the newest first. A version that cannot be read is passed
    over.
    """
    for name in reversed(place.slots.list_names()):
        if name.version <= since:
            return None
        try:
            found = transaction_uuid(place.slots.read(name), f"{place.home.uri}/{name.path}")
        except (ObjectNotFoundError, CorruptFileError, NotSupportedError):
            continue
        if found == uuid:
            return name.version
    return None


def resume(place: CommitPlace, transaction: Transaction) -> Committed | None:
    """Return the version that a transaction made since its read version, None if it has not."""
    version = find_transaction(place, transaction.uuid, transaction.read_version)
    if version is None and transaction.operation.arm == "clone":
        version = find_transaction(place, transaction.uuid)  # a clone keeps its source's number
    if version is None:
        return None
    source = VersionSource(place.slots, place.locations)
    source.head(version)
    found = source.load(version)
    return Committed(found.manifest, found.indices, source.transaction(version))
