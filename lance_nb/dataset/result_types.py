"""The dicts that methods of the façade return or take, as types; names and keys are pylance's."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

if TYPE_CHECKING:
    from lance_nb.dataset.dataset import LanceDataset
    from lance_nb.transactions.transaction import Transaction


class Version(TypedDict):
    """An entry of ``LanceDataset.versions``. ``timestamp`` is local time."""

    version: int
    timestamp: datetime
    metadata: dict[str, str]


class VersionRef(TypedDict):
    """An entry of ``LanceDataset.version_refs``."""

    version: int


class Tag(TypedDict):
    """A value of ``LanceDataset.tags.list``."""

    branch: str | None
    version: int
    created_at: datetime | None
    updated_at: datetime | None
    manifest_size: int
    metadata: dict[str, str]


class Branch(TypedDict):
    """A value of ``LanceDataset.branches.list``. ``create_at`` is in seconds since 1970.

    ``is_unfinished``, our own, is there for a branch that has a record and no version.
    """

    parent_branch: str | None
    branch_identifier: list[tuple[int, str]]
    parent_version: int
    create_at: int
    manifest_size: int
    metadata: dict[str, str]
    is_unfinished: NotRequired[bool]


class UpdateResult(TypedDict):
    """What ``LanceDataset.update`` returns."""

    num_rows_updated: int


class DeleteResult(TypedDict):
    """What ``LanceDataset.delete`` returns."""

    num_deleted_rows: int


class ExecuteResult(TypedDict):
    """What ``MergeInsertBuilder.execute`` returns."""

    num_inserted_rows: int
    num_updated_rows: int
    num_deleted_rows: int


class IndexInformation(TypedDict):
    """An entry of ``LanceDataset.list_indices``."""

    name: str
    type: str
    uuid: str
    fields: list[str]
    version: int
    fragment_ids: Any
    base_id: int | None


class BulkCommitResult(TypedDict):
    """What ``LanceDataset.commit_batch`` returns."""

    dataset: LanceDataset
    merged: Transaction
