"""Which files a dataset consists of: those that versions refer to, and those that are there.

Tables (as pylance's ``tracked_files`` and ``all_files``):

=============  =========================================================================
tracked        version int64, base_uri dictionary<int32, string>, path string,
               type dictionary<int8, string>: manifest, transaction file, data file,
               deletion file, index file
all            base_uri, path, size_bytes int64, last_modified timestamp[us, UTC]
=============  =========================================================================

Limits: one batch per version, or one for all files. Unlike pylance, versions come in their order.
Source: behaviour of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from lance_nb.storage.base import Store
from lance_nb.table.indices import read_indices
from lance_nb.table.snapshot import Snapshot

_URI = pa.dictionary(pa.int32(), pa.string())
TRACKED = pa.schema(
    [
        pa.field("version", pa.int64(), nullable=False),
        pa.field("base_uri", _URI, nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("type", pa.dictionary(pa.int8(), pa.string()), nullable=False),
    ]
)
ALL = pa.schema(
    [
        pa.field("base_uri", _URI, nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("size_bytes", pa.int64(), nullable=False),
        pa.field("last_modified", pa.timestamp("us", "UTC"), nullable=False),
    ]
)
Progress = Callable[[int, int], object]


def tracked_files(
    numbers: list[int], load: Callable[[int], Snapshot], progress: Progress | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield a batch per version with the files that it refers to."""
    for done, number in enumerate(numbers, 1):
        found = list(_files_of(load(number)))
        columns = [
            pa.array([number] * len(found), pa.int64()),
            pa.array([uri for uri, _, _ in found], pa.string()).cast(_URI),
            pa.array([path for _, path, _ in found], pa.string()),
            pa.array([kind for _, _, kind in found], pa.string()).cast(TRACKED.field(3).type),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=TRACKED)
        if progress is not None:
            progress(done, len(numbers))


def all_files(root: Store) -> Iterator[pa.RecordBatch]:
    """Yield the files below the root of a dataset, branches included."""
    found = root.list_recursive("")
    columns = [
        pa.array([_shown(root.uri)] * len(found), pa.string()).cast(_URI),
        pa.array([one.name for one in found], pa.string()),
        pa.array([one.size_bytes for one in found], pa.int64()),
        pa.array([one.modified for one in found], ALL.field(3).type),
    ]
    yield pa.RecordBatch.from_arrays(columns, schema=ALL)


def _files_of(snapshot: Snapshot) -> Iterator[tuple[str, str, str]]:
    """Yield (root, path below it, kind) of the files of one version."""
    home, manifest = snapshot.locations.home, snapshot.manifest
    mine = _shown(home.uri)
    yield mine, manifest.path.removeprefix(f"{home.uri}/"), "manifest"
    if manifest.transaction_file:
        yield mine, f"_transactions/{manifest.transaction_file}", "transaction file"
    for fragment in manifest.fragments:
        for file in fragment.files:
            store, path = snapshot.locations.locate(file.location(manifest.path), file.base_id)
            yield _shown(store.uri), path, "data file"
        deletion = fragment.deletion_file
        if deletion is not None:
            store, path = snapshot.locations.locate(
                deletion.location(fragment.id), deletion.base_id
            )
            yield _shown(store.uri), path, "deletion file"
    for index in read_indices(snapshot):
        for name in (one.path for one in index.files):
            store, path = snapshot.locations.locate(f"_indices/{index.uuid}/{name}", index.base_id)
            yield _shown(store.uri), path, "index file"


def _shown(uri: str) -> str:
    return uri.removeprefix("file://")
