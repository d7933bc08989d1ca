"""Write rows: create a dataset, append to it, or overwrite it. One call, one new version.

The data files are written, and durable, before the version is created; when writing fails they are
removed again, and the dataset is as it was. When the commit fails they stay, because an unknown
outcome may still turn into a version that needs them; cleanup finds them.

``target_bases`` names base paths for the new files, by name or by path; ``target_all_bases`` takes
all of them, with the dataset's own folder as the first (True) or without it (False). The files of
one write go to them in turn. A manifest may name any place as a base, so writing there needs the
caller's trust: the place is given with ``initial_bases``, lies below the dataset, or is among
``allow_bases``.

Not supported: namespaces, store parameters for single base paths, files of version 0.1.
Source: ``lance.write_dataset`` and ``LanceDataset.insert`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import pyarrow as pa

from lance_nb.errors import (
    BasePathError,
    DatasetAlreadyExistsError,
    InvalidInputError,
)
from lance_nb.file.external_blobs import BlobBases, ExternalBlobs
from lance_nb.file.sidecars import PACK_BYTES
from lance_nb.file.versions import WRITABLE_VERSIONS, file_version_of, version_name
from lance_nb.file.writer import PAGE_BYTES, FileOptions
from lance_nb.format import layout
from lance_nb.format.checksums import wants_checksums
from lance_nb.format.fragment import Fragment
from lance_nb.format.manifest import BasePath
from lance_nb.format.schema import Schema
from lance_nb.session.base_paths import remember_blobs, remember_created
from lance_nb.session.session import Session
from lance_nb.storage.registry import StorageOptions
from lance_nb.storage.sync_later import synced_together
from lance_nb.table.locations import Locations
from lance_nb.table.snapshot import Snapshot, added_version, storage_version
from lance_nb.transactions.commit_options import CommitOptions
from lance_nb.transactions.operation import DEFAULT_FILE_VERSION, BuildOptions, Operation
from lance_nb.transactions.operations.overwrite import Overwrite
from lance_nb.transactions.operations.update_bases import UpdateBases
from lance_nb.transactions.schema_change import new_schema
from lance_nb.transactions.version_slots import CommitLock
from lance_nb.value_classes import dataclass
from lance_nb.writing.committing import NO_PROPERTIES, commit_staged
from lance_nb.writing.fragment_writer import (
    BYTES_PER_FILE,
    ROWS_PER_FILE,
    FilePlace,
    Progress,
    WriteOptions,
    write_fragments,
)
from lance_nb.writing.input_data import reader_of
from lance_nb.writing.staged import Addition, Replacement, StagedWrite, combine


def trusting(session: Session, places: Iterable[str]) -> Session:
    """Return the session, which may use the places that its user has just named as well."""
    allowed = tuple(dict.fromkeys((*session.allow_bases, *places)))
    return session if allowed == session.allow_bases else replace(session, allow_bases=allowed)


def register(
    session: Session,
    snapshot: Snapshot,
    bases: Sequence[BasePath],
    properties: Mapping[str, str],
) -> Snapshot:
    """Add base paths, as one new version. Raises BasePathError when one is taken."""
    staged = StagedWrite(snapshot.version, UpdateBases(tuple(bases)))
    snapshot_after = commit_staged(session, snapshot.branch, staged, properties=properties)
    remember_created(session.root.uri, [base.path for base in bases])
    return snapshot_after


def named_places(current: Snapshot | None, request: Any) -> list[str]:
    """Return the bases that a request to write names by their paths."""
    places = [initial_base.path for initial_base in request.initial_bases]
    if current is not None:
        registered = {base_path.path.rstrip("/") for base_path in current.manifest.base_paths}
        places += [
            target_base
            for target_base in request.target_bases or ()
            if target_base.rstrip("/") in registered
        ]
    return places


def trusted(
    session: Session, current: Snapshot | None, places: Sequence[str]
) -> tuple[Session, Snapshot | None]:
    """Return the session that trusts places as well, and the version as it opens it."""
    wider = trusting(session, places)
    if current is None or wider is session:
        return wider, current
    return wider, wider.snapshot(current.manifest, current.branch)


def places_of(
    locations: Locations, targets: Sequence[str] | None, target_all: bool | None
) -> tuple[FilePlace, ...]:
    """Return where files go in turn; nothing when it is the dataset's own folder alone.

    Raises BasePathError for a base that is not there, InvalidInputError for one not trusted.
    """
    if target_all is not None and targets:
        raise BasePathError("pass target_bases or target_all_bases, not both")
    if target_all is None:
        return tuple(
            _place(locations, _find_base(locations.bases, target)) for target in targets or ()
        )
    places = tuple(_place(locations, base) for base in locations.bases)
    if not target_all and not places:
        raise BasePathError(
            "target_all_bases=False leaves out the dataset's own folder, and no base path is "
            "registered: add one with add_bases()"
        )
    return (FilePlace(locations.home), *places) if target_all else places


def _find_base(bases: Sequence[BasePath], reference: str) -> BasePath:
    for base in bases:
        if base.name == reference:
            return base
    for base in bases:
        if base.path.rstrip("/") == reference.rstrip("/"):
            return base
    base_names = ", ".join(repr(base.name or base.path) for base in bases) or "none"
    raise BasePathError(
        f"base path {reference!r} does not exist; registered: {base_names} (initial_bases "
        "registers them with a new dataset, add_bases() later)"
    )


def _place(locations: Locations, base: BasePath) -> FilePlace:
    store, inside = locations.locate(f"{layout.DATA}/", base.id)
    return FilePlace(store, inside.rstrip("/"), base.id)


MODES = ("create", "append", "overwrite")
_BLOB_MODES = ("reference", "ingest")


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """How rows are written and committed; every field is an argument of ``write_dataset``."""

    max_rows_per_file: int | None = None
    max_bytes_per_file: int | None = None
    max_page_bytes: int | None = None
    data_storage_version: str | None = None
    enable_v2_manifest_paths: bool = True
    enable_stable_row_ids: bool = False
    commit_lock: CommitLock | None = None
    commit_message: str | None = None
    transaction_properties: Mapping[str, str] = field(default_factory=lambda: NO_PROPERTIES)
    progress: Progress | None = None
    external_blob_mode: str = "reference"
    allow_external_blob_outside_bases: bool = False
    blob_pack_file_size_threshold: int | None = None
    initial_bases: tuple[BasePath, ...] = ()
    target_bases: Sequence[str] | None = None
    target_all_bases: bool | None = None
    config: Mapping[str, str] = field(default_factory=lambda: NO_PROPERTIES)

    def write_options(
        self,
        version: str,
        places: tuple[FilePlace, ...] = (),
        locations: Locations | None = None,
        config: Mapping[str, str] = NO_PROPERTIES,
    ) -> WriteOptions:
        """Return how files are written; ``locations`` say where external blobs may lie.

        ``config`` is the dataset's, which may ask for checksums. Raises InvalidInputError,
        NotSupportedError.
        """
        pack_bytes = self.blob_pack_file_size_threshold
        return WriteOptions(
            max_rows_per_file=(
                ROWS_PER_FILE if self.max_rows_per_file is None else self.max_rows_per_file
            ),
            max_bytes_per_file=(
                BYTES_PER_FILE if self.max_bytes_per_file is None else self.max_bytes_per_file
            ),
            file_version=file_version_of(version),
            file=FileOptions(
                PAGE_BYTES if self.max_page_bytes is None else self.max_page_bytes,
                allows_external_blobs=self.allow_external_blob_outside_bases,
                accepted_uris={} if self.allow_external_blob_outside_bases else None,
                blob_bases=BlobBases.of(() if locations is None else locations.present_bases()),
                ingests=self._ingests(None if locations is None else locations.options),
                blob_pack_bytes=PACK_BYTES if pack_bytes is None else pack_bytes,
                checksums=wants_checksums(config),
            ),
            places=places,
        )

    def _ingests(self, storage_options: StorageOptions | None) -> ExternalBlobs | None:
        if self.external_blob_mode not in _BLOB_MODES:
            raise InvalidInputError(
                f"external_blob_mode {self.external_blob_mode!r} is not one of "
                f"{', '.join(map(repr, _BLOB_MODES))}"
            )
        if self.external_blob_mode == "reference":
            return None
        if self.allow_external_blob_outside_bases:
            raise InvalidInputError(
                "allow_external_blob_outside_bases applies to references to external blobs, and "
                "external_blob_mode='ingest' stores none: leave out one of the two"
            )
        return ExternalBlobs(storage_options)

    def places(self, locations: Locations) -> tuple[FilePlace, ...]:
        """Return where files go, among the base paths. Raises BasePathError."""
        return places_of(locations, self.target_bases, self.target_all_bases)

    def commit_options(self) -> CommitOptions:
        """Return how the version is committed."""
        return CommitOptions(
            message=self.commit_message,
            enable_v2_manifest_paths=self.enable_v2_manifest_paths,
            commit_lock=self.commit_lock,
            build=BuildOptions(self._file_version, self.enable_stable_row_ids),
        )

    @property
    def _file_version(self) -> str | None:
        version = self.data_storage_version
        return None if version is None else version_name(file_version_of(version))


def own_options(snapshot: Snapshot, version: str | None = None) -> WriteOptions:
    """Return how new files of a dataset are written: as its configuration asks.

    ``version`` is the name of a file version, by default the dataset's. Raises InvalidInputError,
    NotSupportedError.
    """
    manifest = snapshot.manifest
    return WriteRequest().write_options(added_version(manifest, version), config=manifest.config)


def write(
    session: Session,
    current: Snapshot | None,
    data: Any,
    request: WriteRequest,
    *,
    mode: str,
    schema: pa.Schema | None = None,
) -> Snapshot:
    """Write rows and commit them; ``current`` is None when there is no dataset yet.

    Raises DatasetAlreadyExistsError, SchemaMismatchError, InvalidInputError, NotSupportedError,
    CommitError, CommitStateUnknownError, StorageError.
    """
    branch = None if current is None else current.branch
    with synced_together():
        staged = stage_rows(session, current, data, request, mode=mode, schema=schema)
        options = replace(
            request.commit_options(), read_manifest=None if current is None else current.manifest
        )
        return commit_staged(
            session, branch, staged, options=options, properties=request.transaction_properties
        )


def stage_rows(
    session: Session,
    current: Snapshot | None,
    data: Any,
    request: WriteRequest,
    *,
    mode: str,
    schema: pa.Schema | None = None,
) -> StagedWrite:
    """Write the data files of a change and describe it, without committing it."""
    check_mode(mode)
    if request.initial_bases and current is not None:
        raise BasePathError(
            "initial_bases can be passed only when a dataset is created, and a dataset already "
            f"exists at {session.root.uri!r}: register more with add_bases()"
        )
    if mode == "create" and current is not None:
        raise DatasetAlreadyExistsError(
            f"a dataset already exists at {session.root.uri!r}; use mode='append' to add rows, "
            "or mode='overwrite' to replace its rows in a new version"
        )
    if mode == "append" and current is not None:
        addition = write_addition(current, data, request, schema)
        return combine(current, [addition])
    replacement = write_replacement(session, current, data, request=request, schema=schema)
    read_version = 0 if current is None else current.version
    return StagedWrite(
        read_version,
        replacement.operation,
        replacement.num_rows,
        new_fragments=replacement.fragments,
    )


def check_mode(mode: str) -> None:
    """Raise InvalidInputError for a mode that does not exist."""
    if mode not in MODES:
        raise InvalidInputError(f"mode {mode!r} is not one of {', '.join(map(repr, MODES))}")


def write_addition(
    current: Snapshot, data: Any, request: WriteRequest, schema: pa.Schema | None = None
) -> Addition:
    """Write rows for the end of a dataset, in its schema and, if none is named, file version."""
    version = added_version(current.manifest, request.data_storage_version)
    locations = current.locations
    reader = reader_of(data, schema, partial=True)
    options = request.write_options(
        version, request.places(locations), locations, current.manifest.config
    )
    return Addition(
        _written(locations, reader, current.manifest.schema, options=options, request=request)
    )


def write_replacement(
    session: Session, current: Snapshot | None, data: Any, request: WriteRequest,
    schema: pa.Schema | None = None,
) -> Replacement:  # fmt: skip
    """Write rows that become the whole dataset; what is overwritten keeps its file version."""
    reader = reader_of(data, schema)
    locations = session.locations(None, request.initial_bases)
    if current is not None:
        locations = current.locations
    version = request.data_storage_version or version_after(current)
    config = request.config if current is None else current.manifest.config
    options = request.write_options(version, request.places(locations), locations, config)
    lance_schema = new_schema(reader.schema, options.file_version)
    fragments = _written(locations, reader, lance_schema, options=options, request=request)
    is_new = current is None
    operation: Operation = Overwrite(
        lance_schema,
        fragments,
        request.initial_bases if is_new else (),
        request.config if is_new else NO_PROPERTIES,
    )
    return Replacement(operation, fragments)


def _written(
    locations: Locations,
    reader: pa.RecordBatchReader,
    schema: Schema,
    options: WriteOptions,
    request: WriteRequest,
) -> tuple[Fragment, ...]:
    """Write the files; the external blobs that they refer to may be read by this process."""
    fragments = write_fragments(
        reader, schema, locations.home, options=options, progress=request.progress
    )
    if options.file.accepted_uris:
        remember_blobs(locations.root.uri, options.file.accepted_uris)
    return tuple(fragments)


def version_after(current: Snapshot | None) -> str:
    """Return the file version of an overwrite that names none: as it was, if that is written."""
    version = DEFAULT_FILE_VERSION if current is None else storage_version(current.manifest)
    is_written = version in map(version_name, WRITABLE_VERSIONS)
    return version if is_written else DEFAULT_FILE_VERSION
