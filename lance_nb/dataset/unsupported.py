"""What pyarrow's datasets offer and Lance's do not, refused with what to do instead.

pylance inherits these from ``pyarrow.dataset.Dataset``; there they raise or end the process.
"""

from __future__ import annotations

from typing import Any, NoReturn

from lance_nb.dataset.opened import OpenedVersion
from lance_nb.errors import NotSupportedError


class Unsupported(OpenedVersion):
    """Verbs that are refused."""

    @property
    def partition_expression(self) -> NoReturn:
        """Raise NotSupportedError: Lance has no partitions."""
        raise NotSupportedError("Lance datasets are not partitioned")

    def join(self, right_dataset: Any, keys: Any, *args: Any, **options: Any) -> NoReturn:
        """Raise NotSupportedError: join the tables of two scans."""
        raise NotSupportedError("datasets cannot be joined; join tables: ds.to_table().join(...)")

    def join_asof(
        self, right_dataset: Any, on: Any, by: Any, *args: Any, **options: Any
    ) -> NoReturn:
        """Raise NotSupportedError: join the tables of two scans."""
        raise NotSupportedError(
            "datasets cannot be joined; join tables: ds.to_table().join_asof(...)"
        )

    def sort_by(self, sorting: Any, **options: Any) -> NoReturn:
        """Raise NotSupportedError: a scan sorts, with ``order_by``."""
        raise NotSupportedError("a dataset has an order of its own; scan with order_by=...")

    def replace_schema(self, schema: Any) -> NoReturn:
        """Raise NotSupportedError, as pylance does: change metadata, or alter columns."""
        raise NotSupportedError(
            "the schema of a dataset is not replaced as a whole: use update_schema_metadata and "
            "update_field_metadata for metadata, alter_columns, add_columns and drop_columns for "
            "columns"
        )

    def filter(self, expression: Any) -> NoReturn:
        """Raise NotSupportedError: a scan filters, with ``filter``."""
        raise NotSupportedError("a dataset has all its rows; scan with filter=...")
