"""Merge schemas and key-value maps changed on two sides.

Fields: added, dropped, renamed, made nullable, annotated. The target's fields stay in their order;
what the source added comes after them. A field that both sides added under one name is a conflict,
and so is one that one side dropped and the other changed.

Maps: config, metadata of table, schema and fields. Each key is merged by itself: the side that
changed it wins; the same value on both is no conflict.

Limits: the new type of a cast column is a new field with the old name, as in the format.
Source: messages Manifest of lance.table and Field of lance.file; ids are given as in
manifest_building.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import field, replace
from typing import TypeVar

from lance_nb.format.field import TOP, Field
from lance_nb.format.schema import Schema
from lance_nb.merging.conflicts import COLUMNS, OURS, SETTINGS, THEIRS, Findings
from lance_nb.merging.matching import Match
from lance_nb.merging.merge_base import Ends
from lance_nb.value_classes import dataclass

V = TypeVar("V")


def merge_maps(
    base: Mapping[str, V],
    source: Mapping[str, V],
    target: Mapping[str, V],
    subject: str,
    findings: Findings,
) -> dict[str, V]:
    """Return the target's map with the source's changes; ``subject`` names the map for people."""
    merged = dict(target)
    changed = [key for key in {**base, **source} if base.get(key) != source.get(key)]
    for key in changed:
        value = source.get(key)
        if target.get(key) == value:
            continue
        if target.get(key) != base.get(key):
            current = _shown(target.get(key))
            text = f"{subject} {key!r} is {_shown(value)} on the source, {current} here"
            if findings.report(SETTINGS, text, keys=(key,)) != THEIRS:
                continue
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = value
    return merged


def _shown(value: object) -> str:
    if value is None:
        return "not set"
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return repr(text if len(text) <= 60 else f"{text[:60]}...")


_ATTRIBUTES = ("name", "nullable", "logical_type", "keys", "extension_name", "encoding")


@dataclass(frozen=True, slots=True)
class MergedSchema:
    """``fields``: ids of the source -> ids of the outcome. ``added`` and ``dropped`` are ids there.

    ``tightened``: fields that take no nulls any more and did before.
    """

    schema: Schema
    fields: Mapping[int, int]
    added: frozenset[int]
    dropped: frozenset[int]
    tightened: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class _Tree:
    """The outcome in the making: nodes without children, in order."""

    nodes: dict[int, Field] = field(default_factory=dict)

    @classmethod
    def of(cls, schema: Schema) -> _Tree:
        return cls({field.id: replace(field, children=()) for field in schema.walk()})

    def named(self, parent: int, name: str) -> Field | None:
        return next(
            (node for node in self.nodes.values() if (node.parent_id, node.name) == (parent, name)),
            None,
        )

    def remove(self, number: int) -> set[int]:
        """Take a field out, with all below it; return their ids."""
        removed = {number}
        for node in list(self.nodes.values()):  # parents stand before their children
            if node.parent_id in removed:
                removed.add(node.id)
        for field_id in removed:
            self.nodes.pop(field_id, None)
        return removed

    def build(self, metadata: Mapping[str, bytes]) -> Schema:
        below: dict[int, list[Field]] = {}
        for node in self.nodes.values():
            below.setdefault(node.parent_id, []).append(node)

        def whole(node: Field) -> Field:
            return replace(node, children=tuple(whole(child) for child in below.get(node.id, ())))

        return Schema(tuple(whole(top_field) for top_field in below.get(TOP, ())), metadata)


class SchemaMerge:
    """One merge of schemas."""

    def __init__(self, ends: Ends, findings: Findings) -> None:
        sides = (ends.base, ends.source, ends.target)
        self._base, self._source, self._target = (side.manifest.schema for side in sides)
        self._next_id = ends.target.max_field_id + 1
        self._is_one_line = ends.source_target.field_id is None
        self._findings = findings
        self._tree = _Tree.of(self._target)
        self._ids: dict[int, int] = {}
        self._added: set[int] = set()
        self._dropped: set[int] = set()
        self._tightened: set[int] = set()

    def run(self, of_base: Match, to_target: Match, present: Mapping[int, int]) -> MergedSchema:
        """Merge. ``of_base``: base -> source, ``to_target``: base -> target.

        ``present``: fields of the source -> those of the target that hold the same data.
        """
        bases = {source_id: base_id for base_id, source_id in of_base.fields.items()}
        for base_field in self._base.walk():
            if base_field.id not in of_base.fields and base_field.id in to_target.fields:
                self._drop(base_field, to_target.fields[base_field.id])
        for source_field in self._source.walk():
            base_id = bases.get(source_field.id)
            if base_id is None:
                is_known = source_field.parent_id in bases
                self._add(source_field, present.get(source_field.id), is_base_parent=is_known)
            elif base_id in to_target.fields:
                self._change(base_id, source_field, to_target.fields[base_id])
            else:
                self._left_out(base_id, source_field)
        self._check_names()
        if [to_target.fields.get(base_field.id) for base_field in self._base.walk()] == [
            target_field.id for target_field in self._target.walk()
        ]:
            self._reorder()
        metadata = merge_maps(
            self._base.metadata,
            self._source.metadata,
            self._target.metadata,
            subject="schema metadata",
            findings=self._findings,
        )
        return MergedSchema(
            self._tree.build(metadata),
            self._ids,
            frozenset(self._added),
            dropped=frozenset(self._dropped),
            tightened=frozenset(self._tightened),
        )

    def _reorder(self) -> None:
        """Take the source's order, where the target has left its own alone."""
        place = {
            self._ids[field.id]: position
            for position, field in enumerate(self._source.walk())
            if field.id in self._ids
        }
        nodes = sorted(self._tree.nodes.values(), key=lambda node: place.get(node.id, len(place)))
        self._tree.nodes.clear()
        self._tree.nodes.update((node.id, node) for node in nodes)

    def _check_names(self) -> None:
        names = Counter((node.parent_id, node.name) for node in self._tree.nodes.values())
        for _, name in sorted(key for key, count in names.items() if count > 1):
            text = f"there would be two columns {name!r}: renamed on one side, added on the other"
            self._findings.report(COLUMNS, text, choices=(), remedy="Rename one of them first")

    def _drop(self, base_field: Field, target_id: int) -> None:
        target_field = self._target.field_by_id(target_id)
        if target_field is None or target_id not in self._tree.nodes:
            return
        grown = len(list(target_field.walk())) > len(list(base_field.walk()))
        if (
            grown
            or _differs(base_field, target_field)
            or base_field.metadata != target_field.metadata
        ):
            path = self._target.path_of(target_id)
            text = f"column {path!r} is dropped on the source and changed here"
            if self._findings.report(COLUMNS, text, fields=(target_id,)) != THEIRS:
                return
        self._dropped |= self._tree.remove(target_id)

    def _add(self, field: Field, present: int | None, *, is_base_parent: bool) -> None:
        parent = TOP if field.parent_id == TOP else self._ids.get(field.parent_id)
        if present is not None and present in self._tree.nodes:
            self._ids[field.id] = present
            return
        if parent is None:
            if is_base_parent:  # else it was left out, and so are its parts
                text = (
                    f"column {self._source.path_of(field.id)!r} was added in a column that is gone"
                )
                self._findings.report(COLUMNS, text, choices=(OURS,))
            return
        rival = self._tree.named(parent, field.name)
        if rival is not None:
            text = f"column {self._source.path_of(field.id)!r} was added on both sides"
            if self._findings.report(COLUMNS, text, fields=(rival.id,)) == OURS:
                return
            self._dropped |= self._tree.remove(rival.id)
        number = self._new_id(field.id)
        self._ids[field.id] = number
        self._added.add(number)
        self._tree.nodes[number] = replace(field, id=number, parent_id=parent, children=())

    def _new_id(self, preferred_id: int) -> int:
        """Keep the source's id if it is unused here, or on one line, where ids come back."""
        if self._is_one_line and preferred_id not in self._tree.nodes:
            return preferred_id
        number = max(preferred_id, self._next_id)
        self._next_id = number + 1
        return number

    def _change(self, base_id: int, source_field: Field, target_id: int) -> None:
        base_field, target_field = self._base.field_by_id(base_id), self._tree.nodes.get(target_id)
        if base_field is None or target_field is None:
            return
        self._ids[source_field.id] = target_id
        changes: dict[str, object] = {}
        for name in _ATTRIBUTES:
            mine, before, now = (
                getattr(source_field, name),
                getattr(base_field, name),
                getattr(target_field, name),
            )
            if mine in (before, now):
                continue
            if now != before:
                path = self._target.path_of(target_id)
                text = f"{name} of column {path!r} is {mine!r} on the source, {now!r} here"
                if self._findings.report(COLUMNS, text, fields=(target_id,)) != THEIRS:
                    continue
            changes[name] = mine
        if target_field.nullable and changes.get("nullable") is False:
            self._tightened.add(target_id)
        if source_field.metadata != base_field.metadata:
            subject = f"metadata of column {self._target.path_of(target_id)!r},"
            changes["metadata"] = merge_maps(
                base_field.metadata,
                source_field.metadata,
                target_field.metadata,
                subject=subject,
                findings=self._findings,
            )
        if changes:
            self._tree.nodes[target_id] = replace(target_field, **changes)  # type: ignore[arg-type]

    def _left_out(self, base_id: int, source_field: Field) -> None:
        """Leave out what the target dropped; a conflict if the source changed it."""
        base_field = self._base.field_by_id(base_id)
        if base_field is not None and (
            _differs(base_field, source_field) or base_field.metadata != source_field.metadata
        ):
            path = self._source.path_of(source_field.id)
            text = f"column {path!r} is changed on the source and dropped here"
            self._findings.report(COLUMNS, text, choices=(OURS,))


def _differs(field: Field, other: Field) -> bool:
    return any(getattr(field, name) != getattr(other, name) for name in _ATTRIBUTES)
