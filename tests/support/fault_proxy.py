"""A proxy in front of any server that breaks chosen requests, for every protocol over TCP.

A fault waits for a pattern in what the client sends. ``before``: the connection is cut and the
server never sees the request. ``lost``: the server gets it and works, and the connection is cut
when its answer comes. ``unavailable``: it works too, and a 503 takes the place of its answer.
Everything else passes unchanged.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

_CHUNK = 1 << 16
_UNAVAILABLE = b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_CONTINUE = b"HTTP/1.1 100"  # an invitation to send the body, not yet an answer


@dataclass
class Fault:
    """Break ``times`` requests that match ``pattern``."""

    pattern: bytes
    kind: str
    times: int = 1
    hits: int = 0

    def strikes(self, data: bytes) -> bool:
        if self.hits >= self.times or not re.search(self.pattern, data):
            return False
        self.hits += 1
        return True


@dataclass
class FaultProxy:
    """Listens on ``port`` and passes on to ``upstream``."""

    upstream: tuple[str, int]
    faults: list[Fault] = field(default_factory=list)
    refuse: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _socket: socket.socket = field(default_factory=socket.socket)
    port: int = 0

    def start(self) -> None:
        self._socket.bind(("127.0.0.1", 0))
        self._socket.listen(64)
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self) -> None:
        # Closing alone does not wake a thread that waits in accept.
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def arm(self, pattern: bytes, kind: str, times: int = 1) -> Fault:
        """Break the next requests that match."""
        fault = Fault(pattern, kind, times)
        with self._lock:
            self.faults.append(fault)
        return fault

    def disarm(self) -> None:
        with self._lock:
            self.faults.clear()
        self.refuse = False

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            if self.refuse:
                client.close()
                continue
            try:
                server = socket.create_connection(self.upstream, 10)
            except OSError:
                client.close()
                continue
            client.settimeout(None)
            server.settimeout(None)
            link = _Link(self, client, server)
            for task in (link.requests, link.answers):
                threading.Thread(target=task, daemon=True).start()

    def find(self, data: bytes) -> str:
        with self._lock:
            return next((fault.kind for fault in self.faults if fault.strikes(data)), "")


@dataclass
class _Link:
    """One connection through the proxy."""

    proxy: FaultProxy
    client: socket.socket
    server: socket.socket
    losing: bool = False
    instead: bytes = b""  # what the client gets in the place of the answer
    request: bytes = b""  # what has come of a request, which may come in pieces

    def requests(self) -> None:
        try:
            while data := self.client.recv(_CHUNK):
                self.request = (self.request + data)[-_CHUNK:]
                kind = self.proxy.find(self.request)
                if kind:
                    self.request = b""
                if kind == "before" or self.proxy.refuse:
                    break
                if kind in ("lost", "unavailable"):
                    self.losing, self.instead = True, _UNAVAILABLE if kind != "lost" else b""
                self.server.sendall(data)
        except OSError:
            pass
        if not self.losing:
            self._close()

    def answers(self) -> None:
        try:
            while data := self.server.recv(_CHUNK):
                if self.proxy.refuse or (self.losing and not data.startswith(_CONTINUE)):
                    self.client.sendall(self.instead)
                    break
                if not data.startswith(_CONTINUE):
                    self.request = b""
                self.client.sendall(data)
        except OSError:
            pass
        self._close()

    def _close(self) -> None:
        for one in (self.client, self.server):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


@contextmanager
def fault_proxy(host: str, port: int) -> Iterator[FaultProxy]:
    """Run a proxy in front of a server."""
    proxy = FaultProxy((host, port))
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()
