"""Every wheel, also that of an editable installation, has the module by which Spark finds us."""

from __future__ import annotations

import base64
import hashlib
import tomllib
import zipfile
from pathlib import Path

import pytest
from setuptools import build_meta

from lance_nb.spark.discovery import build_backend
from tests.house.source import ROOT

RECORD = "lance_nb-1.dist-info/RECORD"


@pytest.mark.parametrize("kind", ["build_wheel", "build_editable"])
def test_the_module_is_added_at_the_top_level_and_recorded(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(folder: str, settings: object, metadata: object) -> str:
        with zipfile.ZipFile(Path(folder, "x.whl"), "w") as wheel:
            wheel.writestr("lance_nb/__init__.py", "")
            wheel.writestr(RECORD, f"lance_nb/__init__.py,,\n{RECORD},,\n")
        return "x.whl"

    monkeypatch.setattr(build_meta, kind, build)
    name = getattr(build_backend, kind)(str(tmp_path))

    assert [path.name for path in tmp_path.iterdir()] == [name]
    with zipfile.ZipFile(tmp_path / name) as wheel:
        assert sorted(wheel.namelist()) == [RECORD, "lance_nb/__init__.py", "pyspark_lance_nb.py"]
        module = wheel.read("pyspark_lance_nb.py")
        lines = wheel.read(RECORD).decode().splitlines()
    assert b"LanceSource as DefaultSource" in module
    digest = base64.urlsafe_b64encode(hashlib.sha256(module).digest()).decode().rstrip("=")
    assert lines[0] == f"pyspark_lance_nb.py,sha256={digest},{len(module)}"
    assert lines[1:] == ["lance_nb/__init__.py,,", f"{RECORD},,"]


def test_the_backend_is_the_one_that_is_used() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]
    (folder,) = build["backend-path"]
    assert ROOT / folder / f"{build['build-backend']}.py" == Path(build_backend.__file__)
    hooks = {name for name in dir(build_meta) if name.startswith(("build_", "get_requires_for_"))}
    assert hooks - {"build_meta"} <= set(build_backend.__all__)
