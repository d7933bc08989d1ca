"""A stand-in for an fsspec driver: keeps what it was asked for."""

from __future__ import annotations

from typing import Any


class FakeDriver:
    """Records ``pipe_file``; tests hang the attributes of the real driver on it."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, bytes, dict[str, Any]]] = []

    def pipe_file(self, full: str, data: bytes, **options: Any) -> None:
        self.calls.append((full, data, options))
