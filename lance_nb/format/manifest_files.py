"""Which files a manifest names, read one version after the other for the price of what changed.

Versions share most of their fragments, byte for byte. What a version has in common with the one
read before is compared and neither parsed nor looked at again, so a history of 10,000 versions
costs little more than reading its bytes.

Layout: ``Manifest.fragments`` (data files, deletion file, overlays, external row ids of old
protos), ``Manifest.transaction_file``, and the uuids of ``IndexSection``.

Limits: holds the fragments of one version at a time. Paths are as written, unchecked: nobody may
open or delete a file because of its name here alone.
Source: messages of lance.table.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from lance_nb._pb import table as pb
from lance_nb.errors import CorruptFileError
from lance_nb.format import layout
from lance_nb.format.feature_flags import check_readable
from lance_nb.format.manifest import (
    BasePath,
    Section,
    message_bytes,
    message_position,
    read_section,
    section_offsets,
    timestamp_ns_of,
)
from lance_nb.format.manifest_summary import TotalsMemo
from lance_nb.format.wire import parse, unknown_bytes

DATA, DELETION, INDEX, TRANSACTION = "data", "deletion", "index", "transaction"
_SEQUENCES = (
    "row_id_sequence",
    "last_updated_at_version_sequence",
    "created_at_version_sequence",
)
_SMALL_BYTES = 16 * 1024  # comparing what smaller messages share costs more than parsing them


class NamedFile(NamedTuple):
    """A file (of an index: its folder) that a manifest names.

    ``path`` is below the root of ``base_id``, else of the branch. ``size_bytes`` 0: not recorded.
    """

    kind: str
    path: str
    base_id: int | None = None
    size_bytes: int = 0

    @property
    def identity(self) -> str:
        """What the file is known by wherever it lies: names hold random ids and occur once."""
        return identity_of(self.kind, self.path.rpartition("/")[2])


def identity_of(kind: str, name: str) -> str:
    """Return the identity of the file (the folder, of an index) with that name."""
    return f"{kind}:{name.removesuffix('.lance')}"


Files = tuple[NamedFile, ...]


class VersionFiles(NamedTuple):
    """One version: what it names that the one read before did not, and the other way round.

    A file that is named once more, or once less, than before is in there as often. ``size_bytes``
    is that of the manifest. ``has_unknown``: fields of a newer writer are in it.
    """

    version: int
    timestamp_ns: int | None
    size_bytes: int
    num_fragments: int
    appeared: tuple[NamedFile, ...]
    vanished: tuple[NamedFile, ...]
    base_paths: tuple[BasePath, ...]
    reader_feature_flags: int
    writer_feature_flags: int
    has_unknown: bool
    path: str


class _Flags(NamedTuple):
    reader_feature_flags: int
    writer_feature_flags: int
    path: str
    writer_version: object | None = None


class ManifestFiles:
    """Reads the manifests of one branch in any order; near ones after each other cost least."""

    def __init__(self) -> None:
        self._memo: TotalsMemo | None = None
        self._fragments: list[bytes] = []
        self._names: list[Files] = []
        self._transaction: Files = ()
        self._indices: Files = ()
        self._section: bytes | None = None

    def read(self, data: bytes | memoryview, path: str, version: int) -> VersionFiles:
        """Read a whole manifest file. Raises CorruptFileError, NotSupportedError."""
        view = memoryview(data)
        position = message_position(view, len(view), path)
        raw = message_bytes(view, len(view), position, path)
        memo = None if len(raw) < _SMALL_BYTES else self._memo or TotalsMemo()
        known = (0, 0) if memo is None else memo.shared(raw)
        message = parse(pb.Manifest, raw[known[1] :], path, position)
        if message.version != version:
            found = f"version {message.version}"
            raise CorruptFileError(path, None, f"version {version}", found)
        flags = _Flags(message.reader_feature_flags, message.writer_feature_flags, path)
        check_readable(flags)
        index_at, _ = section_offsets(message)
        section = read_section(view, len(view), index_at, position, path)
        # Whatever may raise comes before the step: a version is taken in whole, or not at all.
        timestamp_ns = timestamp_ns_of(message, path)
        base_paths = tuple(BasePath.from_pb(one) for one in message.base_paths)
        added = list(message.fragments)
        appeared, vanished = self._step(known[0], added, message, section, path)
        self._memo = memo
        if memo is not None:
            memo.keep(raw, known, added)
        return VersionFiles(
            version,
            timestamp_ns,
            len(view),
            len(self._fragments),
            appeared,
            vanished,
            base_paths,
            flags.reader_feature_flags,
            flags.writer_feature_flags,
            bool(unknown_bytes(message)),
            path,
        )

    def _step(
        self,
        kept: int,
        added: list[bytes],
        message: pb.Manifest,
        section: Section | None,
        path: str,
    ) -> tuple[Files, Files]:
        """Go on to a version of the first ``kept`` fragments and ``added``; return the changes."""
        before = self._fragments[kept:]
        known = dict(zip(before, self._names[kept:], strict=True))
        after = set(added)
        is_repeated = len(known) < len(before) or len(after) < len(added)
        gone = [file for one, files in known.items() if one not in after for file in files]
        come: list[NamedFile] = []
        names = []
        for one in added:
            files = known.get(one)
            if files is None:
                files = known[one] = files_of(one, path)
                come += files
            names.append(files)
        if is_repeated:
            # The same fragment more than once, as only damaged manifests have it: count each.
            was, now = Counter(before), Counter(added)
            gone = [file for one in (was - now).elements() for file in known[one]]
            come = [file for one in (now - was).elements() for file in known[one]]
        data = None if section is None else section.data
        if data != self._section:
            indices = tuple(_indices(data or b"", path))
            gone += self._indices
            come += indices
            self._section, self._indices = data, indices
        gone += self._transaction
        self._transaction = _transaction(message.transaction_file)
        come += self._transaction
        self._fragments[kept:], self._names[kept:] = added, names
        if set(come).isdisjoint(gone):
            return tuple(come), tuple(gone)
        more, less = Counter(come), Counter(gone)
        return tuple((more - less).elements()), tuple((less - more).elements())


def files_of(fragment: bytes, path: str) -> Files:
    """Return the files that a serialized fragment names. Raises CorruptFileError."""
    message = parse(pb.DataFragment, fragment, path)
    found = [_data_file(file) for file in message.files]
    if message.HasField("deletion_file"):
        found.append(_deletion(message.id, message.deletion_file))
    if message.overlays:
        found += [_data_file(overlay.data_file) for overlay in message.overlays]
    for oneof in _SEQUENCES:
        arm = message.WhichOneof(oneof)
        if arm is not None and arm.startswith("external"):
            found.append(NamedFile(DATA, f"{layout.DATA}/{getattr(message, arm).path}"))
    return tuple(found)


def _data_file(file: pb.DataFile) -> NamedFile:
    base_id = file.base_id if file.HasField("base_id") else None
    return NamedFile(DATA, f"{layout.DATA}/{file.path}", base_id, file.file_size_bytes)


def _transaction(name: str) -> Files:
    return (NamedFile(TRANSACTION, f"{layout.TRANSACTIONS}/{name}"),) if name else ()


def _deletion(fragment_id: int, file: pb.DeletionFile) -> NamedFile:
    suffix = "bin" if file.file_type == pb.DeletionFile.BITMAP else "arrow"
    path = layout.deletion_path(fragment_id, file.read_version, file.id, suffix)
    return NamedFile(DELETION, path, file.base_id if file.HasField("base_id") else None)


def _indices(section: bytes, path: str) -> Iterator[NamedFile]:
    for one in parse(pb.IndexSection, section, path).indices:
        if len(one.uuid.uuid) != 16:
            found = f"{len(one.uuid.uuid)} bytes"
            raise CorruptFileError(path, None, "an index id of 16 bytes", found)
        yield NamedFile(
            INDEX,
            f"{layout.INDICES}/{uuid.UUID(bytes=one.uuid.uuid)}",
            one.base_id if one.HasField("base_id") else None,
            sum(file.size_bytes for file in one.files),
        )
