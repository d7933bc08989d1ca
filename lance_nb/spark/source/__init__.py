"""The data source that Spark sees. Its modules are loaded when used.

Some need PySpark, and every Python process of Spark imports anew what it needs.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lance_nb.spark.source import changes as changes
    from lance_nb.spark.source import data_source as data_source
    from lance_nb.spark.source import streaming as streaming
    from lance_nb.spark.source import writing as writing
else:
    _ON_DEMAND = frozenset({"changes", "data_source", "streaming", "writing"})

    def __getattr__(name: str) -> ModuleType:
        """Load a module."""
        if name not in _ON_DEMAND:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return import_module(f"{__name__}.{name}")
