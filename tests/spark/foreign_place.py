"""Jobs on a cluster whose worker sees another disk at the path of the dataset.

A standalone master, and one worker in a mount namespace of its own, in which a copy of the folder
lies over the folder. Tasks find the dataset and report success, and their files are not where the
driver commits. ``main`` prints a line of JSON for each verb, which test_foreign_places.py reads. It
is a process of its own, because a Python process has one SparkContext.

    python -m tests.spark.foreign_place FOLDER [--long]

Needs the right to mount: ``unshare`` as root, or with a user namespace.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet
from pyspark.errors import AnalysisException

import lance_nb
from lance_nb import spark
from lance_nb.errors import LanceError
from tests.spark.cluster import cluster, started

ROWS = pa.table({"id": range(400), "name": [f"n{number % 7}" for number in range(400)]})
_COMMANDS = (["unshare", "-m"], ["unshare", "-Urm"])


def namespace() -> list[str] | None:
    """Return the command that runs another one in a mount namespace; None where none is allowed."""
    if shutil.which("unshare") is None:
        return None
    for command in _COMMANDS:
        check = [*command, "mount", "--bind", "/tmp", "/tmp"]
        if subprocess.run(check, capture_output=True, check=False).returncode == 0:
            return command
    return None


def covered(command: list[str], folder: Path, other: Path) -> list[str]:
    """Return the beginning of a command that sees ``other`` at the path of ``folder``."""
    script = 'mount --bind "$0" "$1" && shift && exec "$@"'
    return [*command, "sh", "-c", script, str(other), str(folder)]


def content(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def jobs(folder: Path, session: Any, *, is_long: bool) -> dict[str, Callable[[], object]]:
    """Return verbs whose tasks write files: one of each kind, or all."""
    uri = str(folder / "t.lance")
    frame = session.createDataFrame(ROWS.slice(0, 40).to_pandas())
    changed = ROWS.slice(0, 30).set_column(1, "name", pa.array(["changed"] * 30))
    on: dict[str, Any] = {"engine": "spark", "spark": session}
    files = str(folder.parent / "more.parquet")

    def data_source(mode: str, path: str = uri, **options: str) -> Callable[[], object]:
        return lambda: frame.write.format("lance_nb").mode(mode).options(**options).save(path)

    short = {
        "df.write append": data_source("append"),
        "df.write overwrite": data_source("overwrite"),
        "write files": lambda: spark.write(files, uri, "append", **on),
        "update": lambda: spark.update(uri, {"name": "'x'"}, "id < 9", **on),
        "upsert": lambda: spark.upsert(uri, changed, "id", **on),
        "compact": lambda: spark.compact(uri, **on),
        "index": lambda: spark.create_scalar_index(uri, "id", **on),
    }
    if not is_long:
        return short
    return short | {
        "df.write replaceWhere": data_source("overwrite", replaceWhere="id < 40"),
        "df.write create": data_source("append", str(folder / "new.lance")),
        "write frame": lambda: spark.write(frame, uri, "append"),
        "create": lambda: spark.write(files, str(folder / "made.lance"), "create", **on),
        "backfill": lambda: spark.backfill(uri, {"twice": "id * 2"}, **on),
        "clone": lambda: spark.clone(uri, folder / "copy.lance", **on),
        "merge": lambda: (
            spark.merge(uri, frame, on="id", form="shuffle")
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute(spark=session)
        ),
    }


def main(folder: Path, *, is_long: bool) -> None:
    """Run every job; print its error, and how the folder of the driver has changed."""
    shared, other = folder / "shared", folder / "other"
    shared.mkdir()
    lance_nb.write_dataset(ROWS, str(shared / "t.lance"), max_rows_per_file=50)
    parquet.write_table(ROWS, folder / "more.parquet")
    shutil.copytree(shared, other)
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    command = namespace()
    assert command is not None, "this process may not mount"
    before = content(shared)
    with cluster(folder, covered(command, shared, other), num_workers=1, cores=2) as url:
        session = started(url, cores=2)
        spark.register(session)
        for name, job in jobs(shared, session, is_long=is_long).items():
            num_other, start = len(content(other)), time.monotonic()
            try:
                job()
                problem = ""
            except (LanceError, AnalysisException) as error:
                problem = f"{type(error).__name__}: {error}"
            line = {
                "job": name,
                "problem": problem,
                "is_unchanged": content(shared) == before,
                "num_written_elsewhere": len(content(other)) - num_other,
                "seconds": round(time.monotonic() - start, 2),
            }
            print(json.dumps(line), flush=True)
        unfinished = [entry.operation_id for entry in spark.unfinished()]
        print(json.dumps({"unfinished": unfinished}), flush=True)
        session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), is_long="--long" in sys.argv)
