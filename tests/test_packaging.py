"""The wheel: pure Python, complete, and usable without any optional dependency."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest

from tests.house.source import ROOT
from tests.support.datasets import everything_table
from tests.support.requirements import require_package, require_pylance

OPTIONAL = ("IPython", "anywidget", "duckdb", "ipywidgets", "lance", "numba", "pandas", "pyspark")

# Runs against the unpacked wheel: `-I` keeps the checkout and PYTHONPATH out of sys.path.
SMOKE = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in OPTIONAL:
            raise ModuleNotFoundError(f"{name} is blocked in this test", name=name)

OPTIONAL, wheel, dataset = set(sys.argv[1].split(",")), sys.argv[2], sys.argv[3]
sys.meta_path.insert(0, Blocked())
sys.path.insert(0, wheel)

import lance_nb
assert lance_nb.__file__.startswith(wheel), lance_nb.__file__
opened = lance_nb.dataset(dataset)
print(opened.count_rows(), opened.to_table(limit=10).num_rows, len(opened.versions()))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_package("hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    # Without isolation: hatchling is a test requirement, so nothing is fetched.
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder],
        cwd=ROOT, check=False, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.whl")
    return built


def test_wheel_is_pure_python(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")


def test_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()

    assert {name.split("/")[0].split("-")[0] for name in names} == {
        "lance_nb", "pyspark_lance_nb.py",
    }  # fmt: skip
    assert not [name for name in names if "__pycache__" in name]


def test_wheel_holds_every_file_that_is_read_at_run_time(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    needed = {
        path.relative_to(ROOT).as_posix()
        for pattern in ("*.py", "*.pyi", "*.js", "*.css", "*.binpb", "py.typed")
        for path in (ROOT / "lance_nb").rglob(pattern)
    }

    # What Spark looks for at the top level lies there alone.
    needed = (needed - {"lance_nb/spark/source/default_source.py"}) | {"pyspark_lance_nb.py"}

    assert {"lance_nb/py.typed", "lance_nb/_pb/lance.binpb"} <= needed
    assert needed <= names


def test_wheel_needs_no_optional_package(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (metadata,) = [name for name in archive.namelist() if name.endswith("METADATA")]
    headers = HeaderParser().parsestr(archive.read(metadata).decode())
    lines = headers.get_all("Requires-Dist", [])
    required = {line.split(">")[0] for line in lines if "extra ==" not in line}

    assert required == {
        "fsspec", "lz4", "numba", "numpy", "protobuf", "pyarrow", "pyroaring", "sqlglot",
        "xxhash", "zstandard",
    }  # fmt: skip
    assert headers["License-Expression"] == "Apache-2.0"


def test_every_extra_that_is_promised_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert set(project["optional-dependencies"]) == {
        "azure", "dev", "dynamodb", "gcs", "lab", "mutation", "postgres", "redis", "s3", "spark",
        "sql", "test", "test-tools",
    }  # fmt: skip


@pytest.mark.interop
def test_installed_wheel_opens_and_scans_with_every_optional_package_blocked(
    wheel: Path, tmp_path: Path
) -> None:
    lance = require_pylance()
    dataset = tmp_path / "plain.lance"
    lance.write_dataset(everything_table(200), dataset)
    unpacked = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(unpacked)

    done = subprocess.run(
        [sys.executable, "-I", "-c", SMOKE, ",".join(OPTIONAL), unpacked, dataset],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["200", "10", "1"]
