"""Compare the files of a version with their checksums, for a verification.

Nothing else finds damage that still decodes: most flipped bits of a data file are other values.

Limits: a file without a checksum is counted, and is no finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lance_nb.errors import CorruptFileError, LanceError
from lance_nb.format import layout
from lance_nb.format.fragment import DataFile, DeletionFile, Fragment
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.manifest_history import DATA, DELETION, NamedFile
from lance_nb.storage.base import Store
from lance_nb.table.checksums import Checksums, files_beside
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.verification.findings import Finding


class ChecksumChecks:
    """Compares files, each once, and counts files compared, files without checksum, bytes read."""

    def __init__(self) -> None:
        self.num_checked = self.num_without = self.bytes_read = 0
        self._sums = Checksums()
        self._done: set[tuple[str, str]] = set()

    def fragment(
        self, snapshot: Snapshot, fragment: Fragment, is_chosen: Callable[[str], bool]
    ) -> Iterator[Finding]:
        """Check the data files of a fragment, blobs included, and its deletion file.

        ``is_chosen`` is asked for the identity of each.
        """
        for kind, described in _described(fragment):
            try:
                inside = _place(described, fragment.id, snapshot.manifest.path)
                if not is_chosen(NamedFile(kind, inside).identity):
                    continue
                store, path = snapshot.locations.locate(inside, described.base_id)
                paths = list(files_beside(self._sums, store, path))
            except LanceError:
                continue  # reported by the checks of the fragment
            for file_path in paths:
                yield from self._file(store, file_path, snapshot, fragment.id)

    def index(self, snapshot: Snapshot, index: IndexMetadata) -> Iterator[Finding]:
        """Check the files of an index."""
        folder = layout.index_folder(index.uuid, snapshot.manifest.path)
        try:
            store, inside = snapshot.locations.locate(folder, index.base_id)
            paths = {f"{inside}/{file.path}" for file in index.files}
            paths.update(self._sums.below(store, inside))
        except LanceError:
            return  # reported by the checks of the index
        for path in sorted(paths):
            yield from self._file(store, path, snapshot, None)

    def records(self, root: Store) -> Iterator[Finding]:
        """Report the records of checksums that could not be read."""
        for damage in self._sums.damaged:
            home = damage.store.uri.removeprefix(root.uri).strip("/")
            yield Finding(
                "checksum-record-damaged",
                str(damage.error),
                f"{home}/{damage.path}"
                if home and damage.store.uri.startswith(root.uri)
                else damage.path,
                error=damage.error,
            )

    def _file(
        self, store: Store, path: str, snapshot: Snapshot, fragment: int | None
    ) -> Iterator[Finding]:
        if (store.uri, path) in self._done:
            return
        self._done.add((store.uri, path))
        try:
            if self._sums.check(store, path, self._read):
                self.num_checked += 1
            else:
                self.num_without += 1
        except CorruptFileError as error:
            self.num_checked += 1
            branch, version = snapshot.branch, snapshot.version
            yield Finding("checksum-wrong", str(error), path, branch, version, fragment, error)
        except LanceError:
            return  # missing or unreadable: reported by other checks

    def _read(self, size_bytes: int) -> None:
        self.bytes_read += size_bytes


def _described(fragment: Fragment) -> Iterator[tuple[str, DataFile | DeletionFile]]:
    for file in fragment.files:
        yield DATA, file
    if fragment.deletion_file is not None:
        yield DELETION, fragment.deletion_file


def _place(file: DataFile | DeletionFile, fragment_id: int, manifest: str) -> str:
    """Return the path below the root of a dataset. Raises CorruptFileError."""
    if isinstance(file, DataFile):
        return file.location(manifest)
    return file.location(fragment_id)
