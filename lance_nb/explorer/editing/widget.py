"""Edit cells and rows in the grid: what is typed and pasted goes to the card of edits.

Its ES module is ``row_editor.js``, loaded with the first edit. Requests (with ``branch``,
``version`` and what the grid looks at: ``filter``, ``system``, ``arranged``, ``shown``):

============= ======================================= ===========================================
request       args                                    result
============= ======================================= ===========================================
edit.begin                                            why (empty: rows can be edited), newest,
                                                      summary
edit.cell     row, column                             editor, text, null, nullable, name, type
edit.marks    first, count                            rows: {at, deleted, cells: {name: text}},
                                                      added, summary
edit.copy     row, rows, column, columns              text: the block, for the clipboard
edit.set      row, column, text (null: null)          summary
edit.clear    row, rows, column, columns              summary; the cells become null
edit.fill     row, rows, column, columns              summary; the first row is copied down
edit.paste    row, column, text                       summary
edit.add      rows: [{column: text}] or text, header  summary
edit.delete   ranges                                  summary
edit.undo                                             summary
edit.redo                                             summary
edit.drop     kind, row, column                       summary
edit.resolve  id, plan, choices                       area of the card
edit.lines    id, plan, first, count                  lines: the conflicts of a card
edit.value    id, column, text                        shown, problem
============= ======================================= ===========================================

``row`` and ``column`` are places in the grid; row ids are texts, since they have 64 bits. A summary
is ``{title, cells, rows, added, deleted, undo, redo, card}``, null where nothing is edited.

Limits: those of cell_draft.py; ``MAX_MARKED`` rows of marks, ``MAX_COPIED`` cells of a block.
Not supported: editing a version that is not the newest of its branch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import pyarrow as pa

from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError, LanceError
from lance_nb.explorer import cells, text
from lance_nb.explorer.editing.cell_draft import (
    MAX_BLOCK_CHARS,
    MAX_CELLS,
    MAX_DELETED,
    MAX_TEXT_CHARS,
    CellDraft,
    block_of,
    block_text,
    check_editable,
    edit_text,
    editor_of,
)
from lance_nb.explorer.messages import Answer, integer, words
from lance_nb.explorer.refs.merge_preview import shown_value
from lance_nb.explorer.session import MAX_COUNT, RequestHandlers, read_choice, selection_of
from lance_nb.explorer.source import Source, writable_dataset
from lance_nb.explorer.stage.card import Card
from lance_nb.explorer.stage.card_view import card_json, conflict_lines
from lance_nb.explorer.stage.staging_area import StagingArea, staging_area_of
from lance_nb.writing.editing import hand_value

MAX_MARKED = 500
MAX_COPIED = 100_000
MAX_CHOICES = 5000
_CHARS = 200


class RowEditHandlers(RequestHandlers):
    """Handlers of the editor."""

    prefix: ClassVar[str] = "edit"

    # --- reading ----------------------------------------------------------------------------------

    def on_begin(self, args: Mapping[str, Any]) -> Answer:
        """Say whether rows of this version can be edited, and why not."""
        source = self.source(args)
        why, newest = self._why_not(source), None
        if not why and isinstance(source, LanceDataset):
            newest = source.checkout_version((source.branch, None)).version
            if newest != source.version and self._base(source) != source.version:
                label = text.ref_label(source.branch, source.version)
                why = (
                    f"{label} is not the newest version of its branch: go to "
                    f"{text.ref_label(source.branch, newest)} to edit it, or create a branch here"
                )
        return Answer({"why": why, "newest": newest, "summary": self._summary(source)})

    def _why_not(self, source: Source) -> str:
        if not isinstance(source, LanceDataset):
            return "only datasets that were opened with lance_nb can be edited"
        if self.session.read_only:
            return "this explorer was opened with read_only=True"
        if self.session.locked:
            return "this explorer is locked: open the lock in the header to edit"
        if source.version not in source.version_numbers():
            return "this version is detached: no branch would get the edits"
        return ""

    def _area(self, source: Source) -> StagingArea:
        return staging_area_of(writable_dataset(source))

    def _card(self, source: Source) -> Card | None:
        if not isinstance(source, LanceDataset):
            return None
        return self._area(source).edits(source.branch)

    def _base(self, source: Source) -> int | None:
        card = self._card(source)
        return None if card is None else card.dataset.version

    def _summary(self, source: Source) -> dict[str, Any] | None:
        card = self._card(source)
        if card is None or card.draft is None:
            return None
        state = card.draft.state
        return {
            "title": card.draft.title,
            "cells": state.num_cells,
            "rows": len(state.cells),
            "added": len(state.added),
            "deleted": len(state.deleted),
            "undo": card.draft.num_undo,
            "redo": card.draft.num_redo,
            "conflicts": len(card.draft.conflicts),
            "card": card.id,
            "on": text.ref_label(card.dataset.branch, card.dataset.version),
        }

    def on_cell(self, args: Mapping[str, Any]) -> Answer:
        """Return the whole value of a cell as it is edited now, and how it is edited."""
        source = writable_dataset(self.source(args))
        name = self._names(args, source, 1)[0]
        column = check_editable(source, name)
        row_id = self._row_ids(args, source, 1)[0]
        value = self._values(args, source, [row_id], [name])[0][0]
        return Answer(
            {
                "editor": editor_of(column.type),
                "text": edit_text(value) or "",
                "null": not value.is_valid,
                "nullable": column.nullable,
                "name": text.name(name),
                "type": text.line(str(column.type), 80),
            }
        )

    def on_marks(self, args: Mapping[str, Any]) -> Answer:
        """Return what is edited among some rows of the grid, and the rows that are added."""
        source = self.source(args)
        card = self._card(source)
        if card is None or card.draft is None or not isinstance(source, LanceDataset):
            return Answer({"rows": [], "added": [], "summary": None})
        draft = card.draft
        is_same = source.version == draft.dataset.version
        stable = source.has_stable_row_ids and draft.dataset.has_stable_row_ids
        rows = []
        count = integer(args, "count", low=0, high=MAX_MARKED)
        if count and (is_same or stable) and (draft.state.cells or draft.state.deleted):
            first = integer(args, "first", low=0, high=MAX_COUNT)
            table = self.session.query(args).rows(source, ["_rowid"], first, count)
            for position, row in enumerate(table["_rowid"].to_pylist(), first):
                edits = draft.state.cells.get(row, {})
                if edits or row in draft.state.deleted:
                    rows.append(
                        {
                            "at": position,
                            "deleted": row in draft.state.deleted,
                            "cells": {name: _shown(value) for name, value in edits.items()},
                        }
                    )
        added = [
            {"row": row, "cells": {name: _shown(value) for name, value in values.items()}}
            for row, values in list(draft.state.added.items())[-MAX_MARKED:]
        ]
        return Answer({"rows": rows, "added": added, "summary": self._summary(source)})

    def on_copy(self, args: Mapping[str, Any]) -> Answer:
        """Write a block of cells for the clipboard, as they are edited now."""
        source = self.source(args)
        count, names = self._block(args, source, MAX_COPIED)
        if isinstance(source, LanceDataset):
            row_ids = self._row_ids(args, source, count)
            value_rows = self._values(args, source, row_ids, names)
        else:
            row = integer(args, "row", low=0, high=MAX_COUNT)
            table = self.session.query(args).rows(source, names, row, count)
            value_rows = list(map(list, zip(*(table.column(name) for name in names), strict=True)))
        return Answer({"text": block_text(map(_texts, value_rows)), "rows": len(value_rows)})

    # --- writing to the draft ---------------------------------------------------------------------

    def _change(
        self, args: Mapping[str, Any], change: Callable[[LanceDataset, CellDraft], object]
    ) -> Answer:
        """Change the draft, if the rows on screen can be edited."""
        self.session.check_unlocked()
        source = writable_dataset(self.source(args))
        why = self.on_begin(args).result["why"]
        if why:
            raise InvalidInputError(why)
        card = self._area(source).edit(source, lambda draft: change(source, draft))
        return Answer({"summary": self._summary(source), "code": card_json(card)["code"]})

    def on_set(self, args: Mapping[str, Any]) -> Answer:
        """Give one cell a value."""
        written = None if args.get("text") is None else words(args, "text", MAX_TEXT_CHARS)

        def change(source: LanceDataset, draft: CellDraft) -> None:
            name = self._names(args, source, 1)[0]
            value = hand_value(written, check_editable(source, name))[0]
            draft.set_cells([(self._row_ids(args, source, 1)[0], name, value)])

        return self._change(args, change)

    def on_clear(self, args: Mapping[str, Any]) -> Answer:
        """Set a block of cells to null."""

        def change(source: LanceDataset, draft: CellDraft) -> None:
            count, names = self._block(args, source, MAX_CELLS)
            nulls = {name: hand_value(None, check_editable(source, name))[0] for name in names}
            row_ids = self._row_ids(args, source, count)
            draft.set_cells((row, name, nulls[name]) for row in row_ids for name in names)

        return self._change(args, change)

    def on_fill(self, args: Mapping[str, Any]) -> Answer:
        """Copy the first row of a block to the rows below."""

        def change(source: LanceDataset, draft: CellDraft) -> None:
            count, names = self._block(args, source, MAX_CELLS)
            for name in names:
                check_editable(source, name)
            row_ids = self._row_ids(args, source, count)
            first = self._values(args, source, row_ids[:1], names)[0]
            draft.set_cells(
                (row, name, value)
                for row in row_ids[1:]
                for name, value in zip(names, first, strict=True)
            )

        return self._change(args, change)

    def on_paste(self, args: Mapping[str, Any]) -> Answer:
        """Set the cells of a block; a single value fills as many rows as are selected."""
        block = block_of(words(args, "text", MAX_BLOCK_CHARS))

        def change(source: LanceDataset, draft: CellDraft) -> None:
            names = self._names(args, source, max(map(len, block)))
            if max(map(len, block)) > len(names):
                raise InvalidInputError(
                    f"the block has {max(map(len, block))} columns, and {len(names)} are right of "
                    "this cell"
                )
            columns = [check_editable(source, name) for name in names]
            row_ids = self._row_ids(args, source, len(block))
            if len(row_ids) < len(block):
                raise InvalidInputError(
                    f"the block has {len(block)} rows, and {len(row_ids)} are below this cell: "
                    "add the others as rows"
                )
            draft.set_cells(
                (row, column.name, hand_value(value, column)[0])
                for row, line in zip(row_ids, block, strict=True)
                for value, column in zip(line, columns, strict=False)
            )

        return self._change(args, change)

    def on_add(self, args: Mapping[str, Any]) -> Answer:
        """Add rows, from a form or a block; the first line of a block may name the columns."""

        def change(source: LanceDataset, draft: CellDraft) -> None:
            draft.add_rows(_new_rows(args, source))

        return self._change(args, change)

    def on_delete(self, args: Mapping[str, Any]) -> Answer:
        """Mark the selected rows to be deleted."""

        def change(source: LanceDataset, draft: CellDraft) -> None:
            query = self.session.query(args)
            selection = selection_of({"ranges": args.get("ranges")}, query)
            if selection.num_rows > MAX_DELETED:
                raise InvalidInputError(
                    f"at most {MAX_DELETED:,} rows can be deleted in one commit of edits: delete "
                    "by a condition in the Stage tab"
                )
            for first, stop in selection.ranges:
                rows = query.rows(source, ["_rowid"], first, stop - first)
                draft.delete_rows(rows["_rowid"].to_pylist())

        return self._change(args, change)

    def on_undo(self, args: Mapping[str, Any]) -> Answer:
        """Undo the last step."""
        return self._change(args, lambda _, draft: draft.undo())

    def on_redo(self, args: Mapping[str, Any]) -> Answer:
        """Redo the step that was undone last."""
        return self._change(args, lambda _, draft: draft.redo())

    def on_drop(self, args: Mapping[str, Any]) -> Answer:
        """Take one edit back."""
        kind, row = words(args, "kind", 20), _row_id(args.get("row"))
        column = None if args.get("column") is None else words(args, "column", 4000)
        return self._change(args, lambda _, draft: draft.drop(kind, row, column))

    # --- conflicts --------------------------------------------------------------------------------

    def _of_card(self, args: Mapping[str, Any]) -> tuple[StagingArea, CellDraft]:
        area = self._area(self.session.dataset)
        draft = area.card(words(args, "id", 40)).draft
        if draft is None:
            raise InvalidInputError("this card has no edits")
        return area, draft

    def on_lines(self, args: Mapping[str, Any]) -> Answer:
        """Return some conflicts of a card."""
        _, draft = self._of_card(args)
        first = integer(args, "first", low=0, high=MAX_COUNT)
        count = integer(args, "count", low=1, high=MAX_MARKED)
        return Answer({"lines": conflict_lines(draft, first, count)})

    def on_value(self, args: Mapping[str, Any]) -> Answer:
        """Check a value that was written by hand in the table of conflicts."""
        _, draft = self._of_card(args)
        written = None if args.get("text") is None else words(args, "text", MAX_TEXT_CHARS)
        try:
            column = check_editable(draft.dataset, words(args, "column", 4000))
            value = hand_value(written, column)[0]
        except LanceError as error:
            return Answer({"shown": None, "problem": text.line(str(error), 300)})
        return Answer({"shown": shown_value(value), "problem": ""})

    def on_resolve(self, args: Mapping[str, Any]) -> Answer:
        """Decide conflicts."""
        self.session.check_unlocked()
        area, draft = self._of_card(args)
        choices = args.get("choices")
        if not isinstance(choices, list) or len(choices) > MAX_CHOICES:
            raise InvalidInputError(f"choices must be a list of up to {MAX_CHOICES:,}")
        number = integer(args, "plan", low=0, high=MAX_COUNT)
        area.resolve(
            words(args, "id", 40), number, [read_choice(choice, _row_id) for choice in choices]
        )
        return Answer({"conflicts": len(draft.conflicts)})

    # --- places in the grid -----------------------------------------------------------------------

    def _names(self, args: Mapping[str, Any], source: Source, count: int) -> list[str]:
        names = self.session.query(args).names(source)
        first = integer(args, "column", low=0, high=max(0, len(names) - 1))
        return names[first : first + count]

    def _block(self, args: Mapping[str, Any], source: Source, most: int) -> tuple[int, list[str]]:
        rows = integer(args, "rows", low=1, high=MAX_COUNT)
        columns = integer(args, "columns", low=1, high=MAX_COUNT)
        if rows * columns > most:
            raise InvalidInputError(
                f"{rows * columns:,} cells are selected, and at most {most:,} can be used at once"
            )
        return rows, self._names(args, source, columns)

    def _row_ids(self, args: Mapping[str, Any], source: Source, count: int) -> list[int]:
        row = integer(args, "row", low=0, high=MAX_COUNT)
        row_ids = self.session.query(args).rows(source, ["_rowid"], row, count)["_rowid"]
        if not len(row_ids):
            raise InvalidInputError(f"row {row:,} does not exist")
        return [int(row_id) for row_id in row_ids.to_pylist()]

    def _values(
        self, args: Mapping[str, Any], source: LanceDataset, row_ids: list[int], names: list[str]
    ) -> list[list[pa.Scalar]]:
        """Return values by row and column, as they are edited now."""
        row = integer(args, "row", low=0, high=MAX_COUNT)
        table = self.session.query(args).rows(source, names, row, len(row_ids))
        card = self._card(source)
        edits: Mapping[int, Mapping[str, pa.Scalar]] = {}
        if card is not None and card.draft is not None:
            edits = card.draft.state.cells
        nothing: Mapping[str, pa.Scalar] = {}
        return [
            [edits.get(row_id, nothing).get(name, table.column(name)[index]) for name in names]
            for index, row_id in enumerate(row_ids)
        ]


def _shown(value: pa.Scalar) -> str | None:
    return cells.scalar_text(value, _CHARS) if value.is_valid else None


def _texts(row: Sequence[pa.Scalar]) -> list[str | None]:
    texts: list[str | None] = []
    for value in row:
        try:
            texts.append(edit_text(value))
        except (
            LanceError,
            pa.ArrowException,
        ):  # binary values and the like: as the grid shows them
            texts.append(_shown(value))
    return texts


def _new_rows(args: Mapping[str, Any], source: LanceDataset) -> list[dict[str, pa.Scalar]]:
    """Return the rows to add, typed. Raises InvalidInputError."""
    given_rows = args.get("rows")
    names = list(source.schema.names)
    if given_rows is None:
        block = block_of(words(args, "text", MAX_BLOCK_CHARS))
        head = [value for value in block[0] if value is not None]
        if head and all(value in names for value in head) and len(head) == len(block[0]):
            names, block = head, block[1:]
        if any(len(line) > len(names) for line in block):
            raise InvalidInputError(
                f"a line has more fields than there are columns ({len(names)}): name the columns "
                "in the first line"
            )
        given_rows = [dict(zip(names, line, strict=False)) for line in block]
    if not isinstance(given_rows, list) or not given_rows or len(given_rows) > MAX_CELLS:
        raise InvalidInputError("rows must be a list of objects {column: text}")
    rows = []
    for row in given_rows:
        if not isinstance(row, Mapping):
            raise InvalidInputError("rows must be a list of objects {column: text}")
        values = {}
        for name, written in row.items():
            if written is None:
                continue
            if not isinstance(written, str) or len(written) > MAX_TEXT_CHARS:
                raise InvalidInputError(f"values are texts of up to {MAX_TEXT_CHARS:,} characters")
            values[name] = hand_value(written, check_editable(source, name))[0]
        rows.append(values)
    return rows


def _row_id(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, str) or len(value) > 20 or not (value.isascii() and value.isdigit()):
        raise InvalidInputError("row must be a row id")
    return int(value)
