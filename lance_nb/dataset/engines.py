"""The door to ``lance_nb.spark`` for the floor beside it: where large work runs, and what it costs.

The explorer and ``lance_nb.spark`` never import each other. The package fills this hook; what comes
through it is the module itself, of which the explorer uses what ``Engines`` names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from lance_nb.errors import NotSupportedError


class Choice(Protocol):
    """The engine for a plan, and why."""

    @property
    def name(self) -> str: ...
    @property
    def reason(self) -> str: ...


class Plan(Protocol):
    """Work that is cut into tasks."""

    @property
    def size_bytes(self) -> int: ...
    @property
    def tasks(self) -> tuple[Any, ...]: ...

    def edits(self, results: Sequence[Any]) -> list[Any]:
        """Turn what tasks returned into edits of a stage."""
        ...


class Engines(Protocol):
    """What ``lance_nb.spark`` offers; see there."""

    def plan_append(self, dataset: Any, source: Any) -> Plan: ...
    def plan_frame(self, dataset: Any, frame: Any) -> Plan: ...
    def plan_delete(self, dataset: Any, predicate: str) -> Plan: ...
    def plan_update(
        self, dataset: Any, updates: Mapping[str, str], where: str | None = None
    ) -> Plan: ...
    def plan_upsert(self, target: Any, source: Any, on: Any = None, **options: Any) -> Plan: ...
    def plan_columns(self, dataset: Any, values: Mapping[str, str]) -> Plan: ...
    def plan_cast(self, dataset: Any, types: Mapping[str, Any]) -> Plan: ...
    def plan_compaction(self, dataset: Any, **options: Any) -> Plan: ...
    def choose(self, plan: Any, engine: str = "auto", spark: Any = None) -> Choice: ...
    def run_edits(self, plan: Any, **options: Any) -> list[Any]: ...
    def find_session(self, namespace: Mapping[str, Any] | None = None) -> Any: ...
    def why_not(self) -> str | None: ...


_doors: list[Callable[[], Engines]] = []


def set_engines(load: Callable[[], Engines] | None) -> None:
    """Install the function that loads the engines; None removes it."""
    _doors.clear()
    if load is not None:
        _doors.append(load)


def engines() -> Engines:
    """Return the engines, loaded when they are first asked for. Raises NotSupportedError."""
    if not _doors:
        raise NotSupportedError("no engine is installed: import lance_nb")
    return _doors[0]()
