"""Where the files of a dataset version live: its own folder, its branch's, or another base path.

A file without ``base_id`` lies in the folder of the manifest's branch. With one it lies under that
base path of the manifest: in the usual folders when the base is a dataset root, else directly in
it.

Safety: a manifest can name any folder or bucket as a base, and reading it would use the reader's
own credentials. A base that is not the dataset's own root, or below it, is refused unless the
caller trusts it (``allowed``; see lance_nb.dataset.base_paths). The same goes for symbolic links
that leave a local dataset (lance_nb.storage.links). A base in a place where the dataset itself was
before it was moved is the same folder below its present root.

Source: message BasePath of lance.table; guide on branches and clones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lance_nb.errors import CorruptFileError, InvalidInputError, NotSupportedError
from lance_nb.format.layout import check_relative_path
from lance_nb.format.manifest import BasePath
from lance_nb.storage.base import Store
from lance_nb.storage.links import how_to_allow
from lance_nb.storage.registry import StorageOptions, open_store, relative_uri

if TYPE_CHECKING:
    from lance_nb.table.checksums import ReadChecks


@dataclass(frozen=True, slots=True)
class Locations:
    """Resolves a path and a base id to a store and a path in it.

    ``root`` is the dataset's root store, ``home`` the store of the branch (the root itself on
    main). ``has_external`` is False for a data file on its own, whose blobs are beside it.
    ``checks``: files are compared with their checksums before they are read.
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
        folder, _, name = uri.rpartition("/")
        return self._open(BasePath(-1, folder)), check_relative_path(name)

    def base(self, base_id: int) -> BasePath:
        """Return a base path by its id, as it is now (see moved_dataset.py).

        Raises CorruptFileError.
        """
        if base_id in self.present:
            return self.present[base_id]
        base = next((base for base in self.bases if base.id == base_id), None)
        if base is None:
            known = ", ".join(str(base.id) for base in self.bases) or "none"
            raise CorruptFileError(
                "manifest", None, f"base paths that include id {base_id}", f"ids {known}"
            )
        if not f"{base.path}/".startswith(f"{self.root.uri.rstrip('/')}/"):
            from lance_nb.table.moved_dataset import present_base  # few datasets need it

            base = present_base(self.root, self.home, self.bases, base)
        self.present[base_id] = base
        return base

    def present_bases(self) -> tuple[BasePath, ...]:
        """Return all base paths as they are now; ``bases`` itself where none has moved."""
        found = tuple(self.base(one.id) for one in self.bases)
        ids = {one.id for one in self.bases}  # a damaged manifest may use one twice
        return self.bases if found == self.bases or len(ids) < len(found) else found

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
