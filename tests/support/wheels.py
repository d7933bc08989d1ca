"""Build the wheel as an install does, from a copy: a build leaves files in its folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.house.source import ROOT
from tests.support.requirements import require_package

FILES = ("pyproject.toml", "README.md", "LICENSE")
MADE = ("__pycache__", "*.so", "*.pyd", "*.c")


def build_wheel(folder: Path, **environment: str) -> Path:
    """Build the wheel into ``folder`` and return its path.

    Without isolation: what the build needs is a test requirement, so nothing is fetched.
    """
    require_package("setuptools")
    require_package("Cython")
    source = folder / "source"
    shutil.copytree(ROOT / "lance_nb", source / "lance_nb", ignore=shutil.ignore_patterns(*MADE))
    for name in FILES:
        shutil.copy(ROOT / name, source / name)
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check",
         "--no-build-isolation", "--no-deps", "--wheel-dir", folder, source],
        check=False, capture_output=True, text=True, timeout=300, env=os.environ | environment,
    )  # fmt: skip
    if done.returncode:
        raise AssertionError(done.stderr)
    shutil.rmtree(source)
    (built,) = folder.glob("*.whl")
    return built
