"""Which schemes can create objects exclusively, and how: one line each."""

from __future__ import annotations

from lance_nb.storage.exclusive.base import ExclusiveCreate
from lance_nb.storage.exclusive.drivers.azure import AzureCreate
from lance_nb.storage.exclusive.drivers.gcs import GcsCreate
from lance_nb.storage.exclusive.drivers.s3 import S3Create

STRATEGIES: dict[str, ExclusiveCreate] = {
    **dict.fromkeys(("s3", "s3a"), S3Create()),
    **dict.fromkeys(("gs", "gcs"), GcsCreate()),
    **dict.fromkeys(("az", "abfs", "abfss"), AzureCreate()),
}


def strategy_for(scheme: str) -> ExclusiveCreate | None:
    """Return how objects of a scheme are created exclusively, None where they cannot be."""
    return STRATEGIES.get(scheme)
