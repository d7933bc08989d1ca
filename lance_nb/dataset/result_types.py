"""The dicts that methods of the façade return or take, as types; names and keys are pylance's."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

if TYPE_CHECKING:
    from lance_nb.dataset.dataset import LanceDataset
    from lance_nb.transactions.transaction import Transaction


class Version(TypedDict):
    """An entry of ``LanceDataset.versions``. ``timestamp`` is local time.

    Examples:
        >>> ds.versions()[0]["version"]
        1
    """

    version: int
    timestamp: datetime
    metadata: dict[str, str]


class VersionRef(TypedDict):
    """An entry of ``LanceDataset.version_refs``.

    Examples:
        >>> ds.version_refs()[0]
        {'version': 1}
    """

    version: int


class Tag(TypedDict):
    """A value of ``LanceDataset.tags.list``. ``manifest_size`` is in bytes.

    Examples:
        >>> ds.tags.create("first", 1)
        >>> ds.tags.list()["first"]["version"]
        1
    """

    branch: str | None
    version: int
    created_at: datetime | None
    updated_at: datetime | None
    manifest_size: int
    metadata: dict[str, str]


class Branch(TypedDict):
    """A value of ``LanceDataset.branches.list``.

    ``create_at`` is in seconds since 1970, ``manifest_size`` in bytes. ``is_unfinished``, our own,
    is there for a branch that has a record and no version.

    Examples:
        >>> _ = ds.create_branch("experiment")
        >>> ds.branches.list()["experiment"]["parent_version"]
        1
    """

    parent_branch: str | None
    branch_identifier: list[tuple[int, str]]
    parent_version: int
    create_at: int
    manifest_size: int
    metadata: dict[str, str]
    is_unfinished: NotRequired[bool]


class UpdateResult(TypedDict):
    """What ``LanceDataset.update`` returns.

    Examples:
        >>> ds.update({"label": "'c'"}, where="id < 3")
        {'num_rows_updated': 3}
    """

    num_rows_updated: int


class DeleteResult(TypedDict):
    """What ``LanceDataset.delete`` returns.

    Examples:
        >>> ds.delete("id < 3")
        {'num_deleted_rows': 3}
    """

    num_deleted_rows: int


class ExecuteResult(TypedDict):
    """What ``MergeInsertBuilder.execute`` returns.

    Examples:
        >>> ds.merge_insert("id").when_not_matched_insert_all().execute(rows)
        {'num_inserted_rows': 2, 'num_updated_rows': 0, 'num_deleted_rows': 0}
    """

    num_inserted_rows: int
    num_updated_rows: int
    num_deleted_rows: int


class IndexInformation(TypedDict):
    """An entry of ``LanceDataset.list_indices``.

    Examples:
        >>> ds.create_scalar_index("id", "BTREE")
        >>> ds.list_indices()[0]["fields"]
        ['id']
    """

    name: str
    type: str
    uuid: str
    fields: list[str]
    version: int
    fragment_ids: Any
    base_id: int | None


class BulkCommitResult(TypedDict):
    """What ``LanceDataset.commit_batch`` returns.

    Examples:
        >>> append = lance_nb.write_fragments(rows, ds, return_transaction=True)
        >>> sorted(lance_nb.LanceDataset.commit_batch(ds, [append]))
        ['dataset', 'merged']
    """

    dataset: LanceDataset
    merged: Transaction
