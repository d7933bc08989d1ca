"""The storage of a dataset: the options it was opened with, and reads and writes so far.

Limits: requests are counted for the whole process, so those of other datasets that are used
meanwhile are counted too. Pages of mapped local files count when a read looks at them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from lance_nb.storage import meter
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True)
class IOStats:
    """Reads and writes, as requests and as bytes. Created by ``LanceDataset.io_stats_snapshot``.

    Examples:
        >>> ds.io_stats_snapshot().written_bytes >= 0
        True
    """

    read_iops: int = 0
    read_bytes: int = 0
    write_iops: int = 0
    written_bytes: int = 0


class IOCounter:
    """Counts from a moment on: when it is made, or when ``restart`` was called last."""

    def __init__(self) -> None:
        self._since = meter.totals()

    def stats(self) -> IOStats:
        """Return what was read and written since."""
        return self._until(meter.totals())

    def restart(self) -> IOStats:
        """Return what was read and written since, and begin anew."""
        now = meter.totals()
        stats = self._until(now)
        self._since = now
        return stats

    def _until(self, now: meter.Totals) -> IOStats:
        return IOStats(*(new - old for new, old in zip(now, self._since, strict=True)))


def iops_counter() -> int:
    """Return how many reads this process has made since it began.

    Examples:
        >>> before = lance_nb.iops_counter()
        >>> ds.to_table().num_rows
        10
        >>> lance_nb.iops_counter() > before
        True
    """
    return meter.totals().read_requests


def bytes_read_counter() -> int:
    """Return how many bytes this process has read since it began.

    Examples:
        >>> before = lance_nb.bytes_read_counter()
        >>> ds.to_table().num_rows
        10
        >>> lance_nb.bytes_read_counter() > before
        True
    """
    return meter.totals().read_bytes


class StorageOptionsAccessor:
    """The storage options of a dataset, as pylance hands them out. They never change.

    Args:
        options: the options.

    Examples:
        >>> accessor = lance_nb.StorageOptionsAccessor.with_static_options({"anon": True})
        >>> accessor.get_storage_options(), accessor.initial_storage_options()
        ({'anon': True}, {'anon': True})
        >>> accessor.has_provider(), accessor.refresh_offset_secs()
        (False, 60)
        >>> accessor.accessor_id() == lance_nb.StorageOptionsAccessor({}).accessor_id()
        False
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = dict(options)

    @staticmethod
    def with_static_options(options: Mapping[str, Any]) -> StorageOptionsAccessor:
        """Return an accessor of these options.

        Args:
            options: option to value.
        """
        return StorageOptionsAccessor(options)

    def get_storage_options(self) -> dict[str, Any]:
        """Return the options."""
        return dict(self._options)

    def initial_storage_options(self) -> dict[str, Any]:
        """Return the options that the dataset was opened with."""
        return dict(self._options)

    def accessor_id(self) -> str:
        """Return a text that differs where the options differ; it does not show them."""
        text = repr(sorted(self._options.items(), key=lambda item: item[0]))
        return f"static_options_{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    def has_provider(self) -> bool:
        """Return False: the options are not renewed."""
        return False

    def refresh_offset_secs(self) -> int:
        """Return how long before their end options would be renewed: 60 seconds, as in pylance."""
        return 60

    def __repr__(self) -> str:
        return f"StorageOptionsAccessor(id={self.accessor_id()}, has_provider=false)"
