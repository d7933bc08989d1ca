"""Blob files beside a data file: shared ones for middling payloads, one each for large ones.

Layout: ``<path of the data file without .lance>/<id as 32 binary digits, least significant bit
first>.blob``, raw bytes; ids count from 1 in one data file. A shared file is full when the next
payload would pass its size.

Limits: ids have 32 bits.
Source: names and ids of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lance_nb.errors import LanceError
from lance_nb.file.blob_values import StoredPayloads
from lance_nb.file.external_blobs import NO_BASES, BlobBases, ExternalBlobs
from lance_nb.storage.base import Buffer, ObjectWriter, Store
from lance_nb.storage.summed_writer import SummedWriter

PACK_BYTES = 1024 * 1024 * 1024  # of a shared file
_ID_BITS = 32


class Sidecars:
    """The blob files of one data file, written as payloads come."""

    def __init__(
        self,
        store: Store,
        data_path: str,
        *,
        allows_external: bool = False,
        accepted_uris: dict[str, None] | None = None,
        bases: BlobBases = NO_BASES,
        ingests: ExternalBlobs | None = None,
        pack_bytes: int = PACK_BYTES,
        stored: StoredPayloads | None = None,
        checksums: bool = False,
    ) -> None:
        """``bases``: where external blobs may lie. ``ingests``: they are read and stored here.

        ``accepted_uris`` gets the URIs that are below no base, where ``allows_external``: one more
        than are ever remembered, which shows that there were more.

        ``stored``: what values may be copied from; with None they must bring their bytes.
        ``checksums``: sums are taken of every file, see ``summed``.
        """
        self._store = store
        self._folder = data_path.removesuffix(".lance")
        self.allows_external = allows_external
        self.accepted_uris = accepted_uris
        self.bases = bases
        self.ingests = ingests
        self.pack_bytes = pack_bytes
        self.takes_stored = stored is not None
        self.stored = StoredPayloads() if stored is None else stored
        self.paths: list[str] = []
        self.summed: list[SummedWriter] = []
        self._has_checksums = checksums
        self._own: ObjectWriter | None = None
        self._shared: ObjectWriter | None = None
        self._shared_id = self._shared_size = 0

    def add_own(self, payload: Iterable[Buffer]) -> int:
        """Write a file for one payload, which comes in pieces; returns its id."""
        self._own = self._create()
        for piece in payload:
            self._own.write([piece])
        self._own.finish()
        self._own = None
        return len(self.paths)

    def add_shared(
        self, payload: Iterable[Buffer], size_bytes: int, full_bytes: int
    ) -> tuple[int, int]:
        """Write a payload behind others; returns the id of the file and the position in it."""
        if self._shared is not None and self._shared_size + size_bytes > full_bytes:
            self._finish_shared()
        if self._shared is None:
            self._shared = self._create()
            self._shared_id = len(self.paths)
        position = self._shared_size
        for piece in payload:
            self._shared.write([piece])
        self._shared_size += size_bytes
        return self._shared_id, position

    def finish(self) -> Sequence[str]:
        """Finish what is open; returns the paths of all files."""
        self._finish_shared()
        return self.paths

    def abort(self) -> None:
        """Remove everything that was written."""
        for upload in (self._own, self._shared):
            if upload is not None:
                upload.abort()
        self._own = self._shared = None
        for path in self.paths:
            try:
                self._store.delete(path)
            except LanceError:  # an orphan for cleanup
                continue
        self.paths = []

    def _finish_shared(self) -> None:
        if self._shared is not None:
            self._shared.finish()
            self._shared, self._shared_size = None, 0

    def _create(self) -> ObjectWriter:
        bits = f"{len(self.paths) + 1:0{_ID_BITS}b}"[::-1]
        path = f"{self._folder}/{bits}.blob"
        upload = self._store.create(path)
        self.paths.append(path)
        if self._has_checksums:
            upload = SummedWriter(upload, path)
            self.summed.append(upload)
        return upload
