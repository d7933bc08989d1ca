"""Export rows of the grid to a file in the working folder of the kernel.

``what`` is shown (the rows of the grid, in its order), selected, or changes (from another version
to this one). The format is that of the ending of the file name, see ``dataset.table_files``. A file
that is there is not replaced.

Layout of ``RowExport.to_json``: ``path`` (absolute), ``rows``, ``bytes``, ``code``: the lines that
do the same, none where the rows are not named in one line.

Limits: a sorted grid has the rows that it shows. Rows in the order of the grid, and selected ones,
are read in steps of about ``exporting.BATCH_BYTES`` by the mean size of a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from lance_nb.code_lines import magic, offered
from lance_nb.dataset import LanceDataset
from lance_nb.dataset.exporting import batch_rows, size_of
from lance_nb.dataset.table_files import write_file
from lance_nb.errors import InvalidInputError
from lance_nb.explorer import version_refs as refs
from lance_nb.explorer.rows.row_order import MAX_ORDERED, Progress, SortedRows, SortOrder
from lance_nb.explorer.rows.row_query import MAX_LISTED, RowQuery
from lance_nb.value_classes import dataclass

MAX_NAME_CHARS = 200
Ranges = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """Which rows are exported, in which columns, and under which file name.

    ``order`` is how the grid was sorted, to write it as code. ``ranges`` are positions in the grid,
    None for all. ``since``: the rows that changed from this version instead.
    """

    name: str
    query: RowQuery
    order: tuple[SortOrder, ...] = ()
    ranges: Ranges | None = None
    since: tuple[str | None, int] | None = None


@dataclass(frozen=True, slots=True)
class RowExport:
    """What was written."""

    path: Path
    num_rows: int
    size_bytes: int
    code: dict[str, str]

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-able values."""
        return {
            "path": str(self.path),
            "rows": self.num_rows,
            "bytes": self.size_bytes,
            "code": self.code,
        }


def export_rows(dataset: LanceDataset, request: ExportRequest, progress: Progress) -> RowExport:
    """Write the rows. ``progress`` is called between batches, and what it raises ends the work.

    Raises InvalidInputError, StorageError.
    """
    path = path_in_working_folder(request.name)
    query = request.query
    if request.since is not None:
        report = dataset.export(path, since=request.since, progress=progress)
        return RowExport(path, report.num_rows, report.size_bytes, _code(dataset, request))
    columns = query.read_names(dataset)
    is_sorted = isinstance(query.order, SortedRows)
    total = query.order.num_rows if query.order is not None else dataset.count_rows()
    if request.ranges is None and not is_sorted:
        report = dataset.export(
            path, columns, query.filter, progress=lambda done, _total: progress(done, total)
        )
        return RowExport(path, report.num_rows, report.size_bytes, _code(dataset, request))
    ranges = [(0, total)] if request.ranges is None else sorted(request.ranges)
    rows = write_file(
        path, _rows_at(dataset, query, columns, ranges), progress=progress,
        num_rows=sum(stop - first for first, stop in ranges),
    )  # fmt: skip
    return RowExport(path, rows, size_of(path), _code(dataset, request))


def path_in_working_folder(name: str) -> Path:
    """Return the path of a file name in the working folder. Raises InvalidInputError."""
    folder = Path.cwd().resolve()
    bad = not name.strip() or len(name) > MAX_NAME_CHARS or not name.isprintable()
    path = folder if bad else (folder / name)
    if bad or ".." in path.parts or not path.parent.resolve().is_relative_to(folder):
        raise InvalidInputError(
            f"the file is written in the working folder of the kernel, {folder}: give it a name of "
            f"at most {MAX_NAME_CHARS} characters, without .. or a path elsewhere"
        )
    return path


def _rows_at(
    dataset: LanceDataset, query: RowQuery, columns: list[str], ranges: Ranges
) -> pa.RecordBatchReader:
    step = batch_rows(dataset)
    schema = query.rows(dataset, columns, 0, 0).schema

    def batches() -> Iterator[pa.RecordBatch]:
        for first, stop in ranges:
            for start in range(first, stop, step):
                rows = query.rows(dataset, columns, start, min(step, stop - start))
                yield from rows.combine_chunks().to_batches()

    return pa.RecordBatchReader.from_batches(schema, batches())


def _code(dataset: LanceDataset, request: ExportRequest) -> dict[str, str]:
    """Return the lines that export the same rows; none for many rows of a selection."""
    arguments = _arguments(dataset, request)
    if arguments is None:
        return {}
    line = refs.opened(dataset).attribute("export").call(request.name, **arguments).line()
    place_text = refs.place_word(dataset.branch, dataset.version)
    words: dict[str, object] = {}
    if "since" in arguments and request.since is not None:
        words["--since"] = refs.place_word(*request.since)
    elif arguments.keys() - {"filter", "columns"}:
        return {"python": line}
    if "filter" in arguments:
        words["--where"] = arguments["filter"]
    if "columns" in arguments:
        if any("," in name for name in arguments["columns"]):
            return {"python": line}  # %lance divides the names by commas
        words["--columns"] = ",".join(arguments["columns"])
    return offered(line, magic("export", request.name, place_text, options=words))


def _arguments(dataset: LanceDataset, request: ExportRequest) -> dict[str, Any] | None:
    if request.since is not None:
        branch, version = request.since
        return {"since": version if branch == dataset.branch else (branch, version)}
    query, ranges = request.query, request.ranges
    names = [name for name in query.read_names(dataset) if name != query.found_by]
    arguments: dict[str, Any] = {} if names == dataset.schema.names else {"columns": names}
    if query.filter is not None:
        arguments["filter"] = query.filter
    if isinstance(query.order, SortedRows):
        if request.order and ranges is None and query.found_by is None:
            keys = [{"column_name": sort.column, "ascending": sort.ascending}
                    for sort in request.order]  # fmt: skip
            return arguments | {"order_by": keys, "limit": MAX_ORDERED}
        ranges = [(0, query.order.num_rows)] if ranges is None else ranges
    elif ranges is None:
        return arguments
    elif len(ranges) == 1:
        [(first, stop)] = ranges
        return arguments | ({"offset": first} if first else {}) | {"limit": stop - first}
    if sum(stop - first for first, stop in ranges) > MAX_LISTED:
        return None
    ids = [
        row_id
        for first, stop in sorted(ranges)
        for row_id in query.rows(dataset, ["_rowid"], first, stop - first)["_rowid"].to_pylist()
    ]
    arguments.pop("filter", None)
    return arguments | {"row_ids": ids}
