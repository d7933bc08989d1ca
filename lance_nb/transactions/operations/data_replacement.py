"""DataReplacement: other files for columns of some fragments; rows stay where they are.

A new file takes the place of the one with the same fields and file version. Where no file holds
these fields (a column that is null so far) it is added. Indices on the fields no longer cover the
fragment; with stable row ids, all its rows count as updated.

Limits: all new files hold the same fields; a file that holds some of them and others is not taken
apart.
Source: message ``Transaction.DataReplacement`` of lance.table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from lance_nb._pb import transaction as pb
from lance_nb.errors import InvalidInputError
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.format.wire import unknown_bytes
from lance_nb.transactions.index_upkeep import prune_fields
from lance_nb.transactions.manifest_building import Draft
from lance_nb.transactions.operation import (
    ApplyContext,
    BaseOperation,
    Built,
    Footprint,
    OperationValue,
    listed,
)
from lance_nb.transactions.row_lineage import stamp_all_updated
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class DataReplacementGroup(OperationValue):
    """The new file of one fragment."""

    fragment_id: int
    new_file: DataFile
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, repr=False)
class DataReplacement(BaseOperation):
    """Replace columns of fragments."""

    arm: ClassVar[str] = "data_replacement"

    replacements: Sequence[DataReplacementGroup]
    unknown: bytes = b""

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "replacements", listed(self.replacements, DataReplacementGroup, "replacements")
        )

    @classmethod
    def from_pb(cls, message: pb.Transaction.DataReplacement, path: str = "") -> DataReplacement:
        """Read the message."""
        groups = tuple(
            DataReplacementGroup(
                one.fragment_id, DataFile.from_pb(one.new_file), unknown_bytes(one)
            )
            for one in message.replacements
        )
        return cls(groups, unknown_bytes(message))

    def to_pb(self) -> pb.Transaction.DataReplacement:
        """Return the message."""
        message = pb.Transaction.DataReplacement()
        for one in self.replacements:
            group = message.replacements.add(fragment_id=one.fragment_id)
            group.new_file.CopyFrom(one.new_file.to_pb())
            group.MergeFromString(one.unknown)
        message.MergeFromString(self.unknown)
        return message

    def apply(self, ctx: ApplyContext) -> Built:
        """Return the version with the files. Raises InvalidInputError if a file does not fit."""
        draft = Draft.of(ctx, self)
        if len({one.new_file.fields for one in self.replacements}) > 1:
            raise InvalidInputError("all files of a data replacement hold the same fields")
        ids = [one.fragment_id for one in self.replacements]
        known = draft.current.fragments.with_ids(ids)
        for one in self.replacements:
            if one.fragment_id not in known:
                raise InvalidInputError(
                    f"fragment {one.fragment_id}, whose data is to be replaced, does not exist"
                )
            known[one.fragment_id] = _with_file(known[one.fragment_id], one.new_file)
        changed = list(known.values())
        if draft.has_row_ids:
            changed = [stamp_all_updated(one, draft.version) for one in changed]
        draft.change_known(changed, ())
        fields = {field for one in self.replacements for field in one.new_file.fields}
        prune_fields(draft, set(ids), {field for field in fields if field >= 0})
        return draft.finish()

    def footprint(self) -> Footprint:
        """Return the fields of the fragments whose data it replaces."""
        cells = frozenset(
            (one.fragment_id, field) for one in self.replacements for field in one.new_file.fields
        )
        return Footprint(
            changed_fragments=frozenset(one.fragment_id for one in self.replacements),
            replaced=cells,
            supplies_values=True,
        )


def _with_file(fragment: Fragment, new: DataFile) -> Fragment:
    files = []
    found = False
    for one in fragment.files:
        same = one.fields == new.fields and one.file_version == new.file_version
        found |= same
        moved = replace(
            one, path=new.path, file_size_bytes=new.file_size_bytes, base_id=new.base_id
        )
        files.append(moved if same else one)
    held = {field for one in fragment.files for field in one.fields}
    if not found and held.isdisjoint(new.fields):
        return replace(fragment, files=(*fragment.files, new))
    if not found:
        raise InvalidInputError(
            f"no file of fragment {fragment.id} holds exactly the fields {list(new.fields)} in file"
            f" version {new.file_version[0]}.{new.file_version[1]}: the new file cannot replace one"
        )
    return replace(fragment, files=tuple(files))
