"""Edits of rows that a person makes in the grid: collected, undone, redone, carried over.

A draft belongs to one version of a branch, its base. It holds new values by row id and column, rows
to add and rows to delete; every value is checked when it is set. ``undo`` and ``redo`` go through
the steps. ``rebase`` moves the draft to a newer version; what somebody else changed meanwhile
becomes a conflict, which ``resolve`` decides.

Text and values: ``edit_text`` writes a value as the text that ``hand_value`` reads as the same
value. Blocks of the clipboard are lines of fields between tabs (``block_of``, ``block_text``): a
field in quotes may hold tabs, line breaks and doubled quotes, an empty field is null, and ``""`` is
the empty text.

Limits: ``MAX_CELLS`` cells, ``MAX_ADDED`` rows to add, ``MAX_DELETED`` rows to delete,
``MAX_UNDO`` steps, ``MAX_BLOCK_CHARS`` characters of a block, ``MAX_TEXT_CHARS`` of a value.
Not supported: binary values, blobs, vectors, durations and extension types; they are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError, LanceError, NotSupportedError
from lance_nb.explorer import text
from lance_nb.format.transaction_summary import count_of
from lance_nb.merging.choices import BASE, OURS, THEIRS, VALUE, CellChoice
from lance_nb.value_classes import dataclass
from lance_nb.writing.editing import (
    CellConflict,
    CellEdits,
    carried_over,
    check_column,
    hand_value,
    is_same_value,
)

MAX_CELLS = 10_000
MAX_ADDED = 1000
MAX_DELETED = 10_000
MAX_UNDO = 100
MAX_BLOCK_CHARS = 150_000
MAX_TEXT_CHARS = 100_000
CODE_CELLS = 20
_FIELD = re.compile(r'"((?:[^"]|"")*)"|([^\t\r\n]*)')
_QUOTED = re.compile(r'[\t\r\n"]')
Values = Mapping[str, pa.Scalar]
_NONE: Mapping[int, Values] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class DraftState:
    """What a draft holds between two steps. Rows to add have numbers of their own."""

    cells: Mapping[int, Values] = field(default_factory=lambda: _NONE)
    added: Mapping[int, Values] = field(default_factory=lambda: _NONE)
    deleted: frozenset[int] = frozenset()

    @property
    def num_cells(self) -> int:
        """Cells that get a value."""
        return sum(map(len, self.cells.values()))


class CellDraft:
    """Edits of one version that are not committed."""

    def __init__(self, dataset: LanceDataset) -> None:
        self.dataset = dataset
        self.state = DraftState()
        self.conflicts: tuple[CellConflict, ...] = ()
        self.conflict_number = 0  # counts the rebases: what the browser chooses belongs to one
        self._conflicts_with = ""
        self._undo: list[DraftState] = []
        self._redo: list[DraftState] = []
        self._before: dict[tuple[int, str], pa.Scalar] = {}
        self._next_row = 1

    @property
    def is_empty(self) -> bool:
        """Whether a commit would change nothing."""
        return self.state == DraftState() and not self.conflicts

    @property
    def title(self) -> str:
        """What it does, in one line."""
        return draft_title(
            self.state.num_cells, len(self.state.cells), len(self.state.added),
            len(self.state.deleted),
        )  # fmt: skip

    def before(self, row: int, column: str) -> pa.Scalar:
        """Return the value that an edited cell has in the base."""
        return self._before[row, column]

    # --- steps ------------------------------------------------------------------------------------

    def set_cells(self, edits: Iterable[tuple[int, str, pa.Scalar]]) -> int:
        """Give cells values; a cell with its old value is no edit. Returns how many were set.

        Raises InvalidInputError for too many cells and for rows that are to be deleted.
        """
        listed = list(edits)
        deleted_rows = [row for row, _, _ in listed if row in self.state.deleted]
        if deleted_rows:
            raise InvalidInputError(
                f"row {deleted_rows[0]} is marked to be deleted: undo that before you edit it"
            )
        self._read([(row, column) for row, column, _ in listed])
        cells = {row: dict(values) for row, values in self.state.cells.items()}
        for row, column, value in listed:
            if is_same_value(value, self._before[row, column]):
                cells.get(row, {}).pop(column, None)
            else:
                cells.setdefault(row, {})[column] = value
        self._step(
            replace(self.state, cells={row: values for row, values in cells.items() if values})
        )
        return len(listed)

    def add_rows(self, rows: Sequence[Values]) -> None:
        """Add rows at the end; columns that they leave out are null. Raises InvalidInputError."""
        schema = self.dataset.schema
        for row in rows:
            missing = [
                field.name for field in schema if not field.nullable and field.name not in row
            ]
            if missing:
                raise InvalidInputError(f"column {missing[0]!r} takes no nulls: give it a value")
        added = dict(self.state.added)
        for row in rows:
            added[self._next_row] = dict(row)
            self._next_row += 1
        self._step(replace(self.state, added=added))

    def delete_rows(self, rows: Iterable[int]) -> None:
        """Mark rows to be deleted; their edits are forgotten. Raises InvalidInputError."""
        deleted = self.state.deleted | frozenset(rows)
        cells = {row: values for row, values in self.state.cells.items() if row not in deleted}
        self._step(replace(self.state, cells=cells, deleted=deleted))

    def drop(self, kind: str, row: int, column: str | None = None) -> None:
        """Take one edit back: a ``cell``, a row ``added`` or ``deleted``."""
        state = self.state
        if kind == "cell":
            cells = {row_key: dict(values) for row_key, values in state.cells.items()}
            cells.get(row, {}).pop(column or "", None)
            self._step(
                replace(state, cells={key: values for key, values in cells.items() if values})
            )
        elif kind == "added":
            added = {key: values for key, values in state.added.items() if key != row}
            self._step(replace(state, added=added))
        elif kind == "deleted":
            self._step(replace(state, deleted=state.deleted - {row}))
        else:
            raise InvalidInputError("kind must be cell, added or deleted")

    def _step(self, state: DraftState) -> None:
        if self.conflicts:
            raise InvalidInputError(
                "these edits are in conflict with another commit: decide the conflicts in the "
                "Stage tab first"
            )
        for count, most, phrase in (
            (state.num_cells, MAX_CELLS, "cells can be edited"),
            (len(state.added), MAX_ADDED, "rows can be added"),
            (len(state.deleted), MAX_DELETED, "rows can be deleted"),
        ):
            if count > most:
                raise InvalidInputError(
                    f"at most {most:,} {phrase} in one commit, and these would be {count:,}: use "
                    "ds.update, ds.merge_insert or the Stage tab for more"
                )
        if state == self.state:
            return
        self._undo = [*self._undo, self.state][-MAX_UNDO:]
        self._redo = []
        self.state = state

    @property
    def num_undo(self) -> int:
        """Steps that can be undone."""
        return len(self._undo)

    @property
    def num_redo(self) -> int:
        """Steps that can be redone."""
        return len(self._redo)

    def undo(self) -> None:
        """Go back one step, if there is one."""
        if self._undo:
            self._redo.append(self.state)
            self.state = self._undo.pop()

    def redo(self) -> None:
        """Do the step again that was undone last, if there is one."""
        if self._redo:
            self._undo.append(self.state)
            self.state = self._redo.pop()

    def _read(self, cells: Sequence[tuple[int, str]]) -> None:
        """Read the values of cells in the base that are not known yet."""
        missing = [cell for cell in dict.fromkeys(cells) if cell not in self._before]
        if not missing:
            return
        rows = list(dict.fromkeys(row for row, _ in missing))
        names = list(dict.fromkeys(name for _, name in missing))
        if len(rows) * len(names) > 2 * MAX_CELLS and len(missing) > 2 * MAX_CELLS:
            raise InvalidInputError(f"at most {MAX_CELLS:,} cells can be edited in one commit")
        table = self.dataset.take_rows(rows, columns=names)
        positions = {row: number for number, row in enumerate(rows)}
        for row, name in missing:
            self._before[row, name] = table.column(name)[positions[row]]

    # --- another version --------------------------------------------------------------------------

    def rebase(self, newest: LanceDataset) -> bool:
        """Move to a newer version; return whether there are no conflicts.

        Raises CommitConflictError when an edited column is gone or has another type.
        """
        if newest.version == self.dataset.version:
            return not self.conflicts
        edits = CellEdits(self.state.cells, self.state.deleted)
        left, conflicts = carried_over(self.dataset.opened[1], newest.opened[1], edits)
        self.dataset = newest
        self.state = DraftState(left.cells, self.state.added, left.deleted)
        self.conflicts = (*self.conflicts, *conflicts)
        self.conflict_number += bool(conflicts)
        self._conflicts_with = text.ref_label(newest.branch, newest.version)
        self._undo, self._redo, self._before = [], [], {}
        self._read([(row, name) for row, values in left.cells.items() for name in values])
        return not self.conflicts

    def resolve(self, number: int, choices: Sequence[CellChoice]) -> None:
        """Decide conflicts; those that no choice is for stay. Raises InvalidInputError."""
        if number != self.conflict_number:
            raise InvalidInputError("the conflicts are others now: look at them again")
        open_conflicts, self.conflicts = self.conflicts, ()
        left: list[CellConflict] = []
        cells: list[tuple[int, str, pa.Scalar]] = []
        deleted: list[int] = []
        added: list[Values] = []
        try:
            for open_conflict in open_conflicts:
                choice = _choice_for(open_conflict, choices)
                if choice is None:
                    left.append(open_conflict)
                elif open_conflict.is_lost and open_conflict.values:
                    if choice.take != THEIRS:
                        edits = open_conflict.edits if choice.take == OURS else {}
                        added.append({**open_conflict.values, **edits})
                elif open_conflict.is_lost and choice.take != THEIRS:
                    # A choice for every row leaves it open: it cannot be applied to this one.
                    if choice.row is not None:
                        raise InvalidInputError(
                            f"the row with row id {open_conflict.row_id} is not in "
                            f"{self.conflicts_with}: "
                            "its edit cannot be applied there, only given up"
                        )
                    left.append(open_conflict)
                elif open_conflict.column is None:
                    deleted += [open_conflict.row_id] if choice.take == OURS else []
                elif choice.take != THEIRS:
                    cells.append(
                        (
                            open_conflict.row_id,
                            open_conflict.column,
                            self._chosen(open_conflict, choice),
                        )
                    )
            if cells:
                self.set_cells(cells)
            if deleted:
                self.delete_rows(deleted)
            if added:
                self.add_rows(added)
        except LanceError:
            self.conflicts = open_conflicts
            raise
        self.conflicts = tuple(left)

    def _chosen(self, conflict: CellConflict, choice: CellChoice) -> pa.Scalar:
        column = self.dataset.schema.field(conflict.column or "")
        values = {OURS: conflict.ours, BASE: conflict.base}
        if choice.take == VALUE:
            return hand_value(choice.value, column)[0]
        value = values.get(choice.take)
        if value is None:
            raise InvalidInputError(f"{choice.take!r} is no choice")
        return value

    @property
    def conflicts_with(self) -> str:
        """The version whose values stand against the edits."""
        return self._conflicts_with

    # --- as arguments -----------------------------------------------------------------------------

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of ``LanceDataset.edit``."""
        schema = self.dataset.schema
        added = None
        if self.state.added:
            rows = list(self.state.added.values())
            columns = [
                pa.array([row.get(field.name) for row in rows], field.type) for field in schema
            ]
            added = pa.Table.from_arrays(columns, schema=schema)
        return {
            "cells": self.state.cells,
            "add": added,
            "delete": sorted(self.state.deleted),
        }

    def form_args(self) -> dict[str, Any]:
        """Return what a card's title and line of code are made of: counts, and arguments.

        An argument that is too long for a line of code, or has no constants, is None.
        """
        state = self.state
        counts = {
            "num_cells": state.num_cells, "num_rows": len(state.cells),
            "num_added": len(state.added), "num_deleted": len(state.deleted),
        }  # fmt: skip
        short = state.num_cells + sum(map(len, state.added.values())) <= CODE_CELLS
        code: dict[str, object] = {}
        if state.cells:
            code["cells"] = _constants(state.cells) if short else None
        if state.added:
            constants = _constants(state.added) if short else None
            code["add"] = None if constants is None else list(constants.values())
        if state.deleted:
            code["delete"] = sorted(state.deleted) if len(state.deleted) <= CODE_CELLS else None
        return {**counts, "code": code}


def draft_title(cells: int, rows: int, added: int, deleted: int) -> str:
    """Say in one line what a draft does."""
    parts = []
    if cells:
        parts.append(f"edits of {count_of(cells, 'cell')} in {count_of(rows, 'row')}")
    if added:
        parts.append(f"{count_of(added, 'row')} added")
    if deleted:
        parts.append(f"{count_of(deleted, 'row')} deleted")
    words = ", ".join(parts) or "no edits"
    return words[0].upper() + words[1:]


def _constants(rows: Mapping[int, Values]) -> dict[int, dict[str, object]] | None:
    """Return the values as constants of Python, None if there are others among them."""
    constants = {row: {name: scalar.as_py() for name, scalar in values.items()}
             for row, values in rows.items()}  # fmt: skip
    every = [value for values in constants.values() for value in values.values()]
    return (
        constants
        if all(isinstance(value, bool | int | float | str | None) for value in every)
        else None
    )


def _choice_for(conflict: CellConflict, choices: Sequence[CellChoice]) -> CellChoice | None:
    """Return the narrowest choice for a conflict."""
    rows = {None: 0, conflict.row_id: 2}
    columns = {None: 0, conflict.column: 1}
    fitting = [
        (rows[choice.row] + columns[choice.column], number, choice)
        for number, choice in enumerate(choices)
        if choice.row in rows and choice.column in columns
    ]
    return max(fitting, key=lambda candidate: candidate[:2])[2] if fitting else None


# --- values and text ------------------------------------------------------------------------------


def check_editable(dataset: LanceDataset, name: str) -> pa.Field:
    """Return a column whose values can be typed. Raises ColumnNotFoundError, NotSupportedError."""
    if name.startswith("_row") and name not in dataset.schema.names:
        raise NotSupportedError(f"{name} is kept by the format and cannot be edited")
    check_column(dataset.lance_schema.tree, name)
    column = dataset.schema.field(name)
    kind, kinds = column.type, pa.types
    stored = kind.value_type if kinds.is_dictionary(kind) else kind
    contents = None
    if isinstance(kind, pa.BaseExtensionType):
        contents = f"values of the type {kind.extension_name}"
    elif (
        kinds.is_binary(stored)
        or kinds.is_large_binary(stored)
        or (kinds.is_fixed_size_binary(stored) or kinds.is_binary_view(stored))
    ):
        contents = "binary values"
    elif kinds.is_fixed_size_list(stored):
        contents = "vectors"
    elif kinds.is_duration(stored) or kinds.is_interval(stored) or kinds.is_map(stored):
        contents = f"values of the type {stored}"
    if contents is not None:
        raise NotSupportedError(
            f"column {text.name(name)!r} holds {contents}, which cannot be typed into a cell: use "
            "ds.edit, ds.update or ds.merge_insert with values from code"
        )
    return column


def editor_of(kind: pa.DataType) -> str:
    """Return the kind of editor for a type: text, bool, json, or one line."""
    kinds = pa.types
    stored = kind.value_type if kinds.is_dictionary(kind) else kind
    if kinds.is_boolean(stored):
        return "bool"
    if kinds.is_nested(stored):
        return "json"
    is_text = kinds.is_string(stored) or kinds.is_large_string(stored)
    return "text" if is_text or stored == pa.string_view() else "line"


def edit_text(value: pa.Scalar) -> str | None:
    """Write a value as ``hand_value`` reads it; None for null.

    Raises NotSupportedError for a value that has no such text, or a longer one than
    ``MAX_TEXT_CHARS``.
    """
    if not value.is_valid:
        return None
    if isinstance(value, pa.DictionaryScalar):
        return edit_text(value.value)
    if pa.types.is_nested(value.type):
        try:
            written = json.dumps(value.as_py(), ensure_ascii=False)
        except (TypeError, ValueError) as error:
            raise NotSupportedError("this value has parts that JSON cannot hold") from error
    elif pa.types.is_floating(value.type):
        written = pa.array([value.as_py()]).cast(pa.string())[0].as_py()
        if pa.types.is_float32(value.type):
            written = value.cast(pa.string()).as_py()
    else:
        written = value.cast(pa.string()).as_py()
    if len(written) > MAX_TEXT_CHARS:
        raise NotSupportedError(
            f"this value has {len(written):,} characters, more than the {MAX_TEXT_CHARS:,} that "
            "can be edited in a cell"
        )
    return str(written)


def block_of(written: str) -> list[list[str | None]]:
    """Read a block of the clipboard; None is an empty field.

    Raises InvalidInputError for one with more than ``MAX_BLOCK_CHARS`` characters or ``MAX_CELLS``
    fields.
    """
    lines = written.count("\n") + written.count("\t")
    if len(written) > MAX_BLOCK_CHARS or lines > 2 * MAX_CELLS:
        raise InvalidInputError(
            f"the block has {len(written):,} characters in about {lines + 1:,} fields; at most "
            f"{MAX_CELLS:,} cells can be edited in one commit"
        )
    rows: list[list[str | None]] = [[]]
    position, end = 0, len(written)
    while position <= end:
        match = _FIELD.match(written, position)
        quoted, plain = (None, "") if match is None else match.groups()
        after = position if match is None else match.end()
        if quoted is not None and after < end and written[after] not in "\t\r\n":
            # A quote within a plain field.
            stop = re.compile(r"[^\t\r\n]*").match(written, position)
            plain, quoted = written[position : stop.end()] if stop else "", None
            after = position + len(plain)
        rows[-1].append(quoted.replace('""', '"') if quoted is not None else plain or None)
        if after >= end:
            break
        if written[after] == "\t":
            position = after + 1
            continue
        position = after + (2 if written[after : after + 2] == "\r\n" else 1)
        if position >= end:
            break  # the end of the last line
        rows.append([])
    if sum(map(len, rows)) > MAX_CELLS:
        raise InvalidInputError(
            f"the block has {sum(map(len, rows)):,} cells; at most {MAX_CELLS:,} can be edited in "
            "one commit"
        )
    return rows


def block_text(rows: Iterable[Iterable[str | None]]) -> str:
    """Write a block that ``block_of`` reads as the same fields."""
    return "\n".join("\t".join(map(_field, row)) for row in rows)


def _field(value: str | None) -> str:
    if value is None:
        return ""
    if not value or _QUOTED.search(value):
        return '"' + value.replace('"', '""') + '"'
    return value
