"""A small Hugging Face hub on this machine: one data set whose files are those of a folder."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

REVISION = "0" * 40


@contextmanager
def hub_server(repository: str, folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Serve a folder as ``datasets/{repository}``; yields the address and what is asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            path = unquote(parts.path)
            asked.append(path)
            api, files = f"/api/datasets/{repository}", f"/datasets/{repository}/resolve/"
            if path.startswith(f"{api}/tree/"):
                name = path.removeprefix(f"{api}/tree/").partition("/")[2]
                self._list(folder / name, parse_qs(parts.query))
            elif path == api:
                self._json({"id": repository, "sha": REVISION, "siblings": []})
            elif path.startswith(files):
                self._file(folder / path.removeprefix(files).partition("/")[2])
            else:
                self._json({"error": "not found"}, 404)

        def _list(self, place: Path, query: dict[str, list[str]]) -> None:
            if not place.is_dir():
                self._json({"error": "no such folder"}, 404, "EntryNotFound")
                return
            is_deep = query.get("recursive", [""])[0].lower() == "true"
            found = sorted(place.rglob("*") if is_deep else place.iterdir())
            self._json([_entry(folder, one) for one in found])

        def _file(self, place: Path) -> None:
            if not place.is_file():
                self._json({"error": "no such file"}, 404, "EntryNotFound")
                return
            data = place.read_bytes()
            start, stop = 0, len(data)
            wanted = self.headers.get("Range", "").removeprefix("bytes=")
            if wanted:
                first, _, last = wanted.partition("-")
                start = int(first) if first else max(0, len(data) - int(last))
                stop = min(stop, int(last) + 1) if first and last else stop
            self.send_response(206 if wanted else 200)
            self.send_header("ETag", '"0"')
            self.send_header("X-Repo-Commit", REVISION)
            if wanted:
                self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{len(data)}")
            self._send(data[start:stop])

        def _json(self, value: object, status: int = 200, code: str = "") -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            if code:
                self.send_header("X-Error-Code", code)
            self._send(json.dumps(value).encode())

        def _send(self, data: bytes) -> None:
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Write nothing to stderr."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _entry(root: Path, place: Path) -> dict[str, object]:
    path = place.relative_to(root).as_posix()
    if place.is_dir():
        return {"type": "directory", "oid": REVISION, "size": 0, "path": path}
    return {"type": "file", "oid": REVISION, "size": place.stat().st_size, "path": path}
