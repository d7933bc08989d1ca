"""Build the files of one segment of an index: what a builder is given and what it returns.

A builder (one entry of ``registry.BUILDERS``) reads the values of some fragments, with the row that
each stands in, and writes files into a new folder. It commits nothing: the metadata of the segment
are made from what it returns, and one commit of ``CreateIndex`` makes the segment known.

``SegmentRows`` can be read several times, for builders that train before they write. Each reading
is a stage of the progress. Whatever the callback raises ends the work; then, and after any other
error, the files that are there already are deleted.

Limits: memory holds a batch of rows and what the builder keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from lance_nb.errors import LanceError
from lance_nb.file.versions import file_version_of
from lance_nb.file.writer import FileOptions, FileWriter, WrittenFile
from lance_nb.format.checksums import wants_checksums
from lance_nb.format.fragment import Fragment
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.schema import Schema
from lance_nb.table.filtered_scan import quoted
from lance_nb.table.projection import ROW_ADDRESS, ROW_ID, project
from lance_nb.table.scan_plan import ScanOptions, plan_scan
from lance_nb.table.scan_tasks import live_counts
from lance_nb.table.snapshot import Snapshot, storage_version
from lance_nb.table.take import take_rows
from lance_nb.value_classes import dataclass

BATCH_ROWS = 65_536
_LEGACY = "0.1"


@dataclass(frozen=True, slots=True)
class IndexProgress:
    """An event of building an index: ``start``, ``progress`` or ``complete`` of a stage.

    ``completed`` and ``total`` count ``unit``; None where they are not known.

    Examples:
        >>> events = []
        >>> ds.create_scalar_index("id", "BTREE", progress_callback=events.append)
        >>> events[0].event, events[0].stage, events[0].completed, events[0].total
        ('start', 'load_data', 0, 10)
    """

    event: str
    stage: str
    completed: int | None = None
    total: int | None = None
    unit: str = ""

    @property
    def fraction(self) -> float | None:
        """The share of the work that is done, None where it is not known.

        Examples:
            >>> lance_nb.IndexProgress("progress", "load_data", 5, 10, "rows").fraction
            0.5
        """
        if self.completed is None or not self.total:
            return None
        return min(self.completed / self.total, 1.0)


ProgressCallback = Callable[[IndexProgress], object]


class BuildProgress:
    """Report the stages of a build to a callback, which ends the work by raising."""

    def __init__(self, callback: ProgressCallback | None = None) -> None:
        self._callback = callback

    def report(
        self, event: str, stage: str, completed: int | None, total: int | None, unit: str
    ) -> None:
        """Report one event."""
        if self._callback is not None:
            self._callback(IndexProgress(event, stage, completed, total=total, unit=unit))

    @contextmanager
    def stage(self, name: str, total: int | None, unit: str) -> Iterator[Callable[[int], None]]:
        """Begin a stage; yields a function that adds what is done, and ends the stage."""
        done = 0

        def add(number: int) -> None:
            nonlocal done
            done += number
            self.report("progress", name, done, total=total, unit=unit)

        self.report("start", name, 0, total=total, unit=unit)
        yield add
        self.report("complete", name, done, total=total, unit=unit)


class SegmentRows:
    """The live rows of some fragments: values of one column, and the row that each stands in."""

    def __init__(
        self,
        snapshot: Snapshot,
        column: str,
        fragments: Sequence[Fragment],
        row_column: str,
        progress: BuildProgress,
    ) -> None:
        self.snapshot = snapshot
        self.column = column
        self.fragments = tuple(fragments)
        self.progress = progress
        self._options = ScanOptions(
            [column],
            fragments=self.fragments,
            with_row_id=row_column == ROW_ID,
            with_row_address=row_column == ROW_ADDRESS,
            batch_size=BATCH_ROWS,
        )
        plan = plan_scan(snapshot, self._options)
        self.field: pa.Field = plan.schema.field(0)
        self.schema = pa.schema(
            [
                pa.field("value", self.field.type),
                pa.field("row", pa.uint64(), nullable=False),
            ]
        )
        whole = snapshot.manifest.fragments
        places = [place for place in whole.places_of(self.fragments) if place is not None]
        self.num_rows = int(live_counts(snapshot)[places].sum()) if places else 0

    def sample(self, count: int, rng: np.random.Generator) -> pa.ChunkedArray:
        """Read the values of at most ``count`` rows, chosen by chance, in the order of a scan."""
        whole = self.snapshot.manifest.fragments
        counts = live_counts(self.snapshot)
        places = [place for place in whole.places_of(self.fragments) if place is not None]
        ends = np.cumsum(counts)
        chosen = np.sort(rng.choice(self.num_rows, min(count, self.num_rows), replace=False))
        inside = np.cumsum(counts[places])  # rows of the wanted fragments up to each of them
        part = np.searchsorted(inside, chosen, side="right")
        positions = chosen - inside[part] + ends[places][part] if chosen.size else chosen
        projection = project(self.snapshot.manifest.schema, [quoted((self.column,))])
        return take_rows(self.snapshot, projection, np.sort(positions)).column(0)

    def batches(self, stage: str = "load_data") -> Iterator[pa.RecordBatch]:
        """Read ``value`` and ``row`` in the order of a scan; a stage of the progress."""
        with self.progress.stage(stage, self.num_rows, "rows") as add:
            for batch in plan_scan(self.snapshot, self._options).batches():
                yield pa.RecordBatch.from_arrays(batch.columns, schema=self.schema)
                add(batch.num_rows)


class SegmentFiles:
    """The folder of a new segment. As a context, an error deletes what was written."""

    def __init__(self, snapshot: Snapshot, uuid: str) -> None:
        self.uuid = uuid
        self.written: list[WrittenFile] = []
        self._store = snapshot.locations.home
        version = storage_version(snapshot.manifest)
        self._version = file_version_of("2.0" if version == _LEGACY else version)
        self._options = FileOptions(checksums=wants_checksums(snapshot.manifest.config))

    @contextmanager
    def create(self, name: str, schema: pa.Schema) -> Iterator[FileWriter]:
        """Begin a file; it is finished when the context ends, and dropped after an error.

        The metadata of the schema become its settings, as those that
        ``FileWriter.add_schema_metadata`` adds. Raises NotSupportedError, StorageError.
        """
        path = f"_indices/{self.uuid}/{name}"
        fields = Schema.from_arrow(schema)
        with FileWriter(
            self._store, path, fields, file_version=self._version, options=self._options
        ) as file:
            settings = schema.metadata or {}
            file.add_schema_metadata({key.decode(): setting for key, setting in settings.items()})
            yield file
            self.written.append(file.finish())

    def write(
        self,
        name: str,
        batches: pa.Table | Iterable[pa.RecordBatch],
        schema: pa.Schema,
        buffers: Mapping[str, bytes] | None = None,
    ) -> None:
        """Write a file. ``buffers`` become global buffers, whose numbers are settings."""
        with self.create(name, schema) as file:
            for setting, data in (buffers or {}).items():
                number = file.add_global_buffer(data)
                file.add_schema_metadata({setting: str(number).encode()})
            parts = batches.to_batches() if isinstance(batches, pa.Table) else batches
            for batch in parts:
                file.write(batch)

    def discard(self) -> None:
        """Delete the files that are written. What cannot be deleted is left to a clean-up."""
        for file in self.written:
            try:
                self._store.delete(file.path)
            except LanceError:
                continue
        self.written.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.discard()


class SegmentDetails(NamedTuple):
    """What the metadata of a segment say of its kind: the details message, and the version."""

    details: bytes = b""
    index_version: int = 0


Parameters = Mapping[str, Any]


class IndexBuilder(NamedTuple):
    """How segments of a kind are built; one entry of ``registry.builders``.

    ``check(field, parameters)`` refuses a column or a parameter with InvalidInputError, and returns
    all parameters with their defaults. ``parameters_of(snapshot, index)`` returns those that a
    segment was built with, for another one like it. ``write(rows, files, parameters, existing)``
    writes the files; ``existing`` are segments of the same index that the new one extends or
    replaces, and a builder that trains takes what was learned from them; it is empty for a new
    index and for one that is trained anew. ``row_column`` says how rows are named.
    ``train(rows, parameters)`` returns the parameters with what the kind learns from the rows, so
    that segments which are written apart are alike; None for a kind that learns nothing.
    """

    details_url: str
    check: Callable[[pa.Field, Parameters], Parameters]
    parameters_of: Callable[[Snapshot, IndexMetadata], Parameters]
    write: Callable[
        [SegmentRows, SegmentFiles, Parameters, Sequence[IndexMetadata]], SegmentDetails
    ]
    row_column: str = ROW_ID
    train: Callable[[SegmentRows, Parameters], Parameters] | None = None


def no_parameters(_snapshot: Snapshot, _index: IndexMetadata) -> Parameters:
    """Return the parameters of a kind that has none."""
    return {}
