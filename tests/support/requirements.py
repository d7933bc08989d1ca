"""Ask for what a test needs from its surroundings, or skip with the reason.

Under CI (``CI`` set) a missing package fails instead: there it is installed, and a skip would hide
that nothing was compared any more.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import os
import shutil
import sys
from types import ModuleType
from typing import NoReturn

import pyarrow as pa
import pytest

PYLANCE_VERSION = "14.0.2"
# The first is Chromium without its own windows: a page of it takes a quarter of the processor time.
CHROMIUM_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def require_pylance(version: str = PYLANCE_VERSION) -> ModuleType:
    """Return the ``lance`` module of exactly this release of pylance."""
    try:
        found = importlib.metadata.version("pylance")
    except importlib.metadata.PackageNotFoundError:
        _missing(f"pylance {version} is not installed")
    if found != version:
        _missing(f"pylance {found} is installed, these tests judge by {version}")
    lance = importlib.import_module("lance")
    _import_arrow_types()
    return lance


def _import_arrow_types() -> None:
    """Load ``lance.arrow``, which fails where somebody registered its types before it, as we do."""
    if "lance.arrow" in sys.modules:
        return
    kinds = ("image_uri", "encoded_image", "fixed_shape_image_tensor")
    for name in ("lance.bfloat16", *(f"lance.arrow.{one}" for one in kinds)):
        with contextlib.suppress(pa.ArrowKeyError):
            pa.unregister_extension_type(name)
    importlib.import_module("lance.arrow")


def require_package(name: str) -> ModuleType:
    """Return a module that the ``test`` extra installs."""
    if importlib.util.find_spec(name) is None:
        _missing(f"{name} is not installed (pip install 'lance-nb[test]')")
    return importlib.import_module(name)


def require_chromium() -> str:
    """Return the path of a Chromium: ``CHROMIUM`` if set, else the system's."""
    on_path = filter(None, map(shutil.which, CHROMIUM_NAMES))
    found = os.environ.get("CHROMIUM") or next(on_path, None)
    if not found:
        pytest.skip("Chromium is missing (apt install chromium-headless-shell fonts-dejavu-core)")
    return found


def require_java() -> str:
    """Return the path of ``java``, which Spark needs."""
    found = shutil.which("java")
    if not found:
        pytest.skip("Java is missing (apt install openjdk-17-jre-headless)")
    return found


def _missing(reason: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
