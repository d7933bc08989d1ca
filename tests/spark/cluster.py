"""A standalone master with two workers, and every verb on it: the same as the local engine does.

``python -m tests.spark.cluster 5000000`` runs it; 100000 rows are a quick look. The
cluster comes from the pip package, its files go to a temporary folder, and one executor is killed
in the middle of an append.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyspark
from pyarrow import parquet

import lance_nb
from lance_nb import spark
from lance_nb.dataset import LanceDataset
from lance_nb.spark.run import RunOptions, run_once
from tests.house.source import ROOT
from tests.spark.faults import cleaned, data_files, faulty
from tests.support.requirements import require_pylance

NUM_FILES = 4


def rows(start: int, stop: int) -> pa.Table:
    """Numbers, text and prices."""
    ids = np.arange(start, stop)
    names = pa.array(ids % 1000).cast(pa.string())
    return pa.table({"id": ids, "name": names, "price": np.sqrt(ids)})


@contextmanager
def cluster(
    folder: Path, prefix: Sequence[str] = (), *, num_workers: int = 2, cores: int = 1
) -> Iterator[str]:
    """Start a master and workers; yield its URL. ``prefix``: a command that starts a worker."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"spark://127.0.0.1:{port}"
    master = ["master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
    with ExitStack() as stack:
        stack.enter_context(daemon(folder, "master", master))
        _wait_for(port)  # a worker that finds no master waits longer before it tries again
        for name in (f"worker-{number}" for number in range(1, num_workers + 1)):
            pinned = ["-d", str(folder / name), "--host", "127.0.0.1", "--webui-port", "0"]
            command = ["worker.Worker", "-c", str(cores), "-m", "1g", *pinned, url]
            stack.enter_context(daemon(folder, name, command, prefix))
        yield url


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 60
    while True:
        with socket.socket() as attempt:
            if attempt.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert time.monotonic() < deadline, f"nobody listens on port {port}"
        time.sleep(0.2)


@contextmanager
def daemon(
    folder: Path, name: str, command: list[str], prefix: Sequence[str] = ()
) -> Iterator[None]:
    """Run a part of the cluster until the end; what it says goes to a file."""
    home = Path(pyspark.__file__).parent
    python = {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT), "SPARK_HOME": str(home)}
    started = [home / "bin" / "spark-class", f"org.apache.spark.deploy.{command[0]}", *command[1:]]
    with (folder / f"{name}.log").open("w") as log:
        process = subprocess.Popen(
            [*prefix, *started],
            stdout=log, stderr=log, env={**os.environ, **python},
        )  # fmt: skip
        try:
            yield
        finally:
            process.terminate()
            process.wait(30)


def started(url: str, cores: int = 1) -> Any:
    """Return a session on the cluster, with executors of some cores."""
    return spark.start_session(
        spark__master=url, spark__executor__memory="900m", spark__driver__memory="1g",
        spark__sql__shuffle__partitions="8", spark__sql__session__timeZone="UTC",
        spark__executorEnv__PYTHONPATH=str(ROOT), spark__executor__cores=str(cores),
    )  # fmt: skip


class Run:
    """The same verb here and there, one after the other, compared each time."""

    def __init__(self, folder: Path, session: Any, num_rows: int) -> None:
        self.session = session
        self.num_rows = num_rows
        self.folder = folder
        self.here, self.there = str(folder / "here.lance"), str(folder / "there.lance")
        self.files = str(folder / "more*.parquet")
        for at in range(NUM_FILES):
            start, stop = (num_rows + num_rows * one // NUM_FILES for one in (at, at + 1))
            parquet.write_table(rows(start, stop), folder / f"more{at}.parquet")
        for uri in (self.here, self.there):
            made = lance_nb.write_dataset(
                rows(0, num_rows // 5), uri, max_rows_per_file=num_rows // 20
            )
            assert made.version == 1

    def both(
        self, name: str, there: Callable[..., Any], here: Callable[[LanceDataset], Any]
    ) -> None:
        """Run, time and compare."""
        began = time.monotonic()
        there(self.there)
        took = time.monotonic() - began
        began = time.monotonic()
        here(lance_nb.dataset(self.here))
        local = time.monotonic() - began
        left, right = by_pylance(self.there), by_pylance(self.here)
        assert left == right, f"{name}: other rows than the local engine's"
        print(f"{name:12} {left.num_rows:>12,} rows  cluster {took:6.1f} s  here {local:6.1f} s")

    def all(self) -> None:
        """Run every verb."""
        on: Any = {"engine": "spark", "spark": self.session}
        total = self.num_rows
        more = [str(self.folder / f"more{at}.parquet") for at in range(NUM_FILES)]

        def append_here(dataset: LanceDataset) -> None:
            for path in more:
                dataset.insert(parquet.read_table(path))

        self.both("append", self.append_and_kill, append_here)
        changed = rows(total, total + total // 10)
        changed = changed.set_column(2, "price", pa.array(np.zeros(changed.num_rows)))
        changed = pa.concat_tables([changed, rows(3 * total, 3 * total + 1000)])
        frame = self.session.createDataFrame(changed).repartition(4)
        self.both(
            "upsert",
            lambda uri: spark.upsert(uri, frame, "id", form="shuffle"),
            lambda ds: (
                ds.merge_insert("id").when_matched_update_all()
                .when_not_matched_insert_all().execute(changed)
            ),
        )  # fmt: skip
        where = "id % 7 = 3"
        self.both("delete", lambda uri: spark.delete(uri, where, **on), lambda ds: ds.delete(where))
        self.both(
            "compaction",
            lambda uri: spark.compact(uri, **on),
            lambda ds: ds.optimize.compact_files(),
        )
        new = {"double": "price * 2"}
        self.both(
            "backfill", lambda uri: spark.backfill(uri, new, **on), lambda ds: ds.add_columns(new)
        )
        self.both(
            "update",
            lambda uri: spark.update(uri, {"name": "'x'"}, "id < 1000", **on),
            lambda ds: ds.update({"name": "'x'"}, "id < 1000"),
        )
        self.diff(on)

    def append_and_kill(self, uri: str) -> None:
        """Append, and kill the executor of the first task when its files are written."""
        plan = spark.plan_append(lance_nb.dataset(uri), self.files, task_bytes=1)
        run_once(
            faulty(plan, ["kill"], self.folder), RunOptions(engine="spark", spark=self.session)
        )
        there, named = data_files(uri)
        assert there - named, "the task that was killed left no file"
        cleaned(uri)
        assert data_files(uri)[0] == named

    def diff(self, on: Any) -> None:
        """Compare versions on the cluster and here."""
        dataset = lance_nb.dataset(self.there)
        began = time.monotonic()
        found = spark.diff(dataset, dataset.version - 1, columns=["name"], key="id", **on)
        took = time.monotonic() - began
        whole = dataset.diff(dataset.version - 1, key="id").rows(["name"]).read_all()
        order = [("_change", "ascending"), ("_rowaddr", "ascending")]
        assert found.sort_by(order) == whole.sort_by(order)
        print(f"{'diff':12} {found.num_rows:>12,} rows  cluster {took:6.1f} s")


def by_pylance(uri: str) -> pa.Table:
    """Read with pylance, in the order of the key."""
    dataset = require_pylance().dataset(uri)
    dataset.validate()
    return dataset.to_table().sort_by("id").combine_chunks()


def main(num_rows: int) -> None:
    """Run all of it."""
    if (problem := spark.why_not()) is not None:
        sys.exit(problem)
    folder = Path(tempfile.mkdtemp(prefix="lance_nb-cluster-"))
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    try:
        with cluster(folder) as url:
            session = started(url)
            Run(folder, session, num_rows).all()
            session.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("all results are those of the local engine, read by pylance")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5_000_000)
