"""Find the files of a source: paths, patterns, folders, URLs, and the Hive partitions they lie in.

==========================  ====================================================================
source                      files
==========================  ====================================================================
``photos.parquet``          that file
``data/*/part-*.parquet``   those that match; a folder that matches stands for its files
``data``                    all files below the folder, without those that begin with ``_`` or
                            ``.``, or lie in folders that do (Spark's marks and checksums)
``s3://bucket/data``        the same with any URL of fsspec, also ``file://``
==========================  ====================================================================

Folders that are named ``column=value``, below the folder or behind the first wildcard of the
pattern, are Hive partitions: each file has the column, with that value in all rows. Values are
decoded as in URLs; ``__HIVE_DEFAULT_PARTITION__`` is null. The column has the type of the dataset
that is written, else int64, float64 or date32 if every value is one, else string.

Source: partition discovery of Spark (``spark.sql.sources.partitionColumnTypeInference``) and Hive.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import IO, Any
from urllib.parse import unquote

import pyarrow as pa

from lance_nb.errors import InvalidInputError, MissingPackageError
from lance_nb.shown_text import without_url_secrets
from lance_nb.spark.plan import Location
from lance_nb.value_classes import dataclass

Path = str | os.PathLike[str]

_NULL = "__HIVE_DEFAULT_PARTITION__"
_DRIVERS = {
    "s3": "s3fs",
    "s3a": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "az": "adlfs",
    "abfs": "adlfs",
}
_WILDCARD = re.compile(r"[*?\[]")
_INFERRED = (
    (re.compile(r"-?(0|[1-9]\d{0,17})"), pa.int64()),
    (re.compile(r"-?(0|[1-9]\d{0,14})(\.\d+)?([eE][-+]?\d{1,3})?"), pa.float64()),
    (re.compile(r"\d{4}-\d\d-\d\d"), pa.date32()),
)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file: a local path or a URL, the options of fsspec for it, its Hive partition as text."""

    location: Location
    size_bytes: int = 0
    partition: tuple[tuple[str, str | None], ...] = ()

    @property
    def path(self) -> str:
        """The path or URL, as it is shown."""
        return self.location.uri

    @property
    def is_local(self) -> bool:
        """Whether the path is one of the operating system."""
        return "://" not in self.path

    def open(self) -> IO[bytes]:
        """Open for reading, decompressed if the name ends so (``.gz``). The caller closes it."""
        import fsspec

        path, options = self.location.opening_uri, self.location.storage_options or {}
        opened = fsspec.open(path, "rb", compression="infer", **options)
        stream: IO[bytes] = opened.open()
        return stream


def find_files(
    source: Path | Sequence[Path], options: Mapping[str, Any] | None = None, *, hive: bool = True
) -> list[SourceFile]:
    """Return the files of a source, each pattern's or folder's in the order of their names.

    ``options`` are those of fsspec; ``hive=False`` ignores the names of folders. Raises
    InvalidInputError if nothing matches, or files lie in partitions of other columns than others;
    MissingPackageError.
    """
    patterns = [source] if isinstance(source, str | os.PathLike) else list(source)
    files = [file for pattern in patterns for file in _matching(os.fspath(pattern), options or {})]
    if not hive:
        return [replace(file, partition=()) for file in files]
    columns = {tuple(name for name, _ in file.partition): file.path for file in files}
    if len(columns) > 1:
        (some, path), (other_columns, other_path) = list(columns.items())[:2]
        raise InvalidInputError(
            f"{path} lies in folders for {_named(some)}, and {other_path} for "
            f"{_named(other_columns)}: write them apart, or ignore the names of folders with "
            "hive=False"
        )
    return files


def _named(columns: Sequence[str]) -> str:
    return f"columns {', '.join(columns)}" if columns else "no column"


def _matching(pattern: str, options: Mapping[str, Any]) -> Iterator[SourceFile]:
    import fsspec
    from fsspec.implementations.local import LocalFileSystem

    try:
        store, path = fsspec.core.url_to_fs(pattern, **options)
    except ImportError as error:
        scheme = pattern.partition("://")[0]
        package = _DRIVERS.get(scheme, f"fsspec's driver of {scheme}")
        raise MissingPackageError(f"reading files from {scheme}://", package, package) from error
    except ValueError as error:
        shown = without_url_secrets(f"{pattern}: {error}")
        raise InvalidInputError(f"cannot read {shown}") from error
    # Host and user of a URL are options of its store; the paths that it lists lack them.
    file_options = dict(options if "::" in pattern else store.storage_options)
    is_local = isinstance(store, LocalFileSystem)
    wildcard = _WILDCARD.search(path)
    matched = [path] if wildcard is None else sorted(store.glob(path))
    num_found = 0
    for matched_path in matched:
        root = matched_path if wildcard is None else path[: wildcard.start()].rpartition("/")[0]
        for name, size in _files_at(store, matched_path):
            num_found += 1
            url = name if is_local else store.unstrip_protocol(name)
            location = Location.of(url, None if is_local else file_options)
            yield SourceFile(location, size, _partition(name, root))
    if not num_found:
        is_folder = wildcard is None and store.isdir(path)
        shown = without_url_secrets(pattern)
        raise InvalidInputError(
            f"folder {shown!r} has no files" if is_folder else f"no file matches {shown!r}"
        )


def _files_at(store: Any, path: str) -> Iterator[tuple[str, int]]:
    """Yield the names and sizes of a file, or of those below a folder."""
    if not store.isdir(path):
        if store.isfile(path):
            yield path, int(store.size(path) or 0)
        return
    listed: Mapping[str, Mapping[str, Any]] = store.find(path, detail=True)
    for name in sorted(listed):
        below = name.removeprefix(path).strip("/").split("/")
        if not any(_is_hidden(part) for part in below):
            yield name, int(listed[name].get("size") or 0)


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _partition(path: str, root: str) -> tuple[tuple[str, str | None], ...]:
    folders = path.removeprefix(root).strip("/").split("/")[:-1]
    pairs = [folder.split("=", 1) for folder in folders if "=" in folder.strip("=")]
    return tuple(
        (unquote(name), None if value == _NULL else unquote(value)) for name, value in pairs
    )


def partition_fields(files: Sequence[SourceFile], schema: pa.Schema | None) -> list[pa.Field]:
    """Return the columns of the partitions, in the types of ``schema`` or those they look like."""
    fields = []
    for position, (name, _) in enumerate(files[0].partition if files else ()):
        texts = {file.partition[position][1] for file in files} - {None}
        known_fields = (
            () if schema is None else tuple(field for field in schema if field.name == name)
        )
        fields.append(known_fields[0] if known_fields else pa.field(name, _inferred(texts)))
    return fields


def _inferred(texts: set[str | None]) -> pa.DataType:
    for looks_so, kind in _INFERRED:
        if texts and all(looks_so.fullmatch(text or "") for text in texts):
            try:
                pa.array(sorted(map(str, texts))).cast(kind)
            except pa.ArrowInvalid:
                continue  # 2026-13-01
            return kind
    return pa.string()


def partition_values(file: SourceFile, fields: Sequence[pa.Field]) -> tuple[pa.Array, ...]:
    """Return the values of a file's partition, an array of one value each.

    Raises InvalidInputError for a text that is no value of the column.
    """
    values = []
    for (name, text), column in zip(file.partition, fields, strict=True):
        try:
            values.append(pa.array([text], pa.string()).cast(column.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InvalidInputError(
                f"{file.path}: the folder {name}={text} is not a value of column {name!r} "
                f"({column.type}): {error}"
            ) from error
    return tuple(values)
