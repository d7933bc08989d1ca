"""Writers that are killed in the middle: what they leave can be read and written on."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.storage.registry import open_store
from lance_nb.transactions.commit_options import CommitPlace
from lance_nb.transactions.version_source import VersionSource
from tests.support.requirements import require_pylance

KILLS = 6
WRITER = """
import sys
import pyarrow as pa
import lance_nb
uri, start = sys.argv[1], int(sys.argv[2])
dataset = lance_nb.dataset(uri)
print("ready", flush=True)
for number in range(10_000):
    dataset.insert(pa.table({"id": pa.array([start + number], pa.int64())}))
    print(start + number, flush=True)
"""


def _row(identity: int) -> pa.Table:
    return pa.table({"id": pa.array([identity], pa.int64())})


@pytest.mark.interop
@pytest.mark.slow
def test_every_acknowledged_row_survives_the_death_of_its_writer(tmp_path: Path):
    lance = require_pylance()
    seed = 20
    chance = random.Random(seed)
    print(f"{seed=}")
    uri = tmp_path / "t.lance"
    lance_nb.write_dataset(_row(-1), uri)
    acknowledged = {-1}
    for kill in range(KILLS):
        start = kill * 100_000
        command = [sys.executable, "-c", WRITER, str(uri), str(start)]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, cwd=Path(lance_nb.__file__).parents[1]
        ) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
            said = [writer.stdout.readline() for _ in range(chance.randint(1, 5))]
            time.sleep(chance.random() * 0.1)
            writer.send_signal(signal.SIGKILL)
            said += writer.stdout.read().splitlines()
        acknowledged.update(int(one) for one in said)
        theirs = lance.dataset(uri)
        theirs.validate()
        found = set(lance_nb.dataset(uri).to_table()["id"].to_pylist())
        assert acknowledged <= found
        assert len(found - acknowledged) <= kill + 1  # landed, and died before it could say so
        assert found == set(theirs.to_table()["id"].to_pylist())
        lance.write_dataset(_row(start + 99_999), uri, mode="append")
        acknowledged.add(start + 99_999)
    slots = CommitPlace.of(open_store(uri)).slots
    source = VersionSource(slots)
    numbers = [name.version for name in slots.list_names()]
    source.head(0)
    assert numbers == list(range(1, len(numbers) + 1))
    assert len({source.transaction(number).uuid for number in numbers}) == len(numbers)
    print(f"{len(numbers)} versions, {KILLS} writers killed")
