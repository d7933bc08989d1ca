"""A real JupyterLab on loopback: its folder, its settings, its notebooks and their kernels."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import nbformat
from playwright.sync_api import Browser

from tests.ui.notebook_page import NotebookPage

READY_SECONDS = 240


class LabServer:
    """One server for the run; ``notebook`` opens a page on one of its notebooks."""

    def __init__(self, browser: Browser, root: Path, folder: Path) -> None:
        self.browser = browser
        self.root = root
        self.work = folder / "work"
        self._home = folder / "home"
        self._log = folder / "server.log"
        self._token = secrets.token_hex(16)
        self._process: subprocess.Popen[bytes] | None = None
        self._address = ""
        self.pages: list[NotebookPage] = []

    def start(self) -> None:
        """Lay out the folder, start the server and wait until it answers."""
        self.work.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.root / "notebooks" / "01_tour.ipynb", self.work)
        shutil.copy(self.root / "notebooks" / "demo_data.py", self.work)
        script = [sys.executable, str(self.work / "demo_data.py"), str(self.demo)]
        subprocess.run(script, check=True, capture_output=True, timeout=300)
        self._settle()
        extension = self._home / "data" / "labextensions" / "lance-nb"  # as the wheel installs it
        shutil.copytree(self.root / "lance_nb" / "explorer" / "lab_extension", extension)
        port = _free_port()
        self._address = f"http://127.0.0.1:{port}"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command(port),
                env=self.environment(),
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=self.work,
            )
        self._wait()

    @property
    def process_id(self) -> int:
        """The process that kernels are children of."""
        return 0 if self._process is None else self._process.pid

    @property
    def demo(self) -> Path:
        """The demo dataset, where the tour looks for it."""
        return self.work / "data" / "demo.lance"

    def _settle(self) -> None:
        """Switch off news and update checks, which would leave the machine; keep all cells."""
        settings = {
            "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
            # Else a cell out of sight is not in the page, and counting explorers is a gamble.
            "notebook-extension/tracker": {"windowingMode": "none"},
        }
        for name, values in settings.items():
            path = self._home / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
            path.parent.mkdir(parents=True)
            path.write_text(json.dumps(values))

    def environment(self) -> dict[str, str]:
        """The server's environment: its own Jupyter folders, this checkout on the path."""
        folders = {
            "JUPYTER_CONFIG_DIR": "config",
            "JUPYTER_DATA_DIR": "data",
            "JUPYTER_RUNTIME_DIR": "runtime",
            "IPYTHONDIR": "ipython",
            "JUPYTERLAB_SETTINGS_DIR": "settings",
            "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        }
        own = {name: str(self._home / folder) for name, folder in folders.items()}
        return {**os.environ, **own, "JUPYTER_PLATFORM_DIRS": "1", "PYTHONPATH": str(self.root)}

    def _command(self, port: int) -> list[str]:
        return [
            *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
            *("--expose-app-in-browser", "--ServerApp.ip=127.0.0.1", "--LabApp.news_url="),
            *(f"--ServerApp.port={port}", "--ServerApp.port_retries=0"),
            *(f"--IdentityProvider.token={self._token}", f"--ServerApp.root_dir={self.work}"),
            "--ServerApp.terminals_enabled=False",
            "--JupyterNotebookApp.expose_app_in_browser=True",
        ]

    def _wait(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            if self._process is None or self._process.poll() is not None:
                raise RuntimeError(f"JupyterLab ended:\n{self._log.read_text()[-2000:]}")
            try:
                status = f"{self._address}/api/status?token={self._token}"
                urllib.request.urlopen(status, timeout=20)  # noqa: S310 - our own address
            except OSError:
                time.sleep(0.25)
            else:
                return
        raise RuntimeError("JupyterLab did not answer in time")

    def stop(self) -> None:
        """End the server and its kernels: our own process group, by its id."""
        if self._process is None or self._process.poll() is not None:
            return
        os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(5)

    def write(self, name: str, *cells: str) -> None:
        """Write a notebook of code cells into the server's folder; it has no kernel yet."""
        self._end_kernels(name)
        spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
        notebook = nbformat.v4.new_notebook(metadata={"kernelspec": spec})
        notebook.cells = [nbformat.v4.new_code_cell(cell.strip()) for cell in cells]
        nbformat.write(notebook, self.work / name)

    def anew(self, name: str) -> Path:
        """Return a place in the server's folder where an earlier try of the test left nothing."""
        shutil.rmtree(self.work / name, ignore_errors=True)
        return self.work / name

    def _end_kernels(self, name: str) -> None:
        """End what an earlier try of the same test left running, which a page would take up."""
        for session in self._asked("api/sessions"):
            if session["path"] == name:
                self._asked(f"api/sessions/{session['id']}", "DELETE")

    def _asked(self, path: str, method: str = "GET") -> Any:
        """Return what the server's own interface answers."""
        request = urllib.request.Request(  # noqa: S310 - our own address
            f"{self._address}/{path}",
            headers={"Authorization": f"token {self._token}"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            text = answer.read()
        return json.loads(text) if text else None

    def notebook(
        self,
        name: str,
        *,
        width: int = 1400,
        height: int = 1000,
        app: str = "lab/tree",
        before: str = "",
    ) -> NotebookPage:
        """Open a notebook in a fresh browser profile and wait for its first cell.

        ``app``: "lab/tree" is JupyterLab, "notebooks" Notebook 7; both are served here. ``before``
        is a script that runs in the page before any of its own.
        """
        return self._page(before).open(name, width, height, app)

    def voila(self, name: str) -> NotebookPage:
        """Open a notebook as Voila shows it, which runs every cell by itself."""
        return self._page().go(f"voila/render/{name}", 1400, 1000)

    def _page(self, before: str = "") -> NotebookPage:
        page = NotebookPage(self.browser, self._address, self._token, before)
        self.pages.append(page)
        return page


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
