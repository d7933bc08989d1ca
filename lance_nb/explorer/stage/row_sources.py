"""Find the rows to write by the name that a person gives: a variable, a file, or a dataset.

=========================================  ====================================================
name                                       rows
=========================================  ====================================================
name of a variable of the notebook         its value
path with the suffix of a file of rows     the file (see table_files)
path that ends with ``.lance``, or a URL   the dataset
=========================================  ====================================================

Limits: a file that is not ``STREAMED`` is read whole. ``MAX_VARIABLES`` variables are offered.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from lance_nb.dataset import LanceDataset
from lance_nb.dataset.display import ipython_shell
from lance_nb.dataset.table_files import READERS, read_file
from lance_nb.errors import InvalidInputError
from lance_nb.explorer import text
from lance_nb.explorer.version_refs import open_source
from lance_nb.writing.input_data import is_frame

MAX_VARIABLES = 50
STREAMED = (".parquet", ".arrow", ".feather", ".ipc")

Namespace = Mapping[str, Any]


def notebook_variables() -> Namespace:
    """Return the variables of the notebook; none outside of one."""
    shell = ipython_shell()
    return {} if shell is None else shell.user_ns


def find_rows(name: str, namespace: Namespace) -> Any:
    """Find rows by the name of a variable, or of a file or dataset. Raises InvalidInputError."""
    if name in namespace:
        return namespace[name]
    path = Path(name)
    if path.suffix in READERS:
        return read_file(path)
    if path.suffix.rstrip("/") == ".lance" or "://" in name:
        return open_dataset(name)
    raise _nothing(name)


def check_rows(name: str, namespace: Namespace) -> None:
    """Check that rows may be found by this name; none is read. Raises InvalidInputError."""
    path = Path(name)
    if name in namespace or "://" in name or path.suffix.rstrip("/") == ".lance":
        return
    if path.suffix not in READERS and path.suffix not in STREAMED:
        raise _nothing(name)
    if not path.is_file():
        raise InvalidInputError(f"file {name!r} does not exist in {Path.cwd()}")


def _nothing(name: str) -> InvalidInputError:
    return InvalidInputError(
        f"{name!r} is neither a variable nor a file that can be read "
        f"({', '.join([*READERS, '.lance'])})"
    )


def open_dataset(uri: str) -> LanceDataset:
    """Open a dataset by its URI. Raises InvalidInputError, DatasetNotFoundError."""
    opened = open_source(uri)
    if not isinstance(opened, LanceDataset):
        raise InvalidInputError(f"{uri!r} is not a dataset")
    return opened


def is_spark_frame(value: object) -> bool:
    """Whether a value is a DataFrame of Spark's; decided without importing PySpark."""
    kind = type(value)
    return kind.__name__ == "DataFrame" and kind.__module__.split(".")[0] == "pyspark"


def streamed_source(name: str, namespace: Namespace) -> str | LanceDataset | None:
    """Return what tasks can read part by part; None for what is handed to a writer whole."""
    if name in namespace:
        held = namespace[name]
        return held if isinstance(held, LanceDataset) else None
    path = Path(name)
    if path.suffix in STREAMED:
        return name
    if path.suffix == ".lance" or ("://" in name and path.suffix not in READERS):
        return open_dataset(name)
    return None


def variable_choices(namespace: Namespace, schema: pa.Schema) -> list[dict[str, str]]:
    """List the variables that hold rows: ``{name, kind, text}``, those that fit the schema first.

    Nothing is read or computed for it: counts are shown where they are known.
    """
    choices = []
    for name, value in list(namespace.items()):
        if name.startswith("_") or not isinstance(name, str):
            continue
        columns = _columns(value)
        if columns is not None:
            choices.append((_fits(columns, schema), name, value))
    choices.sort(key=lambda choice: (bool(choice[0]), choice[1]))
    return [
        {"name": name, "kind": type(value).__name__, "text": _words(value, wrong)}
        for wrong, name, value in choices[:MAX_VARIABLES]
    ]


def _columns(value: object) -> list[str] | None:
    """Return the names of the columns of something that holds rows; None for anything else."""
    if isinstance(value, type):
        return None
    if is_spark_frame(value):
        return []  # asking for its columns may ask a server
    schema = getattr(value, "schema", None)
    is_rows = isinstance(value, pa.Table | pa.RecordBatch | pa.RecordBatchReader | LanceDataset)
    if is_rows and isinstance(schema, pa.Schema):
        return list(schema.names)
    return [str(column) for column in getattr(value, "columns", ())] if is_frame(value) else None


def _fits(columns: list[str], schema: pa.Schema) -> str:
    """Return why rows with these columns do not fit; empty if they may."""
    unknown = [column for column in columns if column not in schema.names]
    return f"column {text.name(unknown[0])!r} is not in the dataset" if unknown else ""


def _words(value: Any, wrong: str) -> str:
    if isinstance(value, pa.RecordBatchReader):
        rows = "a stream, read once"
    elif isinstance(value, LanceDataset):
        rows = f"dataset at version {value.version}"
    elif is_spark_frame(value):
        rows = "stays on Spark"
    else:
        rows = text.plural(len(value), "row")
    return f"{rows} · {wrong}" if wrong else rows
