"""A field of a dataset's schema tree, and the flat list of fields that manifests and files hold.

Layout: the list is depth first; ``parent_id`` (-1 at the top) rebuilds the tree. Ids start at 0,
are never reused within a schema, and data files refer to them; names may change.

Limits: the tree is at most ``DEPTH_MAX`` deep. Fields with a negative id are positions without
identity: the parts of a blob descriptor inside a data file all have id -1.
Source: message ``lance.file.Field``; ``type`` is never written (always zero).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from lance_nb._pb import file as pb
from lance_nb.errors import CorruptFileError
from lance_nb.format.wire import unknown_bytes
from lance_nb.value_classes import dataclass

DEPTH_MAX = 100
TOP = -1

# Field 11, ``storage_class``: releases 0.17 to 0.33 or so wrote it, always with this value unless
# blobs were in a second dataset. It has no meaning any more; pylance drops it too.
_STORAGE_CLASS = b"\x5a\x07default"
_NO_METADATA: Mapping[str, bytes] = {}


@dataclass(frozen=True, slots=True)
class Keys:
    """The unenforced primary and clustering key marks of a field."""

    primary: bool = False
    primary_position: int = 0
    clustering: bool = False
    clustering_position: int = 0


_NO_KEYS = Keys()


@dataclass(frozen=True, slots=True)
class Field:
    """A column or a part of one.

    ``encoding`` and ``dictionary`` (offset and length of a 0.1 dictionary) are carried for old
    files; ``unknown`` holds serialized fields of newer writers.
    """

    id: int
    parent_id: int
    name: str
    logical_type: str
    nullable: bool = True
    children: tuple[Field, ...] = ()
    metadata: Mapping[str, bytes] = field(default_factory=lambda: _NO_METADATA)
    extension_name: str = ""
    encoding: int = 0
    dictionary: tuple[int, int] | None = None
    keys: Keys = _NO_KEYS
    unknown: bytes = b""

    def walk(self) -> Iterator[Field]:
        """Yield this field and everything below it, depth first."""
        stack = [self]
        while stack:
            field = stack.pop()
            yield field
            stack.extend(reversed(field.children))

    def leaves(self) -> Iterator[Field]:
        """Yield the fields below (or this one) that have no children."""
        return (field for field in self.walk() if not field.children)

    def child(self, name: str) -> Field | None:
        """Return the child of that name, None if there is none."""
        return next((child for child in self.children if child.name == name), None)

    def to_pb(self) -> pb.Field:
        """Return the message of this node, without its children."""
        message = pb.Field(
            name=self.name,
            id=self.id,
            parent_id=self.parent_id,
            logical_type=self.logical_type,
            nullable=self.nullable,
            encoding=self.encoding,  # type: ignore[arg-type]
            extension_name=self.extension_name,
            unenforced_primary_key=self.keys.primary,
            unenforced_primary_key_position=self.keys.primary_position,
            unenforced_clustering_key=self.keys.clustering,
            unenforced_clustering_key_position=self.keys.clustering_position,
        )
        if self.metadata:
            message.metadata.update(self.metadata)
        if self.dictionary is not None:
            message.dictionary.offset, message.dictionary.length = self.dictionary
        if self.unknown:
            message.MergeFromString(self.unknown)
        return message


# Fields and their messages: a schema is written to a data file, a transaction and a manifest.
_latest_messages: deque[tuple[tuple[Field, ...], list[pb.Field]]] = deque(maxlen=4)


def fields_to_pb(fields: tuple[Field, ...]) -> list[pb.Field]:
    """Return the flat depth-first list of messages for some top-level fields, not to be changed."""
    for cached_fields, messages in tuple(_latest_messages):
        if cached_fields is fields:
            return messages
    messages = [node.to_pb() for top in fields for node in (top.walk() if top.children else (top,))]
    _latest_messages.append((fields, messages))
    return messages


def fields_from_pb(messages: Sequence[pb.Field], path: str) -> tuple[Field, ...]:
    """Rebuild the tree from the flat list; ``path`` is the file it was read from.

    Raises CorruptFileError for duplicate ids or sibling names, missing parents, cycles, or a tree
    that is too deep. Works without recursion, in time proportional to the list.
    """
    messages = list(messages)  # a protobuf container creates a new object at each access
    position_of = _positions(messages, path)
    children: dict[int, list[int]] = {}
    for position, message in enumerate(messages):
        parent = message.parent_id
        if parent != TOP and parent not in position_of:
            raise _corrupt(path, message, "a parent that exists", f"parent id {parent}")
        children.setdefault(parent, []).append(position)
    for siblings in children.values():
        _check_names(messages, siblings, path)
    order = _depth_first(messages, children, path)
    if len(order) != len(messages):
        reached = set(order)
        lost = next(message for position, message in enumerate(messages) if position not in reached)
        raise _corrupt(path, lost, "a tree of fields", "fields that are their own ancestors")
    built: dict[int, Field] = {}
    for position in reversed(order):
        message = messages[position]
        identity = message.id
        below = children.get(identity) if identity >= 0 else None
        parts = tuple([built.pop(child) for child in below]) if below else ()
        built[position] = _from_pb(message, parts)
    return tuple(built[position] for position in children.get(TOP, ()))


def _positions(messages: Sequence[pb.Field], path: str) -> dict[int, int]:
    positions: dict[int, int] = {}
    for position, message in enumerate(messages):
        if message.id < 0:
            continue
        if message.id in positions:
            raise _corrupt(path, message, "field ids that differ", f"id {message.id} twice")
        positions[message.id] = position
    return positions


def _check_names(messages: Sequence[pb.Field], siblings: Sequence[int], path: str) -> None:
    seen = set()
    for position in siblings:
        if messages[position].id < 0:
            continue  # parts of a blob's description, which files list once for each blob column
        name = messages[position].name
        if name in seen:
            raise _corrupt(path, messages[position], "names that differ", f"{name!r} twice")
        seen.add(name)


def _depth_first(
    messages: Sequence[pb.Field], children: Mapping[int, Sequence[int]], path: str
) -> list[int]:
    order = []
    stack = [(position, 1) for position in reversed(children.get(TOP, ()))]
    while stack:
        position, depth = stack.pop()
        if depth > DEPTH_MAX:
            expected = f"at most {DEPTH_MAX} levels"
            raise _corrupt(path, messages[position], expected, f"level {depth}")
        order.append(position)
        identity = messages[position].id
        if identity >= 0:
            stack.extend((child, depth + 1) for child in reversed(children.get(identity, ())))
    return order


def _from_pb(message: pb.Field, children: tuple[Field, ...]) -> Field:
    keys = _NO_KEYS
    if message.unenforced_primary_key or message.unenforced_clustering_key:
        keys = Keys(
            message.unenforced_primary_key,
            message.unenforced_primary_key_position,
            message.unenforced_clustering_key,
            message.unenforced_clustering_key_position,
        )
    location = None
    if message.HasField("dictionary"):
        location = (message.dictionary.offset, message.dictionary.length)
    return Field(
        id=message.id,
        parent_id=message.parent_id,
        name=message.name,
        logical_type=message.logical_type,
        nullable=message.nullable,
        children=children,
        metadata=dict(message.metadata) if message.metadata else _NO_METADATA,
        extension_name=message.extension_name,
        encoding=message.encoding,
        dictionary=location,
        keys=keys,
        unknown=unknown_bytes(message).removeprefix(_STORAGE_CLASS),
    )


def _corrupt(path: str, message: pb.Field, expected: str, actual: str) -> CorruptFileError:
    name = message.name[:80]
    return CorruptFileError(path, None, f"{expected} in the schema (field {name!r})", actual)
