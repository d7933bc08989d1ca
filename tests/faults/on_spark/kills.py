"""Kill workers, executors and drivers of jobs on Spark, at every stage of every verb.

    python -m tests.faults spark-kills 144 [seed] [--seconds 3000] [--keep]
    python -m tests.faults spark-kills 12 --verb delete --victim driver
    python -m tests.faults spark-kills 20 213 --missing --add
    python -m tests.faults spark 36           tasks that raise, replies to commits that are lost

A cell of the grid is a verb, a victim and a stage. The victim of a task is the Python worker or the
executor that runs it, or the task itself, which raises an error; that happens before the task, when
its first file would get its name, or after the work. A driver (the Python process, or its JVM) is
killed when a task begins, before the commit, before and after the version is claimed, and before
its records are removed. The reply to a commit is lost, which was made or not. Then the work
is finished as a user would: an unfinished job is resumed by a process that is killed while it
commits, and then by one that is not; a verb that left no trace is repeated. The rows must be those
that the verb makes, for ours and for pylance; a clean-up must leave no file that no version names.

A round is a cell; cells come in an order that the seed chooses. Faults that happened are counted:
a round has up to four of tasks. Spark runs as a cluster of two executors on this machine. The
stored result names the cells it had; ``--missing`` chooses the others.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
from pyarrow import parquet

import lance_nb
from lance_nb import spark
from lance_nb.errors import CommitStateUnknownError
from lance_nb.spark import journal, merge_insert
from lance_nb.spark.plan import Plan
from lance_nb.spark.row_writer import WriteSettings
from lance_nb.spark.run import RunOptions, run, run_once, run_parts
from lance_nb.spark.spark_engine import SparkEngine
from lance_nb.spark.tasks.files import plan_write
from lance_nb.spark.tasks.maintenance import in_parts, plan_index
from lance_nb.storage.local import LocalStore
from tests.faults import command
from tests.faults.results import kept
from tests.house.source import ROOT
from tests.spark.faults import (
    KilledBucket,
    KilledTask,
    Killer,
    cleaned,
    data_files,
    killing_frame,
    replies_lost,
)

NUM_ROWS, NEW_ROWS = 400, 90
VICTIMS = ("worker", "executor", "driver")
FAILING = ("task", "reply")
REPLY_STAGES = ("of a commit that is not made", "of a commit that is made")
TASK_STAGES = ("before", "while it writes", "after")
DRIVER_STAGES = (
    "a task begins",
    "the JVM dies as a task begins",
    "before the commit",
    "before the claim",
    "after the claim",
    "before the records go",
)
RESUME_STAGES = DRIVER_STAGES[2:]
NO_CLAIM_STAGES = ("before the records go",)  # a version that is there is not committed again
DRIVER_S = 400.0  # in which a driver has ended, on a busy machine
Cell = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Job:
    """A dataset, its folder, how the verb is run, and who is killed in a DataFrame."""

    uri: str
    folder: str
    how: RunOptions
    killer: Killer | None = None

    def frame(self, table: pa.Table) -> Any:
        """Return rows as a DataFrame of two partitions, one of which kills."""
        frame = self.how.spark.createDataFrame(table).repartition(2)
        return frame if self.killer is None else killing_frame(frame, self.killer)


@dataclass(frozen=True, slots=True)
class KilledVerb:
    """A verb, the rows afterwards, the number of versions (None: several), and what else holds.

    ``is_frame``: it processes a DataFrame, so only Spark can repeat it, and nothing is journalled.
    ``finish``: called after a resumed job for what is not done yet.
    """

    act: Callable[[Job], Any]
    after: Callable[[dict[int, str]], dict[int, str]]
    versions: int | None = 2
    target: str = "t.lance"
    look: Callable[[Any], bool] = lambda _: True
    is_frame: bool = False
    finish: Callable[[Job], Any] | None = None


def _rows(start: int, stop: int, name: str = "new") -> pa.Table:
    ids = pa.array(range(start, stop), pa.int64())
    return pa.table({"id": ids, "name": [name] * (stop - start)})


def _named(start: int, stop: int) -> dict[int, str]:
    return dict.fromkeys(range(start, stop), "new")


def _source(folder: str, start: int) -> str:
    """Write a Parquet file of three row groups: three tasks."""
    path = f"{folder}/new.parquet"
    parquet.write_table(_rows(start, start + NEW_ROWS), path, row_group_size=NEW_ROWS // 3)
    return path


def _run(job: Job, make: Callable[[Any], Plan]) -> Any:
    return run(lance_nb.dataset(job.uri), make, job.how)


def _written(job: Job, start: int, wanted: WriteSettings) -> Any:
    plan = plan_write(job.uri, _source(job.folder, start), wanted, task_bytes=1)
    return run_once(plan, job.how)


def _all_clauses(job: Job, source: Any, form: str) -> Any:
    merge = merge_insert.merge(job.uri, source, "id", form=form)
    merge.when_matched_update_all("source.id < 380").when_not_matched_insert_all()
    return merge.when_not_matched_by_source_delete("id < 50")


def _upsert(job: Job) -> Any:
    source = _rows(NUM_ROWS - 50, NUM_ROWS + NEW_ROWS)
    clauses = _all_clauses(job, source, "broadcast")._merge_clauses
    _run(job, lambda ds: merge_insert.plan_merge(ds, clauses, source, task_bytes=1))


def _shuffled(job: Job) -> Any:
    source = job.frame(_rows(NUM_ROWS - 50, NUM_ROWS + NEW_ROWS))
    options = {"engine": "spark", "spark": job.how.spark}
    _all_clauses(job, source, "shuffle").execute(**options)


def _after_upsert(rows: dict[int, str]) -> dict[int, str]:
    kept = {one: name for one, name in rows.items() if one >= 50}
    return kept | _named(NUM_ROWS - 50, 380) | _named(NUM_ROWS, NUM_ROWS + NEW_ROWS)


def _compacted(job: Job) -> Any:
    whole = spark.plan_compaction(lance_nb.dataset(job.uri), target_rows_per_fragment=100)
    plans = in_parts(whole, 2)
    return run_parts(plans, job.how) if plans else None


def _has_index(dataset: Any) -> bool:
    covered = [one for index in dataset.list_indices() for one in index["fragment_ids"]]
    return sorted(covered) == list(range(8)) and dataset.count_rows("id = 77") == 1


def _has_twice(dataset: Any) -> bool:
    table = dataset.to_table(columns=["id", "twice"])
    return table["twice"].to_pylist() == [2 * one for one in table["id"].to_pylist()]


VERBS: dict[str, KilledVerb] = {
    "append": KilledVerb(
        lambda job: _written(job, NUM_ROWS, WriteSettings()),
        lambda rows: rows | _named(NUM_ROWS, NUM_ROWS + NEW_ROWS),
    ),
    "create": KilledVerb(
        lambda job: _written(job, 0, WriteSettings("create")),
        lambda _: _named(0, NEW_ROWS), versions=1, target="new.lance",
    ),
    "overwrite where": KilledVerb(
        lambda job: _written(job, 0, WriteSettings("overwrite", where="id < 100")),
        lambda rows: {one: name for one, name in rows.items() if one >= 100} | _named(0, NEW_ROWS),
    ),
    "delete": KilledVerb(
        lambda job: _run(job, lambda ds: spark.plan_delete(ds, "id % 2 = 0", task_bytes=1)),
        lambda rows: {one: name for one, name in rows.items() if one % 2},
    ),
    "update": KilledVerb(
        lambda job: _run(
            job, lambda ds: spark.plan_update(ds, {"name": "'x'"}, "id < 150", task_bytes=1)
        ),
        lambda rows: {one: "x" if one < 150 else name for one, name in rows.items()},
    ),
    "upsert": KilledVerb(_upsert, _after_upsert),
    "upsert, shuffled": KilledVerb(_shuffled, _after_upsert, is_frame=True),
    "backfill": KilledVerb(
        lambda job: _run(job, lambda ds: spark.plan_columns(ds, {"twice": "id * 2"}, task_bytes=1)),
        dict, look=_has_twice,
    ),
    "compact in parts": KilledVerb(
        _compacted, dict, versions=None, finish=_compacted,
        look=lambda dataset: len(dataset.get_fragments()) == 4,
    ),
    "create index": KilledVerb(
        lambda job: _run(job, lambda ds: plan_index(ds, "id", task_bytes=1)),
        dict, look=_has_index,
    ),
    "append a DataFrame": KilledVerb(
        lambda job: spark.write(
            job.frame(_rows(NUM_ROWS, NUM_ROWS + NEW_ROWS)), job.uri, "append", engine="spark"
        ),
        lambda rows: rows | _named(NUM_ROWS, NUM_ROWS + NEW_ROWS), is_frame=True,
    ),
    "clone": KilledVerb(
        lambda job: run_once(
            spark.plan_clone(lance_nb.dataset(job.uri), f"{job.folder}/copy.lance", task_bytes=1),
            job.how,
        ),
        dict, versions=None, target="copy.lance",
    ),
}  # fmt: skip


def cells(verbs: list[str], victims: list[str]) -> list[Cell]:
    """Return the grid of some verbs and victims."""
    stages = {"driver": DRIVER_STAGES, "reply": REPLY_STAGES}
    return [
        (verb, victim, stage)
        for verb in verbs
        for victim in victims
        for stage in stages.get(victim, TASK_STAGES)
    ]


@contextmanager
def _killing_tasks(killer: Killer) -> Iterator[None]:
    """Wrap the tasks that are sent to Spark: the first two and the last two kill once each."""
    run_tasks = SparkEngine.run

    def wrapped(engine: SparkEngine, tasks: Any, *others: Any) -> Any:
        last = len(tasks) - 2
        hurt = [
            KilledTask(one, killer.of(at)) if at < 2 or at >= last else one
            for at, one in enumerate(tasks)
        ]
        return run_tasks(engine, hurt, *others)

    bucket = partial(KilledBucket, killer=killer.of(0))
    with (
        mock.patch.object(SparkEngine, "run", wrapped),
        mock.patch.object(merge_insert, "MergeBucket", bucket),
    ):
        yield


@dataclass
class Rounds:
    """Rounds on one Spark session, which lives as long as its executors are replaced."""

    folder: str
    run: command.Run
    kills: Counter[str] = field(default_factory=Counter)
    stages: Counter[str] = field(default_factory=Counter)
    verbs: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    cells: Counter[str] = field(default_factory=Counter)
    _session: Any = None

    def round(self, number: int, cell: Cell) -> None:
        """Run the verb of one cell, kill, finish the work, and look at what is there."""
        name, victim, stage = cell
        place = Path(self.folder) / f"round-{number}"
        (place / "marks").mkdir(parents=True)
        os.environ["XDG_CACHE_HOME"] = str(place / "cache")  # what a round leaves is its own
        uri = str(place / "t.lance")
        lance_nb.write_dataset(_rows(0, NUM_ROWS, "old"), uri, max_rows_per_file=NUM_ROWS // 8)
        before = _seen(lance_nb.dataset(uri).to_table())
        try:
            if victim == "driver":
                end = self._killed_driver(name, str(place), stage)
            elif victim == "reply":
                end = self._lost_reply(name, str(place), stage)
            else:
                end = self._killed_tasks(name, str(place), Killer(victim, stage, str(place)))
            self._count_marks(name, place)
            _check(VERBS[name], place, VERBS[name].after(before))
            self.ends[f"{victim}: {end}"] += 1
            self.cells[", ".join(cell)] += 1
            print(f"{self.kills.total()} kills: {', '.join(cell)}: {end}", flush=True)
        except Exception as error:  # noqa: BLE001 (whatever it is, it is a finding)
            self._count_marks(name, place)
            self.run.fail(f"cell {number}, {', '.join(cell)}: {type(error).__name__}: {error}")
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _count(self, name: str, victim: str, stage: str) -> None:
        self.kills[victim] += 1
        self.stages[f"{victim}, {stage}"] += 1
        self.verbs[name] += 1

    def _count_marks(self, name: str, place: Path) -> None:
        """Count the kills of tasks, each of which has left a mark."""
        for mark in sorted((place / "marks").iterdir()):
            victim, _, stage = mark.read_text().partition("\n")
            self._count(name, victim, stage)
            mark.unlink()

    def session(self) -> Any:
        """Return a session of two executors."""
        if self._session is None:
            self._session = spark.start_session(
                spark__master="local-cluster[2,1,1024]",
                spark__executor__memory="900m",
                spark__driver__memory="1g",
                spark__task__maxFailures="8",
                spark__deploy__maxExecutorRetries="-1",
                spark__sql__shuffle__partitions="4",
                spark__sql__session__timeZone="UTC",
                spark__executorEnv__PYTHONPATH=str(ROOT),
            )
        return self._session

    def close(self) -> None:
        """End the session."""
        if self._session is not None:
            self._session.stop()

    def _job(self, name: str, place: str, engine: str, killer: Killer | None = None) -> Job:
        target = "t.lance" if VERBS[name].target == "copy.lance" else VERBS[name].target
        spark_session = self.session() if engine == "spark" else None
        how = RunOptions(engine=engine, spark=spark_session)
        return Job(f"{place}/{target}", place, how, killer)

    def _killed_tasks(self, name: str, place: str, killer: Killer) -> str:
        with _killing_tasks(killer):
            VERBS[name].act(self._job(name, place, "spark", killer))
        assert any((Path(place) / "marks").iterdir()), "nothing failed"
        return "retried by Spark"

    def _lost_reply(self, name: str, place: str, stage: str) -> str:
        first = ["made"] if stage == REPLY_STAGES[1] else []
        self._count(name, "reply", stage)
        try:
            with replies_lost(chain(first, repeat("lost"))):
                VERBS[name].act(self._job(name, place, "spark"))
        except CommitStateUnknownError:
            return f"unknown, {self._finished(name, place, 'spark', bool(spark.unfinished()))}"
        return "done"

    def _killed_driver(self, name: str, place: str, stage: str) -> str:
        verb = VERBS[name]
        engine = "spark" if verb.is_frame else "local"
        self._end("--drive", name, place, stage)
        is_resumed = False
        if entries := spark.unfinished():
            is_resumed = True
            is_there = stage in ("after the claim", "before the records go")
            chance = random.Random(f"{self.run.seed} {name} {stage}")
            later = chance.choice(NO_CLAIM_STAGES if is_there else RESUME_STAGES)
            self._end("--resume", name, entries[0].operation_id, later)
        ended = self._finished(name, place, engine, is_resumed or bool(spark.unfinished()))
        return f"killed while it resumed, {ended}" if is_resumed else ended

    def _finished(self, name: str, place: str, engine: str, is_resumed: bool) -> str:
        """Finish the work as a user would; return how."""
        verb = VERBS[name]
        if entries := spark.unfinished():
            spark.resume(entries[0].operation_id, engine="local")
        job = self._job(name, place, engine)
        if is_resumed:
            if verb.finish is not None:
                verb.finish(job)
            return "resumed"
        if _is_done(verb, place):
            return "the version was there"
        verb.act(job)
        return "left no trace, repeated"

    def _end(self, what: str, name: str, *words: str) -> None:
        """Run a driver that is killed; its JVM goes with it."""
        driver = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", __name__, what, name, *words],
            cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)}, text=True,
        )  # fmt: skip
        try:
            _, said = driver.communicate(timeout=DRIVER_S)
        except subprocess.TimeoutExpired:
            os.killpg(driver.pid, signal.SIGKILL)
            raise
        with suppress(ProcessLookupError):
            os.killpg(driver.pid, signal.SIGKILL)
        assert driver.returncode == -signal.SIGKILL or (
            driver.returncode == 1 and words[-1].startswith("the JVM")
        ), f"{what}: the driver ended with {driver.returncode}: {said[-600:]}"
        if not words[-1].endswith("a task begins"):  # a task that kills leaves a mark
            self._count(name, "driver" if what == "--drive" else "driver that resumes", words[-1])


def _is_done(verb: KilledVerb, place: str) -> bool:
    try:
        newest = lance_nb.dataset(f"{place}/{verb.target}")
    except lance_nb.LanceError:
        return False
    return verb.target != "t.lance" or newest.version > 1


def _seen(table: pa.Table) -> dict[int, str]:
    found = dict(zip(table["id"].to_pylist(), table["name"].to_pylist(), strict=True))
    assert len(found) == table.num_rows, "a row is there twice"
    return found


def _check(verb: KilledVerb, place: Path, expected: dict[int, str]) -> None:
    """Compare rows and versions, for ours and for pylance. Raises AssertionError."""
    import lance

    uri = str(place / verb.target)
    dataset = lance_nb.dataset(uri)
    if verb.versions is not None:
        assert dataset.version - _reserved(dataset) == verb.versions, f"{dataset.version} versions"
    assert _seen(dataset.to_table()) == expected, "other rows"
    theirs = lance.dataset(uri)
    assert _seen(theirs.to_table()) == expected, "pylance reads other rows"
    assert verb.look(dataset), "not what the verb makes"
    assert verb.look(theirs), "pylance does not see what the verb makes"
    assert lance_nb.verify(uri).ok, str(lance_nb.verify(uri))
    assert not spark.unfinished(), "work is listed as unfinished"
    assert not list(place.glob("*.lance/_lance_nb_jobs/*")), "records of tasks are left"
    cleaned(uri)
    there, named = data_files(uri)
    indices = {one.parent.name for one in place.glob(f"{verb.target}/_indices/*/*")}
    for version in dataset.version_numbers():
        old = dataset.checkout_version(version)
        named |= {Path(one.path).name for part in old.get_fragments() for one in part.data_files()}
        indices -= {one["uuid"] for one in old.list_indices()}
    assert there == named, f"left behind: {there - named}"
    assert not indices, f"segments are left behind: {indices}"


def _reserved(dataset: Any) -> int:
    """Count the versions that only reserve the numbers of fragments, as compactions make them."""
    return sum(one.operation == "ReserveFragments" for one in dataset.history())


def _dies() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def _dying(stage: str) -> Iterator[None]:
    """Let this process die at a stage of its first commit."""
    claim, commit, finish = LocalStore.write_if_absent, Plan.commit, journal.finish

    def claimed(store: LocalStore, path: str, data: Any) -> None:
        is_version = path.endswith(".manifest")
        if is_version and stage == "before the claim":
            _dies()
        claim(store, path, data)
        if is_version and stage == "after the claim":
            _dies()

    def committed(plan: Plan, *others: Any) -> Any:
        if stage == "before the commit":
            _dies()
        return commit(plan, *others)

    def finished(*others: Any) -> None:
        if stage == "before the records go":
            _dies()
        finish(*others)

    def forgotten(operation_id: str) -> None:
        if stage == "before the records go":
            _dies()
        forget(operation_id)

    forget = journal.forget
    with (
        mock.patch.object(LocalStore, "write_if_absent", claimed),
        mock.patch.object(Plan, "commit", committed),
        mock.patch.object(journal, "finish", finished),
        mock.patch.object(journal, "forget", forgotten),
    ):
        yield


def _drive(name: str, place: str, stage: str) -> int:
    """Be the driver that is killed."""
    session = spark.start_session(
        spark__master="local[2]", spark__driver__memory="1g", spark__sql__shuffle__partitions="2"
    )
    victim = "executor" if stage.startswith("the JVM") else "driver"
    killer = Killer(victim, "before", place, os.getpid()) if "a task" in stage else None
    target = "t.lance" if VERBS[name].target == "copy.lance" else VERBS[name].target
    how = RunOptions(engine="spark", spark=session, journal=True)
    job = Job(f"{place}/{target}", place, how, killer)
    if killer is not None:
        with _killing_tasks(killer):
            VERBS[name].act(job)
    with _dying(stage):
        VERBS[name].act(job)
    return 0


def _resume(_name: str, operation_id: str, stage: str) -> int:
    """Be the driver that is killed while it resumes a job."""
    with _dying(stage):
        spark.resume(operation_id, engine="local")
    return 0


def _work(run: command.Run, victims: tuple[str, ...]) -> command.Counts:
    folder = tempfile.mkdtemp(dir=os.environ.get("PYTEST_DEBUG_TEMPROOT"))
    grid = cells(run.options.verb or list(VERBS), run.options.victim or list(victims))
    if run.options.missing:
        done = kept()["spark_kills"]["cells"]
        grid = [cell for cell in grid if ", ".join(cell) not in done]
    random.Random(run.seed).shuffle(grid)
    with mock.patch.dict(os.environ, {"XDG_CACHE_HOME": f"{folder}/cache"}):
        rounds = Rounds(folder, run)
        num_rounds = 0
        try:
            for seed in run.seeds():
                if run.options.missing and num_rounds == len(grid):
                    break
                rounds.round(seed, grid[num_rounds % len(grid)])
                num_rounds += 1
        finally:
            rounds.close()
            shutil.rmtree(folder, ignore_errors=True)
    counts = {
        "rounds": num_rounds, "kills": rounds.kills.total(), "victims": dict(rounds.kills),
        "stages": dict(rounds.stages), "verbs": dict(rounds.verbs), "ends": dict(rounds.ends),
        "cells": dict(rounds.cells),
    }  # fmt: skip
    return run.result(counts, [run.seed, run.seed + num_rounds - 1])


def main(arguments: list[str], kind: str = "spark-kills") -> int:
    """Let jobs fail as often as asked; return the exit code."""
    warnings.simplefilter("ignore")
    is_kills = kind == "spark-kills"
    victims, size = (VICTIMS, 144) if is_kills else (FAILING, 36)
    parser = command.parser_of(kind, "rounds", size)
    parser.add_argument("--verb", action="append", choices=list(VERBS))
    parser.add_argument("--victim", action="append", choices=victims)
    parser.add_argument("--missing", action="store_true", help="cells that no stored run had")
    result = "spark_kills" if is_kills else "spark_failures"
    return command.run(result, parser, arguments, lambda run: _work(run, victims))


def fail(arguments: list[str]) -> int:
    """Let tasks raise and replies be lost; return the exit code."""
    return main(arguments, "spark")


if __name__ == "__main__":
    sys.exit({"--drive": _drive, "--resume": _resume}[sys.argv[1]](*sys.argv[2:]))
