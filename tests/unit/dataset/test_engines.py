from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

import lance_nb
from lance_nb import spark
from lance_nb.dataset import engines
from lance_nb.errors import NotSupportedError


@pytest.fixture
def no_engines() -> Iterator[None]:
    engines.set_engines(None)
    yield
    engines.set_engines(lambda: sys.modules["lance_nb.spark"])


def test_the_door_leads_to_the_module() -> None:
    assert lance_nb.__name__ == "lance_nb"
    assert engines.engines() is spark
    wanted = [name for name in vars(engines.Engines) if not name.startswith("_")]
    assert wanted
    assert [name for name in wanted if not hasattr(spark, name)] == []


@pytest.mark.usefixtures("no_engines")
def test_without_a_door_it_says_so() -> None:
    with pytest.raises(NotSupportedError, match="no engine"):
        engines.engines()
