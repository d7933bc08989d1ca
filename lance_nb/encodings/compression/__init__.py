"""One module per arm of ``CompressiveEncoding``; ``encodings.registry`` knows them all.

The package loads its modules when they are first used, as attributes of it.
"""

from importlib import import_module
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    """Load a module of this package."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
