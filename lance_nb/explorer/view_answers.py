"""What a view answers to its part of the browser: a table of requests and the methods behind them.

A subclass names its requests in ``requests`` (``"storage.map": "on_map"``) and has a method for
each, which takes the arguments and returns an ``Answer`` or a ``Job`` (see ``messages``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from lance_nb.explorer.messages import Handler
from lance_nb.explorer.models.source import Source
from lance_nb.explorer.session import Session, place_of


class ViewAnswers:
    """The answers of one view about one session."""

    requests: ClassVar[Mapping[str, str]] = {}

    def __init__(self, session: Session) -> None:
        self.session = session

    def handlers(self) -> dict[str, Handler]:
        """Return the methods by the requests that they answer."""
        return {kind: getattr(self, method) for kind, method in self.requests.items()}

    def source(self, args: Mapping[str, Any]) -> Source:
        """Return the dataset at the branch and version that a request names."""
        return self.session.open(place_of(args))
