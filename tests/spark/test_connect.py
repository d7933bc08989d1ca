"""Spark Connect: a session whose commits are made by its client. In a process of its own, because
one that has a classic session cannot have another kind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lance_nb import spark
from tests.house.source import ROOT
from tests.spark.data import MARKS, NUM_ROWS, ids_of, written

pytestmark = MARKS
NEEDED = ("grpc", "grpc_status", "google.rpc", "zstandard", "pandas")

CLIENT = """
import json, sys, threading, warnings
from pathlib import Path
warnings.simplefilter("ignore")
from lance_nb import spark
from lance_nb.errors import RunCancelledError
from lance_nb.spark.engines.session import SparkEngine
from tests.spark.test_on_spark import Sleeps

uri = sys.argv[1]
session = spark.start_session(spark__remote="local[2]", spark__sql__shuffle__partitions="2")
said = {"alias": spark.register(session), "found": spark.find_session() is session}
frame = session.read.format("lance_nb").option("filter", "id < 7").load(uri)
said["read"] = sorted(row["id"] for row in frame.collect())
told = []
made = spark.write(frame.selectExpr("id + 10000 AS id", "name", "vector"), uri, "append",
                   progress=told.append)
said["appended"] = made.version
said["phases"] = list(dict.fromkeys(one.phase for one in told))
stop = threading.Event()
threading.Timer(3, stop.set).start()
try:
    SparkEngine(session).run([Sleeps(), Sleeps()], lambda _: None, stop.is_set)
except RunCancelledError as error:
    said["cancelled"] = str(error)
said["lives"] = session.range(5).count()
print("SAID" + json.dumps(said))
session.stop()
"""


def missing() -> list[str]:
    def is_missing(name: str) -> bool:
        try:
            __import__(name)
        except ImportError:
            return True
        return False

    return [name for name in NEEDED if is_missing(name)]


def test_read_append_and_cancel_on_connect(tmp_path: Path) -> None:
    if (problem := spark.why_not()) is not None:
        pytest.skip(problem)
    if names := missing():
        pytest.skip(f"Spark Connect needs {', '.join(names)}: pip install 'pyspark[connect]'")
    uri = written(tmp_path)
    python = {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, uri], cwd=ROOT, check=False, timeout=580,
        capture_output=True, text=True, env={**os.environ, **python},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    said = json.loads(done.stdout.partition("SAID")[2])
    assert said.pop("cancelled").startswith("cancelled after")
    assert said == {
        "alias": "lance", "found": True, "read": list(range(7)), "appended": 2, "lives": 5,
        "phases": ["running", "committing", "done"],
    }  # fmt: skip
    assert ids_of(uri) == [*range(NUM_ROWS), *range(10_000, 10_007)]
