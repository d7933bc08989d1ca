"""Verbs that make a new version: rows in, rows out, back to an older version, settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, Self

from lance_nb.dataset import verbs
from lance_nb.dataset.base_paths import DatasetBasePath, as_values
from lance_nb.dataset.opened import OpenedVersion
from lance_nb.storage.registry import StorageOptions
from lance_nb.table.refs import Target

_RETRY_TIMEOUT = timedelta(seconds=30)
Values = Mapping[str, str | None]


class Changing(OpenedVersion):
    """Changes of a dataset. After each, this object stands at the version that it made."""

    def insert(self, data: Any, *, mode: str = "append", **options: Any) -> None:
        """Write rows and commit them; options as for ``lance_nb.write_dataset``.

        Raises SchemaMismatchError, CommitError, CommitStateUnknownError, StorageError.
        """
        request = verbs.writing.WriteRequest(**options)
        self._snapshot = verbs.writing.write(
            self._session, self._snapshot, data, request, mode=mode
        )

    def delete(
        self,
        predicate: Any,
        *,
        conflict_retries: int = 10,
        retry_timeout: timedelta = _RETRY_TIMEOUT,
        progress: Callable[[int, int], None] | None = None,
    ) -> dict[str, int]:
        """Delete the rows that pass a filter (SQL text or a pyarrow expression).

        Returns ``{"num_deleted_rows": n}``. A version is made even when no row passes, as pylance
        does. ``progress``, ours, is called with rows looked at and rows in all. Raises
        PredicateError, CommitConflictError, TooMuchWriteContentionError.
        """
        self._snapshot, count = verbs.deleting.delete(
            self._session,
            self._snapshot,
            predicate,
            max_retries=conflict_retries,
            timeout_s=retry_timeout.total_seconds(),
            progress=progress,
        )
        return {"num_deleted_rows": count}

    def update(
        self,
        updates: Mapping[str, str],
        where: Any = None,
        conflict_retries: int = 10,
        retry_timeout: timedelta = _RETRY_TIMEOUT,
        data_storage_version: str | None = None,
        *,
        mode: str = "auto",
        progress: Callable[[int, int], None] | None = None,
    ) -> dict[str, int]:
        """Give columns new values, SQL expressions over the old ones, in rows that pass a filter.

        ``mode`` is ours: "rows" moves the rows to new files, as pylance does (their row ids stay
        where the dataset has stable ones); "columns" writes the updated columns anew for all rows
        of the fragments and moves none, but gives way to every concurrent change of these
        fragments; "auto" takes columns where that saves some megabytes, or where another column
        holds blobs. ``progress``, also ours, is called with rows done and rows in all. Returns
        ``{"num_rows_updated": n}``; a version is made even when no row passes.
        ``data_storage_version`` is the dataset's own or None. Raises ColumnNotFoundError,
        PredicateError, NotSupportedError (a blob column that would be written again),
        InvalidInputError, CommitConflictError, TooMuchWriteContentionError.
        """
        if data_storage_version is not None:
            verbs.updating.check_file_version(self._snapshot, data_storage_version)
        self._snapshot, count = verbs.updating.update(
            self._session,
            self._snapshot,
            updates,
            where,
            mode=mode,
            progress=progress,
            max_retries=conflict_retries,
            timeout_s=retry_timeout.total_seconds(),
        )
        return {"num_rows_updated": count}

    def restore(self) -> None:
        """Make this version the newest one again, as a new version of its branch.

        It takes the place of what is the newest by then, whatever came in between.
        """
        newest = self._session.load(Target(self._snapshot.branch, None))
        operation = verbs.committing.restore_to(self._snapshot.version)
        self._snapshot = verbs.committing.commit_operation(self._session, newest, operation)

    # --- settings ---------------------------------------------------------------------------------

    def update_config(self, values: Values, *, replace: bool = False) -> dict[str, str]:
        """Set keys of the table configuration, or remove those whose value is None.

        With ``replace`` no other key stays. Returns the new configuration.
        """
        self._change(verbs.configuring.change_config(values, replace))
        return dict(self._snapshot.manifest.config)

    def delete_config_keys(self, keys: Iterable[str]) -> None:
        """Remove keys of the table configuration; those that do not exist are no mistake."""
        self.update_config(dict.fromkeys(keys))

    def update_metadata(self, values: Values, *, replace: bool = False) -> dict[str, str]:
        """Change the table metadata as ``update_config`` does; return the new metadata."""
        self._change(verbs.configuring.change_metadata(values, replace))
        return dict(self._snapshot.manifest.table_metadata)

    def update_schema_metadata(self, values: Values, *, replace: bool = False) -> dict[str, str]:
        """Change the schema's metadata as ``update_config`` does; return the new metadata."""
        self._change(verbs.configuring.change_schema_metadata(values, replace))
        metadata = self.schema.metadata or {}
        return {key.decode(): value.decode() for key, value in metadata.items()}

    def replace_schema_metadata(self, new_metadata: Mapping[str, str]) -> None:
        """Put new metadata in the place of the schema's metadata."""
        self.update_schema_metadata(new_metadata, replace=True)

    def update_field_metadata(
        self, field_updates: Mapping[str, Values], *, replace: bool = False
    ) -> None:
        """Change the metadata of fields, by name or dotted path. Raises ColumnNotFoundError."""
        operation = verbs.configuring.change_field_metadata(
            self.lance_schema, field_updates, replace
        )
        self._change(operation)

    def replace_field_metadata(self, field_name: str, new_metadata: Mapping[str, str]) -> None:
        """Put new metadata in the place of a field's. Raises ColumnNotFoundError."""
        self.update_field_metadata({field_name: new_metadata}, replace=True)

    # --- places -----------------------------------------------------------------------------------

    def add_bases(
        self,
        new_bases: Iterable[DatasetBasePath],
        transaction_properties: Mapping[str, str] | None = None,
    ) -> Self:
        """Register further places for files, for ``target_bases`` of later writes; returns self.

        This handle may use them from now on; others name them in ``allow_bases``. Raises
        BasePathError when a name, path or id is taken.
        """
        bases = as_values(new_bases)
        self._session = verbs.base_targets.trusting(self._session, [one.path for one in bases])
        self._snapshot = verbs.base_targets.register(
            self._session, self._snapshot, bases, transaction_properties or {}
        )
        return self

    @staticmethod
    def drop(
        base_uri: str | os.PathLike[str],
        storage_options: StorageOptions | None = None,
        ignore_not_found: bool | None = None,
    ) -> None:
        """Delete a dataset: everything below ``base_uri``, which must hold a readable version.

        Raises InvalidInputError for another folder, DatasetNotFoundError.
        """
        verbs.dropping.drop(base_uri, storage_options, ignore_not_found=bool(ignore_not_found))

    def _change(self, operation: Any) -> None:
        self._snapshot = verbs.committing.commit_operation(self._session, self._snapshot, operation)
