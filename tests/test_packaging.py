"""The wheel: complete, and usable without any optional dependency, compiler included."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest

from lance_nb.version import __version__
from tests.house.source import ROOT
from tests.support.datasets import everything_table
from tests.support.requirements import require_pylance
from tests.support.wheels import build_wheel

OPTIONAL = ("IPython", "anywidget", "duckdb", "ipywidgets", "lance", "pandas", "pyspark")

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

ROUND_TRIP = """
import sys
sys.path.insert(0, sys.argv[1])
import pyarrow as pa
import lance_nb
from lance_nb.encodings.kernels import compiled
assert lance_nb.__file__.startswith(sys.argv[1]), lance_nb.__file__
texts = [f"the quick brown fox number {i}" for i in range(5000)]
table = pa.table({"n": range(5000), "text": texts, "list": [[i, None] for i in range(5000)]})
print(compiled.loops is not None, lance_nb.write_dataset(table, sys.argv[2]).to_table() == table)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.mark.slow
def test_wheel_serves_every_python_that_is_supported(wheel: Path) -> None:
    assert "-cp311-abi3-" in wheel.name


@pytest.mark.slow
def test_wheel_holds_the_compiled_loops_but_not_their_source(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    (built,) = [name for name in names if "/_compiled." in name and not name.endswith(".pyi")]
    assert ".abi3." in built or built.endswith(".pyd")


@pytest.mark.slow
def test_wheel_installs_the_extension_where_jupyterlab_looks_for_it(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    folder = f"lance_nb-{__version__}.data/data/share/jupyter/labextensions/lance-nb/"
    described = json.loads(archive.read(f"{folder}package.json"))
    assert described["version"] == __version__
    loaded = archive.read(folder + described["jupyterlab"]["_build"]["load"])
    assert f'const NAME = "{described["name"]}"' in loaded.decode()
    assert len(loaded) < 8000


@pytest.mark.slow
def test_an_install_without_a_compiler_reads_and_writes(tmp_path: Path) -> None:
    wheel = build_wheel(tmp_path / "wheel", CC="/bin/false")
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    done = subprocess.run(
        [sys.executable, "-I", "-c", ROUND_TRIP, site, tmp_path / "data.lance"],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["False", "True"]


@pytest.mark.slow
def test_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()

    assert {name.split("/")[0].split("-")[0] for name in names} == {
        "lance_nb", "pyspark_lance_nb.py",
    }  # fmt: skip
    assert not [name for name in names if "__pycache__" in name]


@pytest.mark.slow
def test_wheel_holds_every_file_that_is_read_at_run_time(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    needed = {
        path.relative_to(ROOT).as_posix()
        for pattern in ("*.py", "*.pyi", "*.js", "*.css", "*.binpb", "py.typed")
        for path in (ROOT / "lance_nb").rglob(pattern)
    }

    assert {"lance_nb/py.typed", "lance_nb/_pb/lance.binpb"} <= needed
    assert needed | {"pyspark_lance_nb.py"} <= names


@pytest.mark.slow
def test_wheel_needs_no_optional_package(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (metadata,) = [name for name in archive.namelist() if name.endswith("METADATA")]
    headers = HeaderParser().parsestr(archive.read(metadata).decode())
    lines = headers.get_all("Requires-Dist", [])
    required = {line.split(">")[0] for line in lines if "extra ==" not in line}

    assert required == {
        "fsspec", "lazy_loader", "lz4", "numpy", "protobuf", "pyarrow", "pyroaring", "sqlglot",
        "xxhash", "zstandard",
    }  # fmt: skip
    assert headers["License-Expression"] == "Apache-2.0"


def test_every_extra_that_is_promised_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert set(project["optional-dependencies"]) == {
        "azure", "dev", "docs", "dynamodb", "gcs", "lab", "maps", "mutation", "postgres", "redis",
        "release", "s3", "spark", "sql", "test", "test-tools", "text",
    }  # fmt: skip


@pytest.mark.slow
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
