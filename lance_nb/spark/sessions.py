"""Find a SparkSession, or start one. Sessions that others started are never stopped.

``getActiveSession`` is per thread and finds nothing in other threads of the same kernel, so the
session of this process and the notebook variable ``spark`` are tried as well.

A session that is started here is local and runs its Python workers with this interpreter, which
Spark does not do by itself in a virtual environment. Starting takes 5 to 10 seconds, so it is done
on request, or for plans that are large enough.

Limits: Spark 4 needs Java 17 or newer. ``spark.python.unix.domain.socket.enabled`` stays off: with
it, every worker that was idle for a minute ends with a traceback, which a notebook shows.
Source: PySpark 4.3.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lance_nb.errors import MissingPackageError, NotSupportedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Milliseconds until mimalloc returns freed memory to the system (default: 10). Spark keeps idle
# workers for a minute; with the default every task pays for new zeroed pages, which made appends of
# files 1.5 times slower (tests/benchmarks/spark.py).
_PURGE_DELAY_MS = 60_000
_LOCAL: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16384",
    "spark.executorEnv.MIMALLOC_PURGE_DELAY": str(_PURGE_DELAY_MS),
}
_CONNECT = "pyspark.sql.connect"
MIN_JAVA = 17
MANY_CORES = 1024


def find_session(namespace: Mapping[str, Any] | None = None) -> SparkSession | None:
    """Return a running session: the active one, that of this process, or the variable ``spark``."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession() or getattr(SparkSession, "_instantiatedSession", None)
    if session is None:
        named = (namespace or {}).get("spark")
        session = named if isinstance(named, SparkSession) or is_connect(named) else None
    return session if session is not None and _is_alive(session) else None


def start_session(name: str = "lance_nb", **config: str) -> SparkSession:
    """Start a local session that runs its workers with this interpreter.

    ``config`` has Spark's keys with ``__`` for dots: ``spark__master="spark://host:7077"`` connects
    to a cluster, ``spark__remote="local[2]"`` starts Spark Connect. Without either, the server in
    SPARK_REMOTE is used if it is set. Raises NotSupportedError with what to install if PySpark or
    Java is missing.
    """
    require()
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName(name)
    settings = {key.replace("__", "."): value for key, value in config.items()}
    is_remote = "spark.remote" in settings or remote() is not None
    own = {} if is_remote else {"spark.master": "local[*]", **_LOCAL}
    for key, value in {**own, **settings}.items():
        builder = builder.config(key, value)
    with no_pandas_warning():
        return builder.getOrCreate()


@contextmanager
def no_pandas_warning() -> Iterator[None]:
    """Leave out the warning of PySpark that it does not fully support pandas 3.

    It is about functions of pandas; lance_nb exchanges Arrow with Spark.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "PySpark does not yet fully support pandas", category=FutureWarning
        )
        yield


def why_not() -> str | None:
    """Return in one line why Spark cannot be started here; None if it can."""
    problem = _problem()
    return None if problem is None else str(problem)


def require() -> None:
    """Raise NotSupportedError (MissingPackageError without PySpark) if Spark cannot be started."""
    problem = _problem()
    if problem is not None:
        raise problem


def _problem() -> NotSupportedError | None:
    try:
        import pyspark  # noqa: F401 - tested for presence
    except ImportError:
        return MissingPackageError("Spark", "PySpark", "lance-nb[spark]")
    if (remote() or "").startswith("sc://"):  # Java runs on the server
        return None
    program = java()
    version = None if program is None else _version(program)
    if program is None or (version is not None and version < MIN_JAVA):
        java_text = "none was found" if program is None else f"{program} is Java {version}"
        return NotSupportedError(
            f"Spark needs Java {MIN_JAVA} or newer, and {java_text}: install a JRE (Debian and "
            "Ubuntu: apt install openjdk-17-jre-headless; conda: conda install openjdk=17) or set "
            "JAVA_HOME"
        )
    return None


def remote() -> str | None:
    """Return the Spark Connect server in SPARK_REMOTE."""
    return os.environ.get("SPARK_REMOTE") or None


def _version(program: str) -> int | None:
    """Return the major version in the ``release`` file of a Java installation, None without one."""
    for folder in Path(program).resolve().parents[1:3]:
        try:
            text = (folder / "release").read_text(encoding="utf-8")
        except OSError:
            continue
        match = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', text, re.MULTILINE)
        return None if match is None else int(match[1])
    return None


def java() -> str | None:
    """Return the path of the Java program that Spark would start."""
    home = os.environ.get("JAVA_HOME")
    inside = Path(home) / "bin" / "java" if home else None
    if inside is not None and inside.is_file():
        return str(inside)
    return shutil.which("java")


def is_connect(session: object) -> bool:
    """Whether a session is of Spark Connect. Does not import PySpark."""
    return any(base.__module__.startswith(_CONNECT) for base in type(session).__mro__)


def num_cores(session: SparkSession) -> int:
    """Return how many tasks run in parallel; ``MANY_CORES`` on Connect, which does not tell."""
    return MANY_CORES if is_connect(session) else int(session.sparkContext.defaultParallelism)


def is_local(session: SparkSession) -> bool:
    """Whether the executors run on this machine."""
    return not is_connect(session) and (session.sparkContext.master or "").startswith("local")


def _is_alive(session: SparkSession) -> bool:
    if is_connect(session):
        return not getattr(session, "is_stopped", False)
    context = session.sparkContext
    return getattr(context, "_jsc", None) is not None
