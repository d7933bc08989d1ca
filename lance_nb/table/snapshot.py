"""A snapshot: one version of a dataset with everything that is needed to read it.

Immutable; every reader receives one. Versions of the same handle share the caches of data and
deletion files, which never change.

The file version that a dataset writes (``storage_version``) is recorded in its manifest. Manifests
of 2023 and early 2024 do not record it: then the data files decide, and in a dataset without files
the feature flag of the second format. The files decide too where a manifest says 0.1 and the files
are newer: the next version that is written records theirs.

Source: message DataStorageFormat of lance.table; behaviour of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import field
from typing import Any

from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.file.versions import LEGACY_VERSION, recorded_version, version_named
from lance_nb.format.feature_flags import V2_FORMAT
from lance_nb.format.layout import transaction_path
from lance_nb.format.manifest import Manifest
from lance_nb.table.file_cache import DeletionCache, FileCache
from lance_nb.table.locations import Locations
from lance_nb.table.versions import read_section
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One version: its manifest, where its files are, and the files that are open."""

    manifest: Manifest
    locations: Locations
    branch: str | None = None
    files: FileCache = field(default_factory=FileCache)
    deletions: DeletionCache = field(default_factory=DeletionCache)
    # Columns asked for -> what scans of them read; see table.projection.
    projections: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)

    # By the identity of columns: how fragments hold them; see table.fragment_reader.
    plans: dict[int, Any] = field(default_factory=dict, compare=False, repr=False)

    # The live rows of every fragment, as far as they are known; see table.scan_tasks.
    live_rows: list[Any] = field(default_factory=list, compare=False, repr=False)

    # The number of live rows up to the end of every fragment; see table.scan_tasks.
    row_ends: list[Any] = field(default_factory=list, compare=False, repr=False)

    # The indices of each purpose, once a scan has asked for them; see lance_nb.indices.
    searches: list[Any] = field(default_factory=list, compare=False, repr=False)

    def __copy__(self) -> Snapshot:
        return self

    def __deepcopy__(self, memo: object) -> Snapshot:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        raise NotSupportedError(
            "the content of an opened version is not pickled: pickle the dataset (or a fragment or "
            "scanner of it), which is opened again where it is used"
        )

    @property
    def version(self) -> int:
        """The version number."""
        return self.manifest.version


def read_transaction(snapshot: Snapshot) -> bytes | memoryview | None:
    """Return the serialized transaction that made a version, None if it recorded none.

    Raises ObjectNotFoundError when its file is gone.
    """
    manifest, home = snapshot.manifest, snapshot.locations.home
    section = manifest.transaction_section
    if section is not None:
        return read_section(home, manifest.path, section)
    if not manifest.transaction_file:
        return None
    return home.read(transaction_path(manifest.transaction_file, manifest.path))


_STABLE = "2.2"


def added_version(manifest: Manifest, name: str | None = None) -> str:
    """Return the file version of files that are added to a dataset: that of the name, or its own.

    Files of 2.0 to 2.2 can stand side by side; 0.1 stands alone. Raises InvalidInputError.
    """
    own = storage_version(manifest)
    version = own if name is None else version_named(name)
    if (version == LEGACY_VERSION) != (own == LEGACY_VERSION):
        raise InvalidInputError(
            f"the dataset has files of version {own}: files of version {name} cannot be added to "
            "it. Leave data_storage_version out, or overwrite the dataset"
        )
    return version


def storage_version(manifest: Manifest) -> str:
    """Return the file version of newly written data, for example "2.2"."""
    version = None if manifest.data_format is None else manifest.data_format.version
    if version is not None and version != LEGACY_VERSION:
        return version
    for fragment in manifest.fragments:
        for file in fragment.files:
            return recorded_version(file.file_version)
    return version or (_STABLE if manifest.writer_feature_flags & V2_FORMAT else LEGACY_VERSION)
