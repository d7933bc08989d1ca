"""Chooses where a plan runs, and says why.

The sizes are those of ``python -m tests.benchmarks.spark --dispatch`` (appends of Parquet files,
two cores): one process writes about 450 MB a second once it is warm; tasks on a warm session cost
0.2 seconds more and take half as long, so that both are done at the same time at about 130 MB.

Processes of our own are no choice: those that can be started beside the threads of a notebook
import the user's script, and run its commits again. They were slower as well: to append, update or
compact 0.7 to 1.5 GB, a pool of two took two to three times as long as this process, and two to
three times its processor time.

==========================================  ==========================================
situation (``engine="auto"``)               engine
==========================================  ==========================================
one task                                     local
a session is there, ``SESSION_BYTES`` on     spark
no session, but SPARK_REMOTE names a         spark, connected to
server, ``START_BYTES`` on
otherwise                                    local
==========================================  ==========================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lance_nb.errors import InvalidInputError
from lance_nb.spark.engine import Engine
from lance_nb.spark.engines.inline import InlineEngine
from lance_nb.spark.engines.session import SparkEngine
from lance_nb.spark.plan import Plan
from lance_nb.spark.sessions import find_session, is_local, remote, start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENGINES = ("auto", "local", "spark")
SESSION_BYTES = 128 * 1024**2
START_BYTES = 4 * 1024**3


@dataclass(frozen=True, slots=True)
class Choice:
    """The engine for a plan, and the reason in a few words."""

    name: str
    reason: str
    spark: SparkSession | None = None

    def engine(self) -> Engine:
        """Make the engine; starts a Spark session when one is wanted and there is none."""
        if self.name == "spark":
            return SparkEngine(self.spark if self.spark is not None else start_session())
        return InlineEngine()


def choose(plan: Plan, engine: str = "auto", spark: SparkSession | None = None) -> Choice:
    """Choose an engine for a plan. Raises InvalidInputError for a name that does not exist."""
    if engine == "pool":
        raise InvalidInputError(
            "there is no engine 'pool' any more: a script without a __main__ guard was run again "
            "by each of its processes, commits included. Use engine='local', or engine='spark', "
            "which starts a local session where there is none"
        )
    if engine not in ENGINES:
        raise InvalidInputError(f"engine {engine!r} is not one of {', '.join(ENGINES)}")
    session = spark if spark is not None else find_session()
    if plan.gather is not None:
        return Choice("spark", "a DataFrame stays on Spark", session)
    if engine != "auto":
        return Choice(engine, "asked for", session)
    if spark is not None:
        return Choice("spark", "a session was given", session)
    size = size_text(plan.size_bytes)
    if len(plan.tasks) < 2:
        return Choice("local", f"{size} in {_tasks(plan)}")
    if session is not None and plan.size_bytes >= SESSION_BYTES:
        there = "a session" if is_local(session) else "a cluster"
        return Choice("spark", f"{size}, and {there} is there", session)
    if session is None and remote() is not None and plan.size_bytes >= START_BYTES:
        return Choice("spark", f"{size}, and SPARK_REMOTE names a server")
    return Choice("local", f"{size} in {_tasks(plan)}")


def explain(plan: Plan, engine: str = "auto", spark: SparkSession | None = None) -> str:
    """Say what a plan is and where it would run."""
    choice = choose(plan, engine, spark)
    branch = plan.place.branch or "main"
    tasks = f"{len(plan.tasks)}, about {size_text(plan.size_bytes)}"
    if plan.gather is not None:
        tasks = "one for each partition of the DataFrame; its size is Spark's to say"
    return (
        f"{plan.verb} {plan.detail}\n"
        f"read version: {branch}:{plan.place.version}\n"
        f"tasks: {tasks}\n"
        f"engine: {choice.name} ({choice.reason})"
    )


def size_text(size_bytes: int) -> str:
    """Say a size: 12 KB, 3.4 MB, 1,200.0 MB."""
    if size_bytes < 1_000_000:
        return f"{-(-size_bytes // 1000)} KB"
    return f"{size_bytes / 1_000_000:,.1f} MB"


def _tasks(plan: Plan) -> str:
    return "1 task" if len(plan.tasks) == 1 else f"{len(plan.tasks)} tasks"
