"""Progress of long work: rows counted for a callback, and listeners to the fragments of a write.

Source: ``lance.progress`` of pylance 14.0.2, which leaves out the end of the last fragment.
"""

from __future__ import annotations

import json
import posixpath
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lance_nb.errors import StorageError
from lance_nb.format.fragment import Fragment

Progress = Callable[[int, int], object]


class ProgressCounter:
    """Add up rows and report (rows done, rows in all). Without a callback it only counts."""

    def __init__(self, num_rows: int, progress: Progress | None) -> None:
        self._num_rows = num_rows
        self._progress = progress
        self._done = 0

    def add(self, num_rows: int) -> None:
        """Count rows and report the sum; whatever the callback raises ends the work."""
        self._done += num_rows
        if self._progress is not None:
            self._progress(self._done, self._num_rows)


class StepCounter:
    """Count steps; their number grows while they are taken, as when reading finds more to read."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._done = self._total = 0

    def expect(self, number: int) -> None:
        """Add steps that are going to be taken."""
        self._total += number

    def step(self) -> None:
        """Count a step that was taken and report; whatever the callback raises ends the work."""
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, self._total)

    def stop(self) -> None:
        """Report nothing from now on: what is read later belongs to another action."""
        self._progress = None


class FragmentWriteProgress(ABC):
    """Receives the begin and the end of each fragment of a write: a base class.

    Give an object of a subclass as ``progress`` of ``write_dataset``, ``write_fragments`` or
    ``LanceFragment.create``. What its methods raise ends the write.

    Examples:
        >>> class Count(lance_nb.FragmentWriteProgress):
        ...     def begin(self, fragment, **kwargs):
        ...         print("begin")
        ...     def complete(self, fragment, **kwargs):
        ...         print("complete", fragment.physical_rows)
        >>> counter = Count()
        >>> counter.begin(None)
        begin
        >>> counter.complete(lance_nb.FragmentMetadata(0, [], 2))
        complete 2
        >>> _ = lance_nb.write_dataset(rows, "new.lance", progress=counter)
        begin
        complete 2
    """

    @abstractmethod
    def begin(self, fragment: Fragment, **kwargs: Any) -> None:
        """Take note that a fragment begins; its id and files are not known yet."""

    @abstractmethod
    def complete(self, fragment: Fragment, **kwargs: Any) -> None:
        """Take note that the files of a fragment are written; it is not committed yet."""


class NumberedProgress(FragmentWriteProgress):
    """Passes fragments on with the id that the caller chose for the only one."""

    def __init__(self, progress: FragmentWriteProgress, fragment_id: int) -> None:
        self._progress = progress
        self._id = fragment_id

    def begin(self, fragment: Fragment, **kwargs: Any) -> None:
        """Pass it on."""
        self._progress.begin(replace(fragment, id=self._id), **kwargs)

    def complete(self, fragment: Fragment, **kwargs: Any) -> None:
        """Pass it on."""
        self._progress.complete(replace(fragment, id=self._id), **kwargs)


class NoopFragmentWriteProgress(FragmentWriteProgress):
    """Takes no note of anything: for whoever has to give a progress.

    Examples:
        >>> progress = lance_nb.NoopFragmentWriteProgress()
        >>> lance_nb.write_dataset(rows, "new.lance", progress=progress).count_rows()
        2
    """

    def begin(self, fragment: Fragment, **kwargs: Any) -> None:
        """Do nothing."""

    def complete(self, fragment: Fragment, **kwargs: Any) -> None:
        """Do nothing."""


class FileSystemFragmentWriteProgress(FragmentWriteProgress):
    """Leaves a trace of each fragment in a folder, for distributed writes.

    ``fragment_<id>.json`` is the fragment as it began; ``fragment_<id>.in_progress`` holds the id
    and ``metadata`` until the fragment is complete. Give each fragment an id of its own
    (``LanceFragment.create(fragment_id=...)``): the traces of equal ids overwrite each other.

    Args:
        base_uri: the folder, as an absolute path or a URI that ``pyarrow.fs`` opens.
        metadata: texts that tell this writer from others.

    Raises StorageError when the folder cannot be written.

    Examples:
        >>> from pathlib import Path
        >>> folder = Path("traces").absolute()
        >>> progress = lance_nb.FileSystemFragmentWriteProgress(str(folder))
        >>> progress.begin(lance_nb.FragmentMetadata(7, [], 0))
        >>> sorted(path.name for path in folder.iterdir())
        ['fragment_7.in_progress', 'fragment_7.json']
        >>> progress.complete(lance_nb.FragmentMetadata(7, [], 0))
        >>> sorted(path.name for path in folder.iterdir())
        ['fragment_7.json']
    """

    PROGRESS_EXT: str = ".in_progress"

    def __init__(self, base_uri: str, metadata: Mapping[str, str] | None = None) -> None:
        import pyarrow.fs  # loads the drivers of all clouds

        try:
            self._fs, self._base_path = pyarrow.fs.FileSystem.from_uri(base_uri)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise StorageError(base_uri, f"no folder for progress: {error}") from error
        self._metadata = dict(metadata or {})

    def begin(self, fragment: Fragment, **kwargs: Any) -> None:
        """Write both files of the fragment.

        Args:
            fragment: the fragment; only its id matters.

        Raises StorageError.
        """
        state = {"fragment_id": fragment.id, "metadata": self._metadata}
        try:
            self._fs.create_dir(self._base_path, recursive=True)
            self._write(self._path(fragment, self.PROGRESS_EXT), state)
            self._write(self._path(fragment, ".json"), fragment.to_json())
        except OSError as error:
            raise StorageError(self._base_path, f"cannot write progress: {error}") from error

    def complete(self, fragment: Fragment, **kwargs: Any) -> None:
        """Delete the file that says that the fragment is in progress.

        Args:
            fragment: the fragment; only its id matters.

        Raises StorageError.
        """
        path = self._path(fragment, self.PROGRESS_EXT)
        try:
            self._fs.delete_file(path)
        except OSError as error:
            raise StorageError(path, f"cannot note the end of a fragment: {error}") from error

    def _path(self, fragment: Fragment, suffix: str) -> str:
        return posixpath.join(self._base_path, f"fragment_{fragment.id}{suffix}")

    def _write(self, path: str, value: Mapping[str, Any]) -> None:
        with self._fs.open_output_stream(path) as stream:
            stream.write(json.dumps(value).encode())
