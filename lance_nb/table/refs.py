"""Tags and branches of a dataset, and resolving a ref to a version.

A ref is a version number, a tag name, or ``(branch, version)`` with None for main and for latest.
Refs are files in ``_refs`` of the root; a tag may point at a version of a branch.

Limits: a ref file has at most 1 MB. Source: spec page "branch and tag"; both JSON spellings.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_nb.errors import (
    CorruptFileError,
    FormatError,
    InvalidRefError,
    NotFoundError,
    ObjectNotFoundError,
    RefNotFoundError,
)
from lance_nb.format import layout
from lance_nb.storage.base import Store

if TYPE_CHECKING:
    from lance_nb.format.refs import Branch, Tag

Ref = int | str | tuple[str | None, int | None]
MAIN = "main"


@dataclass(frozen=True, slots=True)
class Target:
    """What a ref resolves to: branch (None is main) and version (None is the latest)."""

    branch: str | None
    version: int | None


def list_tags(root: Store) -> dict[str, Tag]:
    """Read every tag, sorted by name. Raises CorruptFileError for one that is damaged."""
    return {name: read_tag(root, name) for name in tag_names(root)}


def readable_tags(root: Store) -> dict[str, Tag]:
    """Read the tags as ``list_tags`` does, but leave out those whose file is damaged or gone."""
    found = {}
    for name in tag_names(root):
        with suppress(FormatError, NotFoundError):
            found[name] = read_tag(root, name)
    return found


def list_branches(root: Store) -> dict[str, Branch]:
    """Read every branch, sorted by name. Main has no file and is not listed."""
    return {name: read_branch(root, name) for name in branch_names(root)}


def tag_names(root: Store) -> list[str]:
    """List tag names, sorted."""
    return _names(root, layout.TAGS)


def branch_names(root: Store) -> list[str]:
    """List branch names, sorted."""
    return _names(root, layout.BRANCHES)


def read_tag(root: Store, name: str) -> Tag:
    """Read one tag. Raises RefNotFoundError."""
    from lance_nb.format.refs import Tag

    path = layout.tag_path(name)
    try:
        return Tag.from_bytes(root.read(path), f"{root.uri}/{path}")
    except ObjectNotFoundError as exc:
        raise _missing(root, path, "tag", name) from exc


def read_branch(root: Store, name: str) -> Branch:
    """Read one branch. Raises RefNotFoundError."""
    from lance_nb.format.refs import Branch

    path = layout.branch_path(name)
    try:
        return Branch.from_bytes(root.read(path), f"{root.uri}/{path}")
    except ObjectNotFoundError as exc:
        raise _missing(root, path, "branch", name) from exc


def has_versions(home: Store) -> bool:
    """Tell whether a branch's folder holds a version.

    The hint that writers leave beside the manifests is believed, which spares a listing.
    """
    if home.exists(layout.HINT_PATH):
        return True
    return any(layout.parse_manifest_name(one) for one in home.list_names(layout.VERSIONS))


def unfinished_problem(root: Store, name: str) -> str | None:
    """Say what is to be done about a branch that has a record and no version; None: it has one."""
    if has_versions(branch_store(root, name)):
        return None
    branch = read_branch(root, name)
    fork = f"{branch.parent_branch or MAIN}:{branch.parent_version}"
    return (
        f"branch {name!r} is unfinished: it has a record and no version, because its creation from "
        f"{fork} or its deletion was interrupted, or is under way; create it again from {fork} to "
        f"complete it, or remove it with branches.delete({name!r})"
    )


def _missing(root: Store, path: str, kind: str, name: str) -> CorruptFileError | RefNotFoundError:
    """Say why there is no record at its path: none anywhere, or one whose file is misspelled.

    pylance, too, lists the second and finds none: it fails on the whole list.
    """
    folder, _, wanted = path.rpartition("/")
    files = root.list_names(folder)
    names = {layout.parse_ref_file_name(one): one for one in files}
    file = names.get(name, wanted)
    if file == wanted:  # there is none, or there was none when it was looked for
        return RefNotFoundError(kind, name, tuple(sorted(one for one in names if one is not None)))
    advice = f"rename it to {wanted}, or delete it if the {kind} is not needed"
    expected = f"a file named {wanted}, where {kind} {name!r} is looked for"
    return CorruptFileError(f"{root.uri}/{folder}/{file}", None, expected, file, advice=advice)


def resolve(root: Store, ref: Ref | None, branch: str | None) -> Target:
    """Find out what ``ref`` means, seen from ``branch``.

    A number is a version of ``branch``; None is its latest version. Raises InvalidRefError,
    RefNotFoundError.
    """
    match ref:
        case None:
            return Target(branch, None)
        case bool():
            raise InvalidRefError(f"a version is a number, a tag or (branch, version), not {ref!r}")
        case int():
            return Target(branch, _check_version(ref))
        case str():
            if ref not in tag_names(root):
                raise RefNotFoundError("tag", ref, tuple(tag_names(root)))
            tag = read_tag(root, ref)
            return Target(_check_branch(root, tag.branch), tag.version)
        case (str() | None as name, int() | None as version) if not isinstance(version, bool):
            checked = None if version is None else _check_version(version)
            return Target(_check_branch(root, name), checked)
    raise InvalidRefError(f"a version is a number, a tag or (branch, version), not {ref!r}")


def branch_store(root: Store, branch: str | None) -> Store:
    """Return the store of a branch's own folder."""
    return root if branch is None else root.child(layout.branch_root(branch))


def _check_branch(root: Store, name: str | None) -> str | None:
    if name is None or name == MAIN:
        return None
    from lance_nb.format.refs import check_branch_name

    check_branch_name(name)
    # Its own file is looked for, as there may be hundreds; another writer may spell the name of
    # the file otherwise.
    if not root.exists(layout.branch_path(name)) and name not in branch_names(root):
        raise RefNotFoundError("branch", name, tuple(branch_names(root)))
    return name


def _check_version(version: int) -> int:
    if not 0 < version < 2**64:
        raise InvalidRefError(f"version {version} is not a positive number")
    return version


def _names(root: Store, folder: str) -> list[str]:
    found = (layout.parse_ref_file_name(name) for name in root.list_names(folder))
    return sorted(name for name in found if name is not None)
