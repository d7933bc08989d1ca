"""Read the manifests of many versions, each at the cost of what changed since the one read before.

Versions share most of their fragments, byte for byte. What a version has in common with the one
read before (``TotalsMemo``) is compared, but neither parsed nor counted again, so a history of
10,000 versions costs little more than reading its bytes.

``parse_summary_tail`` returns what a list of versions shows; it decodes no schema and no fragment.
``ManifestFiles`` returns the files that each version refers to: data files, deletion files,
overlays, external row ids of old protos (``Manifest.fragments``), ``Manifest.transaction_file``,
and the uuids of ``IndexSection``.

Limits: holds the fragments of one version at a time. Paths are as written, unchecked: never open or
delete a file because of its name here alone.
Source: messages of lance.table; the keys of ``FragmentTotals.to_metadata`` are those of pylance's
``versions()``.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np

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
from lance_nb.format.serialized_fragments import (
    BYTES,
    DELETED,
    DELETIONS,
    FILES,
    NUM_COLUMNS,
    ROWS,
    Ints,
    count_fragment,
    count_fragments,
    decode_varints,
    field_entry,
)
from lance_nb.format.wire import parse, unknown_bytes

DATA, DELETION, INDEX, TRANSACTION = "data", "deletion", "index", "transaction"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SUM_MAX = 2**62  # far above any dataset; a floating-point sum is exact enough to tell
_SCHEMA_TAG, _FRAGMENT_TAG = 0x0A, 0x12  # fields 1 and 2 of Manifest, length-delimited
_SCHEMA_FIELDS_MAX = 10_000
_FEW_FRAGMENTS = 16  # up to so many, a loop is quicker than numpy
# After the columns of ``count_fragments``: fragments whose row counts, or sizes, are not recorded.
_UNCOUNTED, _UNSIZED, _NUM_SUMS = NUM_COLUMNS, NUM_COLUMNS + 1, NUM_COLUMNS + 2
_PADDING = bytes(16)  # reading one varint past the end stays inside the buffer
_SEQUENCES = (
    "row_id_sequence",
    "last_updated_at_version_sequence",
    "created_at_version_sequence",
)
_SMALL_BYTES = 16 * 1024  # comparing what smaller messages share costs more than parsing them


# --- totals of each version -----------------------------------------------------------------------


class FragmentTotals(NamedTuple):
    """Sums over the fragments of one version (a tuple: lists of versions create thousands)."""

    num_fragments: int
    num_data_files: int
    num_deletion_files: int
    physical_rows: int
    num_deleted_rows: int
    size_bytes: int
    # Whether all row counts are recorded and reliable; releases of 2023 omitted some.
    has_row_counts: bool = True
    # Whether each fragment with files has one whose size is recorded.
    has_sizes: bool = True

    @property
    def num_rows(self) -> int:
        """Live rows as the manifest counts them; releases up to 0.8.0 could count too few."""
        return max(self.physical_rows - self.num_deleted_rows, 0)

    def to_metadata(self) -> dict[str, str]:
        """Return the ``metadata`` of an entry of ``versions()``."""
        return {
            "total_data_file_rows": str(self.physical_rows),
            "total_data_files": str(self.num_data_files),
            "total_deletion_file_rows": str(self.num_deleted_rows),
            "total_deletion_files": str(self.num_deletion_files),
            "total_files_size": str(self.size_bytes),
            "total_fragments": str(self.num_fragments),
            "total_rows": str(self.num_rows),
        }


class ManifestSummary(NamedTuple):
    """The parts of a manifest that a list of versions shows."""

    version: int
    timestamp_ns: int | None
    branch: str | None
    transaction_file: str
    transaction: Section | None
    totals: FragmentTotals
    size_bytes: int
    path: str

    @property
    def timestamp(self) -> datetime | None:
        """Commit time as an aware UTC datetime."""
        if self.timestamp_ns is None:
            return None
        return _EPOCH + timedelta(microseconds=self.timestamp_ns // 1000)


def parse_summary_tail(
    tail: bytes | memoryview, file_size: int, path: str, memo: TotalsMemo | None = None
) -> ManifestSummary | int:
    """Parse from the end of a file; returns the bytes needed if ``tail`` is too short.

    What ``memo`` holds is neither parsed nor counted again. Raises CorruptFileError.
    """
    view = memoryview(tail)
    position = message_position(view, file_size, path)
    if file_size - position > len(view):
        return file_size - position
    raw = message_bytes(view, file_size, position, path)
    memo = TotalsMemo() if memo is None else memo
    shared = memo.shared(raw)
    message = parse(pb.Manifest, raw[shared[1] :], path, position)
    _, transaction_at = section_offsets(message)
    return ManifestSummary(
        version=message.version,
        timestamp_ns=timestamp_ns_of(message, path),
        branch=message.branch if message.HasField("branch") else None,
        transaction_file=message.transaction_file,
        transaction=read_section(view, file_size, transaction_at, limit=position, path=path),
        totals=_totals(raw, shared, message, memo=memo, path=path),
        size_bytes=file_size,
        path=path,
    )


def _totals(
    raw: memoryview, shared: tuple[int, int], message: pb.Manifest, memo: TotalsMemo, path: str
) -> FragmentTotals:
    """Return the totals of all fragments, counting only those that the memo does not hold.

    If no writer is recorded, the numbers of deleted rows may be wrong and are not checked.
    """
    before = memo.sums(shared[0])
    added = list(message.fragments)
    limit = 0 if message.HasField("writer_version") else _SUM_MAX
    sums: Ints | list[list[int]]
    if len(added) <= _FEW_FRAGMENTS:
        sums = _running_sums_of_few(
            before, [count_fragment(fragment, path) for fragment in added], limit, path
        )
    else:
        sums = _running_sums(before, count_fragments(added, path).T, limit, path)
    memo.keep(raw, shared, added, sums)
    last = list(map(int, sums[-1])) if added else before
    return FragmentTotals(
        num_fragments=shared[0] + len(added),
        num_data_files=last[FILES],
        num_deletion_files=last[DELETIONS],
        physical_rows=last[ROWS],
        num_deleted_rows=last[DELETED],
        size_bytes=last[BYTES],
        has_row_counts=not last[_UNCOUNTED]
        and (message.HasField("writer_version") or not shared[0] + len(added)),
        has_sizes=not last[_UNSIZED],
    )


def _running_sums(before: list[int], counts: Ints, limit: int, path: str) -> Ints:
    """Return the sums up to each fragment. Raises CorruptFileError for impossible numbers.

    ``limit``: by how many a fragment's deleted rows may exceed its rows.
    """
    rows, deleted = counts[:, ROWS], counts[:, DELETED]
    too_many = (deleted - rows > limit) & (rows > 0)
    if too_many.any():
        position = int(np.argmax(too_many))
        raise _too_many_deleted(path, rows[position], deleted[position])
    uncounted = (rows == 0) | (counts[:, DELETIONS] > deleted)
    unsized = (counts[:, BYTES] == 0) & (counts[:, FILES] > 0)
    counts = np.column_stack((counts, uncounted, unsized))
    largest = float((counts.sum(axis=0, dtype=np.float64) + before).max(initial=0))
    if largest >= _SUM_MAX:
        raise _too_large(path, largest)
    sums: Ints = np.cumsum(counts, axis=0) + np.array(before, np.int64)
    return sums


def _running_sums_of_few(
    before: list[int], counts: list[list[int]], limit: int, path: str
) -> list[list[int]]:
    sums = [before]
    for row in counts:
        if row[DELETED] - row[ROWS] > limit and row[ROWS]:
            raise _too_many_deleted(path, row[ROWS], row[DELETED])
        uncounted = not row[ROWS] or row[DELETIONS] > row[DELETED]
        counted = [*row, int(uncounted), int(not row[BYTES] and row[FILES] > 0)]
        sums.append([total + number for total, number in zip(sums[-1], counted, strict=True)])
    if max(sums[-1]) >= _SUM_MAX:
        raise _too_large(path, max(sums[-1]))
    return sums[1:]


def _too_many_deleted(path: str, rows: int, deleted: int) -> CorruptFileError:
    expected = f"at most {rows} deleted rows in a fragment"
    return CorruptFileError(path, None, expected, f"{deleted} deleted rows")


def _too_large(path: str, total: float) -> CorruptFileError:
    return CorruptFileError(path, None, "sums below 2**62", f"{total:.6g}")


# --- files of each version ------------------------------------------------------------------------


class NamedFile(NamedTuple):
    """A file (of an index: its folder) that a manifest refers to.

    ``path`` is below the root of ``base_id``, else of the branch. ``size_bytes`` 0: not recorded.
    """

    kind: str
    path: str
    base_id: int | None = None
    size_bytes: int = 0

    @property
    def identity(self) -> str:
        """An id that does not depend on the folder: names hold random ids and are unique."""
        return identity_of(self.kind, self.path.rpartition("/")[2])


def identity_of(kind: str, name: str) -> str:
    """Return the identity of the file (the folder, of an index) with that name."""
    return f"{kind}:{name.removesuffix('.lance')}"


Files = tuple[NamedFile, ...]


class VersionFiles(NamedTuple):
    """One version: the files that ``appeared`` and ``vanished`` since the one read before.

    A file whose number of references changed is listed once for each. ``size_bytes`` is that of the
    manifest. ``has_unknown``: the manifest has fields of a newer writer.
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
    """Reads the manifests of one branch in any order; consecutive versions cost least."""

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
        shared = (0, 0) if memo is None else memo.shared(raw)
        message = parse(pb.Manifest, raw[shared[1] :], path, position)
        if message.version != version:
            version_text = f"version {message.version}"
            raise CorruptFileError(path, None, f"version {version}", version_text)
        flags = _Flags(message.reader_feature_flags, message.writer_feature_flags, path)
        check_readable(flags)
        index_at, _ = section_offsets(message)
        section = read_section(view, len(view), index_at, limit=position, path=path)
        # Everything that may raise comes before the step, so that the state stays consistent.
        timestamp_ns = timestamp_ns_of(message, path)
        base_paths = tuple(BasePath.from_pb(base) for base in message.base_paths)
        added = list(message.fragments)
        appeared, vanished = self._step(shared[0], added, message, section=section, path=path)
        self._memo = memo
        if memo is not None:
            memo.keep(raw, shared, added)
        return VersionFiles(
            version=version,
            timestamp_ns=timestamp_ns,
            size_bytes=len(view),
            num_fragments=len(self._fragments),
            appeared=appeared,
            vanished=vanished,
            base_paths=base_paths,
            reader_feature_flags=flags.reader_feature_flags,
            writer_feature_flags=flags.writer_feature_flags,
            has_unknown=bool(unknown_bytes(message)),
            path=path,
        )

    def _step(
        self,
        num_kept: int,
        added: list[bytes],
        message: pb.Manifest,
        section: Section | None,
        path: str,
    ) -> tuple[Files, Files]:
        """Advance to a version of the first ``num_kept`` fragments and ``added``: the changes.

        The changes are the files that appeared, and those that vanished.
        """
        before = self._fragments[num_kept:]
        files_by_fragment = dict(zip(before, self._names[num_kept:], strict=True))
        after = set(added)
        is_repeated = len(files_by_fragment) < len(before) or len(after) < len(added)
        vanished = [
            file
            for fragment, files in files_by_fragment.items()
            if fragment not in after
            for file in files
        ]
        appeared: list[NamedFile] = []
        names = []
        for fragment in added:
            files = files_by_fragment.get(fragment)
            if files is None:
                files = files_by_fragment[fragment] = files_of(fragment, path)
                appeared += files
            names.append(files)
        if is_repeated:
            # Only damaged manifests have a fragment more than once: count each.
            was, now = Counter(before), Counter(added)
            vanished = [
                file for fragment in (was - now).elements() for file in files_by_fragment[fragment]
            ]
            appeared = [
                file for fragment in (now - was).elements() for file in files_by_fragment[fragment]
            ]
        data = None if section is None else section.data
        if data != self._section:
            indices = tuple(_indices(data or b"", path))
            vanished += self._indices
            appeared += indices
            self._section, self._indices = data, indices
        vanished += self._transaction
        self._transaction = _transaction(message.transaction_file)
        appeared += self._transaction
        self._fragments[num_kept:], self._names[num_kept:] = added, names
        if set(appeared).isdisjoint(vanished):
            return tuple(appeared), tuple(vanished)
        more, less = Counter(appeared), Counter(vanished)
        return tuple((more - less).elements()), tuple((less - more).elements())


def files_of(fragment: bytes, path: str) -> Files:
    """Return the files that a serialized fragment refers to. Raises CorruptFileError."""
    message = parse(pb.DataFragment, fragment, path)
    files = [_data_file(file) for file in message.files]
    if message.HasField("deletion_file"):
        files.append(_deletion(message.id, message.deletion_file))
    if message.overlays:
        files += [_data_file(overlay.data_file) for overlay in message.overlays]
    for oneof in _SEQUENCES:
        arm = message.WhichOneof(oneof)
        if arm is not None and arm.startswith("external"):
            files.append(NamedFile(DATA, f"{layout.DATA}/{getattr(message, arm).path}"))
    return tuple(files)


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
    for index in parse(pb.IndexSection, section, path).indices:
        if len(index.uuid.uuid) != 16:
            size = f"{len(index.uuid.uuid)} bytes"
            raise CorruptFileError(path, None, "an index id of 16 bytes", size)
        yield NamedFile(
            INDEX,
            f"{layout.INDICES}/{uuid.UUID(bytes=index.uuid.uuid)}",
            index.base_id if index.HasField("base_id") else None,
            sum(file.size_bytes for file in index.files),
        )


# --- bytes that versions share --------------------------------------------------------------------


class TotalsMemo:
    """The counts and positions of the fragments of the version read last.

    A message begins with its schema and its fragments; those bytes are what versions share.
    """

    def __init__(self) -> None:
        self._run = b""
        self._count = 0
        # Of the first ``_count`` fragments: where each ends, and the sums up to it.
        self._ends: Ints = np.zeros(0, np.int64)
        self._sums: Ints = np.zeros((0, _NUM_SUMS), np.int64)

    def shared(self, raw: memoryview) -> tuple[int, int]:
        """Return how many of the first fragments are known and the bytes that end with them.

        These bytes hold nothing but schema and fragments.
        """
        count = self._count
        start = bytes(raw[: len(self._run)])
        if start != self._run:  # compares faster than numpy, but gives no position
            size = len(start)
            same = np.frombuffer(start, np.uint8) == np.frombuffer(self._run, np.uint8, size)
            differs_at = size if same.all() else int(same.argmin())
            count = int(np.searchsorted(self._ends[:count], differs_at, side="right"))
        return count, int(self._ends[count - 1]) if count else 0

    def sums(self, count: int) -> list[int]:
        """Return the sums over the first fragments."""
        return self._sums[count - 1].tolist() if count else [0] * _NUM_SUMS

    def keep(
        self, raw: memoryview, shared: tuple[int, int], added: Sequence[bytes], sums: Any = 0
    ) -> None:
        """Remember the fragments of a message, ``added`` after ``shared``; ``sums`` are cumulative.

        ``sums`` may be omitted if only fragments are compared.
        """
        count, start = shared
        ends = _ends_in(raw, start or _schema_end(raw), added)
        if ends is None:  # an unusual layout: nothing is shared
            self._run, self._count = b"", 0
            return
        self._count = count + len(added)
        if self._count > len(self._ends):
            room = self._count + count // 2
            self._ends = np.concatenate((self._ends[:count], np.zeros(room - count, np.int64)))
            more = np.zeros((room - count, _NUM_SUMS), np.int64)
            self._sums = np.concatenate((self._sums[:count], more))
        if added:
            self._ends[count : self._count] = ends
            self._sums[count : self._count] = sums
        self._run = bytes(raw[: int(self._ends[self._count - 1])]) if self._count else b""


def _ends_in(
    raw: memoryview, start: int | None, fragments: Sequence[bytes]
) -> Ints | list[int] | None:
    """Return where these fragments end, None unless they are consecutive from ``start`` on."""
    if start is None:
        return None
    if len(fragments) <= _FEW_FRAGMENTS:
        return _ends_of_few(raw, start, fragments)
    lengths = np.fromiter(map(len, fragments), np.int64, len(fragments))
    prefixes = 2 + sum((lengths >= 1 << bits).astype(np.int64) for bits in (7, 14, 21, 28))
    ends: Ints = start + np.cumsum(prefixes + lengths)
    if int(ends[-1]) > len(raw):
        return None
    data = np.frombuffer(bytes(raw[start : int(ends[-1])]) + _PADDING, np.uint8)
    tags = np.append(start, ends[:-1]) - start
    declared, content_at = decode_varints(data, tags + 1)
    fits = (
        (data[tags] == _FRAGMENT_TAG)
        & (declared == lengths)
        & (content_at + start + lengths == ends)
    )
    return ends if fits.all() else None


def _ends_of_few(raw: memoryview, start: int, fragments: Sequence[bytes]) -> list[int] | None:
    ends = []
    for fragment in fragments:
        wire = field_entry(fragment)
        if raw[start : start + len(wire)] != wire:
            return None
        start += len(wire)
        ends.append(start)
    return ends


def _schema_end(raw: memoryview) -> int | None:
    """Return where the fields of the schema end, which come first; None if there are too many."""
    position = 0
    for _ in range(_SCHEMA_FIELDS_MAX):
        if position >= len(raw) or raw[position] != _SCHEMA_TAG:
            return position
        length = shift = 0
        position += 1
        while raw[position] & 0x80:
            length |= (raw[position] & 0x7F) << shift
            shift += 7
            position += 1
        position += 1 + (length | raw[position] << shift)
    return None
