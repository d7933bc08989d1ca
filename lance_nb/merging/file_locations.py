"""Where the target finds the files of the source: base paths, or copies of its own.

A file in the source's folder gets a base path in the target, as a branch has one for its parent's
files; so no data is copied. With ``copies`` each such file is copied into the target's folder,
under the same name, and the target stands alone.

Limits: the copies are made when the merge is committed; a merge that fails leaves them behind.
Source: messages BasePath and DataFile of lance.table; pylance 14.0.2 reads such a target on main
and on branches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from lance_nb.format.fragment import TOMBSTONE, DataFile, Fragment
from lance_nb.format.manifest import BasePath
from lance_nb.merging.matching import file_name
from lance_nb.merging.merge_base import Side
from lance_nb.storage.base import Store
from lance_nb.value_classes import dataclass
from lance_nb.writing.pins import plain_uri

Place = tuple[tuple[str, str], bool]


@dataclass(frozen=True, slots=True)
class FileCopy:
    """A file, or a folder of them, to be copied to ``path`` of the target's folder."""

    store: Store
    source_path: str
    path: str
    is_folder: bool = False


@dataclass(frozen=True, slots=True)
class FileLocations:
    """Translates base ids of the source into those of the target, adding base paths as needed."""

    source: Side
    target: Side
    copies_files: bool = False
    inherited: tuple[str, ...] = ()  # folders that the target depends on anyway
    added: list[BasePath] = field(default_factory=list)
    copies: dict[str, FileCopy] = field(default_factory=dict)
    target_ids: dict[int | None, int | None] = field(default_factory=dict)

    @property
    def bases(self) -> tuple[BasePath, ...]:
        """The base paths of the outcome."""
        return (*self.target.manifest.base_paths, *self.added)

    def translated(self, file: DataFile) -> DataFile:
        """Return a data file of the source as the target names it."""
        return replace(file, base_id=self.base_of(file.location(), file.base_id))

    def folder(self, path: str, base_id: int | None) -> int | None:
        """Return the base under which the target finds a folder of the source."""
        return self.base_of(path, base_id, is_folder=True)

    def base_of(self, path: str, base_id: int | None, *, is_folder: bool = False) -> int | None:
        """Return the base under which the target finds a file of the source."""
        if base_id not in self.target_ids:
            self.target_ids[base_id] = self._base(base_id)
        target_base_id = self.target_ids[base_id]
        if target_base_id is None or not self.copies_files or self._is_inherited(base_id):
            return target_base_id
        store, place = self.source.snapshot.locations.locate(path, base_id)
        self.copies.setdefault(path, FileCopy(store, place, path, is_folder))
        return None

    def foreign(self) -> frozenset[int]:
        """Return the base paths of the outcome that the target would not depend on otherwise."""
        mine = {plain_uri(uri) for uri in self.inherited}
        present = {
            present_base.id: present_base
            for present_base in self.target.snapshot.locations.present_bases()
        }
        needed = [present.get(base.id, base) for base in self.needed()]
        return frozenset(base.id for base in needed if plain_uri(base.path) not in mine)

    def _is_inherited(self, base_id: int | None) -> bool:
        place = plain_uri(self._source_base(base_id).path)
        return any(plain_uri(uri) == place for uri in self.inherited)

    def needed(self) -> tuple[BasePath, ...]:
        """Return the base paths of the outcome, without those that copies have spared."""
        if not self.copies_files:
            return self.bases
        needed_bases = (
            base
            for base in self.added
            if any(plain_uri(uri) == plain_uri(base.path) for uri in self.inherited)
        )
        return (*self.target.manifest.base_paths, *needed_bases)

    def _base(self, base_id: int | None) -> int | None:
        source_base = self._source_base(base_id)
        place = _place(source_base)
        if place == (plain_uri(self.target.snapshot.locations.home.uri), True):
            return None
        for base in (*self.target.snapshot.locations.present_bases(), *self.added):
            if _place(base) == place:
                return base.id
        taken = {base.id for base in self.bases}
        names = {base.name for base in self.bases}
        new = replace(
            source_base,
            id=max(taken, default=0) + 1,
            name=None if source_base.name in names else source_base.name,
        )
        self.added.append(new)
        return new.id

    def _source_base(self, base_id: int | None) -> BasePath:
        locations = self.source.snapshot.locations
        if base_id is None:
            return BasePath(0, locations.home.uri, True, self.source.branch)
        return locations.base(base_id)


def _place(base: BasePath) -> Place:
    return plain_uri(base.path), base.is_dataset_root


FieldFiles = dict[int, str]


def translated_files(
    s: Fragment, fields: Mapping[int, int], places: FileLocations
) -> tuple[DataFile, ...]:
    """Return the files of a fragment of the source as the target names them."""
    translated = []
    for file in s.files:
        ids = tuple(fields.get(field_id, TOMBSTONE) for field_id in file.fields)
        if any(field_id != TOMBSTONE for field_id in ids):
            translated.append(replace(places.translated(file), fields=ids))
    return tuple(translated)


def files_by_field(
    side: Side, fragment: Fragment, fields: Mapping[int, int] | None = None
) -> FieldFiles:
    """Return which file holds which field, by the ids of the outcome."""
    files: FieldFiles = {}
    for file in fragment.files:
        name = file_name(side, file)
        for field_id in file.fields:
            number = field_id if fields is None else fields.get(field_id, TOMBSTONE)
            if number >= 0:
                files[number] = name
    return files


def same_deletions(side: Side, left: Fragment, other: Side, right: Fragment) -> bool:
    """Return whether two fragments have the same deletion file."""
    mine = side.places.of_deletions(left.id, left.deletion_file)
    return mine == other.places.of_deletions(right.id, right.deletion_file)
