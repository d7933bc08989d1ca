"""Arms by name, their modules loaded when they are first used: a page rarely has three of them.

The table of a registry says ``"module:Class"`` for each arm, the module below one package of
leaves. Looking an arm up loads its module and keeps the one instance; asking which arms there are
loads nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import TypeVar

Arm = TypeVar("Arm")


class Doors(Mapping[str, Arm]):
    """The arms of one ``oneof``; ``package`` loads its modules as attributes."""

    def __init__(self, package: ModuleType, targets: Mapping[str, str | Callable[[], Arm]]) -> None:
        self._package = package
        self._targets = targets
        self._opened: dict[str, Arm] = {}

    def __getitem__(self, name: str) -> Arm:
        if name not in self._opened:
            target = self._targets[name]
            self._opened[name] = self._made(target) if isinstance(target, str) else target()
        return self._opened[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._targets)

    def __len__(self) -> int:
        return len(self._targets)

    def __contains__(self, name: object) -> bool:
        return name in self._targets

    def _made(self, target: str) -> Arm:
        module, _, kind = target.partition(":")
        made: Arm = getattr(getattr(self._package, module), kind)()
        return made
