"""Edit: new values for single cells by row id, rows to add, rows to delete, as one version.

Values are those that somebody saw and corrected, so that a commit never puts them over what others
have written since: edits are carried over to the newest version cell by cell, and a cell that has
another value there than it had refuses the whole edit.

Source: our own; pylance has no such method.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypedDict

from lance_nb.errors import CommitConflictError, InvalidInputError
from lance_nb.session.session import Session
from lance_nb.table.snapshot import Snapshot
from lance_nb.writing.cell_edits import (
    CellConflict,
    CellEdits,
    Cells,
    carried_over,
    plan_cells,
)
from lance_nb.writing.cell_values import given_rows
from lance_nb.writing.committing import commit_staged, replanned
from lance_nb.writing.input_data import fitted
from lance_nb.writing.progress import Progress, ProgressCounter
from lance_nb.writing.staged import Addition, Edit, combine
from lance_nb.writing.writing import WriteRequest, own_options, write_addition

_SHOWN = 3


class EditResult(TypedDict):
    """What ``LanceDataset.edit`` returns.

    Examples:
        >>> row = ds.to_table(columns=["id"], with_row_id=True, limit=1)["_rowid"][0].as_py()
        >>> ds.edit({row: {"label": "c"}})["num_edited_cells"]
        1
    """

    num_edited_cells: int
    num_updated_rows: int
    num_inserted_rows: int
    num_deleted_rows: int


def edits_of(cells: Cells | None, delete: Collection[int]) -> CellEdits:
    """Return the edits of the arguments. Raises InvalidInputError."""
    try:
        by_row = {int(row): dict(values) for row, values in (cells or {}).items()}
        deleted = frozenset(map(int, delete))
    except (AttributeError, TypeError, ValueError) as error:
        raise InvalidInputError(
            "cells are {row id: {column: value}}, and delete is a list of row ids, for example "
            "ds.edit({7: {'label': 'cat'}}, delete=[8])"
        ) from error
    outside = [row for row in (*by_row, *deleted) if not 0 <= row < 2**64]
    if outside:
        raise InvalidInputError(f"{outside[0]} is no row id")
    return CellEdits(by_row, deleted)


def plan(
    snapshot: Snapshot,
    edits: CellEdits,
    add: Any = None,
    *,
    stands_alone: bool = True,
    progress: Progress | None = None,
) -> list[Edit]:
    """Write the new rows and values to files; nothing is committed.

    Raises as ``LanceDataset.edit`` does.
    """
    counter = ProgressCounter(len(edits.cells), progress).add
    alone = stands_alone and add is None
    planned: list[Edit] = [
        *plan_cells(snapshot, edits, own_options(snapshot), stands_alone=alone, progress=counter)
    ]
    if add is not None:
        schema = snapshot.manifest.schema.to_arrow()
        is_listed = isinstance(add, list) and all(isinstance(row, Mapping) for row in add)
        data = given_rows(add, schema) if is_listed else fitted(add, schema)
        planned.append(write_addition(snapshot, data, WriteRequest()))
    if not planned:
        raise InvalidInputError("nothing is edited: give cells, rows to add, or rows to delete")
    return planned


def edit(
    session: Session,
    snapshot: Snapshot,
    edits: CellEdits,
    add: Any,
    *,
    max_retries: int,
    timeout_s: float,
    progress: Progress | None = None,
) -> tuple[Snapshot, EditResult]:
    """Edit and commit; return the new version and the numbers of what changed.

    Raises CommitConflictError when somebody else changed a cell or row of the edit, and otherwise
    as ``plan`` and ``commit_staged`` do.
    """

    def attempt(base: Snapshot) -> tuple[Snapshot, EditResult]:
        mine, conflicts = carried_over(snapshot, base, edits)
        if conflicts:
            raise CommitConflictError(refusal(base.version, conflicts))
        if add is None and not mine.cells and not mine.deleted and base is not snapshot:
            return base, _result(mine, 0)  # somebody else did the same meanwhile
        planned = plan(base, mine, add, progress=progress)
        snapshot_after = commit_staged(session, base.branch, combine(base, planned))
        added = sum(change.num_rows for change in planned if isinstance(change, Addition))
        return snapshot_after, _result(mine, added)

    return replanned(session, snapshot, attempt, max_retries=max_retries, timeout_s=timeout_s)


def _result(edits: CellEdits, num_added: int) -> EditResult:
    return {
        "num_edited_cells": edits.num_cells,
        "num_updated_rows": len(edits.cells),
        "num_inserted_rows": num_added,
        "num_deleted_rows": len(edits.deleted),
    }


def refusal(version: int, conflicts: Collection[CellConflict]) -> str:
    """Say in one line what others have changed."""
    listed = "; ".join(conflict.text for conflict in list(conflicts)[:_SHOWN])
    more = len(conflicts) - _SHOWN
    more_text = f"; and {more:,} more" if more > 0 else ""
    return (
        f"version {version} has other values where this edit changes something: "
        f"{listed}{more_text}. Nothing was committed; look at the newest version and edit it"
    )
