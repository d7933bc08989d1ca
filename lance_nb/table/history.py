"""The version log of one branch: version numbers, counts, operations and messages.

Manifests never change, so the summary of a version is read once and cached; counts of fragments are
taken from the bytes of the fragments without decoding them, and only for fragments that the version
before did not have. The transaction of a version is parsed when it is asked for.

Limits: what is cached of a version is small and of fixed size; fragment counts are kept for the
version read last.
Source: messages Manifest and Transaction of lance.table.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from lance_nb.errors import (
    CorruptFileError,
    LanceError,
    ObjectNotFoundError,
    VersionNotFoundError,
)
from lance_nb.format.layout import (
    VERSIONS,
    ManifestName,
    NamingScheme,
    manifest_path,
    transaction_path,
)
from lance_nb.format.manifest import TAIL_BYTES, Section
from lance_nb.format.manifest_history import (
    ManifestSummary,
    TotalsMemo,
    parse_summary_tail,
)
from lance_nb.format.transaction_summary import TransactionSummary, summarize_transaction
from lance_nb.storage.base import Store
from lance_nb.table.versions import describe_versions, find_latest, read_section, version_numbers
from lance_nb.value_classes import dataclass

DAMAGED = "Damaged"
_GROWTH_BYTES = 16 * 1024
_TRANSACTION_BYTES_MAX = 8 * 1024  # larger ones are read again when they are asked for

VERSIONS_SCHEMA = pa.schema(
    [
        ("version", pa.uint64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("operation", pa.string()),
        ("message", pa.string()),
        ("num_rows", pa.uint64()),
        ("num_deleted_rows", pa.uint64()),
        ("num_fragments", pa.uint64()),
        ("num_data_files", pa.uint64()),
        ("num_deletion_files", pa.uint64()),
        ("size_bytes", pa.uint64()),
        ("tags", pa.list_(pa.string())),
    ]
)


@dataclass(frozen=True, slots=True)
class VersionInfo:
    """One version of a branch: when, what was done, and how much there is.

    ``timestamp`` is aware (UTC). Row counts are None where the manifest does not have them, as
    releases of 2023 wrote it. ``size_bytes`` adds up the data files whose size is recorded,
    and is None where a fragment has none with one. Of a version that cannot be read, ``error`` says
    why; its counts are 0, and ``operation`` is "Damaged".
    """

    version: int
    timestamp: datetime | None
    num_rows: int | None
    num_deleted_rows: int | None
    num_fragments: int
    num_data_files: int
    num_deletion_files: int
    size_bytes: int | None
    operation: str | None = None
    message: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    error: str | None = None


class VersionLog:
    """The versions of one branch. ``branch`` None is main."""

    def __init__(self, home: Store, branch: str | None) -> None:
        self._home = home
        self._branch = branch
        self._listed: list[str] = []
        self._numbers: list[int] = []
        self._scheme = NamingScheme.V2
        self._summaries: dict[int, ManifestSummary] = {}
        self._done: dict[int, TransactionSummary | None] = {}
        self._memo = TotalsMemo()
        self._tail_bytes = TAIL_BYTES
        self._lock = threading.Lock()

    def numbers(self) -> list[int]:
        """List the version numbers that exist now, oldest first; reads no manifest."""
        listed = self._home.list_names(VERSIONS)
        if listed != self._listed or not listed:
            self._numbers, self._scheme = version_numbers(self._home, listed)
            self._listed = listed
        return list(self._numbers)

    def latest(self) -> int:
        """Return the newest version number, looked up now."""
        return find_latest(self._home).version

    def describe(
        self, version: int, tags: Mapping[str, Mapping[str, Any]], *, tolerant: bool = False
    ) -> VersionInfo:
        """Describe a version; ``tags`` are all tags of the dataset by name.

        ``tolerant``: what cannot be read is told in the result, and not raised.
        """
        try:
            summary = self._read(version)
        except LanceError as error:
            if not tolerant:
                raise
            return _damaged(version, self._tags(version, tags), error)
        totals, problem, done = summary.totals, None, None
        try:
            done = self.transaction(version)
        except LanceError as error:
            if not tolerant:
                raise
            problem = str(error)
        return VersionInfo(
            version=version,
            timestamp=summary.timestamp,
            num_rows=totals.num_rows if totals.has_row_counts else None,
            num_deleted_rows=totals.num_deleted_rows if totals.has_row_counts else None,
            num_fragments=totals.num_fragments,
            num_data_files=totals.num_data_files,
            num_deletion_files=totals.num_deletion_files,
            size_bytes=totals.size_bytes if totals.has_sizes else None,
            operation=None if done is None else done.operation,
            message=None if done is None else done.message,
            properties={} if done is None else done.properties,
            tags=self._tags(version, tags),
            error=problem,
        )

    def _tags(self, version: int, tags: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
        mine = (
            name
            for name, tag in tags.items()
            if tag["version"] == version and tag["branch"] == self._branch
        )
        return tuple(sorted(mine))

    def as_pylance(self, version: int) -> dict[str, Any]:
        """Return the entry of pylance's ``versions()``.

        The time is naive and local, and goes through floats as it does there, so that both agree
        to the microsecond.
        """
        summary = self._read(version)
        nanos = summary.timestamp_ns or 0
        return {
            "version": version,
            "timestamp": datetime.fromtimestamp(nanos // 1e9)  # noqa: DTZ006
            + timedelta(microseconds=(nanos % 1e9) // 1e3),
            "metadata": summary.totals.to_metadata(),
        }

    def transaction(self, version: int) -> TransactionSummary | None:
        """Return the change that made a version, None when it recorded none."""
        summary = self._read(version)
        with self._lock:
            if version not in self._done:
                self._done[version] = self._transaction(summary)
                self._summaries[version] = _without_transaction(summary, 0)
            return self._done[version]

    def _read(self, version: int) -> ManifestSummary:
        with self._lock:
            if version not in self._summaries:
                summary = self._summary(version)
                self._summaries[version] = _without_transaction(summary, _TRANSACTION_BYTES_MAX)
            return self._summaries[version]

    def _summary(self, version: int) -> ManifestSummary:
        try:
            return self._load(ManifestName(version, self._scheme))
        except ObjectNotFoundError:
            numbers = self.numbers()
        if version not in numbers:
            shown = describe_versions([ManifestName(number, self._scheme) for number in numbers])
            raise VersionNotFoundError(self._home.uri, version, shown)
        return self._load(ManifestName(version, self._scheme))

    def _load(self, name: ManifestName) -> ManifestSummary:
        path = manifest_path(name.version, name.scheme)
        where = f"{self._home.uri}/{path}"
        tail, size = self._home.read_tail(path, self._tail_bytes)
        summary = parse_summary_tail(tail, size, where, self._memo)
        if isinstance(summary, int):
            tail, size = self._home.read_tail(path, summary)
            summary = parse_summary_tail(tail, size, where, self._memo)
        if isinstance(summary, int):
            raise CorruptFileError(where, None, f"{summary} bytes", f"{size} bytes")
        self._tail_bytes = max(TAIL_BYTES, size + _GROWTH_BYTES)  # the next is not much larger
        return summary

    def _transaction(self, summary: ManifestSummary) -> TransactionSummary | None:
        """Read the inline transaction, else the file that the manifest names."""
        section = summary.transaction
        if section is not None:
            data = read_section(self._home, summary.path, section)
            return summarize_transaction(data, summary.path)
        if not summary.transaction_file:
            return None
        path = transaction_path(summary.transaction_file, summary.path)
        try:
            return summarize_transaction(self._home.read(path), f"{self._home.uri}/{path}")
        except ObjectNotFoundError:
            return None  # cleaned up: the version is whole without it


def _damaged(version: int, tags: tuple[str, ...], error: LanceError) -> VersionInfo:
    return VersionInfo(
        version=version,
        timestamp=None,
        num_rows=None,
        num_deleted_rows=None,
        num_fragments=0,
        num_data_files=0,
        num_deletion_files=0,
        size_bytes=0,
        operation=DAMAGED,
        tags=tags,
        error=str(error),
    )


def _without_transaction(summary: ManifestSummary, kept_bytes: int) -> ManifestSummary:
    """Forget the bytes of the inline transaction if there are more than ``kept_bytes``."""
    section = summary.transaction
    if section is None or section.data is None or len(section.data) <= kept_bytes:
        return summary
    return summary._replace(transaction=Section(section.offset_bytes, None))


def versions_table(log: VersionLog, tags: Mapping[str, Mapping[str, Any]]) -> pa.Table:
    """One row per version, oldest first, with the schema ``VERSIONS_SCHEMA``."""
    rows = []
    for number in log.numbers():
        info = log.describe(number, tags)
        rows.append({name: getattr(info, name) for name in VERSIONS_SCHEMA.names})
    return pa.Table.from_pylist(rows, schema=VERSIONS_SCHEMA)
