"""DatasetDelta: what changed between two versions of one branch, as pylance tells it.

Rows are those of the version that is open, chosen by the versions that created and last updated
them; a row that was inserted and deleted in between shows nowhere. Without stable row ids both
versions are 1 for every row, so that nothing is found, as in pylance.

Source: ``DatasetDelta`` of pylance 14.0.2; ``get_deleted_rows`` is ours.
"""

from __future__ import annotations

from dataclasses import field

import pyarrow as pa

from lance_nb.dataset.scanner import LanceScanner, ScanOptions
from lance_nb.errors import InvalidInputError
from lance_nb.session.opened import OpenedVersion
from lance_nb.session.session import Session
from lance_nb.table.diff import Diff
from lance_nb.table.projection import CREATED_AT, LAST_UPDATED_AT, ROW_ID
from lance_nb.table.refs import Target
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.transaction import Transaction
from lance_nb.value_classes import dataclass
from lance_nb.writing.committing import read_transaction

_IDS = pa.schema([pa.field(ROW_ID, pa.uint64())])


@dataclass(frozen=True, slots=True)
class DatasetDelta:
    """Differences after ``begin_version`` up to ``end_version``, both of the branch in view.

    Created by ``LanceDataset.delta``.

    Examples:
        >>> ds.insert(rows)
        >>> ds.update({"label": "'c'"}, where="id = 7")["num_rows_updated"]
        1
        >>> ds.delete("id = 5")["num_deleted_rows"]
        1
        >>> delta = ds.delta(1)
        >>> [made.read_version for made in delta.list_transactions()]
        [1, 2, 3]
        >>> delta.get_inserted_rows().read_all()["id"].to_pylist()
        [10, 11]
        >>> delta.get_updated_rows().read_all()["id"].to_pylist()
        [7]
        >>> delta.get_deleted_rows().read_all()["id"].to_pylist()
        [5]
        >>> delta.get_deleted_row_ids().read_all().to_pydict()
        {'_rowid': [5]}
    """

    session: Session = field(repr=False)
    snapshot: Snapshot = field(repr=False)
    begin_version: int
    end_version: int

    def list_transactions(self) -> list[Transaction]:
        """Return the transactions of the versions, oldest first. Raises VersionNotFoundError."""
        transactions = (
            read_transaction(self.session, self.snapshot.branch, version)
            for version in range(self.begin_version + 1, self.end_version + 1)
        )
        return [transaction for transaction in transactions if transaction is not None]

    def get_inserted_rows(self) -> pa.RecordBatchReader:
        """Stream the rows that were created in these versions, with their row columns."""
        return self._rows(self._within(CREATED_AT))

    def get_updated_rows(self) -> pa.RecordBatchReader:
        """Stream the rows that were there before and were updated, with their row columns."""
        older = f"{CREATED_AT} <= {self.begin_version}"
        return self._rows(f"{older} AND {self._within(LAST_UPDATED_AT)}")

    def get_deleted_row_ids(self) -> pa.RecordBatchReader:
        """Stream the ids of the rows that were deleted, one column ``_rowid``.

        Raises InvalidInputError without stable row ids, VersionNotFoundError.
        """
        diff = self._diff()
        ids = [] if diff is None else [diff.removed_row_ids()]
        batches = [
            pa.record_batch([pa.array(numbers, pa.uint64())], schema=_IDS) for numbers in ids
        ]
        return pa.RecordBatchReader.from_batches(_IDS, batches)

    def get_deleted_rows(self) -> pa.RecordBatchReader:
        """Stream the rows that were deleted, as they were in ``begin_version``, with ``_rowid``.

        Ours; pylance returns the ids only. Raises as ``get_deleted_row_ids``.
        """
        diff = self._diff()
        if diff is None:
            schema = pa.schema([*_IDS, *self.snapshot.manifest.schema.to_arrow()])
            return pa.RecordBatchReader.from_batches(schema, [])
        names = [column_pair.name for column_pair in diff.column_pairs if column_pair.a is not None]
        removed_rows = diff.rows(names, kinds=["removed"])
        shown = [ROW_ID, *names]
        schema = pa.schema([removed_rows.schema.field(name) for name in shown])
        return pa.RecordBatchReader.from_batches(
            schema, (batch.select(shown) for batch in removed_rows)
        )

    def _within(self, name: str) -> str:
        return f"{name} > {self.begin_version} AND {name} <= {self.end_version}"

    def _rows(self, condition: str) -> pa.RecordBatchReader:
        names = self.snapshot.manifest.schema.names
        columns = [*names, ROW_ID, CREATED_AT, LAST_UPDATED_AT]
        return LanceScanner(self._version(), ScanOptions(columns, condition)).to_reader()

    def _version(self) -> OpenedVersion:
        return OpenedVersion(self.session, self.snapshot)

    def _diff(self) -> Diff | None:
        """Compare the two versions; None when the first is the nothing before version 1."""
        from lance_nb.table import diff

        begin, end = self.begin_version, self.end_version
        if begin > end:
            raise InvalidInputError(f"begin version {begin} is newer than end version {end}")
        if not begin:
            return None
        branch = self.snapshot.branch
        a, b = (self.session.load(Target(branch, version)) for version in (begin, end))
        for snapshot in (a, b):
            if not diff.has_row_ids(snapshot):
                raise InvalidInputError(
                    f"deleted row ids require stable row ids, which version {snapshot.version} "
                    "does not use; ds.diff(a, b, key=[columns]) finds deleted rows by a key"
                )
        return diff.make_diff(self.session, a, b, ROW_ID)


def make_delta(
    session: Session,
    snapshot: Snapshot,
    compared_against: int | None,
    versions: tuple[int | None, int | None],
) -> DatasetDelta:
    """Check the versions. Raises InvalidInputError."""
    begin, end = versions
    if compared_against is not None:
        begin, end = compared_against, snapshot.version
    elif begin is None and end is None:
        raise InvalidInputError(
            "delta() needs compared_against, or both begin_version and end_version"
        )
    if begin is None or end is None:
        raise InvalidInputError("delta() needs both begin_version and end_version")
    for name, value in (("begin_version", begin), ("end_version", end)):
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**64:
            raise InvalidInputError(f"{name} must be a version number, not {value!r}")
    return DatasetDelta(session, snapshot, begin, end)
