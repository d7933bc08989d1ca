"""Verbs about where large work runs."""

from __future__ import annotations

from argparse import Namespace

from lance_nb import spark
from lance_nb.explorer.models import text
from lance_nb.magic.answer import Answer, answer_of_records
from lance_nb.magic.desk import Desk
from lance_nb.magic.verb import Verb, argument
from lance_nb.spark.dispatch import LOCAL_SPARK_BYTES, SMALL_BYTES


def status(desk: Desk, said: Namespace) -> Answer:
    """Say whether Spark is there, when it is used, and what is unfinished."""
    session = spark.find_session(desk.namespace)
    if session is None and said.start:
        session = spark.start_session()
    problem = spark.why_not()
    if session is not None:
        state = f"a session is there (Spark {session.version})"
    else:
        state = problem or "none yet; one starts for work that asks for it, or with --start"
    records = [
        {"what": "session", "is": state},
        {"what": "work stays in this process below", "is": text.size(SMALL_BYTES)},
        {"what": "a local session is used from", "is": text.size(LOCAL_SPARK_BYTES)},
    ]
    records += [{"what": "unfinished", "is": str(one)} for one in spark.unfinished()]
    return answer_of_records("Spark", records, value=session)


VERBS = (
    Verb(
        "spark",
        "say whether Spark is there, from which size on it is used, and what is unfinished",
        status,
        (argument("--start", action="store_true", help="start a local session now"),),
        needs_dataset=False,
    ),
)
