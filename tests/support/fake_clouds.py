"""A server with as much of Cloud Storage's XML interface and of Azure Blob as a store needs.

Both keep objects in one dictionary. ``ignores_the_condition``: a condition of a PUT is not looked
at. ``loses``: so many replies to PUTs of manifests are lost after the object was stored.
"""

from __future__ import annotations

import hashlib
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

_DATE = "Mon, 23 Nov 2026 10:00:00 GMT"


@dataclass
class FakeCloud:
    """Objects by bucket (container) and path; ``requests`` are methods with a path each."""

    objects: dict[str, bytes] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)
    ignores_the_condition: bool = False
    loses: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    port: int = 0


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    cloud: FakeCloud

    def log_message(self, *_: object) -> None:
        return None

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _error(self, status: int, code: str) -> None:
        text = f"<Error><Code>{code}</Code><Message>so it is</Message></Error>"
        self._answer(status, text.encode())

    @property
    def _key(self) -> str:
        return unquote(urlsplit(self.path).path).lstrip("/")

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        google = self.headers.get("x-goog-if-generation-match")
        azure = self.headers.get("If-None-Match")
        condition = google == "0" or azure == "*"
        cloud = self.cloud
        with cloud.lock:
            cloud.requests.append(f"PUT {self._key}")
            if condition:
                cloud.conditions.append(self._key)
            if condition and not cloud.ignores_the_condition and self._key in cloud.objects:
                return self._error(
                    *((412, "PreconditionFailed") if google else (409, "BlobAlreadyExists"))
                )
            cloud.objects[self._key] = data
            if self._key.endswith(".manifest") and cloud.loses:
                cloud.loses -= 1
                self.close_connection = True
                return self.connection.shutdown(socket.SHUT_RDWR)
        return self._answer(201 if azure else 200, ETag=_tag(data), Last_Modified=_DATE)

    def do_DELETE(self) -> None:
        with self.cloud.lock:
            self.cloud.requests.append(f"DELETE {self._key}")
            found = self.cloud.objects.pop(self._key, None)
        if found is None:
            return self._error(404, "NoSuchKey")
        return self._answer(202 if "x-ms-version" in self.headers else 204)

    def do_POST(self) -> None:
        """Answer a batch of deletions."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        parts = []
        for number, path in enumerate(re.findall(r"DELETE (\S+) HTTP", body)):
            key = unquote(urlsplit(path).path).lstrip("/")
            with self.cloud.lock:
                self.cloud.requests.append(f"DELETE {key}")
                is_there = self.cloud.objects.pop(key, None) is not None
            status = "202 Accepted" if is_there else "404 Not Found"
            parts.append(
                f"--b\r\nContent-Type: application/http\r\nContent-ID: {number}\r\n\r\n"
                f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n"
            )
        text = "".join(parts) + "--b--\r\n"
        self._answer(202, text.encode(), Content_Type="multipart/mixed; boundary=b")

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        if "prefix" in query or "list-type" in query or "comp" in query:
            return self._list(query)
        with self.cloud.lock:
            self.cloud.requests.append(f"{self.command} {self._key}")
            data = self.cloud.objects.get(self._key)
        if data is None:
            return self._error(404, "NoSuchKey")
        headers = {"ETag": _tag(data), "Last_Modified": _DATE, "x_ms_blob_type": "BlockBlob"}
        wanted = self.headers.get("Range") or self.headers.get("x-ms-range")
        if self.command == "HEAD" or not wanted:
            return self._answer(200, data, Content_Length=str(len(data)), **headers)
        first, last = re.fullmatch(r"bytes=(\d*)-(\d*)", wanted).groups()
        start = int(first) if first else max(len(data) - int(last), 0)
        stop = min(int(last) + 1, len(data)) if first and last else len(data)
        if start >= len(data):
            return self._error(416, "InvalidRange")
        place = f"bytes {start}-{stop - 1}/{len(data)}"
        return self._answer(206, data[start:stop], Content_Range=place, **headers)

    def _list(self, query: dict[str, list[str]]) -> None:
        bucket, prefix = self._key.strip("/"), query.get("prefix", [""])[0]
        delimiter = query.get("delimiter", [""])[0]
        is_azure = "comp" in query
        with self.cloud.lock:
            objects = sorted(self.cloud.objects.items())
        entries, folders = [], []
        for key, data in objects:
            name = key.removeprefix(f"{bucket}/")
            if name == key or not name.startswith(prefix):
                continue
            rest = name[len(prefix) :]
            if delimiter and delimiter in rest:
                folders.append(prefix + rest.partition(delimiter)[0] + delimiter)
            elif is_azure:
                entries.append(
                    f"<Blob><Name>{escape(name)}</Name><Properties><Last-Modified>{_DATE}"
                    f"</Last-Modified><Etag>{_tag(data)}</Etag><Content-Length>{len(data)}"
                    "</Content-Length><Content-Type>x</Content-Type></Properties></Blob>"
                )
            else:
                entries.append(
                    f"<Contents><Key>{escape(name)}</Key><Size>{len(data)}</Size><ETag>"
                    f"{escape(_tag(data))}</ETag><LastModified>2026-11-23T10:00:00Z"
                    "</LastModified></Contents>"
                )
        unique = list(dict.fromkeys(folders))
        if is_azure:
            parts = [f"<BlobPrefix><Name>{escape(one)}</Name></BlobPrefix>" for one in unique]
            inside = "".join(entries + parts)
            text = f"<EnumerationResults><Blobs>{inside}</Blobs><NextMarker/></EnumerationResults>"
        else:
            parts = [
                f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>" for one in unique
            ]
            text = f"<ListBucketResult>{''.join(entries + parts)}</ListBucketResult>"
        self._answer(200, text.encode(), Content_Type="application/xml")


def _tag(data: bytes) -> str:
    return f'"{hashlib.sha256(data).hexdigest()[:16]}"'


@contextmanager
def fake_cloud() -> Iterator[FakeCloud]:
    """Serve a cloud without objects."""
    cloud = FakeCloud()
    handler = type("Handler", (_Handler,), {"cloud": cloud})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    cloud.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield cloud
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
