"""Pins: tags that a merge makes, so that the files it reads in another branch's folder stay.

A pin is a tag on the merged version. Clean-ups and deletions keep tagged versions, also those of
programs that do not know that the files are read elsewhere. Its metadata says what it is for:

==================  ===========================================================
key                 value
==================  ===========================================================
lance_nb.pin        the version that it was made at, "dev:4"
lance_nb.pin.for    the version that the merge was to make, "main:5"
==================  ===========================================================

A tag that was moved, or whose metadata was replaced, is a person's and no pin any more. Each merge
has a pin of its own.

A pin is needed while some version of another line of history reads a file of the pinned version in
place. All manifests of the other lines are read to find that out; one that cannot be read, or a
pinned version that cannot, means that it is needed. A merge creates its pin before its version, and
commits at exactly one version number: until that number is taken the pin is needed, too.

Limits: clones outside of the dataset are not known. Stores cannot compare and delete in one step: a
person who moves a pin in the moment in which it is deleted loses the tag.
Source: our own; DECISIONS 24.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress

from lance_nb.errors import LanceError, RefConflictError, RefNotFoundError
from lance_nb.format.layout import ManifestName, index_folder
from lance_nb.format.refs import Branch, Tag
from lance_nb.shown_text import visible
from lance_nb.storage.base import Store
from lance_nb.storage.registry import split_uri
from lance_nb.table import refs
from lance_nb.table.ancestry import ancestry
from lance_nb.table.refs import Target
from lance_nb.table.survey import take_survey
from lance_nb.transactions.commit_options import CommitPlace
from lance_nb.transactions.ref_writer import PlaceOf, TagWriter
from lance_nb.transactions.version_slots import Version, parse_version
from lance_nb.value_classes import dataclass

KEEPS, MADE_FOR = "lance_nb.pin", "lance_nb.pin.for"
_log = logging.getLogger(__name__)

Files = set[tuple[tuple[str, str], str]]  # (folder, path in it)


@dataclass(frozen=True, slots=True)
class Pin:
    """A tag that keeps the version ``keeps`` for the version ``made_for``."""

    name: str
    keeps: Target
    made_for: Target

    def is_under_way(self, newest: int | None) -> bool:
        """Return whether its merge may still be committed: at that version and at no other.

        ``newest`` is the newest version of the branch that was merged into, None if it is gone.
        """
        return newest is not None and newest < (self.made_for.version or 0)


def pin_of(name: str, branch: str | None, version: int, metadata: Mapping[str, str]) -> Pin | None:
    """Return the pin that a tag is, None for any other tag."""
    keeps, made_for = _place(metadata.get(KEEPS)), _place(metadata.get(MADE_FOR))
    if keeps is None or made_for is None or keeps != Target(branch, version):
        return None
    return Pin(name, keeps, made_for)


def _place(text: str | None) -> Target | None:
    branch, colon, number = (text or "").rpartition(":")
    if not (colon and branch and number.isascii() and number.isdigit() and len(number) <= 20):
        return None
    return Target(None if branch == refs.MAIN else branch, int(number))


def _text(place: Target) -> str:
    return f"{place.branch or refs.MAIN}:{place.version}"


def pin_name(root: Store, source: Target) -> str:
    """Return the name that the pin of a merge of this version gets."""
    plain = f"merged-{(source.branch or refs.MAIN).replace('/', '-')}-{source.version}"
    taken = set(refs.tag_names(root))
    numbered = (f"{plain}-{number}" for number in range(1, len(taken) + 2))
    return next(name for name in (plain, *numbered) if name not in taken)


def create_pin(tags: TagWriter, source: Target, made_for: Target) -> str:
    """Tag the version of the source whose files the target is going to read; return the name.

    Raises RefConflictError, VersionNotFoundError, StorageError.
    """
    name = pin_name(tags.root, source)
    metadata = {KEEPS: _text(source), MADE_FOR: _text(made_for)}
    tags.create(name, source, metadata)
    return name


def pins_of(tags: Mapping[str, Tag]) -> list[Pin]:
    """Return the pins among tags."""
    pins = (pin_of(name, tag.branch, tag.version, tag.metadata) for name, tag in tags.items())
    return [pin for pin in pins if pin is not None]


def unneeded_pins(root: Store, place_of: PlaceOf) -> list[Pin]:
    """Find the pins that nothing needs any more. Reads manifests only if there are pins.

    Raises StorageError, FormatError.
    """
    if not pins_of(refs.list_tags(root)):
        return []
    survey = take_survey(root)
    lines = {line.branch: line for line in survey.lines.values()}
    needed_files: dict[str, Files] = {}
    waiting = []
    for pin in pins_of(survey.tags):
        line = lines.get(pin.made_for.branch)
        if pin.is_under_way(None if line is None else max(line.numbers, default=None)):
            continue
        with suppress(LanceError):  # a version that cannot be read keeps its pin
            place = place_of(pin.keeps.branch)
            names = [name for name in place.slots.list_names() if name.version == pin.keeps.version]
            needed_files[pin.name] = _all_files(place, _load(place, names[0])) if names else set()
            waiting += [pin] if names else []
    for branch, line in lines.items():
        place = place_of(branch)
        for name in (*line.names[::-1], *line.detached):
            elsewhere = [pin for pin in waiting if pin.keeps.branch != branch]
            if not elsewhere:
                break
            try:
                foreign = _foreign_files(place, _load(place, name), survey.branches)
            except LanceError:
                return []
            read = {pin.name for pin in elsewhere if not foreign.isdisjoint(needed_files[pin.name])}
            waiting = [pin for pin in waiting if pin.name not in read]
    return waiting


def _load(place: CommitPlace, name: ManifestName) -> Version:
    data = place.slots.read(name)
    return parse_version(data, name, f"{place.home.uri}/{name.path}")


def _all_files(place: CommitPlace, version: Version) -> Files:
    """Return every file of a version, with the folder of the dataset or branch that it lies in."""
    bases = place.locations(version.manifest).present_bases()
    folders: dict[int | None, tuple[str, str]] = {base.id: plain_uri(base.path) for base in bases}
    folders[None] = plain_uri(place.home.uri)
    files = {
        (file.base_id, file.path)
        for fragment in version.manifest.fragments
        for file in fragment.files
    }
    files |= {(index.base_id, index_folder(index.uuid)) for index in version.indices}
    files |= {
        (fragment.deletion_file.base_id, fragment.deletion_file.path(fragment.id))
        for fragment in version.manifest.fragments
        if fragment.deletion_file is not None
    }
    return {(folders[base], path) for base, path in files if base in folders}


def _foreign_files(place: CommitPlace, version: Version, branches: Mapping[str, Branch]) -> Files:
    """Return the files that a version reads in folders which it does not come from."""
    lines = ancestry(branches, place.branch, version.manifest.version)
    own = {
        plain_uri(CommitPlace.of(place.root, line.branch).home.uri)
        for line in lines
        if not line.is_gone
    }
    return {file for file in _all_files(place, version) if file[0] not in own}


def plain_uri(uri: str) -> tuple[str, str]:
    """Return what two URIs of one folder have in common."""
    scheme, path = split_uri(uri)
    return scheme, path.rstrip("/")


def prune_pins(tags: TagWriter) -> list[str]:
    """Delete the pins that nothing needs any more; return their names.

    That it does not work is logged and no error: more is kept than needed then.
    """
    pruned = []
    try:
        for pin in unneeded_pins(tags.root, tags.place_of):
            with suppress(RefConflictError, RefNotFoundError):  # somebody has moved or deleted it
                tags.delete(pin.name, pin.keeps)
                pruned.append(pin.name)
    except LanceError as error:
        _log.warning(
            "tags that kept files for merges in %s were not looked at: %s",
            visible(tags.root.uri),
            visible(str(error)),
        )
    return pruned
