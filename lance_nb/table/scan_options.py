"""What a scan is asked for, as pylance's ``scanner`` takes it; checked where it is planned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lance_nb.errors import InvalidInputError
from lance_nb.format.fragment import Fragment
from lance_nb.table.projection import ROW_ADDRESS, ROW_ID

ColumnsArgument = Sequence[str] | Mapping[str, str] | None
BATCH_ROWS_MAX = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class ScanOptions:
    """What to read. ``fragments`` None means all of them."""

    columns: ColumnsArgument = None
    filter: Any = None
    limit: int | None = None
    offset: int | None = None
    nearest: Mapping[str, Any] | None = None
    batch_size: int | None = None
    with_row_id: bool = False
    with_row_address: bool = False
    fragments: tuple[Fragment, ...] | None = None
    prefilter: bool = False
    include_deleted_rows: bool = False
    strict_batch_size: bool = False
    order_by: Any = None
    add_scores: bool = True
    blob_payloads: bool = False
    keep_dictionaries: bool = False

    @property
    def row_columns(self) -> list[str]:
        """Names of the row columns that come behind the others."""
        return [ROW_ID] * bool(self.with_row_id) + [ROW_ADDRESS] * bool(self.with_row_address)

    @property
    def is_plain(self) -> bool:
        """Whether stored columns of live rows are wanted, in the order of the scan."""
        return (
            self.filter is None
            and self.nearest is None
            and self.order_by is None
            and not self.include_deleted_rows
            and not self.strict_batch_size
            and not isinstance(self.columns, Mapping)
        )

    def check_batch_size(self) -> None:
        """Raise InvalidInputError for batches of no rows, or of more than fit."""
        if self.batch_size is not None and not 0 < self.batch_size <= BATCH_ROWS_MAX:
            raise InvalidInputError(f"batch_size must be positive, got {self.batch_size}")
