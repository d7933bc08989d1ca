"""The files of serialized fragments said to lie under other base paths: the same places, renamed.

A branch names the folder of its parent by a base path where the parent itself names none. To
compare many fragments of both at once, those of one are written with the ids of the other.

Limits: ids that are not among ``changes`` stay.
Source: messages DataFragment, DataFile and DeletionFile of lance.table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lance_nb._pb import table as pb
from lance_nb.format.wire import parse


def with_bases(
    raw: Sequence[bytes], changes: Mapping[int | None, int | None], path: str = ""
) -> list[bytes]:
    """Return the fragments with their base ids changed; None is no id. Raises CorruptFileError."""
    return [_with_bases(one, changes, path) for one in raw]


def _with_bases(raw: bytes, changes: Mapping[int | None, int | None], path: str) -> bytes:
    message = parse(pb.DataFragment, raw, path)
    holders: list[pb.DataFile | pb.DeletionFile] = list(message.files)
    if message.HasField("deletion_file"):
        holders.append(message.deletion_file)
    for one in holders:
        old = one.base_id if one.HasField("base_id") else None
        new = changes.get(old, old)
        if new is None:
            one.ClearField("base_id")
        elif new != old:
            one.base_id = new
    return message.SerializeToString()
