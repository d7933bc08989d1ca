"""Walk the entries of full-zip rows: where each control word and each value lies.

Entries have no index of their own: an entry's length depends on its control word and, for
variable-width values, on the length in front of the value. Without the compiled loop, rows are
walked in lock step: step ``k`` reads the ``k``-th entry of every row that still has one, and the
few long rows that remain are walked one by one.

Limits: every byte read lies inside its row. Source: message FullZipLayout of lance.encodings21.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np
import numpy.typing as npt

from lance_nb.encodings.base import Bytes, Ints, corrupt
from lance_nb.encodings.kernels import compiled
from lance_nb.errors import CorruptFileError
from lance_nb.value_classes import dataclass

_LOCK_STEP_ROWS_MIN = 64  # measured: below, a step of numpy costs more than plain integers


@dataclass(frozen=True, slots=True)
class EntryFormat:
    """How an entry reads: bytes of control word, bits of definition, and its value's form.

    ``fixed_bytes`` is 0 for variable-width values, which have ``length_bytes`` (4 or 8) instead.
    """

    control_bytes: int
    bits_definition: int
    definition_visible_max: int
    fixed_bytes: int
    length_bytes: int


@dataclass(frozen=True, slots=True)
class WalkedEntries:
    """One control word per entry; start and size of the value of each visible entry, in order."""

    control: npt.NDArray[np.uint32]
    value_starts: Ints
    value_sizes: Ints


@dataclass(frozen=True, slots=True)
class _Step:
    rows: Ints
    control: npt.NDArray[np.uint32]
    visible: npt.NDArray[np.bool_]
    value_starts: Ints
    value_sizes: Ints
    next: Ints


def walk_entries(data: Bytes, starts: Ints, stops: Ints, form: EntryFormat) -> WalkedEntries:
    """Walk the rows ``data[starts[i]:stops[i]]``. Raises CorruptFileError when one does not fit.

    Every row has at least one entry.
    """
    if compiled.loops is not None:
        walked = _walk_compiled(compiled.loops, data, starts, stops=stops, form=form)
        if walked is not None:
            return walked
    shortest = int((stops - starts).min()) if starts.size else form.control_bytes
    if shortest < form.control_bytes:
        raise corrupt(f"rows of at least {form.control_bytes} bytes", f"a row of {shortest} bytes")
    steps: list[_Step] = []
    rows = np.arange(starts.size, dtype=np.int64)
    position = starts
    while rows.size:
        if steps and rows.size < _LOCK_STEP_ROWS_MIN:
            steps.extend(_walk_one_by_one(data, rows, position, stops=stops, form=form))
            break
        step = _step(data, rows, position, stops=stops[rows], form=form)
        steps.append(step)
        more = step.next < stops[rows]
        rows, position = rows[more], step.next[more]
    return _in_row_order(steps)


def _walk_compiled(
    loops: ModuleType, data: Bytes, starts: Ints, stops: Ints, form: EntryFormat
) -> WalkedEntries | None:
    """Walk row by row; None where an entry does not fit, for the numpy form to say which."""
    count = visible = starts.size  # all that there is without lists
    while True:
        control = np.empty(count, np.uint32)
        value_starts, value_sizes = np.empty(visible, np.int64), np.empty(visible, np.int64)
        totals = loops.walk_entries(
            data, starts, stops, form.control_bytes, form.bits_definition,
            form.definition_visible_max, form.fixed_bytes, form.length_bytes,
            control, value_starts, value_sizes,
        )  # fmt: skip
        if totals is None:
            return None
        if totals[0] <= count and totals[1] <= visible:
            count, visible = totals
            return WalkedEntries(control[:count], value_starts[:visible], value_sizes[:visible])
        count, visible = totals


def _step(data: Bytes, rows: Ints, position: Ints, stops: Ints, form: EntryFormat) -> _Step:
    """Read one entry of each row, the one at ``position``."""
    control = read_words(data, position, form.control_bytes, stops).astype(np.uint32)
    definition = control & np.uint32((1 << form.bits_definition) - 1)
    visible = definition <= form.definition_visible_max
    cursor = position + form.control_bytes
    if form.fixed_bytes:
        sizes = np.where(visible, form.fixed_bytes, 0)
    else:
        present = definition == 0
        sizes = np.zeros(rows.size, np.int64)
        sizes[present] = read_words(data, cursor[present], form.length_bytes, stops[present])
        cursor = cursor + np.where(present, form.length_bytes, 0)
    after = cursor + sizes
    is_outside = (sizes < 0) | (sizes > stops - cursor)  # the sum may wrap around
    if bool(is_outside.any()):
        wrong = int(is_outside.argmax())
        raise _outside_row(int(sizes[wrong]), int(stops[wrong] - cursor[wrong]))
    if bool((after == position).any()):
        raise corrupt("entries of at least one byte", "an empty entry")
    return _Step(
        rows, control, visible, value_starts=cursor[visible], value_sizes=sizes[visible], next=after
    )


def _walk_one_by_one(
    data: Bytes, rows: Ints, position: Ints, stops: Ints, form: EntryFormat
) -> list[_Step]:
    """Walk few, long rows entry by entry with plain integers."""
    view = memoryview(data.data)
    return [
        _walk_row(view, int(row), int(offset), stop=int(stops[row]), form=form)
        for row, offset in zip(rows, position, strict=True)
    ]


def _walk_row(view: memoryview, row: int, offset: int, stop: int, form: EntryFormat) -> _Step:
    mask = (1 << form.bits_definition) - 1
    control: list[int] = []
    starts: list[int] = []
    sizes: list[int] = []
    visible: list[bool] = []
    while offset < stop:
        begin = offset
        word = int.from_bytes(view[offset : offset + form.control_bytes], "little")
        offset += form.control_bytes
        definition = word & mask
        seen = definition <= form.definition_visible_max
        size = form.fixed_bytes if seen else 0
        if not form.fixed_bytes and definition == 0:
            size = int.from_bytes(view[offset : offset + form.length_bytes], "little")
            offset += form.length_bytes
        control.append(word)
        visible.append(seen)
        if seen:
            starts.append(offset)
            sizes.append(size)
        offset += size
        if offset > stop:
            raise _outside_row(size, stop - offset + size)
        if offset == begin:
            raise corrupt("entries of at least one byte", "an empty entry")
    return _Step(
        np.full(len(control), row, np.int64),
        np.array(control, np.uint32),
        np.array(visible, bool),
        value_starts=np.array(starts, np.int64),
        value_sizes=np.array(sizes, np.int64),
        next=np.zeros(0, np.int64),
    )


def _outside_row(size: int, room: int) -> CorruptFileError:
    expected = f"values that end inside their row, {room} bytes from here"
    return corrupt(expected, f"one of {size & (2**64 - 1)} bytes")


def read_words(data: Bytes, position: Ints, width: int, stops: Ints) -> Ints:
    """Read one little-endian word of ``width`` bytes at each position, as int64."""
    words = np.zeros(position.size, np.int64)
    if not width or not position.size:
        return words
    room = int((np.minimum(stops, data.size) - position).min())
    if room < width or int(stops.max()) > data.size:
        raise corrupt(f"words of {width} bytes that end inside their row", f"{room} bytes")
    for byte in range(width):
        words |= data[position + byte].astype(np.int64) << (8 * byte)
    return words


def _in_row_order(steps: list[_Step]) -> WalkedEntries:
    if not steps:
        empty = np.zeros(0, np.int64)
        return WalkedEntries(np.zeros(0, np.uint32), empty, empty)
    if len(steps) == 1:
        return WalkedEntries(steps[0].control, steps[0].value_starts, steps[0].value_sizes)
    rows = np.concatenate([step.rows for step in steps])
    order = np.argsort(rows, kind="stable")
    visible_rows = np.concatenate([step.rows[step.visible] for step in steps])
    visible_order = np.argsort(visible_rows, kind="stable")
    return WalkedEntries(
        np.concatenate([step.control for step in steps])[order],
        np.concatenate([step.value_starts for step in steps])[visible_order],
        np.concatenate([step.value_sizes for step in steps])[visible_order],
    )
