"""Verbs that start a new line of history: branches, shallow and deep clones."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from lance_nb.dataset import verbs
from lance_nb.dataset.opened import OpenedVersion

if TYPE_CHECKING:
    from lance_nb.storage.registry import StorageOptions
    from lance_nb.table.refs import Ref
    from lance_nb.transactions.cloning import CopyProgress


class Branching(OpenedVersion):
    """New branches and copies of a dataset."""

    def create_branch(
        self,
        branch: str,
        reference: Ref | None = None,
        storage_options: StorageOptions | None = None,
    ) -> Self:
        """Start a branch from a version (``reference``, or this one) and return it, opened.

        Raises InvalidRefError, RefConflictError (the name is taken), VersionNotFoundError.
        """
        del storage_options  # the ones this dataset was opened with hold for its branches too
        made = verbs.branching.create_branch(self._session, self._snapshot, branch, reference)
        return type(self)(self._session, made)

    def shallow_clone(
        self,
        target_path: str | os.PathLike[str],
        reference: Ref | None = None,
        storage_options: StorageOptions | None = None,
    ) -> Self:
        """Make a dataset that starts from a version of this one and refers to its files.

        Who opens the clone later allows this dataset's root by ``allow_bases``. Raises
        DatasetAlreadyExistsError, VersionNotFoundError, StorageError.
        """
        target = verbs.branching.target_of(self._session, self._snapshot, reference)
        made = verbs.branching.shallow_clone(self._session, target, target_path, storage_options)
        return type(self)(*made)

    def deep_clone(
        self,
        target_path: str | os.PathLike[str],
        reference: Ref | None = None,
        storage_options: StorageOptions | None = None,
        *,
        progress: Callable[[CopyProgress], None] | None = None,
    ) -> Self:
        """Copy a version of this dataset, with every file it needs, into a dataset of its own.

        ``progress`` (our own argument) is called after each file. Raises
        DatasetAlreadyExistsError, VersionNotFoundError, StorageError.
        """
        target = verbs.branching.target_of(self._session, self._snapshot, reference)
        made = verbs.branching.deep_clone(
            self._session, target, target_path, storage_options, progress
        )
        return type(self)(*made)

    def migrate_manifest_paths_v2(self) -> None:
        """Rename the manifests of this branch to the names that list the newest version first.

        No other writer may be at work meanwhile. Raises CommitConflictError.
        """
        verbs.branching.migrate_manifest_paths_v2(self._session.home(self.branch))
