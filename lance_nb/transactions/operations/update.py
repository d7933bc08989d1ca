"""Update: rows with other values, in one of two ways.

*Rewrite rows*: the rows are deleted where they are (``updated_fragments``, or
``removed_fragment_ids`` if none is left) and written anew into ``new_fragments``. With stable row
ids the new fragments bring the ids of the rows they replace; rows without one are new.
*Rewrite columns*: ``updated_fragments`` have another file for ``fields_modified``; the old columns
are tombstones. ``new_fragments`` then hold inserted rows only.

``fields_for_preserving_frag_bitmap`` are the fields whose values changed: an index on other fields
also covers the rewritten rows, since their ids are the same. ``updated_fragment_offsets`` are the
rows of each fragment that matched, as Roaring bitmaps. ``inserted_rows`` are the keys an upsert
added, ``compacted_sstables`` the write-ahead logs it merged.

Source: message ``Transaction.Update`` of lance.table; field 9 is the older form of field 10.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import ClassVar

from pyroaring import BitMap

from lance_nb._pb import transaction as pb
from lance_nb.errors import InvalidInputError
from lance_nb.format.fragment import Fragment, InlineSequence
from lance_nb.format.key_filter import KeyFilter
from lance_nb.format.merged_logs import MergedLog
from lance_nb.format.roaring import check_portable
from lance_nb.format.wire import unknown_bytes
from lance_nb.transactions.manifest_building import (
    Draft,
    cover_moved,
    prune_fields,
    record_merged_logs,
    retain_useful,
)
from lance_nb.transactions.operation import ApplyContext, BaseOperation, Built, Footprint, listed
from lance_nb.transactions.row_lineage import row_ids_of, stamp_moved_rows, stamp_some_updated
from lance_nb.value_classes import dataclass


class UpdateMode(StrEnum):
    """How an update was made; the value is pylance's name for it."""

    REWRITE_ROWS = "rewrite_rows"
    REWRITE_COLUMNS = "rewrite_columns"

    def __repr__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, slots=True, repr=False)
class Update(BaseOperation):
    """Change values of rows."""

    arm: ClassVar[str] = "update"

    removed_fragment_ids: Sequence[int] = ()
    updated_fragments: Sequence[Fragment] = ()
    new_fragments: Sequence[Fragment] = ()
    fields_modified: Sequence[int] = ()
    fields_for_preserving_frag_bitmap: Sequence[int] = ()
    update_mode: str = ""
    updated_fragment_offsets: Mapping[int, bytes] | None = None
    inserted_rows: KeyFilter | None = None
    compacted_sstables: tuple[MergedLog, ...] = ()
    offset_lists: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    unknown: bytes = b""

    def __post_init__(self) -> None:
        object.__setattr__(
            self,
            "removed_fragment_ids",
            listed(self.removed_fragment_ids, int, "removed_fragment_ids"),
        )
        object.__setattr__(
            self, "updated_fragments", listed(self.updated_fragments, Fragment, "updated_fragments")
        )
        object.__setattr__(
            self, "new_fragments", listed(self.new_fragments, Fragment, "new_fragments")
        )
        object.__setattr__(
            self, "fields_modified", listed(self.fields_modified, int, "fields_modified")
        )
        object.__setattr__(
            self,
            "fields_for_preserving_frag_bitmap",
            listed(
                self.fields_for_preserving_frag_bitmap, int, "fields_for_preserving_frag_bitmap"
            ),
        )
        try:
            mode = UpdateMode(self.update_mode or UpdateMode.REWRITE_ROWS)
        except ValueError as error:
            names = " or ".join(repr(str(mode)) for mode in UpdateMode)
            raise InvalidInputError(f"update_mode is {names}, not {self.update_mode!r}") from error
        object.__setattr__(self, "update_mode", mode)

    @classmethod
    def from_pb(cls, message: pb.Transaction.Update, path: str = "") -> Update:
        """Read the message. Raises CorruptFileError."""
        by_column = message.update_mode == pb.Transaction.Update.REWRITE_COLUMNS
        keys = message.inserted_rows if message.HasField("inserted_rows") else None
        return cls(
            tuple(message.removed_fragment_ids),
            tuple(
                Fragment.from_pb(updated_fragment) for updated_fragment in message.updated_fragments
            ),
            tuple(Fragment.from_pb(new_fragment) for new_fragment in message.new_fragments),
            tuple(message.fields_modified),
            tuple(message.fields_for_preserving_frag_bitmap),
            UpdateMode.REWRITE_COLUMNS if by_column else UpdateMode.REWRITE_ROWS,
            dict(message.updated_fragment_offset_bitmaps) or None,
            None if keys is None else KeyFilter.from_pb(keys),
            tuple(MergedLog.from_pb(log, path) for log in message.compacted_sstables),
            {
                fragment: tuple(offsets.offsets)
                for fragment, offsets in message.updated_fragment_offsets.items()
            },
            unknown_bytes(message),
        )

    def to_pb(self) -> pb.Transaction.Update:
        """Return the message."""
        kind = pb.Transaction.Update
        by_column = self.update_mode is UpdateMode.REWRITE_COLUMNS
        message = kind(
            removed_fragment_ids=self.removed_fragment_ids,
            updated_fragments=[
                updated_fragment.to_pb() for updated_fragment in self.updated_fragments
            ],
            new_fragments=[new_fragment.to_pb() for new_fragment in self.new_fragments],
            fields_modified=self.fields_modified,
            fields_for_preserving_frag_bitmap=self.fields_for_preserving_frag_bitmap,
            update_mode=kind.REWRITE_COLUMNS if by_column else kind.REWRITE_ROWS,
            updated_fragment_offset_bitmaps=dict(self.updated_fragment_offsets or {}),
        )
        if self.inserted_rows is not None:
            message.inserted_rows.CopyFrom(self.inserted_rows.to_pb())
        for log in self.compacted_sstables:
            log.write_to(message.compacted_sstables.add())
        for fragment, offsets in self.offset_lists.items():
            message.updated_fragment_offsets[fragment].offsets.extend(offsets)
        message.MergeFromString(self.unknown)
        return message

    def apply(self, ctx: ApplyContext) -> Built:
        """Return the version with the changed rows. Raises InvalidInputError."""
        draft = Draft.of(ctx, self)
        touched = {
            *self.removed_fragment_ids,
            *(updated_fragment.id for updated_fragment in self.updated_fragments),
        }
        sources = draft.current.fragments.with_ids(touched) if draft.has_row_ids else {}
        draft.change_known(self._stamped(draft), self.removed_fragment_ids)
        prune_fields(
            draft,
            {updated_fragment.id for updated_fragment in self.updated_fragments},
            set(self.fields_modified),
        )
        new = draft.number(self.new_fragments)
        if draft.has_row_ids:
            moved = {fragment.id for fragment in new if _brings_all_row_ids(fragment)}
            new = stamp_moved_rows(draft.assign_row_ids(new), sources.values(), draft.version)
            if self.update_mode is UpdateMode.REWRITE_ROWS:
                changed = set(self.fields_for_preserving_frag_bitmap)
                cover_moved(draft, moved, touched, changed)
        draft.append(new)
        retain_useful(draft)
        if self.compacted_sstables:
            record_merged_logs(draft, self.compacted_sstables)
        return draft.finish()

    def _stamped(self, draft: Draft) -> list[Fragment]:
        """Return the updated fragments, saying which rows were updated now."""
        if not draft.has_row_ids or self.update_mode is UpdateMode.REWRITE_ROWS:
            return list(self.updated_fragments)
        offsets: dict[int, Iterable[int]] = {**self.offset_lists, **self._bitmaps()}
        return [
            stamp_some_updated(updated_fragment, offsets[updated_fragment.id], draft.version)
            if updated_fragment.id in offsets
            else updated_fragment
            for updated_fragment in self.updated_fragments
        ]

    def _bitmaps(self) -> dict[int, BitMap]:
        bitmaps = {}
        for fragment, data in (self.updated_fragment_offsets or {}).items():
            check_portable(data, "")
            try:
                bitmaps[fragment] = BitMap.deserialize(data)
            except ValueError as error:
                raise InvalidInputError(
                    f"the updated offsets of fragment {fragment} are no Roaring bitmap"
                ) from error
        return bitmaps

    def footprint(self) -> Footprint:
        """Return the fragments and fields it changes."""
        by_rows = self.update_mode is UpdateMode.REWRITE_ROWS
        return Footprint(
            changed_fragments=frozenset(
                updated_fragment.id for updated_fragment in self.updated_fragments
            ),
            removed_fragments=frozenset(self.removed_fragment_ids),
            moves_rows=by_rows and bool(self.new_fragments),
            fields_modified=frozenset(self.fields_modified),
            supplies_values=True,
            inserted_keys=self.inserted_rows,
            compacted=tuple(
                (compacted_sstable.shard_id, compacted_sstable.generation)
                for compacted_sstable in self.compacted_sstables
            ),
        )


def _brings_all_row_ids(fragment: Fragment) -> bool:
    """Whether every row was there before: none of its ids has to be assigned."""
    if not isinstance(fragment.row_ids, InlineSequence):
        return False
    return row_ids_of(fragment).num_rows == fragment.physical_rows
