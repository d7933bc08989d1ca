"""Create, move, describe and delete tags.

Layout: format/refs.py. A tag is a file in ``_refs/tags`` of the root, also for versions of a
branch. Moving it keeps its creation time and metadata and sets ``updatedAt``; replacing the
metadata leaves both times.

Limits: ref_record.py says what protects against writers of other processes.
Source: spec page "branch and tag"; behaviour of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from lance_nb.errors import (
    InvalidInputError,
    ObjectNotFoundError,
    RefConflictError,
    RefNotFoundError,
    VersionNotFoundError,
)
from lance_nb.format.layout import ManifestName, tag_path
from lance_nb.format.refs import Branch, Tag, check_tag_name
from lance_nb.storage.base import Store
from lance_nb.table import refs
from lance_nb.table.refs import Target
from lance_nb.transactions.commit_options import CommitPlace
from lance_nb.transactions.environment import Environment
from lance_nb.transactions.ref_record import create_record, delete_record, replace_record

PlaceOf = Callable[[str | None], CommitPlace]


@dataclass(frozen=True, slots=True)
class TagWriter:
    """Changes the tags of one dataset. ``place_of`` gives the place of a branch (None: main)."""

    root: Store
    place_of: PlaceOf
    environment: Environment = field(default_factory=Environment)

    def create(self, name: str, target: Target) -> Tag:
        """Create a tag. Raises InvalidRefError, RefConflictError, VersionNotFoundError."""
        check_tag_name(name)
        path = tag_path(name)
        if self.root.exists(path):
            raise RefConflictError(f"tag {name!r} already exists")
        version, size_bytes = locate(self.place_of(target.branch), target.version)
        now = self.environment.clock()
        tag = Tag(version, target.branch, now, now, size_bytes)
        create_record(self.root, path, tag.to_bytes(), f"tag {name!r}")
        return tag

    def update(self, name: str, target: Target, expected: Target | None = None) -> Tag:
        """Move a tag to another version. Raises RefNotFoundError, VersionNotFoundError.

        ``expected`` is where the tag was when the caller looked: RefConflictError if it is not any
        more.
        """
        old, raw = self._read(name)
        _check_place(name, old, expected)
        version, size_bytes = locate(self.place_of(target.branch), target.version)
        tag = replace(
            old,
            version=version,
            branch=target.branch,
            updated_at_ns=self.environment.clock(),
            manifest_size_bytes=size_bytes,
        )
        self._replace(name, raw, tag)
        return tag

    def replace_metadata(self, name: str, metadata: Mapping[str, str]) -> Tag:
        """Replace all metadata of a tag; its times stay. Raises RefNotFoundError."""
        old, raw = self._read(name)
        tag = replace(old, metadata=check_metadata(metadata))
        self._replace(name, raw, tag)
        return tag

    def delete(self, name: str, expected: Target | None = None) -> None:
        """Delete a tag. Raises RefNotFoundError, and as ``update`` if it is not where expected.

        Stores cannot compare and delete in one step: what happens between the two is not seen.
        """
        if expected is not None:
            _check_place(name, self._read(name)[0], expected)
        if not delete_record(self.root, tag_path(check_tag_name(name)), f"tag {name!r}"):
            raise RefNotFoundError("tag", name, tuple(refs.tag_names(self.root)))

    def _read(self, name: str) -> tuple[Tag, bytes]:
        path = tag_path(check_tag_name(name))
        try:
            raw = bytes(self.root.read(path))
        except ObjectNotFoundError as error:
            raise RefNotFoundError("tag", name, tuple(refs.tag_names(self.root))) from error
        return Tag.from_bytes(raw, f"{self.root.uri}/{path}"), raw

    def _replace(self, name: str, raw: bytes, tag: Tag) -> None:
        try:
            replace_record(self.root, tag_path(name), raw, tag.to_bytes(), f"tag {name!r}")
        except ObjectNotFoundError as error:
            raise RefNotFoundError("tag", name, tuple(refs.tag_names(self.root))) from error


def _check_place(name: str, tag: Tag, expected: Target | None) -> None:
    if expected is not None and (tag.branch, tag.version) != (expected.branch, expected.version):
        raise RefConflictError(
            f"tag {name!r} was moved meanwhile: it is at {tag.branch or refs.MAIN}:{tag.version}, "
            f"not at {expected.branch or refs.MAIN}:{expected.version} any more"
        )


def locate(place: CommitPlace, version: int | None) -> tuple[int, int]:
    """Return (version, bytes of its manifest) of a branch; None is its latest version.

    Raises VersionNotFoundError.
    """
    latest = place.slots.latest()
    if latest is None:
        raise VersionNotFoundError(place.home.uri, "latest" if version is None else version)
    name = latest if version is None else ManifestName(version, latest.scheme)
    try:
        return name.version, _size_bytes(place, name)
    except ObjectNotFoundError as error:
        shown = f"up to {latest.version}"
        raise VersionNotFoundError(place.home.uri, name.version, shown) from error


def _size_bytes(place: CommitPlace, name: ManifestName) -> int:
    try:
        return place.home.size(name.path)
    except ObjectNotFoundError:
        return len(place.slots.read(name))  # an external store may still have to put it in place


def check_metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    """Return the metadata of a ref if it maps texts to texts. Raises InvalidInputError."""
    found = dict(metadata)
    if not all(isinstance(one, str) for pair in found.items() for one in pair):
        raise InvalidInputError("the metadata of a ref maps texts to texts")
    return found


def ordered_tags(tags: Mapping[str, Tag], order: str | None = None) -> list[tuple[str, Tag]]:
    """Sort tags by version, the newest first unless ``order`` is "asc"; then by name.

    Raises InvalidInputError for another order.
    """
    descending = check_order(order)
    by_name = sorted(tags.items())
    return sorted(by_name, key=lambda one: one[1].version, reverse=descending)


def ordered_branches(
    branches: Mapping[str, Branch], order: str | None = None
) -> list[tuple[str, Branch]]:
    """Sort branches by the version they started from, as ``ordered_tags`` does."""
    descending = check_order(order)
    by_name = sorted(branches.items())
    return sorted(by_name, key=lambda one: one[1].parent_version, reverse=descending)


def check_order(order: str | None) -> bool:
    """Tell whether an order is descending. Raises InvalidInputError."""
    if order not in (None, "asc", "desc"):
        raise InvalidInputError(f"invalid sort order {order!r}; valid are 'asc' and 'desc'")
    return order != "asc"
