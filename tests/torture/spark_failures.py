"""Jobs on Spark whose tasks, workers, executors, commits or drivers fail: once, or not at all.

    python -m tests.torture.spark_failures 60 [seed] [--seconds 900] [--keep]

A round makes a dataset, plans a verb and lets something fail: a task raises, its Python worker or
its executor is killed after it has written its files, the reply to the commit is lost (with or
without the commit), or the driver is killed while it works or around its commit. Then the work is
finished as a user would: a plan that is listed as unfinished is resumed, which runs the tasks of a
killed driver that left no record, and a verb that left no trace is repeated. The change must be
there exactly once, for ours and for pylance, and a clean-up must leave no file that no version
names, and no record of a task. Spark runs as a cluster of two executors on this machine.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
from pyarrow import parquet

import lance_nb
from lance_nb import spark
from lance_nb.errors import CommitStateUnknownError, StorageError
from lance_nb.spark.plan import Plan
from lance_nb.spark.run import RunOptions, run_once
from lance_nb.storage.local import LocalStore
from tests.house.source import ROOT
from tests.spark.faults import cleaned, data_files, faulty
from tests.torture import command

NUM_ROWS, NEW_ROWS = 400, 90
FAULTS = ("error", "crash", "kill", "commit not made", "commit made, reply lost", "driver killed")
MOMENTS = ("at work", "before the commit", "after the commit")  # when a driver is killed
DRIVER_S = 6.0  # in which a driver works, once Spark has started: it is killed somewhere in between


@dataclass(frozen=True, slots=True)
class SparkVerb:
    """A plan of tasks, and the ids and names that the rows have afterwards."""

    plan: Callable[[Any, str], Any]
    after: Callable[[dict[int, str]], dict[int, str]]


def _rows(start: int, stop: int, name: str = "new") -> pa.Table:
    return pa.table(
        {"id": pa.array(range(start, stop), pa.int64()), "name": [name] * (stop - start)}
    )


def _new_rows() -> dict[int, str]:
    return dict.fromkeys(range(NUM_ROWS, NUM_ROWS + NEW_ROWS), "new")


def _source(folder: str) -> str:
    """Write a Parquet file of three row groups: three tasks."""
    path = f"{folder}/new.parquet"
    table = _rows(NUM_ROWS, NUM_ROWS + NEW_ROWS)
    parquet.write_table(table, path, row_group_size=NEW_ROWS // 3)
    return path


VERBS: dict[str, SparkVerb] = {
    "append": SparkVerb(
        lambda ds, folder: spark.plan_append(ds, _source(folder), task_bytes=1),
        lambda rows: rows | _new_rows(),
    ),
    "delete": SparkVerb(
        lambda ds, _: spark.plan_delete(ds, "id % 2 = 0", task_bytes=1),
        lambda rows: {one: name for one, name in rows.items() if one % 2},
    ),
    "update": SparkVerb(
        lambda ds, _: spark.plan_update(ds, {"name": "'x'"}, "id < 150", task_bytes=1),
        lambda rows: {one: "x" if one < 150 else name for one, name in rows.items()},
    ),
    "upsert": SparkVerb(
        lambda ds, _: spark.plan_upsert(ds, _rows(NUM_ROWS - 50, NUM_ROWS + NEW_ROWS), "id"),
        lambda rows: rows | dict.fromkeys(range(NUM_ROWS - 50, NUM_ROWS + NEW_ROWS), "new"),
    ),
    "backfill": SparkVerb(
        lambda ds, _: spark.plan_columns(ds, {"twice": "id * 2"}, task_bytes=1), dict
    ),
    "compact": SparkVerb(lambda ds, _: spark.plan_compaction(ds), dict),
}


def _seen(table: pa.Table) -> dict[int, str]:
    found = dict(zip(table["id"].to_pylist(), table["name"].to_pylist(), strict=True))
    assert len(found) == table.num_rows, "a row is there twice"
    return found


@contextmanager
def _replies_lost(fault: str) -> Iterator[None]:
    """Lose the replies to all claims of a version; "commit made" lets the first one happen."""
    claim = LocalStore.write_if_absent
    made = [fault == "commit made, reply lost"]

    def unclear(store: LocalStore, path: str, data: Any) -> None:
        if not path.endswith(".manifest"):
            return claim(store, path, data)
        if made[0]:
            made[0] = False
            claim(store, path, data)
        raise StorageError(path, "the reply was lost", "unknown")

    with mock.patch.object(LocalStore, "write_if_absent", unclear):
        yield


class Rounds:
    """Rounds on one Spark session, which lives as long as its executors are replaced."""

    def __init__(self, folder: str, run: command.Run) -> None:
        self.folder = folder
        self.run = run
        self.ends: Counter[str] = Counter()
        self.verbs: Counter[str] = Counter()
        self._session: Any = None

    def round(self, seed: int) -> None:
        """Let one job fail and look at what is left."""
        chance = random.Random(seed)
        name, fault = chance.choice(list(VERBS)), FAULTS[seed % len(FAULTS)]
        place = Path(self.folder) / f"round-{seed}"
        place.mkdir()
        uri = str(place / "t.lance")
        lance_nb.write_dataset(_rows(0, NUM_ROWS, "old"), uri, max_rows_per_file=NUM_ROWS // 8)
        before = _seen(lance_nb.dataset(uri).to_table())
        os.environ["XDG_CACHE_HOME"] = str(place / "cache")  # what a round leaves is its own
        try:
            if fault == "driver killed":
                end = self._killed_driver(name, uri, chance)
            elif fault in ("error", "crash", "kill"):
                end = self._failing_task(name, uri, fault)
            else:
                end = self._lost_reply(name, uri, fault)
            _check(uri, VERBS[name].after(before))
            self.ends[f"{fault}: {end}"] += 1
            self.verbs[name] += 1
        except Exception as error:  # noqa: BLE001 (whatever it is, it is a finding)
            self.run.fail(f"seed {seed}, {name}, {fault}: {type(error).__name__}: {error}")
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def session(self) -> Any:
        """Return a session of two executors."""
        if self._session is None:
            self._session = spark.start_session(
                spark__master="local-cluster[2,1,1024]",
                spark__executor__memory="900m",
                spark__driver__memory="1g",
                spark__task__maxFailures="8",
                spark__sql__shuffle__partitions="4",
                spark__sql__session__timeZone="UTC",
                spark__executorEnv__PYTHONPATH=str(ROOT),
            )
        return self._session

    def close(self) -> None:
        """End the session."""
        if self._session is not None:
            self._session.stop()

    def _plan(self, name: str, uri: str) -> Any:
        return VERBS[name].plan(lance_nb.dataset(uri), str(Path(uri).parent))

    def _failing_task(self, name: str, uri: str, fault: str) -> str:
        plan = self._plan(name, uri)
        hurt = faulty(plan, [fault] * min(2, len(plan.tasks)), Path(uri).parent)
        run_once(hurt, RunOptions(engine="spark", spark=self.session()))
        return "done"

    def _lost_reply(self, name: str, uri: str, fault: str) -> str:
        plan = self._plan(name, uri)
        try:
            with _replies_lost(fault):
                run_once(plan, RunOptions(engine="spark", spark=self.session()))
        except CommitStateUnknownError:
            (entry,) = spark.unfinished()
            spark.resume(entry.operation_id)
            return "unknown, resumed"
        return "done"

    def _killed_driver(self, name: str, uri: str, chance: random.Random) -> str:
        moment = chance.choice(MOMENTS)
        driver = subprocess.Popen(
            [sys.executable, "-m", "tests.torture.spark_failures", "--drive", name, uri, moment],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        assert driver.stdout is not None
        line = driver.stdout.readline()
        assert line.strip() == b"started", f"the driver said {line!r}"
        with suppress(subprocess.TimeoutExpired):
            driver.wait(chance.uniform(0, DRIVER_S) if moment == "at work" else None)
        with suppress(ProcessLookupError):  # Spark's own process goes with it
            os.killpg(driver.pid, signal.SIGKILL)
        code = driver.wait()
        driver.stdout.close()
        entries = spark.unfinished()
        if entries:
            spark.resume(entries[0].operation_id, engine="local")
            return "killed at work, resumed" if entries[0].num_tasks else "killed, resumed"
        if lance_nb.dataset(uri).version == 1:
            assert code != 0, "the driver ended well, and no version is there"
            run_once(self._plan(name, uri), RunOptions(engine="local"))
            return "killed before its entry, repeated"
        return "killed after the commit" if code else "ended before it was killed"


def _check(uri: str, expected: dict[int, str]) -> None:
    """Compare rows and versions, for ours and for pylance. Raises AssertionError."""
    import lance

    dataset = lance_nb.dataset(uri)
    assert dataset.version - _reserved(dataset) == 2, f"{dataset.version} versions"
    assert _seen(dataset.to_table()) == expected, "other rows"
    assert _seen(lance.dataset(uri).to_table()) == expected, "pylance reads other rows"
    assert lance_nb.verify(uri).ok, str(lance_nb.verify(uri))
    assert not spark.unfinished(), "work is listed as unfinished"
    assert not list(Path(uri).glob("_lance_nb_jobs/*")), "records of tasks are left"
    cleaned(uri)
    there, named = data_files(uri)
    for version in dataset.version_numbers()[:-1]:
        fragments = dataset.checkout_version(version).get_fragments()
        named |= {Path(file.path).name for one in fragments for file in one.data_files()}
    assert there == named, f"left behind: {there - named}"


def _reserved(dataset: Any) -> int:
    """Count the versions that only reserve the numbers of fragments, as compactions make them."""
    return sum(one.operation == "ReserveFragments" for one in dataset.history())


def _drive(name: str, uri: str, moment: str) -> int:
    """Be the driver that is killed."""
    commit = Plan.commit

    def dies(plan: Plan, *args: Any) -> Any:
        if moment == "after the commit":
            commit(plan, *args)
        if moment != "at work":
            os.kill(os.getpid(), signal.SIGKILL)
        return commit(plan, *args)

    Plan.commit = dies  # type: ignore[assignment,method-assign]
    plan = VERBS[name].plan(lance_nb.dataset(uri), str(Path(uri).parent))
    session = spark.start_session(spark__master="local[2]", spark__driver__memory="1g")
    print("started", flush=True)
    run_once(plan, RunOptions(engine="spark", spark=session, journal=True))
    return 0


def _work(run: command.Run) -> command.Found:
    folder = tempfile.mkdtemp(dir=os.environ.get("PYTEST_DEBUG_TEMPROOT"))
    with mock.patch.dict(os.environ, {"XDG_CACHE_HOME": f"{folder}/cache"}):
        rounds = Rounds(folder, run)
        seeds = []
        try:
            for seed in run.seeds():
                rounds.round(seed)
                seeds.append(seed)
        finally:
            rounds.close()
            shutil.rmtree(folder, ignore_errors=True)
    counts = {"rounds": len(seeds), "ends": dict(rounds.ends), "verbs": dict(rounds.verbs)}
    return run.result(counts, seeds)


def main(arguments: list[str]) -> int:
    """Let jobs fail as often as asked; return the exit code."""
    if arguments[:1] == ["--drive"]:
        return _drive(*arguments[1:])
    parser = command.arguments_of("tests.torture.spark_failures", "rounds")
    return command.run("spark_failures", parser, arguments, _work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
