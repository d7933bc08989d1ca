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


def test_a_module_that_only_a_users_function_lacks_is_the_one_that_is_named() -> None:
    text = "ModuleNotFoundError: No module named '{}'\n"
    with pytest.raises(
        NotSupportedError, match=r"'my_tools\.x', which your function uses"
    ) as lacks:
        finish(failing(text.format("my_tools.x")))
    assert "Install my_tools where" in str(lacks.value)
    assert "lance_nb" not in str(lacks.value)
    with pytest.raises(NotSupportedError, match=r"'pytest', .* this Python has") as only_there:
        finish(failing(text.format("pytest")))
    assert "install pytest where" in str(only_there.value)
    handled = f"{text.format('pyarrow')}\nDuring handling of the above exception, another:\n"
    with pytest.raises(NotSupportedError, match="'my_tools'"):
        finish(failing(handled + text.format("my_tools")))
    with pytest.raises(RuntimeError, match="ValueError"):
        finish(failing(f"{handled}ValueError: no\n"))
