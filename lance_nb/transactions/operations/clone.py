"""Clone: the first version of a branch or of a copy of a dataset.

A shallow clone refers to the files of its source through a base path and has the source's version
number. A deep clone has copies of the files, which are made before.

Limits: only as the first operation of a dataset or branch, so nothing conflicts with it. Base ids
start with 0 and go on behind those of the source; ``base_id`` 0 and none differ.
Source: message ``Transaction.Clone`` of lance.table.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from lance_nb._pb import transaction as pb
from lance_nb.errors import DatasetAlreadyExistsError
from lance_nb.format.fragment import Fragment
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.manifest import BasePath
from lance_nb.format.wire import unknown_bytes
from lance_nb.transactions.manifest_building import Draft, check_changeable
from lance_nb.transactions.operation import ApplyContext, BaseOperation, Built, Footprint
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class Clone(BaseOperation):
    """Start a branch or a copy."""

    arm: ClassVar[str] = "clone"

    is_shallow: bool
    ref_name: str | None
    ref_version: int
    ref_path: str
    branch_name: str | None = None
    unknown: bytes = b""

    @classmethod
    def from_pb(cls, message: pb.Transaction.Clone, path: str = "") -> Clone:
        """Read the message."""
        return cls(
            message.is_shallow,
            message.ref_name if message.HasField("ref_name") else None,
            message.ref_version,
            message.ref_path,
            message.branch_name if message.HasField("branch_name") else None,
            unknown_bytes(message),
        )

    def to_pb(self) -> pb.Transaction.Clone:
        """Return the message."""
        message = pb.Transaction.Clone(
            is_shallow=self.is_shallow,
            ref_name=self.ref_name,
            ref_version=self.ref_version,
            ref_path=self.ref_path,
            branch_name=self.branch_name,
        )
        message.MergeFromString(self.unknown)
        return message

    def apply(self, ctx: ApplyContext) -> Built:
        """Return the first version. ``ctx.load_version`` gives versions of the source.

        Raises DatasetAlreadyExistsError.
        """
        if ctx.current is not None:
            raise DatasetAlreadyExistsError(
                "a clone or branch is the first version of its folder, and there are versions"
            )
        source, indices = ctx.load_version(self.ref_version)
        check_changeable(source)
        draft = Draft(ctx, source)
        draft.version = source.version
        bases = source.base_paths if self.is_shallow else ()
        base_id = None
        if self.is_shallow:
            base_id = max((base.id for base in bases), default=-1) + 1
            bases = (*bases, BasePath(base_id, self.ref_path, True, self.ref_name))
        draft.manifest = replace(source, base_paths=bases, branch=self.branch_name)
        moved = [_moved(fragment, base_id) for fragment in source.fragments]
        draft.set_all(moved)
        draft.indices = [_index_moved(index, base_id) for index in indices]
        return draft.finish()

    def footprint(self) -> Footprint:
        """Return nothing: there is nothing yet."""
        return Footprint()


def _moved(fragment: Fragment, base_id: int | None) -> Fragment:
    """Return the fragment with its own files under base ``base_id``; None: copied, all here."""

    def base_of(before: int | None) -> int | None:
        return None if base_id is None else base_id if before is None else before

    files = tuple(replace(file, base_id=base_of(file.base_id)) for file in fragment.files)
    deletion = fragment.deletion_file
    if deletion is not None:
        deletion = replace(deletion, base_id=base_of(deletion.base_id))
    return replace(fragment, files=files, deletion_file=deletion)


def _index_moved(index: IndexMetadata, base_id: int | None) -> IndexMetadata:
    if base_id is None:
        return replace(index, base_id=None)
    return index if index.base_id is not None else replace(index, base_id=base_id)
