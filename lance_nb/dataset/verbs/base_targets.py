"""Which base paths new data files go to, in turn.

``target_bases`` names them, by name or by path; ``target_all_bases`` takes all of them, with the
dataset's own folder as the first (True) or without it (False). Files of one write go to them one
after the other.

Safety: the name of a base is resolved by the manifest, which may say any place. Writing there needs
the caller's trust: the place is named by its path, given with ``initial_bases``, below the dataset,
or among ``allow_bases``.
Source: ``target_bases``, ``target_all_bases`` of ``lance.write_dataset`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lance_nb.dataset.base_trust import remember_created
from lance_nb.dataset.session import Session
from lance_nb.dataset.verbs.committing import commit_staged
from lance_nb.errors import BasePathError
from lance_nb.format import layout
from lance_nb.format.manifest_values import BasePath
from lance_nb.table.locations import Locations
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.file_place import FilePlace
from lance_nb.transactions.operations.update_bases import UpdateBases
from lance_nb.transactions.staged import StagedWrite


def trusting(session: Session, places: Iterable[str]) -> Session:
    """Return the session, which may use the places that its user has just named as well."""
    allowed = tuple(dict.fromkeys((*session.allow_bases, *places)))
    return session if allowed == session.allow_bases else replace(session, allow_bases=allowed)


def register(
    session: Session,
    snapshot: Snapshot,
    bases: Sequence[BasePath],
    properties: Mapping[str, str],
) -> Snapshot:
    """Add base paths, as one new version. Raises BasePathError when one is taken."""
    staged = StagedWrite(snapshot.version, UpdateBases(tuple(bases)))
    made = commit_staged(session, snapshot.branch, staged, properties=properties)
    remember_created(session.root.uri, [one.path for one in bases])
    return made


def named_places(current: Snapshot | None, request: Any) -> list[str]:
    """Return the bases that a request to write names by their paths."""
    places = [one.path for one in request.initial_bases]
    if current is not None:
        known = {one.path.rstrip("/") for one in current.manifest.base_paths}
        places += [one for one in request.target_bases or () if one.rstrip("/") in known]
    return places


def trusted(
    session: Session, current: Snapshot | None, places: Sequence[str]
) -> tuple[Session, Snapshot | None]:
    """Trust places, then look at the version that way."""
    wider = trusting(session, places)
    if current is None or wider is session:
        return wider, current
    return wider, wider.snapshot(current.manifest, current.branch)


def places_of(
    locations: Locations, targets: Sequence[str] | None, target_all: bool | None
) -> tuple[FilePlace, ...]:
    """Return where files go in turn; nothing when it is the dataset's own folder alone.

    Raises BasePathError for a base that is not there, InvalidInputError for one not trusted.
    """
    if target_all is not None and targets:
        raise BasePathError("give target_bases or target_all_bases, not both")
    if target_all is None:
        return tuple(_place(locations, _found(locations.bases, one)) for one in targets or ())
    others = tuple(_place(locations, one) for one in locations.bases)
    if not target_all and not others:
        raise BasePathError(
            "target_all_bases=False leaves out the dataset's own folder, and no base path is "
            "registered: add one with add_bases()"
        )
    return (FilePlace(locations.home), *others) if target_all else others


def _found(bases: Sequence[BasePath], reference: str) -> BasePath:
    for one in bases:
        if one.name == reference:
            return one
    for one in bases:
        if one.path.rstrip("/") == reference.rstrip("/"):
            return one
    known = ", ".join(repr(one.name or one.path) for one in bases) or "none"
    raise BasePathError(
        f"there is no base path {reference!r}; registered: {known} (initial_bases registers them "
        "with a new dataset, add_bases() later)"
    )


def _place(locations: Locations, base: BasePath) -> FilePlace:
    store, inside = locations.locate(f"{layout.DATA}/", base.id)
    return FilePlace(store, inside.rstrip("/"), base.id)
