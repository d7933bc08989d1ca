"""Serve the explorer of a dataset or a database to a browser on this machine, without Jupyter.

A notebook server and a kernel take some nine seconds to show an explorer (Voila, measured); this
server is a part of Python and shows it when the dataset is open.

=================== ==========================================================================
request             answer
=================== ==========================================================================
``GET /?token=``    the page: policy, style sheet, module; a new explorer for it
``POST /message``   a message of the page to its explorer; no content
``GET /events``     waits up to ``WAIT_S``; a list of ``{content, buffers}`` (messages to the page)
                    and ``{trait, value}``; binary parts are marked as in ``html_export``
=================== ==========================================================================

Who may ask: the server listens on the loopback address only, answers only requests for that host,
and wants a random token: in the address of the page, and in a header of every other request, which
a page from elsewhere cannot set. The page may connect to nothing but this server, and runs one
script, allowed by its hash.

Limits: ``MAX_SESSIONS`` pages at the same time, the oldest is closed; ``MAX_BODY_BYTES`` of a
message.
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from lance_nb.explorer import assets
from lance_nb.explorer.app import Explorer
from lance_nb.explorer.html_export import plain_json
from lance_nb.explorer.html_page import explorer_page

ENTRY = "browser_app.js"
ICON = '<link rel="icon" href="data:,">'  # else a browser asks for one
SOURCES = "connect-src 'self'; img-src blob: data:; media-src blob:"
HOST = "127.0.0.1"
MAX_SESSIONS = 8
MAX_BODY_BYTES = 400_000
MAX_LENGTH_DIGITS = 20
WAIT_S = 20.0
_TOKEN, _SESSION = "X-Lance-Token", "X-Lance-Session"


class PageSession:
    """The explorer of one page, and what it has to say to the page."""

    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer
        self._events: deque[dict[str, Any]] = deque()
        self._changed = threading.Condition()
        self._work = threading.Lock()  # messages are handled one after the other
        explorer.send = self._send
        explorer.observe(self._on_screen, names=["screen"])

    def state(self) -> Any:
        """Return the traits as the page begins with them."""
        return plain_json({"screen": self.explorer.screen, "height": self.explorer.height})

    def hear(self, content: object) -> None:
        """Handle a message of the page."""
        with self._work:
            self.explorer._on_message(self.explorer, content, [])  # noqa: SLF001

    def events(self, wait_s: float) -> list[dict[str, Any]]:
        """Return what happened since the last call; wait for it."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._events), wait_s)
            events = list(self._events)
            self._events.clear()
        return events

    def close(self) -> None:
        """Release the dataset."""
        self.explorer.close()

    def _send(self, content: Mapping[str, Any], buffers: list[bytes] | None = None) -> None:
        self._put(
            {"content": dict(content), "buffers": [plain_json(buffer) for buffer in buffers or ()]}
        )

    def _on_screen(self, change: Mapping[str, Any]) -> None:
        self._put({"trait": "screen", "value": plain_json(change["new"])})

    def _put(self, event: dict[str, Any]) -> None:
        with self._changed:
            self._events.append(event)
            self._changed.notify_all()


class ExplorerServer:
    """Serves explorers made by ``make``; ``url`` is what a browser opens."""

    def __init__(self, make: Callable[[], Explorer], *, port: int = 0) -> None:
        """Listen on a port of the loopback address, 0 for any that is free. Raises OSError."""
        self.token = secrets.token_urlsafe(24)
        self._make = make
        self._sessions: OrderedDict[str, PageSession] = OrderedDict()
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"server_of_explorers": self})
        self._server = ThreadingHTTPServer((HOST, port), handler)
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self.url = f"http://{HOST}:{self.port}/?token={self.token}"

    def serve(self) -> None:
        """Answer requests until ``close`` is called from another thread, or Ctrl-C."""
        self._server.serve_forever(poll_interval=0.2)

    def close(self) -> None:
        """End all sessions and free the port."""
        self._server.server_close()
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()

    def stop(self) -> None:
        """End ``serve``, which runs in another thread."""
        self._server.shutdown()

    def is_allowed(self, token: str) -> bool:
        """Whether a token is that of this server."""
        return hmac.compare_digest(token.encode(), self.token.encode())

    def page(self) -> str:
        """Make an explorer, and return the page that shows it."""
        name, session = secrets.token_hex(8), PageSession(self._make())
        with self._lock:
            self._sessions[name] = session
            old = (
                self._sessions.popitem(last=False)[1]
                if len(self._sessions) > MAX_SESSIONS
                else None
            )
        if old is not None:
            old.close()
        page_state = {"session": name, "token": self.token, "state": session.state()}
        views = assets.page_views(ENTRY)
        return explorer_page(
            session.explorer.heading, views, ("session", page_state), sources=SOURCES, head=ICON
        )

    def session(self, name: str) -> PageSession | None:
        """Return the session of a page, None if it was closed."""
        return self._sessions.get(name)


class _Handler(BaseHTTPRequestHandler):
    """Answers one request; says nothing on the terminal."""

    server_of_explorers: ClassVar[ExplorerServer]
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_GET(self) -> None:
        """Return the page, or what happened."""
        parts = urlsplit(self.path)
        if parts.path == "/":
            token = parse_qs(parts.query).get("token", [""])[0]
            if self._may(token):
                self._answer(self.server_of_explorers.page(), "text/html; charset=utf-8")
        elif parts.path == "/events":
            session = self._session()
            if session is not None:
                self._answer(json.dumps(session.events(WAIT_S)), "application/json")
        else:
            self._refuse(HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        """Hand a message to the explorer."""
        length = self.headers.get("Content-Length", "")
        # Digits are counted first: Python refuses to convert more than some thousands of them.
        is_number = length.isascii() and length.isdecimal() and len(length) <= MAX_LENGTH_DIGITS
        if not is_number or int(length) > MAX_BODY_BYTES:
            self.close_connection = True
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return
        body = self.rfile.read(int(length))
        session = self._session() if self.path == "/message" else None
        if session is None:
            if self.path != "/message":
                self._refuse(HTTPStatus.NOT_FOUND)
            return
        try:
            content = json.loads(body)
        except (ValueError, RecursionError):  # the latter for what is nested too deep
            self._refuse(HTTPStatus.BAD_REQUEST)
            return
        session.hear(content)
        self._answer("", "text/plain")

    def _may(self, token: str) -> bool:
        server = self.server_of_explorers
        host = self.headers.get("Host", "")
        if host in {f"{HOST}:{server.port}", f"localhost:{server.port}"} and server.is_allowed(
            token
        ):
            return True
        self._refuse(HTTPStatus.FORBIDDEN)
        return False

    def _session(self) -> PageSession | None:
        """Return the session that a request is of; refuses it otherwise."""
        if not self._may(self.headers.get(_TOKEN, "")):
            return None
        session = self.server_of_explorers.session(self.headers.get(_SESSION, ""))
        if session is None:
            self._refuse(HTTPStatus.NOT_FOUND)
        return session

    def _refuse(self, status: HTTPStatus) -> None:
        self._answer(status.phrase, "text/plain", status)

    def _answer(self, content: str, kind: str, status: HTTPStatus = HTTPStatus.OK) -> None:
        data = content.encode()
        self.send_response(status)
        for name, value in (
            ("Content-Type", kind), ("Content-Length", str(len(data))),
            ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"), ("X-Frame-Options", "DENY"),
        ):  # fmt: skip
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Write no log: addresses hold the token."""
