from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lance_nb.errors import NotSupportedError
from lance_nb.spark.engines.job import SparkJob

_TRACKER = SimpleNamespace(getJobIdsForGroup=lambda _group: [])
_CONTEXT = SimpleNamespace(setJobGroup=lambda *_, **_more: None, statusTracker=lambda: _TRACKER)


def finish(action: Any) -> Any:
    session: Any = SimpleNamespace(sparkContext=_CONTEXT)
    counter: Any = SimpleNamespace(value=0)
    return SparkJob(session, "work", action).finish(counter, lambda *_: None, lambda: False)


def failing(text: str) -> Any:
    def action() -> None:
        raise RuntimeError(text)

    return action


def test_workers_of_another_python_are_explained_with_what_to_set() -> None:
    assert finish(lambda: [1]) == [1]
    text = "thrown from the Python worker:\nModuleNotFoundError: No module named 'pyarrow'"
    with pytest.raises(NotSupportedError, match=r"cannot import 'pyarrow'.*PYSPARK_PYTHON"):
        finish(failing(text))
    with pytest.raises(RuntimeError, match="disk"):
        finish(failing("no room on the disk"))
