"""The demo dataset, written once for the tests of the notebooks."""

from __future__ import annotations

from pathlib import Path

import pytest

from lance_nb.magic.demo import history


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "data" / "demo.lance"
    history.write(path)
    return path
