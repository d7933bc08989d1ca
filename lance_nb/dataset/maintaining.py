"""Verbs that look after a dataset: clean up, account for space, verify."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack, overload

from lance_nb.dataset import verbs
from lance_nb.dataset.opened import OpenedVersion
from lance_nb.errors import InvalidInputError

if TYPE_CHECKING:
    from lance_nb.table.space import Space
    from lance_nb.table.verification_report import Verification
    from lance_nb.transactions.cleanup_result import CleanupExplanation, CleanupStats

Progress = Callable[[int, int], object]


class CleanupWishes(TypedDict, total=False):
    """The arguments of ``cleanup_old_versions`` that go by name, whatever it returns."""

    delete_unverified: bool
    error_if_tagged_old_versions: bool
    delete_rate_limit: int | None
    versions: Collection[int] | None
    delete_concurrency: int | None
    progress: Progress | None


class Maintaining(OpenedVersion):
    """Maintenance of a whole dataset."""

    @overload
    def cleanup_old_versions(
        self,
        older_than: timedelta | None = ...,
        retain_versions: int | None = ...,
        *,
        dry_run: Literal[False] = ...,
        **wishes: Unpack[CleanupWishes],
    ) -> CleanupStats: ...
    @overload
    def cleanup_old_versions(
        self,
        older_than: timedelta | None = ...,
        retain_versions: int | None = ...,
        *,
        dry_run: Literal[True],
        **wishes: Unpack[CleanupWishes],
    ) -> CleanupExplanation: ...
    def cleanup_old_versions(
        self,
        older_than: timedelta | None = None,
        retain_versions: int | None = None,
        *,
        delete_unverified: bool = False,
        error_if_tagged_old_versions: bool = True,
        delete_rate_limit: int | None = None,
        versions: Collection[int] | None = None,
        delete_concurrency: int | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> CleanupStats | CleanupExplanation:
        """Delete versions of this branch that are older than the one open, and what only they need.

        A version goes when every rule that is given holds: older than ``older_than`` (two weeks if
        no rule is given), not among the last ``retain_versions``, one of ``versions``. Tagged
        versions, and those that a branch started from, stay. Files that no version refers to go
        when they are seven days old, with ``delete_unverified`` at once: only for a dataset that
        nobody else is writing to.

        Ours: ``dry_run`` deletes nothing and lists every file with its bytes and the reason;
        ``progress`` is called with things done (manifests read, files deleted) and things to do.
        Unlike pylance, detached versions and the ``.txn`` files of versions that stay are kept, and
        so is a version as long as a branch that started from it exists.

        Raises CleanupError (an OSError and a ValueError) when a rule makes no sense or tagged
        versions match and ``error_if_tagged_old_versions``; CorruptFileError or NotSupportedError,
        with nothing deleted, when a manifest that is needed cannot be understood.
        """
        policy = verbs.cleaning.rules(
            older_than,
            retain_versions,
            versions,
            delete_unverified=delete_unverified,
            error_if_tagged_old_versions=error_if_tagged_old_versions,
        )
        options = verbs.cleaning.deleting(delete_rate_limit, delete_concurrency, progress)
        if dry_run:
            return verbs.cleaning.explain(*self.opened, policy, options)
        return verbs.cleaning.clean(*self.opened, policy, options)

    def explain_cleanup_old_versions(
        self,
        older_than: timedelta | None = None,
        retain_versions: int | None = None,
        *,
        delete_unverified: bool = False,
        error_if_tagged_old_versions: bool = True,
        delete_rate_limit: int | None = None,
        versions: Collection[int] | None = None,
        include_files: bool = False,
        max_files: int = 1000,
    ) -> CleanupExplanation:
        """Say what ``cleanup_old_versions`` would delete; arguments and result as pylance's.

        Raises as ``cleanup_old_versions`` does.
        """
        if max_files <= 0:
            raise InvalidInputError("max_files must be positive")
        policy = verbs.cleaning.rules(
            older_than,
            retain_versions,
            versions,
            delete_unverified=delete_unverified,
            error_if_tagged_old_versions=error_if_tagged_old_versions,
        )
        options = verbs.cleaning.deleting(delete_rate_limit, None, None)
        return verbs.cleaning.explain(
            *self.opened, policy, options, max_files=max_files, include_files=include_files
        )

    def space(self, *, progress: Progress | None = None) -> Space:
        """Account for every byte of the dataset's folder: by version, tag, branch, kind, orphan.

        Reads the manifests of all versions and one listing. ``space().freed_if(...)`` tells what
        deleting tags, branches or old versions would free. ``progress`` is called with manifests
        read and manifests to read. What cannot be read is listed in ``damaged``.
        """
        return verbs.space.space(self._session, progress)

    def validate(self) -> None:
        """Check the integrity of this version without decoding values; as pylance's.

        Opens every data file, compares rows, fields and sizes with the manifest, and reads deletion
        files and row ids. Raises CorruptFileError, ObjectNotFoundError (both OSErrors).
        """
        verbs.verifying.validate(self._snapshot)

    def verify(
        self,
        *,
        values: bool = True,
        raise_on_error: bool = False,
        progress: Progress | None = None,
    ) -> Verification:
        """Read everything, of every version of every branch, and report what is wrong.

        Refs, manifests, files that are missing or that nobody refers to, rows, deleted rows, row
        ids, files of indices, and every value of every column (``values=False`` leaves these out).
        Damage is listed, not raised, unless ``raise_on_error``. ``progress`` is called with steps
        done and steps to do.
        """
        return verbs.verifying.verify(
            self._session, progress, values=values, raise_on_error=raise_on_error
        )
