"""Where the files of a dataset version are: its own folder, its branch's, or another base path.

A file without ``base_id`` is in the folder of the manifest's branch. With one it is under that base
path of the manifest: in the usual folders when the base is a dataset root, else directly in it.

Safety: a manifest can name any folder or bucket as a base, and reading it would use the reader's
own credentials. A base that is not the dataset's own root, or below it, is refused unless the
caller trusts it (``allowed``; see lance_nb.session.base_paths). The same goes for symbolic links
that leave a local dataset (lance_nb.storage.links), and for external blobs, which a reference names
by URI: their folder must be trusted, or this process itself wrote the reference
(``written_blobs``).

A branch shares the files of the version that it started from. Its manifests name their folder by
the absolute path that the dataset had then: the root, or ``tree/dev`` below it for a branch of
branch dev. Versions that read the files of a merged branch name it in the same way. After ``mv`` or
``cp -r`` these paths lead to a place that does not exist any more, or to the original. Then the
same files are read below the present root, also when the former place still has them: a copy must
not depend on the original, which may be changed, cleaned or deleted, or be inaccessible to whoever
was given the copy. File names are unique and files never change, so both have the same content. A
file that the copy lacks is missing, and is not looked for elsewhere.

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
``lance_nb.writing.cloning.repair_moved``, from the version on that the repair makes.
Source: message BasePath of lance.table; guide on branches and clones; layout of branches as pylance
14.0.2 writes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import field, replace
from typing import TYPE_CHECKING

from lance_nb.errors import CorruptFileError, InvalidInputError, LanceError, NotSupportedError
from lance_nb.file.external_blobs import NO_URIS, URIS_MAX, BlobUris
from lance_nb.format.layout import branch_root, check_relative_path, transaction_path
from lance_nb.format.manifest import BasePath
from lance_nb.storage.base import Store, join_uri
from lance_nb.storage.links import how_to_allow
from lance_nb.storage.registry import (
    StorageOptions,
    open_store,
    relative_uri,
    split_object_uri,
)
from lance_nb.table import refs
from lance_nb.table.versions import load_version, parse_whole, version_names
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from lance_nb.table.checksums import ReadChecks


_TREE = branch_root("")
_ANCESTORS_MAX = 100  # records of a damaged dataset may name each other in a cycle


@dataclass(frozen=True, slots=True)
class Locations:
    """Resolves a path and a base id to a store and a path in it.

    ``root`` is the dataset's root store, ``home`` the store of the branch (the root itself on
    main). ``has_external`` is False for a data file on its own, whose blobs are beside it.
    ``checks``: files are compared with their checksums before they are read. ``written_blobs``: the
    external blobs that this process itself wrote references to; each is trusted by its whole URI,
    as long as that leads where it led then.
    """

    root: Store
    home: Store
    bases: tuple[BasePath, ...] = ()
    allowed: tuple[str, ...] = ()
    options: StorageOptions | None = field(default=None, repr=False)
    opened: dict[int, Store] = field(default_factory=dict)
    present: dict[int, BasePath] = field(default_factory=dict)
    has_external: bool = True
    checks: ReadChecks | None = None
    written_blobs: BlobUris = field(default=NO_URIS, repr=False, compare=False)

    def locate(self, path: str, base_id: int | None) -> tuple[Store, str]:
        """Return the store and the path in it; ``path`` is below a dataset root ("data/x.lance").

        Raises InvalidInputError for a base path that has not been allowed.
        """
        if base_id is None:
            return self._checked(self.home), path
        base = self.base(base_id)
        inside = path if base.is_dataset_root else path.partition("/")[2]
        return self._checked(self._store(base)), inside

    def _checked(self, store: Store) -> Store:
        return store if self.checks is None else self.checks.store(store)

    def external(self, uri: str, base_id: int | None) -> tuple[Store, str]:
        """Locate an object outside of the usual folders: a URI, or a path below a base path.

        Raises InvalidInputError for a place that has not been allowed, NotSupportedError where
        none is.
        """
        if not self.has_external:
            raise NotSupportedError(
                f"{uri!r} is outside of the data file; open the dataset to read external blobs"
            )
        if base_id is not None:
            return self._checked(self._store(self.base(base_id))), check_relative_path(uri)
        target = self.written_blobs.target(uri)
        folder, name = split_object_uri(uri if target is None else target)
        name = check_relative_path(name)
        if target is not None:
            return open_store(folder, self.options), name
        try:
            return self._open(BasePath(-1, folder)), name
        except InvalidInputError as error:
            if self.written_blobs.is_cut:
                error.add_note(
                    "This process wrote references to more external blobs than the "
                    f"{URIS_MAX:,} whose URIs it remembers; the others must be allowed."
                )
            raise

    def base(self, base_id: int) -> BasePath:
        """Return a base path by its id, as it is now (``present_base``).

        Raises CorruptFileError.
        """
        if base_id in self.present:
            return self.present[base_id]
        base = next((base for base in self.bases if base.id == base_id), None)
        if base is None:
            base_ids = ", ".join(str(base.id) for base in self.bases) or "none"
            raise CorruptFileError(
                "manifest", None, f"base paths that include id {base_id}", f"ids {base_ids}"
            )
        if not f"{base.path}/".startswith(f"{self.root.uri.rstrip('/')}/"):
            base = present_base(self.root, self.home, self.bases, base)
        self.present[base_id] = base
        return base

    def present_bases(self) -> tuple[BasePath, ...]:
        """Return all base paths as they are now; ``bases`` itself where none has moved."""
        present = tuple(self.base(base.id) for base in self.bases)
        ids = {base.id for base in self.bases}  # a damaged manifest may use one twice
        return self.bases if present == self.bases or len(ids) < len(present) else present

    def _store(self, base: BasePath) -> Store:
        if base.id not in self.opened:
            self.opened[base.id] = self._open(base)
        return self.opened[base.id]

    def _open(self, base: BasePath) -> Store:
        inside = relative_uri(base.path, self.root.uri)
        if inside is not None:
            return self.root.child(inside) if inside else self.root
        if not any(relative_uri(base.path, allowed) is not None for allowed in self.allowed):
            raise InvalidInputError(
                f"this version keeps data under another base path, {base.path!r}, "
                f"which is outside of the dataset ({self.root.uri!r}); "
                + how_to_allow(self.allowed, base.path, self.root.uri)
            )
        return open_store(base.path, self.options, (self.root.uri, *self.allowed))


# --- datasets that were moved or copied -----------------------------------------------------------


def present_base(root: Store, home: Store, bases: Sequence[BasePath], base: BasePath) -> BasePath:
    """Return a base path as it is now: below ``root`` if it lay in a former place of the dataset.

    ``home`` is the folder of the branch whose manifest has ``bases``, ``base`` among them.
    """
    with suppress(LanceError):  # the former root is unknown: keep the recorded path
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
        places = {_plain(base) for base in bases if base.name == parent}
        roots = {place.removesuffix(suffix) for place in places if place.endswith(suffix)}
        return roots.pop() if len(roots) == 1 else None
    candidates = [base for base in bases if base.is_dataset_root and base.name is None]
    is_known, number = _fork_base(home)
    if is_known:
        candidates = [candidate for candidate in candidates if candidate.id == number]
    return candidates[0].path if len(candidates) == 1 else None


def _fork_base(home: Store) -> tuple[bool, int | None]:
    """Return whether the first version of a branch is there, and the id of the base it added."""
    from lance_nb.format.transaction_effects import cloned_place

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
    added = (
        base_path
        for base_path in manifest.base_paths
        if base_path.is_dataset_root and base_path.name is None
    )
    return True, next((base.id for base in added if _plain(base) == place.rstrip("/")), None)


def _merged_branch(root: Store, bases: Sequence[BasePath], base: BasePath) -> str | None:
    """Return the folder of the branch that a base named when the dataset was elsewhere."""
    place = _plain(base)
    position = place.find(f"/{_TREE}")
    if position < 0 or not base.is_dataset_root:
        return None
    branches, base_places = set(refs.branch_names(root)), {_plain(base) for base in bases}
    while position >= 0:
        former, name = place[:position], place[position + 1 + len(_TREE) :]
        if name in branches and former not in base_places:
            return branch_root(name)
        position = place.find(f"/{_TREE}", position + 1)
    return None


def _plain(base: BasePath) -> str:
    return base.path.rstrip("/")
