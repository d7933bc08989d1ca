"""Spark Connect, with lance_nb installed from its wheel: Spark finds the source of data by itself.

In a process of its own, because one that has a classic session cannot have another kind, and in a
virtual environment of its own, which borrows everything but lance_nb.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
from pyarrow import parquet

from lance_nb import spark
from tests.spark.data import MARKS, NUM_ROWS, ids_of, rows, written
from tests.support.wheels import build_wheel

pytestmark = MARKS
NEEDED = ("grpc", "grpc_status", "google.rpc", "zstandard", "pandas")

CLIENT = """
import json, os, sys, threading, time, warnings
warnings.simplefilter("ignore")
import pyarrow as pa
import lance_nb
from lance_nb import spark
from lance_nb.errors import RunCancelledError

uri = sys.argv[1]
session = spark.start_session(spark__remote="local[2]", spark__sql__shuffle__partitions="2")
frame = session.read.format("lance_nb").option("filter", "id < 7").load(uri)
said = {"read": sorted(row["id"] for row in frame.collect())}
said |= {"alias": spark.register(session), "found": spark.find_session() is session}
query = "SELECT count(*), max(id) FROM t WHERE id < 7"
said["sql"] = list(spark.sql(query, spark=session, tables={"t": uri}).collect()[0])
counted = spark.sql("SELECT count(*) FROM t", spark=session, tables={"t": uri})
said["counted"] = counted.collect()[0][0]
told = []
new = frame.selectExpr("id + 10000 AS id", "name", "vector")
said["appended"] = spark.write(new, uri, "append", progress=told.append).version
said["phases"] = list(dict.fromkeys(one.phase for one in told))

here = os.getpid()

def slow(batch):
    time.sleep(60 if os.getpid() != here else 0)  # planning computes a batch, in this process
    return pa.record_batch({"x": batch["id"]})

stop = threading.Event()
threading.Timer(5, stop.set).start()
began = time.monotonic()
try:
    spark.backfill(uri, slow, ["id"], engine="spark", spark=session, stop=stop.is_set)
except RunCancelledError as error:
    said["cancelled"] = str(error)
said["cancelled in time"] = time.monotonic() - began < 30
said["lives"] = session.range(5).count()
on = {"engine": "spark", "spark": session}
ids = frame.selectExpr("id + 20000 AS id", "'new' AS name", "vector")
changed = ids.union(frame.selectExpr("id", "'mine' AS name", "vector"))
clauses = spark.merge(uri, changed, on="id", form="shuffle").when_matched_update_all()
clauses = clauses.when_not_matched_insert_all().when_not_matched_by_source_delete("id = 10")
verbs = {
    "append files": lambda: spark.append(uri, sys.argv[2], **on),
    "delete": lambda: spark.delete(uri, "id = 11", **on),
    "update": lambda: spark.update(uri, {"name": "'up'"}, "id = 12", **on),
    "upsert, shuffled": lambda: clauses.execute(**on),
    "upsert, broadcast": lambda: spark.upsert(uri, changed, "id", form="broadcast", **on),
    "backfill": lambda: spark.backfill(uri, {"twice": "id * 2"}, **on),
    "index": lambda: spark.create_scalar_index(uri, "id", "BTREE", **on),
    "compact": lambda: spark.compact(uri, **on),
    "count": lambda: spark.count(uri, "id < 7", **on),
    "diff": lambda: spark.diff(uri, 1, 2, columns=["id"], **on).num_rows,
    "time travel": lambda: spark.sql(
        "SELECT count(*) FROM t VERSION AS OF 1", spark=session, tables={"t": uri}
    ).collect()[0][0],
    "overwrite where": lambda: spark.write(
        frame.filter("id = 1"), uri, "overwrite", where="id = 1"
    ),
    "df.write": lambda: ids.withColumn("twice", ids["id"]).write.format("lance").mode(
        "append"
    ).save(uri),
    "clone": lambda: spark.clone(uri, uri + "-copy", **on).count_rows(),
}
said["verbs"] = {}
for name, verb in verbs.items():
    try:
        made = verb()
        said["verbs"][name] = made if isinstance(made, (int, dict)) else "done"
    except Exception as error:
        said["verbs"][name] = f"{type(error).__name__}: {error}"[:300]
said["from"] = lance_nb.__file__
print("SAID" + json.dumps(said))
session.stop()
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel, and with what is installed here for all else."""
    if (problem := spark.why_not()) is not None:
        pytest.skip(problem)
    if missing := [name for name in NEEDED if not is_there(name)]:
        pytest.skip(f"Spark Connect needs {', '.join(missing)}: pip install 'pyspark[connect]'")
    folder = tmp_path_factory.mktemp("connect")
    wheel = build_wheel(folder)
    venv.create(folder / "venv", with_pip=False)
    (site,) = (folder / "venv").glob("lib/python*/site-packages")
    zipfile.ZipFile(wheel).extractall(site)
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    return folder / "venv" / "bin" / "python"


def is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def test_a_wheel_runs_every_verb_on_connect(
    python: Path, tmp_path: Path, bytecode: dict[str, str]
) -> None:
    uri = written(tmp_path)
    file = str(tmp_path / "more.parquet")
    parquet.write_table(rows(30_000, 30_010), file)
    own = {"PYTHONPATH": "", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(
        [python, "-c", CLIENT, uri, file], cwd=tmp_path, check=False, timeout=560,
        capture_output=True, text=True, env={**bytecode, **own},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    said = json.loads(done.stdout.partition("SAID")[2])
    assert Path(said.pop("from")).is_relative_to(python.parents[1])
    counts = {"num_inserted_rows": 7, "num_updated_rows": 7, "num_deleted_rows": 1}
    done_by = ("append files", "delete", "update", "upsert, broadcast", "backfill", "index",
               "compact", "overwrite where", "df.write")  # fmt: skip
    assert said.pop("verbs") == {
        **dict.fromkeys(done_by, "done"), "upsert, shuffled": counts, "count": 7, "diff": 7,
        "time travel": NUM_ROWS, "clone": NUM_ROWS + 29,
    }  # fmt: skip
    assert said.pop("cancelled").startswith("cancelled after")
    assert said == {
        "read": list(range(7)), "alias": "lance", "found": True, "appended": 2,
        "cancelled in time": True, "sql": [7, 6], "counted": NUM_ROWS,
        "phases": ["running", "committing", "done"], "lives": 5,
    }  # fmt: skip
    kept = [one for one in range(NUM_ROWS) if one not in {10, 11}]
    twice = [one for one in range(20_000, 20_007) for _ in range(2)]
    assert ids_of(uri) == [*kept, *range(10_000, 10_007), *twice, *range(30_000, 30_010)]
