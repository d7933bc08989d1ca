"""DataReplacement: other files for columns of some fragments; rows stay where they are.

A new file takes the place of the one with the same fields and file version. Else it is added, and
the fields become tombstones in the files that hold them; a column that was null so far is in none.
Indices on the fields no longer cover the fragment; with stable row ids, all its rows count as
updated.

Limits: all new files hold the same fields.
Source: message ``Transaction.DataReplacement`` of lance.table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import ClassVar

from lance_nb._pb import transaction as pb
from lance_nb.errors import InvalidInputError
from lance_nb.format.fragment import TOMBSTONE, DataFile, Fragment
from lance_nb.format.wire import unknown_bytes
from lance_nb.transactions.manifest_building import Draft, prune_fields
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
                replacement.fragment_id,
                DataFile.from_pb(replacement.new_file),
                unknown_bytes(replacement),
            )
            for replacement in message.replacements
        )
        return cls(groups, unknown_bytes(message))

    def to_pb(self) -> pb.Transaction.DataReplacement:
        """Return the message."""
        message = pb.Transaction.DataReplacement()
        for replacement in self.replacements:
            group = message.replacements.add(fragment_id=replacement.fragment_id)
            group.new_file.CopyFrom(replacement.new_file.to_pb())
            group.MergeFromString(replacement.unknown)
        message.MergeFromString(self.unknown)
        return message

    def apply(self, ctx: ApplyContext) -> Built:
        """Return the version with the files. Raises InvalidInputError."""
        draft = Draft.of(ctx, self)
        if len({replacement.new_file.fields for replacement in self.replacements}) > 1:
            raise InvalidInputError("all files of a data replacement hold the same fields")
        ids = [replacement.fragment_id for replacement in self.replacements]
        known_fragments = draft.current.fragments.with_ids(ids)
        for replacement in self.replacements:
            if replacement.fragment_id not in known_fragments:
                raise InvalidInputError(
                    f"fragment {replacement.fragment_id}, whose data is to be replaced, does not "
                    "exist"
                )
            known_fragments[replacement.fragment_id] = _with_file(
                known_fragments[replacement.fragment_id], replacement.new_file
            )
        changed = list(known_fragments.values())
        if draft.has_row_ids:
            changed = [stamp_all_updated(fragment, draft.version) for fragment in changed]
        draft.change_known(changed, ())
        fields = {
            field for replacement in self.replacements for field in replacement.new_file.fields
        }
        prune_fields(draft, set(ids), {field for field in fields if field >= 0})
        return draft.finish()

    def footprint(self) -> Footprint:
        """Return the fields of the fragments whose data it replaces."""
        cells = frozenset(
            (replacement.fragment_id, field)
            for replacement in self.replacements
            for field in replacement.new_file.fields
        )
        return Footprint(
            changed_fragments=frozenset(
                replacement.fragment_id for replacement in self.replacements
            ),
            replaced=cells,
            supplies_values=True,
        )


def with_columns_in(fragment: Fragment, new: DataFile, field_ids: Iterable[int]) -> Fragment:
    """Return the fragment with one more file, which alone holds these fields from now on."""
    replaced = set(field_ids)
    files = []
    for file in fragment.files:
        fields = tuple(TOMBSTONE if field in replaced else field for field in file.fields)
        if any(field != TOMBSTONE for field in fields):
            files.append(file if fields == file.fields else replace(file, fields=fields))
    return replace(fragment, files=(*files, new))


def _with_file(fragment: Fragment, new: DataFile) -> Fragment:
    alike = [
        file.fields == new.fields and file.file_version == new.file_version
        for file in fragment.files
    ]
    if not any(alike):
        return with_columns_in(fragment, new, (field for field in new.fields if field >= 0))
    files = tuple(
        replace(file, path=new.path, file_size_bytes=new.file_size_bytes, base_id=new.base_id)
        if is_alike
        else file
        for file, is_alike in zip(fragment.files, alike, strict=True)
    )
    return replace(fragment, files=files)
