"""``lance_nb.provenance``: record in commits who made them, in which notebook, from which cell.

    lance_nb.provenance.enable(author="Ada")      # off by default
    ds.delete("price < 0")
    ds.history(1)[0].properties                   # lance_nb.provenance.author, cell_id, ...
    with lance_nb.provenance.context(message="monthly load"):
        ds.insert(rows)
    lance_nb.provenance.disable()

The cell is the one that the kernel is running: its id and source come with the execution request,
as JupyterLab and VS Code send it. The notebook's path comes from the server (``JPY_SESSION_NAME``),
or from VS Code.

Limits: outside of a notebook only author and message are known. A commit that a widget makes has no
cell. Paths are relative to the server, so they do not reveal the home folder.
Source: request metadata ``cellId`` of Jupyter frontends; properties: lance_nb.session.provenance.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from lance_nb.dataset.display import ipython_shell
from lance_nb.errors import InvalidInputError
from lance_nb.format.transaction_summary import MESSAGE_PROPERTY
from lance_nb.session import provenance as hook
from lance_nb.value_classes import dataclass

SESSION_NAME = "JPY_SESSION_NAME"
_VSCODE_FILE = "__vsc_ipynb_file__"


@dataclass(frozen=True, slots=True)
class ProvenanceSettings:
    """What commits record. ``records_cell``: also notebook, cell and code."""

    author: str | None = None
    message: str | None = None
    records_cell: bool = True


class Provenance:
    """Record the origin of commits; ``lance_nb.provenance``. Off by default.

    Examples:
        >>> lance_nb.provenance.enable("ada")
        >>> lance_nb.provenance.disable()
    """

    def __init__(self) -> None:
        self._settings: ProvenanceSettings | None = None
        self._inner: ContextVar[ProvenanceSettings | None] = ContextVar("provenance", default=None)

    @property
    def settings(self) -> ProvenanceSettings | None:
        """The current settings, None if nothing is recorded."""
        return self._inner.get() or self._settings

    def enable(
        self, author: str | None = None, *, message: str | None = None, notebook: bool = True
    ) -> None:
        """Record from now on ``author``, ``message`` and, with ``notebook``, path, cell and code.

        Raises InvalidInputError for a value that is not text.
        """
        self._settings = ProvenanceSettings(
            _text("author", author), _text("message", message), notebook
        )
        hook.set_source(self.properties)

    def disable(self) -> None:
        """Record nothing from now on, except inside of a ``context``."""
        self._settings = None

    @contextmanager
    def context(
        self,
        author: str | None = None,
        *,
        message: str | None = None,
        notebook: bool | None = None,
    ) -> Iterator[None]:
        """Record for the commits of a ``with`` block; omitted arguments keep their outer values."""
        before = self.settings or ProvenanceSettings()
        inner = replace(
            before,
            author=before.author if author is None else _text("author", author),
            message=before.message if message is None else _text("message", message),
            records_cell=before.records_cell if notebook is None else notebook,
        )
        hook.set_source(self.properties)
        token = self._inner.set(inner)
        try:
            yield
        finally:
            self._inner.reset(token)

    def properties(self) -> dict[str, str]:
        """Return the properties that a commit would record now."""
        settings = self.settings
        if settings is None:
            return {}
        candidates = {hook.AUTHOR: settings.author, MESSAGE_PROPERTY: settings.message}
        properties = {name: value for name, value in candidates.items() if value}
        return {**properties, **running_cell()} if settings.records_cell else properties


provenance = Provenance()


def _text(name: str, value: str | None) -> str | None:
    if value is not None and not isinstance(value, str):
        raise InvalidInputError(f"{name} must be text, not {type(value).__name__}")
    return value


# --- the cell that is running ---------------------------------------------------------------------


def running_cell() -> dict[str, str]:
    """Return the properties of the running cell; none outside of a notebook."""
    shell = ipython_shell()
    kernel = getattr(shell, "kernel", None)
    if kernel is None:
        return {}
    properties = {hook.NOTEBOOK: _notebook(shell)}
    request = _request(kernel)
    code = _mapping(request.get("content")).get("code")
    if isinstance(code, str):
        metadata = _mapping(request.get("metadata"))
        properties[hook.CELL_ID] = metadata.get("cellId") or metadata.get("cell_id")
        properties[hook.EXECUTION_COUNT] = _execution_count(shell)
        properties[hook.CODE_SHA256] = code_hash(code)
    return {name: value for name, value in properties.items() if isinstance(value, str) and value}


def code_hash(source: str) -> str:
    """Return the SHA-256 of a cell's source."""
    return hashlib.sha256(source.encode("utf-8", "replace")).hexdigest()


def _request(kernel: Any) -> Mapping[str, Any]:
    """Return the message that the kernel is answering."""
    ask = getattr(kernel, "get_parent", None)
    return _mapping(ask("shell") if callable(ask) else getattr(kernel, "_parent_header", None))


def _execution_count(shell: Any) -> str | None:
    """Return the number of the running cell: its source is remembered before it runs.

    ``shell.execution_count`` is that number or the next one, depending on the release.
    """
    history = getattr(getattr(shell, "history_manager", None), "input_hist_raw", None)
    return str(len(history) - 1) if isinstance(history, list) and len(history) > 1 else None


def _notebook(shell: Any) -> str | None:
    path = _mapping(getattr(shell, "user_ns", None)).get(_VSCODE_FILE)
    return path if isinstance(path, str) and path else os.environ.get(SESSION_NAME)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
