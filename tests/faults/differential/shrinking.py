"""Make a failing case small: fewer steps, reads, columns and rows; simpler values and arguments.

A smaller case counts as the same failure if its signature is the same.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from tests.faults.differential.play import PYLANCE, Step
from tests.faults.differential.values import Column, Rows

Steps = tuple[Step, ...]
_OPTION = re.compile(r", ?\w+=(\[[^\]]*\]|'[^']*'|\"[^\"]*\"|[^,()\[\]]+)(?=[,)])")


def shrunk(steps: Sequence[Step], fails: Callable[[Steps], bool], seconds: float) -> Steps:
    """Return the smallest case found in ``seconds`` for which ``fails`` holds."""
    until = time.monotonic() + seconds
    best = tuple(steps)
    progress = True
    while progress:
        progress = False
        for simpler in _simpler(best):
            if time.monotonic() > until:
                return best
            if simpler != best and fails(simpler):
                best, progress = simpler, True
                break
    return best


def _simpler(steps: Steps) -> Iterator[Steps]:
    """Yield simpler cases, those that leave out the most first."""
    for at in range(len(steps) - 1, 0, -1):
        yield steps[:at] + steps[at + 1 :]
        before = replace(steps[at - 1], reads=steps[at].reads)
        yield (*steps[: at - 1], before, *steps[at + 1 :])
    for at, step in enumerate(steps):
        if len(step.reads) > 1:
            yield _with(steps, at, replace(step, reads=step.reads[-1:]))
        if step.reads:
            yield _with(steps, at, replace(step, reads=step.reads[:-1]))
    for name in sorted({one.name for step in steps if step.rows for one in step.rows.columns}):
        yield tuple(_without(step, name) for step in steps)
    yield tuple(_without(step, "key") for step in steps)
    yield tuple(_without(step, "uid") for step in steps)
    for at, step in enumerate(steps):
        if step.rows is None:
            continue
        for rows in _simpler_rows(step.rows):
            yield _with(steps, at, replace(step, rows=rows))
    for name in sorted({one.name for step in steps if step.rows for one in step.rows.columns}):
        yield from _simpler_column(steps, name)
    for at, step in enumerate(steps):
        for found in _OPTION.finditer(step.code):
            code = step.code[: found.start()] + step.code[found.end() :]
            yield _with(steps, at, replace(step, code=code))
        for number, read in enumerate(step.reads):
            for found in re.finditer(r"\w+=(\[[^\]]*\]|'[^']*'|\"[^\"]*\"|[^,()\[\]]+)(, )?", read):
                code = (read[: found.start()] + read[found.end() :]).replace(", )", ")")
                reads = (*step.reads[:number], code, *step.reads[number + 1 :])
                yield _with(steps, at, replace(step, reads=reads))
    for at, step in enumerate(steps):
        if step.actor != PYLANCE:
            yield _with(steps, at, replace(step, actor=PYLANCE))
        if step.branch is not None:
            yield _with(steps, at, replace(step, branch=None))


def _with(steps: Steps, at: int, step: Step) -> Steps:
    return (*steps[:at], step, *steps[at + 1 :])


def _without(step: Step, name: str) -> Step:
    return step if step.rows is None else replace(step, rows=step.rows.without(name))


def _simpler_rows(rows: Rows) -> Iterator[Rows]:
    for count in (0, 1, 2, 5, rows.count // 4, rows.count // 2, rows.count * 3 // 4,
                  rows.count * 9 // 10, rows.count - 1):  # fmt: skip
        if 0 <= count < rows.count:
            yield replace(rows, count=count)
    if rows.chunks > 1:
        yield replace(rows, chunks=1)
    if rows.sliced:
        yield replace(rows, sliced=False)
    if rows.order:
        yield replace(rows, order=())
    if rows.start:
        yield replace(rows, start=0)


def _simpler_column(steps: Steps, name: str) -> Iterator[Steps]:
    """Change one column, in every step that has it."""
    first = next(
        one for step in steps if step.rows for one in step.rows.columns if one.name == name
    )
    changes: list[Callable[[Column], Column]] = []
    if first.metadata:
        changes.append(lambda one: replace(one, metadata=()))
        changes += [
            lambda one, key=key: replace(
                one, metadata=tuple(pair for pair in one.metadata if pair[0] != key)
            )
            for key, _ in first.metadata
        ]
    if not first.nullable:
        changes.append(lambda one: replace(one, nullable=True))
    changes += [
        lambda one, values=values: replace(one, values=values)
        for values in ("constant", "few", "random")
    ]
    changes += [lambda one: replace(one, nulls=0.0), lambda one: replace(one, seed=0)]
    changes += [
        lambda one, kind=kind: replace(one, kind=kind) for kind in _simpler_types(first.kind)
    ]
    for change in changes:
        changed = change(first)
        if _simplicity(changed) >= _simplicity(first):
            continue
        yield tuple(_with_column(step, name, change) for step in steps)


def _simplicity(column: Column) -> tuple[int, int, int, float, bool]:
    """Order columns from simple to less so."""
    order = ("constant", "few", "random")
    values = order.index(column.values) if column.values in order else len(order)
    return (len(str(column.field)) + 5 * len(column.metadata), not column.nullable, values,
            column.nulls, bool(column.seed))  # fmt: skip


def _with_column(step: Step, name: str, change: Callable[[Column], Column]) -> Step:
    if step.rows is None:
        return step
    columns = tuple(change(one) if one.name == name else one for one in step.rows.columns)
    return replace(step, rows=replace(step.rows, columns=columns))


def _simpler_types(kind: pa.DataType) -> Iterator[pa.DataType]:
    yield pa.int32()
    yield pa.string()
    if pa.types.is_struct(kind):
        for at, field in enumerate(kind):
            yield field.type
            if kind.num_fields > 1:
                yield pa.struct([one for number, one in enumerate(kind) if number != at])
            for simpler in _simpler_types(field.type):
                changed = field.with_type(simpler)
                yield pa.struct([changed if one.name == field.name else one for one in kind])
    elif pa.types.is_map(kind):
        yield kind.item_type
        for simpler in _simpler_types(kind.item_type):
            yield pa.map_(kind.key_type, kind.item_field.with_type(simpler))
    elif pa.types.is_fixed_size_list(kind):
        yield kind.value_type
        if kind.list_size > 2:
            yield pa.list_(kind.value_field, 2)
        yield pa.list_(pa.int32(), kind.list_size)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield kind.value_type
        make = pa.list_ if pa.types.is_list(kind) else pa.large_list
        yield pa.list_(kind.value_field)
        for simpler in _simpler_types(kind.value_type):
            yield make(kind.value_field.with_type(simpler))
    elif pa.types.is_dictionary(kind):
        yield kind.value_type
        yield pa.dictionary(pa.int32(), kind.value_type)


__all__ = ["shrunk"]
