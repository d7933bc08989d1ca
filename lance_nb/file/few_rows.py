"""Write the columns of a file of few rows: those that are alike are encoded together.

Most of the cost of such a file is paid per column, not per value. So a plain column has no writer
of its own: its array waits until the file is finished, and the columns of one type become one stack
(``encodings.stacked_pages``), together with alike leaves of structs. What a stack leaves, and all
lists and blobs, go through the writers of ``column_writer``.

Limits: file versions 2.1 and 2.2, ``ROWS_MAX`` rows, of each column no more than fills a page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from lance_nb.encodings.arrow_parts import nulls_of
from lance_nb.encodings.compress_base import PageLevels
from lance_nb.encodings.encoding_options import PREFIX, EncodingOptions
from lance_nb.encodings.page_encoder import Learned, encode_pages
from lance_nb.encodings.repdef import leaf_levels
from lance_nb.encodings.stacked_pages import ROWS_MAX, encode_stack, is_stackable
from lance_nb.file.column_writer import ColumnPlan, ColumnWriter, add_pages
from lance_nb.file.sink import FileSink
from lance_nb.format.logical_types import is_nested, leaf_to_arrow
from lance_nb.format.schema import Field

_LEAVES_MIN = 8  # fewer are encoded as fast one by one

__all__ = ["ROWS_MAX", "is_plain", "write_columns"]


def is_plain(field: Field) -> bool:
    """Tell whether a field is one column of a type that is stacked, without encoding keys."""
    if field.children or field.extension_name or is_nested(field.logical_type):
        return False
    has_keys = any(key.startswith(PREFIX) or key == "packed" for key in field.metadata)
    return not has_keys and is_stackable(leaf_to_arrow(field.logical_type))


class _Stack:
    """Columns that are alike, with the values and levels of their pages."""

    def __init__(self) -> None:
        self.columns: list[int] = []
        self.values: list[pa.Array] = []
        self.levels: list[PageLevels] = []

    def add(self, column: int, values: pa.Array, levels: PageLevels) -> None:
        """Take the page of a column."""
        self.columns.append(column)
        self.values.append(values)
        self.levels.append(levels)


def write_columns(
    sink: FileSink,
    columns: Sequence[tuple[Field, ColumnPlan | None, pa.Array]],
    options: EncodingOptions,
    begin: Callable[[ColumnPlan], ColumnWriter],
) -> list[tuple[int, int]]:
    """Write all rows of all columns; return (field id, column number) of every column.

    Plain fields have no plan; ``begin`` begins the others. All columns have the same number of
    rows, one at least. ``options`` are those of a field without keys.
    """
    num_rows = len(columns[0][2])
    owners: list[tuple[int, int]] = []
    stacks: dict[tuple[object, ...], _Stack] = {}
    all_valid = leaf_levels(num_rows, None)
    for field, plan, array in columns:
        if plan is None:
            column = sink.reserve_column()
            owners.append((field.id, column))
            has_null = array.null_count > 0
            levels = leaf_levels(num_rows, nulls_of(array)) if has_null else all_valid
            _stack_of(stacks, field, levels).add(column, array, levels)
            continue
        top = begin(plan)
        top.write(array)
        owners += top.owners()
        for writer in top.leaves:
            page = writer.waiting() if writer.has_one_page(options) else None
            if page is None or not is_stackable(page[0].type) or page[1].repetition is not None:
                writer.flush()
                continue
            values, levels = page
            _stack_of(stacks, writer.plan.field, levels).add(writer.column, values, levels)
    for stack in stacks.values():
        _write_stack(sink, stack, options, num_rows)
    return owners


def _stack_of(stacks: dict[tuple[object, ...], _Stack], field: Field, levels: PageLevels) -> _Stack:
    kind = (field.logical_type, levels.layers, levels.definition is None, levels.num_entries)
    stack = stacks.get(kind)
    if stack is None:
        stack = stacks[kind] = _Stack()
    return stack


def _write_stack(sink: FileSink, stack: _Stack, options: EncodingOptions, num_rows: int) -> None:
    """Write the pages of a stack, then those that it leaves, each alone."""
    left = dict.fromkeys(range(len(stack.columns)))
    if len(left) >= _LEAVES_MIN:
        for pages in encode_stack(stack.values, stack.levels, options):
            numbers = pages.leaves.tolist()
            sink.add_stacked([stack.columns[number] for number in numbers], pages, num_rows)
            for number in numbers:
                del left[number]
    for number in left:
        column = stack.columns[number]
        learned = sink.learned.setdefault(column, Learned())
        encoded = encode_pages(stack.values[number], stack.levels[number], options, learned)
        add_pages(sink, column, encoded)
