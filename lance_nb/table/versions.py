"""The versions of a dataset or branch, and loading the manifest of one.

Version numbers come from the names in ``_versions`` alone: no manifest is read to list them. The
hint file is not needed and not trusted: the listing of the folder decides.

Source: spec page "table format" (manifest naming); format/layout has the names.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from lance_nb.errors import (
    CorruptFileError,
    DatasetNotFoundError,
    ObjectNotFoundError,
    VersionNotFoundError,
)
from lance_nb.format.feature_flags import check_readable
from lance_nb.format.layout import (
    VERSIONS,
    ManifestName,
    NamingScheme,
    latest_version,
    list_numbers,
    manifest_path,
)
from lance_nb.format.manifest import (
    TAIL_BYTES,
    Manifest,
    Section,
    parse_manifest,
    parse_manifest_tail,
)
from lance_nb.storage.base import ByteRange, Store, read_marked_tail
from lance_nb.table.file_cache import cache_manifest, cached_manifest

_SHOWN_AT_EACH_END = 3
_CLOCKS_DIFFER = timedelta(minutes=5)
_LENGTH_BYTES = 4  # before a section: its size, little-endian


def version_names(home: Store) -> list[ManifestName]:
    """List the versions of a branch's folder, oldest first. Raises DatasetNotFoundError."""
    numbers, scheme = version_numbers(home, home.list_names(VERSIONS))
    return [ManifestName(number, scheme) for number in numbers]


def version_numbers(home: Store, listed: Iterable[str]) -> tuple[list[int], NamingScheme]:
    """Read the versions of a branch, oldest first, and how they are named, from a listing.

    Raises DatasetNotFoundError.
    """
    numbers, scheme = list_numbers(listed, f"{home.uri}/{VERSIONS}")
    if not numbers:
        raise DatasetNotFoundError(home.uri, _why_missing(home))
    return numbers, scheme


def find_latest(home: Store) -> ManifestName:
    """Find the newest version. Raises DatasetNotFoundError."""
    latest = latest_version(home.list_names(VERSIONS), f"{home.uri}/{VERSIONS}")
    if latest is None:
        raise DatasetNotFoundError(home.uri, _why_missing(home))
    return latest


def load_latest(home: Store) -> Manifest:
    """Load the manifest of the newest version.

    Raises DatasetNotFoundError; a CorruptFileError has a note that names the version before.
    """
    latest = find_latest(home)
    try:
        return load_manifest(home, latest)
    except CorruptFileError as exc:
        older = [name.version for name in version_names(home) if name.version < latest.version]
        if older:
            exc.add_note(
                f"Version {latest.version} is the newest and cannot be read. Open the dataset "
                f"with version={older[-1]}, which may be whole, or restore the last good version: "
                "%lance doctor URI --repair in a notebook, lance-nb doctor URI --repair in a "
                "terminal, lance_nb.plan_repair(URI) in Python."
            )
        raise


def load_version(home: Store, version: int) -> Manifest:
    """Load the manifest of a version. Raises VersionNotFoundError."""
    try:
        return load_manifest(home, ManifestName(version, NamingScheme.V2))
    except ObjectNotFoundError:
        manifest_name = next(
            (name for name in version_names(home) if name.version == version), None
        )
        if manifest_name is None:
            shown = describe_versions(version_names(home))
            raise VersionNotFoundError(home.uri, version, shown) from None
        return load_manifest(home, manifest_name)


def load_manifest(home: Store, name: ManifestName) -> Manifest:
    """Read one manifest and check that we may read what it describes.

    Raises CorruptFileError, NotSupportedError (an unknown reader flag).
    """
    path = manifest_path(name.version, name.scheme)
    tail, size, e_tag = read_marked_tail(home, path, TAIL_BYTES)
    where = f"{home.uri}/{path}"
    manifest = cached_manifest(where, tail, size)
    if manifest is not None:
        if e_tag is not None:
            cache_manifest(where, tail, size, manifest=manifest, e_tag=e_tag)
        return _checked(manifest, name.version)
    parsed = parse_manifest_tail(tail, size, where)
    for _ in range(2):  # the message may ask for what stands before it
        if isinstance(parsed, int):
            tail, size, e_tag = read_marked_tail(home, path, parsed)
            parsed = parse_manifest_tail(tail, size, where)
    if isinstance(parsed, int):
        raise CorruptFileError(where, None, f"{parsed} bytes", f"{size} bytes")
    cache_manifest(where, tail, size, manifest=_checked(parsed, name.version), e_tag=e_tag)
    return parsed


def parse_whole(data: bytes | memoryview, where: str, version: int) -> Manifest:
    """Parse a whole manifest file, and check as ``load_manifest`` does."""
    cached = cached_manifest(where, data, len(data), whole=True)
    if cached is not None:
        return _checked(cached, version)
    manifest = _checked(parse_manifest(data, where), version)
    cache_manifest(where, data, len(data), manifest)
    return manifest


def _checked(manifest: Manifest, version: int) -> Manifest:
    """Return the manifest if it is of that version and may be read."""
    if manifest.version != version:
        raise CorruptFileError(
            manifest.path, None, f"version {version}", f"version {manifest.version}"
        )
    check_readable(manifest)
    return manifest


def describe_versions(names: list[ManifestName]) -> str:
    """Say which versions there are, in short: "1-3, 7 ... 40"."""
    runs: list[list[int]] = []
    for name in names:
        if runs and name.version == runs[-1][1] + 1:
            runs[-1][1] = name.version
        else:
            runs.append([name.version, name.version])
    texts = [str(a) if a == b else f"{a}-{b}" for a, b in runs]
    if len(texts) > 2 * _SHOWN_AT_EACH_END:
        texts = [*texts[:_SHOWN_AT_EACH_END], "...", *texts[-_SHOWN_AT_EACH_END:]]
    return ", ".join(texts)


def version_asof(home: Store, moment: datetime) -> ManifestName:
    """Find the newest version committed at or before ``moment`` (aware).

    The history is halved, so that few manifests are read. Clocks of several writers need not agree:
    the versions after the place that halving finds are looked at too, up to one that is later by
    more than ``_CLOCKS_DIFFER``. Raises VersionNotFoundError.
    """
    names = version_names(home)

    def committed(name: ManifestName) -> datetime:
        return load_manifest(home, name).timestamp or datetime.min.replace(tzinfo=UTC)

    position = bisect_right(names, moment, key=committed)
    newest = names[position - 1] if position else None
    for name in names[position:]:
        time = committed(name)
        if time <= moment:
            newest = name
        elif time - moment > _CLOCKS_DIFFER:
            break
    if newest is None:
        oldest = f"{committed(names[0]).astimezone():%Y-%m-%d %H:%M:%S} is the oldest"
        shown = f"{describe_versions(names)}; {oldest}" if names else describe_versions(names)
        raise VersionNotFoundError(home.uri, f"as of {moment.isoformat()}", shown)
    return newest


def _why_missing(home: Store) -> str:
    if home.scheme == "memory":
        return "no manifest is there; what is in memory:// is seen by the process that wrote it"
    return "the folder holds no manifest" if home.list_names("") else "no manifest is there"


def read_section(home: Store, manifest: str, section: Section) -> bytes | memoryview:
    """Return a section of the manifest file at the URI ``manifest``, a file of the store ``home``.

    It is read where it lies before the tail that was read with the manifest.
    """
    if section.data is not None:
        return section.data
    path = manifest.removeprefix(f"{home.uri}/")
    start = section.offset_bytes + _LENGTH_BYTES
    size = home.read_range(path, ByteRange(section.offset_bytes, start))
    return home.read_range(path, ByteRange(start, start + int.from_bytes(size, "little")))
