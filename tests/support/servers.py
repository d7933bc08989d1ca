"""Real servers for tests, each on a free port of this machine and gone when the test run ends."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.requirements import require_package

START_S = 180.0
ROOT = Path(__file__).parents[2]


@contextmanager
def moto_server() -> Iterator[str]:
    """Serve S3 and DynamoDB; yields the address (``http://127.0.0.1:...``)."""
    require_package("moto")
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.moto_server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        port = process.stdout.readline().strip()
        if not port:
            pytest.fail("moto did not start")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.stdin.close()
        _ended(process)
        process.stdout.close()


@contextmanager
def redis_server() -> Iterator[int]:
    """Serve Redis without a disk; yields the port."""
    require_package("redis")
    program = shutil.which("redis-server")
    if not program:
        pytest.skip("Redis is missing (apt install redis-server)")
    port = free_port()
    command = [program, "--port", str(port), "--bind", "127.0.0.1"]
    command += ["--save", "", "--appendonly", "no", "--loglevel", "warning"]
    with _running(command, lambda: _listens(port)):
        yield port


@contextmanager
def postgres_server() -> Iterator[int]:
    """Serve PostgreSQL from an empty folder as an ordinary user; yields the port."""
    require_package("psycopg")
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not found:
        pytest.skip("PostgreSQL is missing (apt install postgresql)")
    programs, user = found[-1], _postgres_user()
    folder = Path(tempfile.mkdtemp(prefix="lance-nb-postgres-"))
    try:
        if user is not None:
            os.chown(folder, user.pw_uid, user.pw_gid)
        data = folder / "data"
        subprocess.run(
            [str(programs / "initdb"), "-A", "trust", "-U", "postgres", "--no-sync", str(data)],
            check=True, capture_output=True, timeout=START_S, cwd=folder, **_as(user),
        )  # fmt: skip
        port = free_port()
        options = {"listen_addresses": "127.0.0.1", "unix_socket_directories": str(folder)}
        command = [str(programs / "postgres"), "-D", str(data), "-p", str(port)]
        for name, value in options.items():
            command += ["-c", f"{name}={value}"]
        ready = [str(programs / "pg_isready"), "-h", "127.0.0.1", "-p", str(port), "-q"]
        with _running(command, lambda: subprocess.run(ready, check=False).returncode == 0, user):
            yield port
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def marimo_server(notebook: Path) -> Iterator[str]:
    """Serve a notebook of marimo as an application, in its folder; yields the address."""
    port = free_port()
    command = [sys.executable, "-m", "marimo", "-q", "run", str(notebook), "--headless"]
    command += ["--no-token", "--host", "127.0.0.1", "--port", str(port)]
    environment = {**os.environ, "HOME": str(notebook.parent), "PYTHONPATH": str(ROOT)}
    with _running(command, lambda: _listens(port), cwd=notebook.parent, env=environment):
        yield f"http://127.0.0.1:{port}"


def free_port() -> int:
    """Return a port that nothing listens on now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _postgres_user() -> pwd.struct_passwd | None:
    """Return whom to run PostgreSQL as when we are root, which it refuses."""
    if os.getuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        pytest.skip("PostgreSQL does not run as root, and there is no user 'postgres'")


def _as(user: pwd.struct_passwd | None) -> dict[str, int]:
    return {} if user is None else {"user": user.pw_uid, "group": user.pw_gid}


@contextmanager
def _running(
    command: list[str],
    ready: Callable[[], bool],
    user: pwd.struct_passwd | None = None,
    cwd: str | Path = "/",
    env: dict[str, str] | None = None,
) -> Iterator[None]:
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd=cwd, env=env, **quiet, **_as(user))
    try:
        deadline = time.monotonic() + START_S
        while not ready():
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"{command[0]} did not start")
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        _ended(process)


def _ended(process: subprocess.Popen[Any]) -> None:
    """Wait for the end of a process that has been told to end, and make it end."""
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as one:
        one.settimeout(10)
        return one.connect_ex(("127.0.0.1", port)) == 0
