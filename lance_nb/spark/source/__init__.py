"""The data source that Spark sees. Its modules need PySpark, so they are loaded when used."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lance_nb.spark.source import data_source as data_source
else:
    _ON_DEMAND = frozenset({"data_source"})

    def __getattr__(name: str) -> ModuleType:
        """Load a module that needs PySpark."""
        if name not in _ON_DEMAND:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return import_module(f"{__name__}.{name}")
