"""File versions by name, and which of them are written.

===================  =======  ==========================================
``2.0``, ``0.3``     (2, 0)
``2.1``              (2, 1)
``2.2``, ``stable``  (2, 2)   the default
``legacy``, ``0.1``           read only
``2.3``, ``next``             not known to this release
===================  =======  ==========================================

Source: ``data_storage_version`` of pylance 14.0.2.
"""

from __future__ import annotations

from lance_nb.errors import InvalidInputError, NotSupportedError

DEFAULT_VERSION = (2, 2)
WRITABLE_VERSIONS = ((2, 0), (2, 1), (2, 2))

LEGACY_VERSION = "0.1"

_NAMES = {
    "2.0": "2.0",
    "0.3": "2.0",
    "2.1": "2.1",
    "2.2": "2.2",
    "stable": "2.2",
    "legacy": LEGACY_VERSION,
    LEGACY_VERSION: LEGACY_VERSION,
    "2.3": "2.3",
    "next": "2.3",
}
KNOWN_VERSIONS = frozenset(_NAMES.values())


def version_named(name: str) -> str:
    """Return the version that a name stands for: "2.2" for "stable". Raises InvalidInputError."""
    if name not in _NAMES:
        raise InvalidInputError(
            f"data_storage_version {name!r} is not one of {', '.join(map(repr, _NAMES))}"
        )
    return _NAMES[name]


def file_version_of(name: str | None) -> tuple[int, int]:
    """Return the version to write. Raises NotSupportedError, InvalidInputError for other names."""
    if name is None:
        return DEFAULT_VERSION
    version = version_named(name)
    for writable in WRITABLE_VERSIONS:
        if version_name(writable) == version:
            return writable
    raise NotSupportedError(
        f"data files of version {version} cannot be written; use 2.0, 2.1 or 2.2. To upgrade an "
        "old dataset, overwrite it: write_dataset(ds, ds.uri, mode='overwrite')"
    )


def version_name(file_version: tuple[int, int]) -> str:
    """Return the name, "2.2" for example."""
    return f"{file_version[0]}.{file_version[1]}"


def recorded_version(file_version: tuple[int, int]) -> str:
    """Return the name of what a manifest records: (0, 3) is 2.0 too, below are the files of 0.1."""
    if file_version == (0, 3):
        return "2.0"
    return LEGACY_VERSION if file_version < (0, 3) else version_name(file_version)


def stable_version() -> str:
    """Return the file version that ``data_storage_version="stable"`` stands for.

    Examples:
        >>> lance_nb.stable_version()
        '2.2'
    """
    return _NAMES["stable"]
