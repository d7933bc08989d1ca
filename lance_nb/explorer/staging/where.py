"""Where the work of a card runs, or would run, and why.

Source: lance_nb.spark.run (``choose``), lance_nb.spark.sessions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from lance_nb.dataset import LanceDataset
from lance_nb.dataset.engines import Plan, engines
from lance_nb.errors import NotSupportedError
from lance_nb.explorer.models import text
from lance_nb.explorer.staging.edits import outline_of, why_here
from lance_nb.explorer.staging.rows import Namespace, is_spark_frame
from lance_nb.explorer.staging.wishes import Wish

LOCAL, SPARK = "local", "spark"
LARGE_BYTES = 1536 * 1024**2  # from here on a card says how much work it is before it is done
_STAYS = "a DataFrame stays on Spark"


@dataclass(frozen=True, slots=True)
class Where:
    """Where the work runs, or ran, and why. ``is_movable``: it could run somewhere else.

    ``plan`` is the work cut into tasks, where that is known without reading a row.
    """

    name: str = LOCAL
    reason: str = "done in this process"
    size_bytes: int = 0
    num_tasks: int = 0
    is_movable: bool = False
    plan: Plan | None = field(default=None, repr=False, compare=False)

    @property
    def is_put_off(self) -> bool:
        """Whether the work waits until it is asked for: because of where it runs, or its size."""
        return self.name != LOCAL or self.size_bytes >= LARGE_BYTES

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-able values."""
        return {
            "name": self.name,
            "reason": text.line(self.reason),
            "size": text.size(self.size_bytes),
            "tasks": self.num_tasks,
            "movable": self.is_movable,
        }


def where_of(dataset: LanceDataset, wish: Wish, namespace: Namespace) -> Where:
    """Say where a wish would run; no row is read for it.

    Raises LanceError: NotSupportedError when Spark is asked for and cannot be had.
    """
    if wish.verb == "upsert" and is_spark_frame(namespace.get(wish.args["source"])):
        is_open = wish.engine == "auto"
        return Where(SPARK if is_open else wish.engine, _STAYS if is_open else "asked for",
                     is_movable=True)  # fmt: skip
    plan = outline_of(dataset, wish, namespace)
    if plan is None:
        return Where(LOCAL, why_here(wish))
    session = engines().find_session(namespace) if wish.engine == SPARK else None
    choice = engines().choose(plan, wish.engine, session)
    reason = choice.reason
    if choice.name == SPARK and engines().find_session(namespace) is None:
        missing = engines().why_not()
        if missing is not None:
            raise NotSupportedError(f"this cannot run on Spark here: {missing}")
        reason = f"{reason}; a session is started for it, which takes some seconds"
    size, count = plan.size_bytes, len(plan.tasks)
    return Where(choice.name, reason, size, count, is_movable=True, plan=plan)
