"""Which schemes can create objects exclusively, and how: one line each."""

from __future__ import annotations

from lance_nb.storage.exclusive.azure import AzureCreate
from lance_nb.storage.exclusive.gcs import GcsCreate
from lance_nb.storage.exclusive.s3 import S3Create
from lance_nb.storage.exclusive_create import ExclusiveCreate

STRATEGIES: dict[str, ExclusiveCreate] = {
    **dict.fromkeys(("s3", "s3a"), S3Create()),
    **dict.fromkeys(("gs", "gcs"), GcsCreate()),
    **dict.fromkeys(("az", "abfs", "abfss"), AzureCreate()),
}


def strategy_for(scheme: str) -> ExclusiveCreate | None:
    """Return how objects of a scheme are created exclusively, None where they cannot be."""
    return STRATEGIES.get(scheme)
