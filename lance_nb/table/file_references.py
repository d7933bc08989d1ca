"""Which versions refer to which files, as spans of versions.

A file is added once and removed once, so its spans are few however long the history is. Which files
must be kept when some versions are deleted, which are exclusive to one of them, which a branch
needs: all are computed from the spans, for all files at once.

Layout: per span an identity (format/manifest_history.py), a line of history, and the half-open
range of positions in that line's versions, in the order in which they were read.

Limits: memory grows with files, not with versions times files. A manifest that another cleanup
removes meanwhile is left out.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from lance_nb.errors import CorruptFileError, LanceError, NotSupportedError, ObjectNotFoundError
from lance_nb.format.feature_flags import MANAGED_BLOBS
from lance_nb.format.layout import VERSIONS, ManifestName
from lance_nb.format.manifest import TAIL_BYTES
from lance_nb.format.manifest_history import ManifestFiles, NamedFile, VersionFiles
from lance_nb.format.wire import FILE_BYTES_MAX
from lance_nb.storage.base import Store
from lance_nb.storage.threads import THREADS_MAX, run_side_by_side
from lance_nb.value_classes import dataclass

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Tick = Callable[[], object]
_LOCAL = ("file", "memory")


@dataclass(frozen=True, slots=True)
class Spans:
    """All spans of one line of history, one array item each."""

    identity: Ints
    start: Ints
    stop: Ints

    def touching(self, chosen: Mask) -> Mask:
        """Tell which spans hold at least one of the chosen versions (one item per version)."""
        before: Ints = np.concatenate((np.zeros(1, np.int64), np.cumsum(chosen, dtype=np.int64)))
        touched: Mask = np.greater(before[self.stop], before[self.start])
        return touched


class Line:
    """The versions of one branch that were read, in the order of reading.

    ``first_named``: every file with the position of the version that named it first.
    """

    def __init__(self, home: str) -> None:
        self.home = home
        self.versions: list[VersionFiles] = []
        self.first_named: dict[NamedFile, int] = {}
        self.damaged: list[tuple[ManifestName, LanceError]] = []
        self._active: dict[int, list[int]] = {}  # identity -> [times, since]
        self._closed = (array("q"), array("q"), array("q"))

    def numbers(self) -> Ints:
        """Return the version numbers; detached ones as 0."""
        version_numbers = [
            version.version if version.version < 1 << 63 else 0 for version in self.versions
        ]
        return np.array(version_numbers, np.int64)

    def add(self, version_files: VersionFiles, identity: Callable[[str], int]) -> None:
        """Add the version read after those that are here."""
        position = len(self.versions)
        self.versions.append(version_files)
        for file in version_files.appeared:
            self.first_named.setdefault(file, position)
            entry = self._active.setdefault(identity(file.identity), [0, position])
            entry[0] += 1
        for file in version_files.vanished:
            key = identity(file.identity)
            entry = self._active[key]
            entry[0] -= 1
            if not entry[0]:
                del self._active[key]
                for column, value in zip(self._closed, (key, entry[1], position), strict=True):
                    column.append(value)

    def spans(self) -> Spans:
        """Return the spans; those that are open end with the version read last."""
        stop = len(self.versions)
        active = [(key, since, stop) for key, (_, since) in self._active.items()]
        open_ones = np.array(active, np.int64).reshape(-1, 3)
        closed = (np.array(block, np.int64) for block in self._closed)
        columns = zip(closed, open_ones.T, strict=True)
        return Spans(*(np.concatenate(pair) for pair in columns))


class References:
    """What the versions of all branches refer to, as far as they were read.

    ``tolerant``: a damaged manifest is noted in its line instead of raised.
    """

    def __init__(self, *, tolerant: bool = False) -> None:
        self.lines: dict[str, Line] = {}
        self._identities: dict[str, int] = {}
        self._tolerant = tolerant

    def __len__(self) -> int:
        return len(self._identities)

    def identity(self, name: str) -> int:
        """Return the number of an identity; the next free one if it is new."""
        return self._identities.setdefault(name, len(self._identities))

    def numbers_of(self, names: Sequence[str | None]) -> Ints:
        """Return the numbers of identities, -1 for those that no version read refers to."""
        identities = (-1 if name is None else self._identities.get(name, -1) for name in names)
        return np.fromiter(identities, np.int64, len(names))

    def knows(self, name: str) -> bool:
        """Tell whether a version that was read refers to this identity."""
        return name in self._identities

    def read(
        self, home: Store, folder: str, names: Sequence[ManifestName], tick: Tick = lambda: None
    ) -> None:
        """Read versions of the branch in ``folder``; give them in the order of their numbers.

        Raises CorruptFileError, NotSupportedError, StorageError.
        """
        line = self.lines.setdefault(folder, Line(folder))
        reader = ManifestFiles()
        if line.versions:  # a second look: begin a line of its own, the old spans stay as they are
            line = self.lines[f"{folder} {len(self.lines)}"] = Line(folder)
        threads = 1 if home.scheme in _LOCAL else THREADS_MAX
        manifests = _manifests(home, names, threads, tolerant=self._tolerant)
        for name, data in zip(names, manifests, strict=True):
            tick()
            if isinstance(data, LanceError):
                line.damaged.append((name, data))
            elif data is not None:
                self._add(line, reader, name, data=data, where=f"{home.uri}/{name.path}")

    def _add(
        self, line: Line, reader: ManifestFiles, name: ManifestName, data: memoryview, where: str
    ) -> None:
        try:
            line.add(reader.read(data, where, name.version), self.identity)
        except LanceError as error:
            if not self._tolerant:
                raise
            line.damaged.append((name, error))


def check_complete(references: References) -> None:
    """Refuse when a version may refer to files in a way that this release does not know.

    Raises NotSupportedError.
    """
    for line in references.lines.values():
        for version in line.versions:
            managed = (version.reader_feature_flags | version.writer_feature_flags) & MANAGED_BLOBS
            if version.has_unknown or managed:
                reason = "blobs that are managed" if managed else "fields of a newer writer"
                raise NotSupportedError(
                    f"{version.path} has {reason}: which files it needs cannot be told for "
                    "certain, so nothing is deleted. Use a newer lance_nb"
                )


def _manifests(
    home: Store, names: Sequence[ManifestName], threads: int, *, tolerant: bool
) -> Iterator[memoryview | LanceError | None]:
    tasks = (partial(_manifest, home, name, tolerant=tolerant) for name in names)
    return run_side_by_side(tasks, threads)


def _manifest(home: Store, name: ManifestName, *, tolerant: bool) -> memoryview | LanceError | None:
    """Read a manifest; None if a clean-up has removed it, or why it cannot be if ``tolerant``."""
    try:
        tail, size = home.read_tail(name.path, TAIL_BYTES)
        if size > FILE_BYTES_MAX:
            expected = f"a manifest of at most {FILE_BYTES_MAX} bytes"
            raise CorruptFileError(f"{home.uri}/{name.path}", None, expected, f"{size} bytes")
        return tail if len(tail) == size else home.read(name.path)
    except ObjectNotFoundError as error:
        is_there = tolerant and name.path.rpartition("/")[2] in home.list_names(VERSIONS)
        return error if is_there else None
    except LanceError as error:
        if not tolerant:
            raise
        return error
