"""Metadata tables: fragments, data files, columns and pages of a version, and files of a dataset.

Each function has a constant with the schema of its table. Everything but ``pages`` and
``all_files`` comes from manifests. ``tracked_files`` are the files that versions refer to,
``all_files`` those that exist; both have the columns of pylance's methods of the same names.

Limits: one batch per version, or one for all files. Unlike pylance, ``tracked_files`` returns the
versions in their order.
Source: behaviour of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict

import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.errors import NotFoundError
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.storage.base import Store
from lance_nb.table.fragment_reader import columns_of, open_file
from lance_nb.table.indices import read_indices
from lance_nb.table.snapshot import Snapshot

FRAGMENTS = pa.schema(
    [
        ("fragment_id", pa.uint64()),
        ("num_rows", pa.uint64()),
        ("physical_rows", pa.uint64()),
        ("num_deleted_rows", pa.uint64()),
        ("num_data_files", pa.uint32()),
        ("size_bytes", pa.uint64()),
    ]
)
DATA_FILES = pa.schema(
    [
        ("fragment_id", pa.uint64()),
        ("path", pa.string()),
        ("file_version", pa.string()),
        ("size_bytes", pa.uint64()),
        ("columns", pa.list_(pa.string())),
        ("field_ids", pa.list_(pa.int32())),
        ("base_id", pa.uint32()),
    ]
)
COLUMNS = pa.schema(
    [
        ("field_id", pa.int32()),
        ("parent_id", pa.int32()),
        ("name", pa.string()),
        ("logical_type", pa.string()),
        ("nullable", pa.bool_()),
        ("num_data_files", pa.uint32()),
    ]
)
PAGES = pa.schema(
    [
        ("column", pa.uint32()),
        ("field_id", pa.int32()),
        ("name", pa.string()),
        ("page", pa.uint32()),
        ("num_rows", pa.uint64()),
        ("size_bytes", pa.uint64()),
        ("offset_bytes", pa.uint64()),
        ("encoding", pa.string()),
        ("null_count", pa.uint64()),
        ("min_value", pa.string()),
        ("max_value", pa.string()),
    ]
)
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


def fragments(snapshot: Snapshot) -> pa.Table:
    """One row per fragment, in scan order, with the schema ``FRAGMENTS``.

    ``physical_rows`` counts deleted rows too; row counts that old writers did not record are null.
    ``size_bytes`` adds up the sizes that are recorded, null where none is.
    """
    counts = snapshot.manifest.fragments.counts()
    unknown = counts.is_unknown
    columns = [
        counts.ids,
        pa.array(counts.num_rows, mask=unknown),
        pa.array(counts.physical_rows, mask=counts.physical_rows == 0),
        pa.array(counts.num_deleted_rows, mask=unknown & (counts.num_deletion_files > 0)),
        counts.num_data_files,
        pa.array(counts.size_bytes, mask=(counts.size_bytes == 0) & (counts.num_data_files > 0)),
    ]
    arrays = [
        pc.cast(pa.array(values), field.type)
        for values, field in zip(columns, FRAGMENTS, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=FRAGMENTS)


def data_files(snapshot: Snapshot) -> pa.Table:
    """One row per data file of each fragment, with the schema ``DATA_FILES``.

    ``columns`` are the dotted names of the fields it holds that are still in the schema.
    """
    schema = snapshot.manifest.schema
    rows = []
    for fragment in snapshot.manifest.fragments:
        for file in fragment.files:
            names = [schema.path_of(field_id) for field_id in file.fields]
            rows.append(
                {
                    "fragment_id": fragment.id,
                    "path": file.path,
                    "file_version": f"{file.file_version[0]}.{file.file_version[1]}",
                    "size_bytes": file.size_bytes or None,
                    "columns": [name for name in names if name is not None],
                    "field_ids": list(file.fields),
                    "base_id": file.base_id,
                }
            )
    return pa.Table.from_pylist(rows, schema=DATA_FILES)


def columns(snapshot: Snapshot) -> pa.Table:
    """One row per field of the schema, depth first, with the schema ``COLUMNS``."""
    schema = snapshot.manifest.schema
    holders: dict[int, int] = {}
    for fragment in snapshot.manifest.fragments:
        for file in fragment.files:
            for field_id in file.fields:
                holders[field_id] = holders.get(field_id, 0) + 1
    rows = [
        {
            "field_id": field.id,
            "parent_id": field.parent_id,
            "name": schema.path_of(field.id),
            "logical_type": field.logical_type,
            "nullable": field.nullable,
            "num_data_files": holders.get(field.id, 0),
        }
        for field in schema.walk()
    ]
    return pa.Table.from_pylist(rows, schema=COLUMNS)


def pages(snapshot: Snapshot, path: str) -> pa.Table:
    """One row per page of the data file ``path`` (as ``data_files`` shows it), schema ``PAGES``.

    Reads the file's metadata, no page. ``column`` is a field id in 0.1 files, the only ones that
    have bounds and null counts; a page there is a batch. Raises NotFoundError, CorruptFileError.
    """
    fragment, file = _find(snapshot, path)
    owner = {column: field_id for field_id, column in columns_of(fragment, file).items()}
    schema = snapshot.manifest.schema
    rows = []
    for page in open_file(snapshot, fragment, file).list_pages():
        field_id = owner.get(page.column)
        name = None if field_id is None else schema.path_of(field_id)
        rows.append({**asdict(page), "field_id": field_id, "name": name})
    return pa.Table.from_pylist(rows, schema=PAGES)


def _find(snapshot: Snapshot, path: str) -> tuple[Fragment, DataFile]:
    for fragment in snapshot.manifest.fragments:
        for file in fragment.files:
            if file.path == path:
                return fragment, file
    raise NotFoundError(
        f"no data file {path!r} in version {snapshot.version}; inspect.data_files() lists them"
    )


def tracked_files(
    numbers: list[int], load: Callable[[int], Snapshot], progress: Progress | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield a batch per version with the files that it refers to."""
    for done, number in enumerate(numbers, 1):
        files = list(_files_of(load(number)))
        columns = [
            pa.array([number] * len(files), pa.int64()),
            pc.cast(pa.array([uri for uri, _, _ in files], pa.string()), _URI),
            pa.array([path for _, path, _ in files], pa.string()),
            pc.cast(pa.array([kind for _, _, kind in files], pa.string()), TRACKED.field(3).type),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=TRACKED)
        if progress is not None:
            progress(done, len(numbers))


def all_files(root: Store) -> Iterator[pa.RecordBatch]:
    """Yield the files below the root of a dataset, branches included."""
    entries = root.list_recursive("")
    columns = [
        pc.cast(pa.array([_shown(root.uri)] * len(entries), pa.string()), _URI),
        pa.array([entry.name for entry in entries], pa.string()),
        pa.array([entry.size_bytes for entry in entries], pa.int64()),
        pa.array([entry.modified for entry in entries], ALL.field(3).type),
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
        for name in (file.path for file in index.files):
            store, path = snapshot.locations.locate(f"_indices/{index.uuid}/{name}", index.base_id)
            yield _shown(store.uri), path, "index file"


def _shown(uri: str) -> str:
    return uri.removeprefix("file://")
