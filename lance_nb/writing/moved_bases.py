"""Record the present base paths of a dataset that was moved, in new versions of its branches.

We find the files of a moved dataset at its present place (table/locations.py). pylance follows the
path that a manifest records, so it cannot read the branches, and main where it has merged one. A
repair makes one version of each such branch that is the one before with other base paths; ids, rows
and fragments stay as they are. From it on pylance reads the branch.

The transaction is an UpdateBases that adds none: it conflicts with nothing that others do, and what
they commit meanwhile is repaired with it.

Limits: older versions keep what they record, and so do tags on them: we read them, pylance does
not. Clones elsewhere that refer to the former place are not known.
Source: message BasePath of lance.table; pylance 14.0.2 reads what a repair makes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lance_nb.format.manifest import BasePath
from lance_nb.storage.base import Store
from lance_nb.table import refs
from lance_nb.transactions.commit import DEFAULTS, commit
from lance_nb.transactions.commit_options import CommitOptions, CommitPlace, Committed
from lance_nb.transactions.manifest_building import Draft
from lance_nb.transactions.operation import ApplyContext, Built
from lance_nb.transactions.operations.update_bases import UpdateBases
from lance_nb.transactions.ref_writer import PlaceOf
from lance_nb.transactions.transaction import Transaction
from lance_nb.transactions.version_source import VersionSource
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True)
class MovedBranch:
    """The newest version of a branch (None: main) that names former places of the dataset.

    ``bases`` are pairs of a base path as recorded and as it is now.
    """

    branch: str | None
    version: int
    bases: tuple[tuple[BasePath, BasePath], ...]

    def __str__(self) -> str:
        """Say in one line from where to where."""
        places = ", ".join(f"{old.path} (now {new.path})" for old, new in self.bases)
        return f"{self.branch or refs.MAIN}:{self.version} was moved from {places}"


def moved_branches(root: Store, place_of: PlaceOf) -> list[MovedBranch]:
    """Find the branches whose newest version names former places of the dataset.

    ``place_of`` gives the place of a branch. A branch that is unfinished has none. Raises
    CorruptFileError for a newest version that cannot be read.
    """
    branches = (_moved(place_of(branch)) for branch in (None, *refs.branch_names(root)))
    return [branch for branch in branches if branch is not None]


def repair_moved(place: CommitPlace, options: CommitOptions = DEFAULTS) -> Committed | None:
    """Commit a version of a branch that names its bases as they are now; None if it does already.

    Raises as ``commit`` does.
    """
    moved = _moved(place)
    if moved is None:
        return None
    present = {old.id: new for old, new in moved.bases}
    former = ", ".join(old.path for old, _ in moved.bases)
    transaction = Transaction(moved.version, UpdateBases(()), options.environment.new_uuid())
    return commit(
        place,
        transaction,
        replace(
            options,
            message=options.message or f"Repair the base paths of a dataset moved from {former}",
            apply=lambda ctx: _repaired(ctx, present),
        ),
    )


def _moved(place: CommitPlace) -> MovedBranch | None:
    source = VersionSource(place.slots, place.locations)
    head = source.head(0)
    if head is None:
        return None
    manifest = source.load(head.version).manifest
    now: Sequence[BasePath] = place.locations(manifest).present_bases()
    pairs = zip(manifest.base_paths, now, strict=True)
    bases = tuple((old, new) for old, new in pairs if old != new)
    return MovedBranch(place.branch, head.version, bases) if bases else None


def _repaired(ctx: ApplyContext, present: dict[int, BasePath]) -> Built:
    draft = Draft.of(ctx, UpdateBases(()))
    manifest = draft.manifest
    bases = tuple(present.get(base_path.id, base_path) for base_path in manifest.base_paths)
    draft.manifest = replace(manifest, base_paths=bases)
    return draft.finish()
