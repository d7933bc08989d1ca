"""Batches of a stream that are offered again, with foreign commits and clean-ups in between.

    python -m tests.faults streams 100 [seed] [--seconds 900] [--keep]

A replay lets a query of Spark write the batches that have arrived, and takes the note of its last
commit out of the checkpoint, as if the query had died between the commit and the note. Then others
commit: pylance appends, updates and deletes rows and changes the configuration, ours compacts and
removes old versions. The restarted query offers the last batch again, and further ones. Every row
of every batch must be there exactly once, as others left it, for ours and for pylance. Now and then
the stream begins anew, with another dataset and checkpoint.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

import lance_nb
from lance_nb import spark
from tests.faults import command

BATCH_ROWS = 5
REPLAYS_OF_A_STREAM = 12
FOREIGN = ("append", "update", "delete", "config", "compact", "clean up")


class Stream:
    """A folder of files as a stream, a query that writes it, and the rows that must be there."""

    def __init__(self, session: Any, folder: Path) -> None:
        self.session = session
        self.folder = folder
        self.target = str(folder / "stream.lance")
        self.checkpoint = folder / "checkpoint"
        self.expected: dict[int, str] = {}
        self.num_batches = 0
        self.next_foreign = 1_000_000
        (folder / "in").mkdir(parents=True)

    def arrive(self) -> None:
        """Put the file of a batch into the folder."""
        first = self.num_batches * BATCH_ROWS
        ids = range(first, first + BATCH_ROWS)
        rows = pa.table({"id": pa.array(ids, pa.int64()), "name": ["new"] * BATCH_ROWS})
        parquet.write_table(rows, self.folder / "in" / f"{self.num_batches}.parquet")
        self.expected |= dict.fromkeys(ids, "new")
        self.num_batches += 1

    def run(self) -> None:
        """Write what has arrived, one file a batch."""
        frame = self.session.readStream.schema("id long, name string")
        frame = frame.option("maxFilesPerTrigger", 1).parquet(str(self.folder / "in"))
        writer = frame.writeStream.format("lance_nb")
        writer = writer.option("checkpointLocation", str(self.checkpoint))
        writer.trigger(availableNow=True).start(self.target).awaitTermination()

    def forget_last_commit(self) -> None:
        """Make the checkpoint one of a query that died between the commit and its note of it."""
        commits = self.checkpoint / "commits"
        last = max(int(one.name) for one in commits.iterdir() if one.name.isdecimal())
        (commits / str(last)).unlink()
        (commits / f".{last}.crc").unlink(missing_ok=True)

    def foreign(self, what: str, chance: random.Random) -> None:
        """Let somebody else commit."""
        import lance

        ours, theirs = lance_nb.dataset(self.target), lance.dataset(self.target)
        if what == "append":
            rows = pa.table({"id": pa.array([self.next_foreign], pa.int64()), "name": ["theirs"]})
            lance.write_dataset(rows, self.target, mode="append")
            self.expected[self.next_foreign] = "theirs"
            self.next_foreign += 1
        elif what == "update":
            number = chance.choice(sorted(self.expected))
            theirs.update({"name": "'changed'"}, where=f"id = {number}")
            self.expected[number] = "changed"
        elif what == "delete":
            number = chance.choice(sorted(self.expected))
            theirs.delete(f"id = {number}")
            del self.expected[number]
        elif what == "config":
            theirs.update_config({"foreign": str(chance.random())})
        elif what == "compact":
            ours.optimize.compact_files()
        else:
            ours.cleanup_old_versions(older_than=timedelta(0))

    def check(self) -> None:
        """Compare all rows, for ours and for pylance. Raises AssertionError."""
        import lance

        for name, table in (
            ("ours", lance_nb.dataset(self.target).to_table()),
            ("pylance", lance.dataset(self.target).to_table()),
        ):
            found = dict(zip(table["id"].to_pylist(), table["name"].to_pylist(), strict=True))
            assert table.num_rows == len(found), f"{name} reads a row twice"
            assert found == self.expected, f"{name} reads other rows"
        verified = lance_nb.verify(self.target)
        assert verified.ok, [str(one) for one in verified.findings]


def _replay(stream: Stream, seed: int) -> Counter[str]:
    """Write, forget, let others commit, and offer the last batch again; return what others did."""
    chance = random.Random(seed)
    for _ in range(chance.randint(1, 2)):
        stream.arrive()
    stream.run()
    stream.forget_last_commit()
    done = [chance.choice(FOREIGN) for _ in range(chance.randint(0, 4))]
    for what in done:
        stream.foreign(what, chance)
    if chance.random() < 0.5:
        stream.arrive()
    stream.run()
    stream.check()
    return Counter(done)


def _work(run: command.Run) -> command.Counts:
    folder = Path(tempfile.mkdtemp(dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")))
    session = spark.start_session(
        spark__master="local[2]",
        spark__driver__memory="1g",
        spark__sql__shuffle__partitions="2",
        spark__sql__session__timeZone="UTC",
    )
    ends: Counter[str] = Counter()
    seeds: list[int] = []
    stream: Stream | None = None
    try:
        for seed in run.seeds():
            if stream is None or len(seeds) % REPLAYS_OF_A_STREAM == 0:
                stream = Stream(session, folder / str(seed))
            try:
                ends += _replay(stream, seed)
            except Exception as error:  # noqa: BLE001 (whatever it is, it is a finding)
                run.fail(f"seed {seed}: {type(error).__name__}: {error}")
                stream = None
            seeds.append(seed)
    finally:
        session.stop()
        shutil.rmtree(folder, ignore_errors=True)
    return run.result({"replays": len(seeds), "ends": dict(ends)}, seeds)


def main(arguments: list[str]) -> int:
    """Replay batches as often as asked; return the exit code."""
    parser = command.parser_of("streams", "replays", 100)
    return command.run("stream_replays", parser, arguments, _work)
