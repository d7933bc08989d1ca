"""The demo dataset, written once for the tests of the notebooks."""

from __future__ import annotations

from pathlib import Path

import pytest

from lance_nb.magic import demo


@pytest.fixture(name="demo", scope="session")
def demo_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("demo") / "data" / "demo.lance"
    demo.write(path)
    return path
