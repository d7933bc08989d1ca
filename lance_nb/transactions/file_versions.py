"""Which version the data files of a dataset have: asked for, found in new files, or kept.

Limits: all files of a version of a dataset have the same file version, unless a feature flag says
that they are mixed. 2.0 files record 0.3 in their footers and 2.0 in the manifest; both mean 2.0.
Source: ``Manifest.data_format``; pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Iterable

from lance_nb.errors import InvalidInputError
from lance_nb.format.fragment import Fragment
from lance_nb.format.manifest import DataStorageFormat, Manifest
from lance_nb.transactions.operation import DEFAULT_FILE_VERSION

FILE_FORMAT = "lance"


def storage_format(
    fragments: Iterable[Fragment], wanted: str | None, before: Manifest
) -> DataStorageFormat:
    """Return the format to record. Raises InvalidInputError for files of other versions."""
    found = {version_text(one.file_version) for part in fragments for one in part.files}
    if len(found) > 1 or (wanted is not None and found - {wanted}):
        versions = ", ".join(sorted(found))
        expected = "of one version" if wanted is None else f"of version {wanted}"
        raise InvalidInputError(f"the new data files are to be {expected}, and are {versions}")
    if found or wanted is not None:
        return DataStorageFormat(FILE_FORMAT, wanted or found.pop())
    return before.data_format or DataStorageFormat(FILE_FORMAT, DEFAULT_FILE_VERSION)


def version_text(file_version: tuple[int, int]) -> str:
    """Return "2.2" for (2, 2)."""
    if file_version == (0, 3):
        return "2.0"
    if file_version < (0, 3):
        return "0.1"
    return f"{file_version[0]}.{file_version[1]}"
