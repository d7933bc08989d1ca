"""One .lance data file: its container, its pages, and its columns as Arrow arrays.

Modules for files of old versions and for inspection are loaded when they are first used, as
attributes of the package.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lance_nb.file import array_reader as array_reader
    from lance_nb.file import legacy_reader as legacy_reader
    from lance_nb.file import page_listing as page_listing
else:
    _ON_DEMAND = frozenset({"array_reader", "legacy_reader", "page_listing"})

    def __getattr__(name: str) -> ModuleType:
        """Load a module that most reads do without."""
        if name not in _ON_DEMAND:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return import_module(f"{__name__}.{name}")
