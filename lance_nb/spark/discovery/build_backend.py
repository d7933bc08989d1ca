"""The build backend: setuptools, which also puts ``pyspark_lance_nb`` at the top level.

PySpark looks for data sources among modules at the top level whose names begin with ``pyspark_``.
An editable installation has the folder of the checkout on its path, which holds no such module, and
setuptools maps either packages or single modules to other folders there. So the module is added to
the wheels of both kinds of installation when they are built.

pip imports this file by itself, before anything is installed (``backend-path``): it imports nothing
of lance_nb.

Source: PEP 517 and PEP 660 (the hooks), PEP 427 (the wheel and its RECORD).
"""

from __future__ import annotations

import base64
import hashlib
import shutil
import zipfile
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

MODULE = "pyspark_lance_nb.py"


def build_wheel(
    wheel_directory: str,
    config_settings: dict[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Build the wheel; returns its file name."""
    name: str = build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)
    _add_module(Path(wheel_directory, name))
    return name


def build_editable(
    wheel_directory: str,
    config_settings: dict[str, Any] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Build the wheel of an editable installation; returns its file name."""
    name: str = build_meta.build_editable(wheel_directory, config_settings, metadata_directory)
    _add_module(Path(wheel_directory, name))
    return name


def _add_module(wheel: Path) -> None:
    """Write the wheel again with the module, and with the module in its RECORD."""
    module = Path(__file__).with_name(MODULE).read_bytes()
    digest = base64.urlsafe_b64encode(hashlib.sha256(module).digest()).rstrip(b"=").decode()
    whole = wheel.with_suffix(".part")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            data = old.read(entry)
            if entry.filename.endswith(".dist-info/RECORD"):
                data = f"{MODULE},sha256={digest},{len(module)}\n".encode() + data
            new.writestr(entry, data)
        new.writestr(MODULE, module)
    shutil.move(whole, wheel)
