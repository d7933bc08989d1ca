"""Which versions of a branch may go, by the rules of ``cleanup_old_versions``.

A version goes when it is older than ``older_than``, not among the last ``retain_versions`` and, if
``versions`` are given, one of them. These stay whatever the rules say: the version that is open and
those after it, tagged versions, versions that a branch (or a branch of that branch) started from,
detached versions.

The age of a version is the commit time in its manifest. Reading all manifests for it would cost
more than everything else, so the boundary is looked for by halving: commit times follow the
versions but for the clocks of several writers. A version before the boundary goes if its file was
last written before the cut-off too; if not (the dataset was copied), its manifest is read.

Limits: with writers whose clocks differ, a version near the boundary may be judged by the time at
which its file was stored.
Source: ``cleanup_old_versions`` of pylance 14.0.2. There, a version that a branch started from is
let go once no version of the branch needs its files; here it stays as long as the branch, because
merging the branch needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from lance_nb.errors import CleanupError
from lance_nb.format.layout import ManifestName

DEFAULT_AGE = timedelta(days=14)
UNVERIFIED_AGE = timedelta(days=7)  # files that no version refers to may be of a running write

CommitTime = Callable[[ManifestName], datetime | None]


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """The rules; with none of the first three, versions older than two weeks go."""

    older_than: timedelta | None = None
    retain_versions: int | None = None
    versions: frozenset[int] | None = None
    delete_unverified: bool = False
    error_if_tagged_old_versions: bool = True

    @classmethod
    def of(
        cls,
        older_than: timedelta | None,
        retain_versions: int | None,
        versions: Collection[int] | None,
        *,
        delete_unverified: bool = False,
        error_if_tagged_old_versions: bool = True,
    ) -> RetentionPolicy:
        """Check the arguments of a verb. Raises CleanupError."""
        if older_than is None and retain_versions is None and versions is None:
            older_than = DEFAULT_AGE
        if older_than is not None and not isinstance(older_than, timedelta):
            raise CleanupError(f"older_than is a timedelta, not {type(older_than).__name__}")
        if older_than is not None and older_than < timedelta(0):
            raise CleanupError(f"older_than is a span back in time, not {older_than}")
        if retain_versions is not None:
            if isinstance(retain_versions, bool) or not isinstance(retain_versions, int):
                raise CleanupError(f"retain_versions is a number, not {retain_versions!r}")
            if retain_versions < 1:
                raise CleanupError(f"retain_versions is at least 1, not {retain_versions}")
        if versions is not None:
            if not versions:
                raise CleanupError("versions is empty: name the versions to delete, or leave it")
            if any(isinstance(one, bool) or not isinstance(one, int) for one in versions):
                raise CleanupError("versions is a list of version numbers")
        chosen = None if versions is None else frozenset(versions)
        return cls(
            older_than, retain_versions, chosen, delete_unverified, error_if_tagged_old_versions
        )


@dataclass(frozen=True, slots=True)
class Protection:
    """Versions of one branch that stay, and what for: version -> names of tags, of branches."""

    tags: Mapping[int, Sequence[str]]
    forks: Mapping[int, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Age:
    """How old versions are: when they were committed, and when their files were stored."""

    now: datetime
    committed: CommitTime
    stored: Callable[[ManifestName], datetime | None]


def removable(
    policy: RetentionPolicy,
    names: Sequence[ManifestName],
    current: int,
    age: Age,
    protection: Protection,
) -> list[ManifestName]:
    """Return the versions that go, oldest first; ``names`` are all of the branch.

    Raises CleanupError when tagged versions are among them and the policy says to tell.
    """
    found = list(names)
    if policy.retain_versions is not None:
        found = found[: max(len(found) - policy.retain_versions, 0)]
    found = [one for one in found if one.version < current]
    if policy.versions is not None:
        found = [one for one in found if one.version in policy.versions]
    if policy.older_than is not None:
        found = _older(found, age, age.now - policy.older_than)
    tagged = {
        one.version: protection.tags[one.version] for one in found if one.version in protection.tags
    }
    if tagged and policy.error_if_tagged_old_versions:
        shown = ", ".join(
            f"{tag!r} (version {number})" for number, tags in tagged.items() for tag in tags
        )
        raise CleanupError(
            f"{len(tagged)} tagged version(s) would be cleaned up, which never happens: {shown}. "
            "Delete the tags, or pass error_if_tagged_old_versions=False to clean up the others"
        )
    kept = {*tagged, *protection.forks}
    return [one for one in found if one.version not in kept]


def _older(names: Sequence[ManifestName], age: Age, cutoff: datetime) -> list[ManifestName]:
    def is_old(name: ManifestName) -> bool:
        moment = age.committed(name) or age.stored(name)
        return moment is not None and moment < cutoff

    low, high = 0, len(names)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if is_old(names[middle]) else (low, middle)
    found = []
    for name in names[:low]:
        stored = age.stored(name)
        if (stored is not None and stored < cutoff) or is_old(name):
            found.append(name)
    return found


def is_settled(modified: datetime | None, now: datetime) -> bool:
    """Tell whether a file is too old to be of a write that is still going on."""
    return modified is not None and now - modified >= UNVERIFIED_AGE
