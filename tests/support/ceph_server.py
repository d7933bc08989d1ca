"""A Ceph object store with one node and its data in memory: the strict judge of S3 commits.

It needs Debian's ``ceph-mon``, ``ceph-osd``, ``ceph-common`` and ``radosgw``, and root. One
monitor, one object daemon that keeps everything in memory, one S3 gateway; no replicas, no
authentication among them, all on this machine.
"""

from __future__ import annotations

import http.client
import os
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.servers import free_port

PROGRAMS = ("ceph-mon", "ceph-osd", "ceph", "radosgw", "radosgw-admin", "monmaptool")
START_S = 90.0
MEMORY_BYTES = 2 << 30
_SETTINGS = """
[global]
fsid = {fsid}
mon_initial_members = a
mon_host = v1:127.0.0.1:{port}
public_addr = 127.0.0.1
cluster_addr = 127.0.0.1
ms_bind_msgr2 = false
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
osd_objectstore = memstore
memstore_device_bytes = {memory}
osd_crush_chooseleaf_type = 0
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 8
osd_pool_default_pgp_num = 8
mon_allow_pool_size_one = true
mon_warn_on_pool_no_redundancy = false
mon_data = {folder}/mon
mgr_data = {folder}/mgr
osd_data = {folder}/osd
run_dir = {folder}/run
crash_dir = {folder}/run
admin_socket = {folder}/run/$name.asok
pid_file = {folder}/run/$name.pid
log_file = {folder}/log/$name.log
mon_cluster_log_file = {folder}/log/cluster.log
keyring = {folder}/keyring
[client.rgw]
rgw_data = {folder}/rgw
rgw_frontends = beast endpoint=127.0.0.1:{gateway}
rgw_thread_pool_size = 16
"""


@contextmanager
def ceph_server(key: str, secret: str) -> Iterator[str]:
    """Serve S3 for one user; yields the address. Skips when Ceph is missing."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        needed = "apt install ceph-mon ceph-osd ceph-common radosgw"
        pytest.skip(f"Ceph is missing ({needed}): no {', '.join(missing)}")
    if os.getuid() != 0:
        pytest.skip("Ceph's daemons are started as root only")
    folder = Path(tempfile.mkdtemp(prefix="lance-nb-ceph-"))
    cluster = _Cluster(folder)
    try:
        yield cluster.start(key, secret)
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


class _Cluster:
    """The daemons and their folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._daemons: list[subprocess.Popen[bytes]] = []
        self._environment = {**os.environ, "CEPH_CONF": str(folder / "ceph.conf")}

    def start(self, key: str, secret: str) -> str:
        """Start everything; return the address of the gateway."""
        monitor, gateway, fsid = free_port(), free_port(), str(uuid.uuid4())
        for name in ("mon", "mgr", "osd", "run", "log", "rgw"):
            (self._folder / name).mkdir()
        (self._folder / "keyring").touch()
        settings = _SETTINGS.format(
            fsid=fsid, port=monitor, memory=MEMORY_BYTES, folder=self._folder, gateway=gateway
        )
        (self._folder / "ceph.conf").write_text(settings)
        address = f"[v1:127.0.0.1:{monitor}]"
        self._run("monmaptool", "--create", "--fsid", fsid, "--addv", "a", address, "monmap")
        self._run("ceph-mon", "--mkfs", "-i", "a", "--monmap", "monmap")
        self._daemon("ceph-mon", "-f", "-i", "a")
        self._wait("the monitor", lambda: self._ask("ceph", "-s") != "")
        identity = str(uuid.uuid4())
        self._run("ceph", "osd", "new", identity, "0")
        self._run("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", identity)
        self._daemon("ceph-osd", "-f", "-i", "0")
        self._wait("the object daemon", lambda: "1 up" in self._ask("ceph", "osd", "stat"))
        self._daemon("radosgw", "-f", "-n", "client.rgw")
        self._wait("the gateway", lambda: _answers(gateway))
        user = ("--uid=test", "--display-name=test", f"--access-key={key}")
        self._run("radosgw-admin", "user", "create", *user, f"--secret-key={secret}")
        return f"http://127.0.0.1:{gateway}"

    def stop(self) -> None:
        """End the daemons, the last first."""
        for daemon in reversed(self._daemons):
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def _run(self, *command: str) -> None:
        subprocess.run(
            command, check=True, capture_output=True, timeout=START_S, cwd=self._folder,
            env=self._environment,
        )  # fmt: skip

    def _ask(self, *command: str) -> str:
        try:
            found = subprocess.run(
                command, capture_output=True, timeout=5, cwd=self._folder, check=True,
                env=self._environment, text=True,
            )  # fmt: skip
        except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
            return ""
        return found.stdout

    def _daemon(self, *command: str) -> None:
        quiet = subprocess.DEVNULL
        started = subprocess.Popen(
            command, stdout=quiet, stderr=quiet, cwd=self._folder, env=self._environment
        )
        self._daemons.append(started)

    def _wait(self, what: str, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + START_S
        while not ready():
            ended = [one.args for one in self._daemons if one.poll() is not None]
            if ended or time.monotonic() > deadline:
                pytest.fail(f"Ceph: {what} did not start (ended: {ended})")
            time.sleep(0.2)


def _answers(port: int) -> bool:
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        link.request("GET", "/")
        link.getresponse().read()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        link.close()
    return True
