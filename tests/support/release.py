"""Build what is published, check it, and install each archive in a fresh environment.

    python -m tests.support.release               # dist/: sdist, compiled and pure wheel
    python -m tests.support.release --minimum     # unit tests with the oldest dependencies allowed
    python -m tests.support.release --newest      # fast tests with the newest ones, newest Python

The wheel is built from the sdist, so the sdist is complete. The pure wheel is the same without the
compiled loops, for systems that have no wheel and no compiler. Each archive is installed with every
Python from 3.11 on that is found, without a checkout on the path: a dataset is written, changed and
read, and the command runs.

``--minimum`` resolves the dependencies that pyproject.toml names to their lowest versions.
``--newest`` takes the newest Python that is found: numpy and others have later releases for it than
for the oldest one, which ``make test`` uses.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import lance_nb
from tests.house.source import ROOT

DIST = ROOT / "dist"
MINORS = (11, 12, 13, 14)
SMOKE = """
import sys
import pyarrow as pa
import lance_nb
from lance_nb.encodings.kernels import compiled

assert "site-packages" in lance_nb.__file__, lance_nb.__file__
assert lance_nb.__version__ == sys.argv[2], lance_nb.__version__
uri = sys.argv[1]
table = pa.table({"id": range(5000), "text": [f"the quick brown fox {i}" for i in range(5000)]})
ds = lance_nb.write_dataset(table, uri)
ds.delete("id < 10")
ds.update({"text": "'changed'"}, where="id = 20")
assert ds.count_rows() == 4990
assert ds.to_table(filter="id = 20")["text"].to_pylist() == ["changed"]
assert lance_nb.dataset(uri, version=1).to_table() == table
assert ds.verify().ok
print("compiled" if compiled.loops else "numpy")
"""
# What the engine's unit tests import besides lance_nb.
TEST_TOOLS = ("pytest>=9", "hypothesis>=6.100", "pandas>=2.2", "aiohttp", "s3fs", "tzdata")
ENGINE_TESTS = ("storage", "format", "encodings", "file", "table")


def run(*command: str | Path, **environment: str) -> str:
    """Run a command and return its output; end with its errors if it fails."""
    done = subprocess.run(
        [str(one) for one in command], cwd=tempfile.gettempdir(), env=os.environ | environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def build() -> list[Path]:
    """Build sdist, compiled wheel and pure wheel into ``dist``."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", DIST, ROOT)
    (sdist,) = DIST.glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with tarfile.open(sdist) as archive:
            archive.extractall(folder, filter="data")
        (source,) = folder.iterdir()
        run(
            sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir",
            folder / "wheels", source, CC="/bin/false",
        )  # fmt: skip
        (pure,) = (folder / "wheels").glob("*.whl")
        tags = ("--python-tag", "py3", "--abi-tag", "none", "--platform-tag", "any")
        run(sys.executable, "-m", "wheel", "tags", "--remove", *tags, pure)
        (pure,) = (folder / "wheels").glob("*.whl")
        shutil.copy(pure, DIST)
    return sorted(DIST.iterdir())


def check_names(archives: list[Path]) -> None:
    """Require the three archives, all of the version of the package, with an entry of the log."""
    version = lance_nb.__version__
    kinds = [re.sub(rf"lance_nb-{re.escape(version)}[.-]", "", one.name) for one in archives]
    if len(kinds) != 3 or "tar.gz" not in kinds or "py3-none-any.whl" not in kinds:
        sys.exit(f"expected sdist, compiled and pure wheel of {version}, found {kinds}")
    log = (ROOT / "CHANGELOG.md").read_text()
    if not re.search(rf"^## {re.escape(version)}\b", log, re.MULTILINE):
        sys.exit(f"CHANGELOG.md has no section for {version}")


def pythons() -> list[Path]:
    """Return one interpreter of each supported minor version that is found."""
    found = []
    for minor in MINORS:
        places = [shutil.which(f"python3.{minor}") or "", *_pyenv(minor)]
        for place in filter(None, places):
            asked = "import sys; print(sys.version_info[:2])"
            done = subprocess.run([place, "-c", asked], capture_output=True, text=True, check=False)
            if done.stdout.strip() == f"(3, {minor})":
                found.append(Path(place))
                break
    return found


def _pyenv(minor: int) -> list[str]:
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    return sorted(map(str, versions.glob(f"3.{minor}.*/bin/python3.{minor}")))


def install_and_try(archive: Path, python: Path, folder: Path) -> str:
    """Install an archive alone, use it, and return what was found."""
    environment = folder / "environment"
    run(python, "-m", "venv", environment)
    inside = environment / "bin" / "python"
    before = _size(environment)
    start = time.perf_counter()
    run(inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", archive)
    seconds = time.perf_counter() - start
    uri = folder / "smoke.lance"
    loops = run(inside, "-c", SMOKE, uri, lance_nb.__version__).strip()
    log = run(environment / "bin" / "lance-nb", "log", uri, "--json")
    if log.count('"version"') != 3:
        sys.exit(f"lance-nb log lists other versions than three:\n{log}")
    megabytes = (_size(environment) - before) / 1e6
    shutil.rmtree(environment)
    shutil.rmtree(uri)
    return f"loops: {loops}, installed in {seconds:.0f} s, {megabytes:.0f} MB with dependencies"


def _size(folder: Path) -> int:
    return sum(one.lstat().st_size for one in folder.rglob("*") if one.is_file())


def test_minimum() -> None:
    """Run the engine's unit tests with the lowest versions that pyproject.toml allows."""
    oldest = pythons()[0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wanted = folder / "minimum.txt"
        run(
            sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--resolution",
            "lowest-direct", "--extra", "s3", "--python", oldest, ROOT / "pyproject.toml",
            "--output-file", wanted,
        )  # fmt: skip
        pinned = [one for one in wanted.read_text().splitlines() if re.match(r"\w", one)]
        print("Lowest versions:", ", ".join(pinned), flush=True)
        environment = folder / "environment"
        run(oldest, "-m", "venv", environment)
        inside = environment / "bin" / "python"
        run(inside, "-m", "pip", "install", "--quiet", "-r", wanted, *TEST_TOOLS)
        tests = [str(ROOT / "tests" / "unit" / one) for one in ENGINE_TESTS]
        status = subprocess.call(
            [inside, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests], cwd=ROOT
        )
    sys.exit(status)


def test_newest() -> None:
    """Run the fast tests with the newest Python that is found and what pip installs for it."""
    newest = pythons()[-1]
    with tempfile.TemporaryDirectory() as name:
        environment = Path(name) / "environment"
        run(newest, "-m", "venv", environment)
        inside = environment / "bin" / "python"
        run(inside, "-m", "pip", "install", "--quiet", f"{ROOT}[test-tools]")
        print(newest.name, run(inside, "-m", "pip", "list", "--format", "freeze").split())
        chosen = "not interop and not slow and not ui and not spark"
        tests = [str(ROOT / "tests" / one) for one in ("unit", "property")]
        status = subprocess.call(
            [inside, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", chosen, *tests], cwd=ROOT
        )
    sys.exit(status)


def main() -> None:
    """Build, check and try the archives."""
    parser = argparse.ArgumentParser(description="Build and check what is published.")
    parser.add_argument("--minimum", action="store_true", help="test with the oldest dependencies")
    parser.add_argument("--newest", action="store_true", help="test with the newest of everything")
    asked = parser.parse_args()
    if asked.minimum:
        test_minimum()
    if asked.newest:
        test_newest()
    archives = build()
    check_names(archives)
    print(run(sys.executable, "-m", "twine", "check", "--strict", *archives).strip())
    found = pythons()
    print("Python:", ", ".join(one.name for one in found), flush=True)
    for archive in archives:
        size = archive.stat().st_size / 1e6
        for python in found if archive.suffix == ".whl" else found[:1]:
            with tempfile.TemporaryDirectory() as name:
                done = install_and_try(archive, python, Path(name))
            print(f"{archive.name} ({size:.2f} MB), {python.name}: {done}", flush=True)
    missing = [f"3.{one}" for one in MINORS if f"python3.{one}" not in {two.name for two in found}]
    if missing:
        print(f"Not tried, because not found: Python {', '.join(missing)}")


if __name__ == "__main__":
    main()
