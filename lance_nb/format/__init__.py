"""The table format as values: bytes <-> frozen dataclasses. No input or output happens here.

Modules that opening a dataset and reading rows do without are loaded when they are first used, as
attributes of the package.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lance_nb.format import refs as refs
else:
    _ON_DEMAND = frozenset({"refs"})

    def __getattr__(name: str) -> ModuleType:
        """Load a module that a plain read does without."""
        if name not in _ON_DEMAND:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return import_module(f"{__name__}.{name}")
