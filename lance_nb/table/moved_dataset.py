"""A dataset that was moved or copied finds the files of its branches where it is now.

A branch shares the files of the version that it started from. Its manifests name the folder of
them by the absolute path that the dataset had then: the root, or ``tree/dev`` below it for a branch
of branch dev. A branch that was merged is named by the versions that read its files in the same
way. After ``mv`` or ``cp -r`` these paths lead to a place that is gone, or to the original.

What is read: the same files below the present root, always, also when the former place still holds
them. A copy has to stand on its own: the original may be changed, cleaned or deleted, and whoever
was given the copy may have no leave to read it. Files of a dataset have names that occur once and
are never changed, so both hold the same. A file that the copy lacks is missing, not looked for
elsewhere; nothing outside of the present root is read because of this.

How a former root is recognised::

    branch of main         the base that the Clone operation of its first version added
    branch of branch dev   the base named "dev", at <former root>/tree/dev
    a merged branch dev    a base at <former root>/tree/dev, where dev is a branch of this dataset
                           and <former root> itself is no base (so no clone of another dataset)

A branch inherits the bases of its parent, so what its own fork does not explain is looked up
there.

Limits: when the first version of a branch has been cleaned up, its only unnamed base is taken;
of several none is, and the base is refused as any place outside of the dataset. pylance 14.0.2
follows the recorded path: it reads a moved branch after
``lance_nb.transactions.moved_bases.repair_moved``, from the version on that the repair makes.
Source: message BasePath of lance.table; layout of branches as pylance 14.0.2 writes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from lance_nb.errors import LanceError
from lance_nb.format.layout import branch_root, transaction_path
from lance_nb.format.manifest import BasePath
from lance_nb.storage.base import Store, join_uri
from lance_nb.storage.registry import relative_uri
from lance_nb.table import refs
from lance_nb.table.versions import load_version, parse_whole, version_names

_TREE = branch_root("")
_ANCESTORS_MAX = 100  # records of a damaged dataset may name each other in a circle


def present_base(root: Store, home: Store, bases: Sequence[BasePath], base: BasePath) -> BasePath:
    """Return a base path as it is now: below ``root`` if it lay in a former place of the dataset.

    ``home`` is the folder of the branch whose manifest has ``bases``, ``base`` among them.
    """
    with suppress(LanceError):  # then nobody knows, and the place stays as it is recorded
        if relative_uri(base.path, root.uri) is None:
            inside = _formerly_inside(root, home, bases, base)
            if inside is not None:
                return replace(base, path=join_uri(root.uri, inside))
    return base


def _formerly_inside(
    root: Store, home: Store, bases: Sequence[BasePath], base: BasePath
) -> str | None:
    """Return the path below the root that a base had there; None if it was never inside.

    What a branch has inherited from its parent is known by the parent.
    """
    for _ in range(_ANCESTORS_MAX):
        branch = (relative_uri(home.uri, root.uri) or "").removeprefix(_TREE)
        record = refs.read_branch(root, branch) if branch else None
        if record is not None:
            former = _fork_root(home, record.parent_branch, bases)
            inside = None if former is None else relative_uri(base.path, former)
            if inside is not None:
                return inside
        if record is None or record.parent_branch is None:
            break
        home = refs.branch_store(root, record.parent_branch)
        bases = load_version(home, record.parent_version).base_paths
        if _plain(base) not in map(_plain, bases):
            break
    return _merged_branch(root, bases, base)


def _fork_root(home: Store, parent: str | None, bases: Sequence[BasePath]) -> str | None:
    """Return where the dataset was when a branch was created, or its bases were repaired last."""
    if parent is not None:
        suffix = f"/{branch_root(parent)}"
        places = {_plain(one) for one in bases if one.name == parent}
        found = {one.removesuffix(suffix) for one in places if one.endswith(suffix)}
        return found.pop() if len(found) == 1 else None
    candidates = [one for one in bases if one.is_dataset_root and one.name is None]
    is_told, number = _fork_base(home)
    if is_told:
        candidates = [one for one in candidates if one.id == number]
    return candidates[0].path if len(candidates) == 1 else None


def _fork_base(home: Store) -> tuple[bool, int | None]:
    """Return whether the first version of a branch is there, and the id of the base it added."""
    from lance_nb.format.transaction_effects import cloned_place  # few datasets need it

    name = version_names(home)[0]
    where = f"{home.uri}/{name.path}"
    manifest = parse_whole(home.read(name.path), where, name.version)
    section = manifest.transaction_section
    if section is not None and section.data is not None:
        place = cloned_place(section.data, where)
    else:
        path = transaction_path(manifest.transaction_file)
        place = cloned_place(home.read(path), f"{home.uri}/{path}")
    if place is None:
        return False, None
    added = (one for one in manifest.base_paths if one.is_dataset_root and one.name is None)
    return True, next((one.id for one in added if _plain(one) == place.rstrip("/")), None)


def _merged_branch(root: Store, bases: Sequence[BasePath], base: BasePath) -> str | None:
    """Return the folder of the branch that a base named when the dataset was elsewhere."""
    place = _plain(base)
    at = place.find(f"/{_TREE}")
    if at < 0 or not base.is_dataset_root:
        return None
    branches, others = set(refs.branch_names(root)), {_plain(one) for one in bases}
    while at >= 0:
        former, name = place[:at], place[at + 1 + len(_TREE) :]
        if name in branches and former not in others:
            return branch_root(name)
        at = place.find(f"/{_TREE}", at + 1)
    return None


def _plain(base: BasePath) -> str:
    return base.path.rstrip("/")
