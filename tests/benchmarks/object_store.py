"""Object stores, ours against pylance, in one run.

A moto server behind a proxy that holds back every request (``--delay-ms``, 50) stands for a bucket
that is far away. Each operation runs in a process of its own for each engine, twice: the first call
pays for connecting and for what the driver loads, the second opens the dataset anew. The proxy
counts the requests. ``--drivers`` also measures lance_nb with fsspec's driver.

Times are medians of ``--rounds`` processes: seconds by the clock, and of the processor in brackets.
Importing the engine is not counted, loading the driver of the store is.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa

from tests.benchmarks.timing import ONLY, Timing, markdown, median
from tests.support.servers import moto_server

OPTIONS = {
    "--call": {"nargs": 2, "help": argparse.SUPPRESS},  # in a process of one engine
    "--only": ONLY,
    "--rounds": {"type": int, "default": 3, "help": "processes for each number"},
    "--delay-ms": {"type": float, "default": 50},
    "--rows": {"type": int, "default": 100_000, "help": "rows of each fragment"},
    "--drivers": {"action": "store_true", "help": "also lance_nb over fsspec"},
    "--show": {"action": "store_true", "help": "print every request"},
}
ROOT = Path(__file__).resolve().parents[2]
BUCKET = "bench"
FRAGMENTS = 6
ENGINES = ("pylance", "lance_nb")
FSSPEC = "lance_nb over fsspec"


# --- what is measured -----------------------------------------------------------------------------

Operation = Callable[[Any, str, dict[str, Any]], object]


def _rows(count: int) -> pa.Table:
    rng = np.random.default_rng(7)
    return pa.table(
        {
            "id": pa.array(np.arange(count, dtype=np.int64)),
            "score": pa.array(rng.random(count)),
            "kind": pa.array(rng.integers(0, 50, count).astype(np.int32)),
            "label": pa.array([f"label {number}" for number in rng.integers(0, count, count)]),
        }
    )


_TAKEN = np.random.default_rng(3).integers(0, FRAGMENTS * OPTIONS["--rows"]["default"], 20).tolist()


def _open(engine: Any, uri: str, options: dict[str, Any]) -> Any:
    return engine.dataset(uri, storage_options=options)


OPERATIONS: dict[str, Operation] = {
    "open and count": lambda e, uri, o: _open(e, uri, o).count_rows(),
    "head 100": lambda e, uri, o: _open(e, uri, o).head(100),
    "two columns": lambda e, uri, o: _open(e, uri, o).to_table(["id", "score"]),
    "point filter": lambda e, uri, o: _open(e, uri, o).to_table(filter="id = 123456"),
    "take 20 rows": lambda e, uri, o: _open(e, uri, o).take(_TAKEN),
    "versions": lambda e, uri, o: _open(e, uri, o).versions(),
    "append 10 rows": lambda e, uri, o: e.write_dataset(
        _rows(10), uri, mode="append", storage_options=o
    ),
    "delete": lambda e, uri, o: _open(e, uri, o).delete("kind = 7 and id % 2 = 0"),
}
# These change the dataset: each engine has its own, and each call of a process finds one anew.
CHANGING = ("append 10 rows", "delete")


def measure(engine: str, operation: str, uris: list[str], options: dict[str, Any]) -> None:
    """Run an operation once on each URI; wait for a line before, print the times after each."""
    module = importlib.import_module("lance" if engine == "pylance" else "lance_nb")
    act = OPERATIONS[operation]
    _rows(10)
    for uri in uris:
        print("ready", flush=True)
        sys.stdin.readline()
        wall, cpu = time.perf_counter(), time.process_time()
        act(module, uri, options)
        times = time.perf_counter() - wall, time.process_time() - cpu
        print(json.dumps(times), flush=True)


# --- a far server ---------------------------------------------------------------------------------


@dataclass
class DelayingProxy:
    """Passes HTTP requests on, each after a delay, and counts them."""

    upstream: tuple[str, int]
    delay_s: float
    requests: Counter[str] = field(default_factory=Counter)
    port: int = 0

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                if b"100-continue" in head.lower():
                    writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                lines = [one for one in head.split(b"\r\n") if not _is_expectation(one)]
                body = await _body(reader, head)
                method, path = lines[0].decode().split(" ")[:2]
                self.requests[f"{method} {path}"] += 1
                await asyncio.sleep(self.delay_s)
                if server is None:
                    server = await asyncio.open_connection(*self.upstream)
                server[1].write(b"\r\n".join(lines) + body)
                answer = await server[0].readuntil(b"\r\n\r\n")
                rest = b"" if method == "HEAD" else await _body(server[0], answer)
                writer.write(answer + rest)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            for one in (writer, *((server[1],) if server else ())):
                one.close()

    def run(self, started: threading.Event) -> None:
        async def main() -> None:
            server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 20)
            self.port = server.sockets[0].getsockname()[1]
            started.set()
            await server.serve_forever()

        asyncio.run(main())


def _is_expectation(line: bytes) -> bool:
    return line.lower().startswith(b"expect:")


async def _body(reader: asyncio.StreamReader, head: bytes) -> bytes:
    """Read what follows the head of a message, as it is sent on."""
    headers = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:] if b":" in line)
    if b"chunked" not in headers.get(b"transfer-encoding", b""):
        return await reader.readexactly(int(headers.get(b"content-length", 0)))
    pieces = []
    while True:
        line = await reader.readuntil(b"\r\n")
        size = int(line.split(b";")[0], 16)
        pieces += [line, await reader.readexactly(size + 2)]
        if not size:
            return b"".join(pieces)


@contextmanager
def delaying_proxy(upstream: str, delay_s: float) -> Iterator[DelayingProxy]:
    """Run a proxy in a thread that ends with the process."""
    place = urlsplit(upstream)
    proxy = DelayingProxy((str(place.hostname), int(place.port or 80)), delay_s)
    started = threading.Event()
    threading.Thread(target=proxy.run, args=(started,), daemon=True).start()
    started.wait(10)
    yield proxy


# --- one run --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """One call: its requests, and what it took."""

    requests: int
    taken: Timing


class Bench:
    """Datasets in a bucket, and processes that use them."""

    def __init__(self, endpoint: str, proxy: DelayingProxy, folder: Path) -> None:
        self._proxy = proxy
        self._client = importlib.import_module("boto3").client(
            "s3", endpoint_url=endpoint, region_name="us-east-1",
            aws_access_key_id="test", aws_secret_access_key="testtest",
        )  # fmt: skip
        self._client.create_bucket(Bucket=BUCKET)
        self._folder = folder
        self._count = 0
        self.show = False
        # Where Python may not keep what it compiles, each process would compile everything anew.
        self._environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder.parent / "compiled")}
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)
        self.shared = self._upload()

    def _upload(self) -> str:
        """Copy the dataset into the bucket under a new name; return its URI."""
        self._count += 1
        name = f"table{self._count}.lance"
        for path in sorted(self._folder.rglob("*")):
            if path.is_file():
                key = f"{name}/{path.relative_to(self._folder).as_posix()}"
                self._client.put_object(Bucket=BUCKET, Key=key, Body=path.read_bytes())
        return f"s3://{BUCKET}/{name}"

    def run(self, engine: str, operation: str) -> list[Call]:
        """Run an operation twice in a new process."""
        changes = operation in CHANGING
        uris = [self._upload() if changes else self.shared for _ in range(2)]
        options = {
            "aws_access_key_id": "test",
            "aws_secret_access_key": "testtest",
            "aws_endpoint": f"http://127.0.0.1:{self._proxy.port}",
            "aws_region": "us-east-1",
            "allow_http": "true",
        }
        if engine == FSSPEC:
            options["driver"] = "fsspec"
        call = [engine, operation, *uris]
        command = [sys.executable, "-m", "tests.benchmarks", "object-store", "--call"]
        process = subprocess.Popen(
            [*command, json.dumps(call), json.dumps(options)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
            env=self._environment,
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        calls = []
        for _ in uris:
            if process.stdout.readline().strip() != "ready":
                raise SystemExit(f"{engine} failed: {operation}")
            self._proxy.requests.clear()
            process.stdin.write("go\n")
            process.stdin.flush()
            wall, cpu = json.loads(process.stdout.readline() or "[0, 0]")
            requests = self._proxy.requests
            calls.append(Call(requests.total(), Timing(wall, cpu)))
            if self.show:
                print(f"\n{engine}, {operation}:")
                for request, number in requests.items():
                    print(f"  {number} x {request}")
        process.stdin.close()
        process.wait()
        process.stdout.close()
        return calls


def table(engines: tuple[str, ...], results: dict[tuple[str, str, int], list[Call]]) -> str:
    """Lay the medians out as a Markdown table; the ratio is our time over pylance's."""
    titles = [f"{engine} {call} call" for engine in engines for call in ("first", "second")]
    rows = []
    for operation in dict.fromkeys(name for name, _, _ in results):
        cells = []
        walls = {}
        for engine in engines:
            for number in range(2):
                calls = results[operation, engine, number]
                taken = median(call.taken for call in calls)
                requests = sorted(call.requests for call in calls)[len(calls) // 2]
                cells.append(f"{requests} req, {taken.wall:.2f} s ({taken.cpu:.2f})")
                walls[engine] = taken.wall  # of the second call
        rows.append((operation, *cells, f"{walls['lance_nb'] / walls['pylance']:.2f}"))
    return markdown(("operation", *titles, "ratio of second calls"), rows)


def write_dataset(folder: Path, fragments: int, rows: int) -> None:
    """Write the dataset that is copied into the bucket: one version for each fragment."""
    lance: Any = importlib.import_module("lance")
    for number in range(fragments):
        part = _rows(rows)
        ids = pa.array(np.arange(number * rows, (number + 1) * rows, dtype=np.int64))
        part = part.set_column(0, "id", ids)
        lance.write_dataset(part, str(folder), mode="append" if number else "create")


def run(options: argparse.Namespace) -> None:
    """Measure, and print the table."""
    if options.call:
        engine, operation, *uris = json.loads(options.call[0])
        measure(engine, operation, uris, json.loads(options.call[1]))
        return
    engines = (*ENGINES, FSSPEC) if options.drivers else ENGINES
    results: dict[tuple[str, str, int], list[Call]] = {}
    with tempfile.TemporaryDirectory() as folder:
        write_dataset(Path(folder) / "t", FRAGMENTS, options.rows)
        with (
            moto_server() as endpoint,
            delaying_proxy(endpoint, options.delay_ms / 1000) as proxy,
        ):
            bench = Bench(endpoint, proxy, Path(folder) / "t")
            bench.show = options.show
            for operation in (name for name in OPERATIONS if options.only in name):
                for _ in range(options.rounds):
                    for engine in engines:
                        for number, call in enumerate(bench.run(engine, operation)):
                            results.setdefault((operation, engine, number), []).append(call)
    print(
        f"{FRAGMENTS} fragments of {options.rows:,} rows, {options.delay_ms:g} ms for each request"
    )
    print()
    print(table(engines, results))
