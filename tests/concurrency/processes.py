"""Processes of ours and of pylance that commit to one dataset at the same time.

    python -m tests.concurrency.processes 250 [--ours 4] [--pylance 4] [--keep]

Each process appends rows of its own, deletes and updates some of them, and sets a config key of
its own, until it has committed so often; one of ours and one of pylance's compact now and then. A
reader polls all the while and reads every version it finds. Afterwards every version is read by
both, and the rows and settings are exactly those that were acknowledged.
"""

from __future__ import annotations

import multiprocessing
import queue
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.torture import command

ROWS = 4  # of one append
COMPACTS_EVERY = 24  # commits of a process that compacts
ATTEMPTS = 200  # of one change; conflicts are expected, endless ones are not


def rows_of(worker: int, number: int) -> pa.Table:
    """The rows of one append: nobody else writes these ids."""
    start = (worker * 100_000 + number) * ROWS
    ids = pa.array(range(start, start + ROWS), pa.int64())
    return pa.table({"id": ids, "n": pa.array([0] * ROWS, pa.int64())})


def work(
    uri: str, worker: int, commits: int, *, ours: bool, compacts: bool = False
) -> dict[str, Any]:
    """Commit so often; return what was acknowledged."""
    rows: dict[int, int] = {}
    retries = compactions = 0
    config = None
    for number in range(commits):
        kind = number % 4
        if kind in (0, 1):
            table = rows_of(worker, number)
            change = _appending(uri, table, ours=ours)
            rows.update(dict.fromkeys(table["id"].to_pylist(), 0))
        elif kind == 3:
            config = str(number)
            change = _configuring(uri, f"worker-{worker}", config, ours=ours)
        elif number % 8 == 2:
            victim = min(rows)
            change = _deleting(uri, victim, ours=ours)
            del rows[victim]
        else:
            victim = max(rows)
            change = _updating(uri, victim, number, ours=ours)
            rows[victim] = number
        retries += _until_done(change)
        if compacts and number % COMPACTS_EVERY == COMPACTS_EVERY - 1:
            _compact(uri, ours=ours)
            compactions += 1
    found = {"rows": rows, "worker": worker, "retries": retries, "config": config}
    return {**found, "compactions": compactions}


def _appending(uri: str, table: pa.Table, *, ours: bool) -> Any:
    module = _module(ours=ours)
    return lambda: module.write_dataset(table, uri, mode="append")


def _deleting(uri: str, victim: int, *, ours: bool) -> Any:
    module = _module(ours=ours)
    return lambda: module.dataset(uri).delete(f"id = {victim}")


def _updating(uri: str, victim: int, value: int, *, ours: bool) -> Any:
    module = _module(ours=ours)
    return lambda: module.dataset(uri).update({"n": str(value)}, where=f"id = {victim}")


def _compact(uri: str, *, ours: bool) -> None:
    """Compact once; that others are in the way is no error, and changes no rows."""
    try:
        _module(ours=ours).dataset(uri).optimize.compact_files()
    except OSError as error:
        if not _may_be_repeated(error):
            raise


def _configuring(uri: str, key: str, value: str, *, ours: bool) -> Any:
    module = _module(ours=ours)
    return lambda: module.dataset(uri).update_config({key: value})


def _module(*, ours: bool) -> Any:
    if ours:
        import lance_nb

        return lance_nb
    import lance

    return lance


def _until_done(change: Any) -> int:
    """Do a change; after a conflict that says so, again. Return how often it was repeated."""
    for attempt in range(ATTEMPTS):
        try:
            change()
        except OSError as error:
            if not _may_be_repeated(error):
                raise
            continue
        return attempt
    raise TimeoutError(f"{ATTEMPTS} attempts were not enough")


def _may_be_repeated(error: OSError) -> bool:
    again = ("retry", "concurrent", "Try again", "overtaken", "preempted", "Too many")
    return any(word in str(error) for word in again)


def poll(uri: str, stop: Any, found: Any) -> None:
    """Read the newest version again and again; every one must be whole and none older."""
    import lance_nb

    newest = polls = 0
    while not stop.is_set():
        dataset = lance_nb.dataset(uri)
        if dataset.version < newest:
            raise RuntimeError(f"version {dataset.version} after {newest}")
        newest = dataset.version
        ids = dataset.to_table()["id"].to_pylist()
        if len(ids) != len(set(ids)) or len(ids) != dataset.count_rows():
            raise RuntimeError(f"version {newest} has {len(ids)} rows, {len(set(ids))} different")
        polls += 1
        time.sleep(0.01)
    found.put(polls)


def _worker(results: Any, *arguments: Any, **options: Any) -> None:
    results.put(work(*arguments, **options))


def run(uri: str, commits: int, ours: int, pylance: int, timeout_s: float = 600) -> dict[str, Any]:
    """Run the processes and check everything. Raises AssertionError."""
    import lance

    lance.write_dataset(rows_of(99, 0), uri)
    context = multiprocessing.get_context("spawn")
    results, polled, stop = context.Queue(), context.Queue(), context.Event()
    reader = context.Process(target=poll, args=(uri, stop, polled))
    workers = [
        context.Process(
            target=_worker,
            args=(results, uri, number, commits),
            kwargs={"ours": number < ours, "compacts": number in (0, ours)},
        )
        for number in range(ours + pylance)
    ]
    began = time.perf_counter()
    for process in (reader, *workers):
        process.start()
    try:
        found = [results.get(timeout=timeout_s) for _ in workers]
        seconds = time.perf_counter() - began
        stop.set()
        polls = polled.get(timeout=240)
    finally:
        for process in (reader, *workers):
            process.join(10)
            if process.is_alive():
                process.kill()
    assert all(process.exitcode == 0 for process in (reader, *workers))
    _check(uri, found, 1 + commits * len(workers))
    return {
        "commits": commits * len(workers),
        "seconds": round(seconds, 1),
        "compactions": sum(one["compactions"] for one in found),
        "polls": polls,
        "retries": {one["worker"]: one["retries"] for one in found},
    }


def _check(uri: str, found: list[dict[str, Any]], versions: int) -> None:
    import lance

    import lance_nb

    ours, theirs = lance_nb.dataset(uri), lance.dataset(uri)
    newest = ours.version
    assert newest == theirs.version >= versions  # a compaction makes versions of its own
    assert ours.version_numbers() == list(range(1, newest + 1))
    assert newest == versions or any(one["compactions"] for one in found)
    wanted = dict.fromkeys(rows_of(99, 0)["id"].to_pylist(), 0)
    for one in found:
        wanted |= one["rows"]
    for dataset in (ours, theirs):
        table = dataset.to_table().sort_by("id")
        have = list(zip(table["id"].to_pylist(), table["n"].to_pylist(), strict=True))
        assert have == sorted(wanted.items()), "rows were lost, are there twice, or are old"
    config = {f"worker-{one['worker']}": one["config"] for one in found if one["config"]}
    assert {key: ours.config()[key] for key in config} == config
    theirs.validate()
    uuids = [ours.transaction(number).uuid for number in ours.version_numbers()]
    assert len(set(uuids)) == newest
    for number in range(1, newest + 1, max(1, newest // 50)):
        old = ours.checkout_version(number)
        assert old.to_table() == theirs.checkout_version(number).to_table()


def main(arguments: list[str]) -> int:
    """Let the processes race; return the exit code."""
    parser = command.arguments_of("tests.concurrency.processes", "commits of each process")
    parser.add_argument("--ours", type=int, default=4)
    parser.add_argument("--pylance", type=int, default=4)

    def work(asked: command.Run) -> command.Found:
        found: dict[str, Any] = {"commits": 0, "polls": 0}
        said = asked.options
        with tempfile.TemporaryDirectory() as folder:
            place = str(Path(folder) / "t.lance")
            try:
                found = run(place, asked.size, said.ours, said.pylance, min(asked.seconds_max, 600))
            except (AssertionError, RuntimeError, queue.Empty) as error:
                asked.fail(f"{type(error).__name__}: {error}")
        return asked.result(found)

    return command.run("races", parser, arguments, work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
