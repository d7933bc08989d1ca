"""Read from a transaction which parts of a version it changed.

``TransactionEffects``: the fragments that it removes and carries, the keys of the configuration and
of the table's metadata that it sets or deletes, and the names of the columns that it leaves, if it
records them. *Whole* operations (Overwrite, Restore, Clone) replace the list of fragments; the
others keep every fragment that they do not name.

``rewrite_groups``: the fragments that a compaction replaced. A Rewrite keeps rows in their order:
the live rows of the old fragments of a group, concatenated, are the rows of its new fragments, so
a row can be followed through a compaction.

Limits: rebasing may give a fragment other deletions than its transaction; a later attempt is
recorded under its own read version.
Source: message ``Transaction`` of lance.table; fields 1 and 2 of ``Rewrite`` only in old
transactions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

from lance_nb._pb import table as table_pb
from lance_nb._pb import transaction as pb
from lance_nb.format.fragment import Fragment
from lance_nb.format.wire import parse
from lance_nb.value_classes import dataclass

_WHOLE = frozenset({"overwrite", "restore", "clone"})
_WITH_COLUMNS = frozenset({"merge", "project"})


@dataclass(frozen=True, slots=True)
class MapChange:
    """Changes of the keys of a map: the new value, or None for a deleted key.

    ``is_whole``: the map has no other key afterwards.
    """

    values: Mapping[str, str | None]
    is_whole: bool = False

    def unmet(self, current: Mapping[str, str]) -> list[str]:
        """Return the keys that are not in ``current`` as they should be, in their order."""
        wrong = {key for key, value in self.values.items() if current.get(key) != value}
        return sorted(wrong | (set(current) - set(self.values) if self.is_whole else set()))


@dataclass(frozen=True, slots=True)
class TransactionEffects:
    """The effects of a transaction on fragments, settings and names of columns.

    ``arm`` is the operation's name in the message, None for an unknown operation. ``removed`` are
    ids of fragments; ``deletions`` the name of the deletion file of each fragment that the
    transaction carries, None for one without. ``columns`` are the names that the version has
    afterwards, None if the transaction does not record them.
    """

    read_version: int
    uuid: str
    arm: str | None
    removed: frozenset[int] = frozenset()
    deletions: dict[int, str | None] = field(default_factory=dict)
    config: MapChange = MapChange({})
    table_metadata: MapChange = MapChange({})
    columns: tuple[str, ...] | None = None

    @property
    def is_whole(self) -> bool:
        """Whether fragments may be added, removed and changed without being named."""
        return self.arm is None or self.arm in _WHOLE

    @classmethod
    def from_bytes(cls, data: bytes | memoryview, path: str = "") -> TransactionEffects:
        """Parse a serialized transaction. Raises CorruptFileError."""
        message = parse(pb.Transaction, data, path)
        arm = message.WhichOneof("operation")
        removed: list[int] = []
        carried: dict[int, str | None] = {}
        config = metadata = MapChange({})
        columns = None
        if arm is not None:
            operation = getattr(message, arm)
            removed = list(_removed(arm, operation))
            carried = {
                fragment.id: deletion_name(fragment) for fragment in _carried(arm, operation)
            }
            config, metadata = _settings(arm, operation)
            if arm in _WITH_COLUMNS:
                columns = tuple(column.name for column in operation.schema if column.parent_id < 0)
        return cls(
            read_version=message.read_version,
            uuid=message.uuid,
            arm=arm,
            removed=frozenset(removed),
            deletions=carried,
            config=config,
            table_metadata=metadata,
            columns=columns,
        )


def deletion_name(fragment: table_pb.DataFragment) -> str | None:
    """Return a text that identifies the deletion file among those of its fragment, or None."""
    if not fragment.HasField("deletion_file"):
        return None
    file = fragment.deletion_file
    return f"{file.read_version}-{file.id}"


def _settings(arm: str, operation: Any) -> tuple[MapChange, MapChange]:
    """Return the changes of the configuration and of the table's metadata."""
    if arm == "overwrite":
        return MapChange(dict(operation.config_upsert_values)), MapChange({})
    if arm != "update_config":
        return MapChange({}), MapChange({})
    if operation.HasField("config_updates"):
        config = _map_change(operation.config_updates)
    else:  # the form of older writers
        deleted = dict.fromkeys(operation.delete_keys)
        config = MapChange({**deleted, **operation.upsert_values})
    return config, _map_change(operation.table_metadata_updates)


def _map_change(update: Any) -> MapChange:
    values = {
        entry.key: entry.value if entry.HasField("value") else None
        for entry in update.update_entries
    }
    return MapChange(values, update.replace)


def _removed(arm: str, operation: Any) -> Iterator[int]:
    match arm:
        case "delete":
            yield from operation.deleted_fragment_ids
        case "update":
            yield from operation.removed_fragment_ids
        case "rewrite":
            yield from (fragment.id for fragment in operation.old_fragments)
            yield from (
                fragment.id for group in operation.groups for fragment in group.old_fragments
            )


def _carried(arm: str, operation: Any) -> Iterable[table_pb.DataFragment]:
    match arm:
        case "delete" | "update":
            return list(operation.updated_fragments)
        case "merge":
            return list(operation.fragments)
        case "rewrite":
            groups = [fragment for group in operation.groups for fragment in group.new_fragments]
            return [*operation.new_fragments, *groups]
    return []


@dataclass(frozen=True, slots=True)
class ReplacedFragments:
    """The fragments that a compaction read, and those that it wrote for them."""

    old: tuple[Fragment, ...]
    new: tuple[Fragment, ...]

    @property
    def keeps_rows(self) -> bool:
        """Whether the new fragments hold as many rows as the old ones had live."""
        live = sum(fragment.num_rows for fragment in self.old)
        return live == sum(fragment.physical_rows for fragment in self.new)


def rewrite_groups(data: bytes | memoryview, path: str = "") -> tuple[ReplacedFragments, ...]:
    """Return the groups of a serialized Transaction, none if it is no Rewrite.

    Raises CorruptFileError.
    """
    message = parse(pb.Transaction, data, path)
    if message.WhichOneof("operation") != "rewrite":
        return ()
    rewrite = message.rewrite
    groups = [(group.old_fragments, group.new_fragments) for group in rewrite.groups]
    if rewrite.old_fragments or rewrite.new_fragments:
        groups.append((rewrite.old_fragments, rewrite.new_fragments))
    return tuple(
        ReplacedFragments(tuple(map(Fragment.from_pb, old)), tuple(map(Fragment.from_pb, new)))
        for old, new in groups
    )


def restored_version(data: bytes | memoryview, path: str = "") -> int | None:
    """Return the version that a serialized Transaction restores, None if it restores none.

    Raises CorruptFileError.
    """
    message = parse(pb.Transaction, data, path)
    return message.restore.version if message.WhichOneof("operation") == "restore" else None


def cloned_place(data: bytes | memoryview, path: str = "") -> str | None:
    """Return the folder that a serialized Clone refers to, None for any other operation.

    Raises CorruptFileError.
    """
    message = parse(pb.Transaction, data, path)
    return message.clone.ref_path if message.WhichOneof("operation") == "clone" else None
