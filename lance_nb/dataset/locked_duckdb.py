"""The one place that opens DuckDB, for SQL over datasets (extra ``sql``).

A statement sees the datasets that are registered and nothing else of the machine or the process:

===================================  ===========================================================
files, URLs, ``ATTACH``, ``COPY``    ``enable_external_access = false``
``INSTALL``, ``LOAD``, autoloading   the same, and both settings that load extensions by themselves
Python variables named as tables     ``python_enable_replacements = false``
secrets that stay on disk            ``allow_persistent_secrets = false``
``SET``, ``RESET``, ``PRAGMA``       ``lock_configuration = true``: none of these can be undone
===================================  ===========================================================

What does not fit in memory goes to a folder of its own in the system's temporary folder, mode 700,
that is removed with the connection.

Limits: DuckDB's own bound of memory (80 % of the machine's, or of its container's); temporary files
take at most half of the disk space that is free when the connection is opened. A statement may
change what belongs to its connection alone: tables and views in memory, variables, the schema.
Source: duckdb.org, "Securing DuckDB"; tested with DuckDB 1.1 and 2.0.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from lance_nb.errors import InvalidInputError, NotSupportedError

_LOCKED = {
    "enable_external_access": "false",
    "python_enable_replacements": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
    "lock_configuration": "true",
}
_FOLDER_PREFIX = "lance_nb-sql-"
_REFUSED = re.compile(r"Permission Error|configuration has been locked|requires the extension")


def open_duckdb() -> Any:
    """Open a new database in memory that reaches nothing but what is registered in it.

    Keep the connection for as long as its results are read. Raises NotSupportedError without
    DuckDB.
    """
    import shutil
    import tempfile

    duckdb = _duckdb()
    folder = tempfile.mkdtemp(prefix=_FOLDER_PREFIX)  # mode 700; DuckDB's own would be readable
    remove = partial(shutil.rmtree, folder, ignore_errors=True)
    with ExitStack() as undo:
        undo.callback(remove)
        free = shutil.disk_usage(folder).free
        limits = {"temp_directory": folder, "max_temp_directory_size": f"{free // 2}B"}
        connection = duckdb.connect(config={**_LOCKED, **limits})
        weakref.finalize(connection, remove)
        undo.pop_all()
    return connection


def words_of(error: Exception) -> str:
    """Return what DuckDB says in one line, without the trace of our stream that it quotes."""
    said = " ".join(str(error).partition(" Detail: Python exception")[0].split())
    if _REFUSED.search(said):
        said += (
            "; SQL over a dataset reads that dataset only, without files, URLs, extensions or "
            "settings: for more, use a connection of your own, "
            "duckdb.connect().register('dataset', ds)"
        )
    return said


@contextmanager
def duckdb_errors(describe: Callable[[Exception], str] = words_of) -> Iterator[None]:
    """Raise InvalidInputError with the words of ``describe`` for an error of DuckDB's."""
    duckdb = _duckdb()
    try:
        yield
    except duckdb.Error as error:
        raise InvalidInputError(f"SQL: {describe(error)}") from error


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError as error:
        raise NotSupportedError("SQL needs DuckDB: pip install 'lance-nb[sql]'") from error
    return duckdb
