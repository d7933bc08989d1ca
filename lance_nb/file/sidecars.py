"""Blob files beside a data file: shared ones for middling payloads, one each for large ones.

Layout: ``<path of the data file without .lance>/<id as 32 binary digits, least significant bit
first>.blob``, raw bytes; ids count from 1 in one data file. A shared file is full when the next
payload would pass its size.

Limits: ids have 32 bits.
Source: names and ids of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Sequence

from lance_nb.encodings.base import Bytes
from lance_nb.errors import LanceError
from lance_nb.file.external_blobs import NO_BASES, BlobBases, ExternalBlobs
from lance_nb.storage.base import ObjectWriter, Store

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
        bases: BlobBases = NO_BASES,
        ingests: ExternalBlobs | None = None,
        pack_bytes: int = PACK_BYTES,
    ) -> None:
        """``bases``: where external blobs may lie. ``ingests``: they are read and stored here."""
        self._store = store
        self._folder = data_path.removesuffix(".lance")
        self.allows_external = allows_external
        self.bases = bases
        self.ingests = ingests
        self.pack_bytes = pack_bytes
        self.paths: list[str] = []
        self._shared: ObjectWriter | None = None
        self._shared_id = self._shared_size = 0

    def add_own(self, payload: Bytes) -> int:
        """Write a file for one payload; returns its id."""
        upload = self._create()
        upload.write([payload.data])
        upload.finish()
        return len(self.paths)

    def add_shared(self, payload: Bytes, full_bytes: int) -> tuple[int, int]:
        """Write a payload behind others; returns the id of the file and the position in it."""
        if self._shared is not None and self._shared_size + payload.size > full_bytes:
            self._finish_shared()
        if self._shared is None:
            self._shared = self._create()
            self._shared_id = len(self.paths)
        position = self._shared_size
        self._shared.write([payload.data])
        self._shared_size += payload.size
        return self._shared_id, position

    def finish(self) -> Sequence[str]:
        """Finish what is open; returns the paths of all files."""
        self._finish_shared()
        return self.paths

    def abort(self) -> None:
        """Remove everything that was written."""
        if self._shared is not None:
            self._shared.abort()
            self._shared = None
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
        return upload
