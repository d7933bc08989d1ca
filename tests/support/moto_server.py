"""An S3 and DynamoDB server in a process of its own: ``python -m tests.support.moto_server``.

It prints its port and serves until its standard input closes, so it never outlives the tests. One
request at a time: moto looks whether an object exists and stores it in two steps, and now and then
(1 of some 300 races) two conditional writers would both win, which no real server allows.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server


class Quiet(WSGIRequestHandler):
    """Keeps connections open and writes no log."""

    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: Any) -> None:
        return None


class OneAtATime:
    """Runs each request to its end before the next one."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._lock = threading.Lock()

    def __call__(self, environ: Any, start_response: Callable[..., Any]) -> Iterable[bytes]:
        with self._lock:
            return [b"".join(self._app(environ, start_response))]


def main() -> None:
    """Serve until standard input closes."""
    app = OneAtATime(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
    print(server.server_port, flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
