"""A real JupyterLab on loopback, and notebooks in it driven the way a person drives them.

Nothing waits for a fixed time: the application, the kernel and the outputs are asked whether they
are ready. Requests to anything but the server are refused and kept in ``NotebookPage.outside``.
"""

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

import nbformat
from playwright.sync_api import Browser, Locator, Page, Route

READY_SECONDS = 240
# Things JupyterLab itself says; everything else on the console fails a test.
KNOWN_NOISE = ("ResizeObserver loop",)


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

    def start(self) -> None:
        """Lay out the folder, start the server and wait until it answers."""
        self.work.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.root / "notebooks" / "01_tour.ipynb", self.work)
        shutil.copy(self.root / "notebooks" / "demo_data.py", self.work)
        script = [sys.executable, str(self.work / "demo_data.py"), str(self.demo)]
        subprocess.run(script, check=True, capture_output=True, timeout=300)
        self._settle()
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
        """Write a notebook of code cells into the server's folder."""
        spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
        notebook = nbformat.v4.new_notebook(metadata={"kernelspec": spec})
        notebook.cells = [nbformat.v4.new_code_cell(cell.strip()) for cell in cells]
        nbformat.write(notebook, self.work / name)

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
        page = NotebookPage(self, self._address, self._token, before)
        return page.open(name, width, height, app)

    def voila(self, name: str) -> NotebookPage:
        """Open a notebook as Voila shows it, which runs every cell by itself."""
        return NotebookPage(self, self._address, self._token).go(f"voila/render/{name}", 1400, 1000)


class NotebookPage:
    """A notebook in JupyterLab. ``problems``: console errors; ``outside``: refused requests."""

    def __init__(self, server: LabServer, address: str, token: str, before: str = "") -> None:
        self._before = before
        self._server = server
        self._address = address
        self._token = token
        self.problems: list[str] = []
        self.outside: list[str] = []
        self.page: Page

    def open(self, name: str, width: int, height: int, app: str = "lab/tree") -> NotebookPage:
        """Load JupyterLab or Notebook 7 on the notebook."""
        self.go(f"{app}/{name}", width, height)
        self.page.wait_for_function("() => window.jupyterapp && window.jupyterapp.commands")
        self.page.evaluate("async () => { await window.jupyterapp.restored }")
        self.page.locator(".jp-Notebook .jp-Cell").first.wait_for()
        return self

    def go(self, path: str, width: int, height: int) -> NotebookPage:
        """Load a page of the server."""
        context = self._server.browser.new_context(viewport={"width": width, "height": height})
        self.page = context.new_page()
        self.page.set_default_timeout(180_000)
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.problems.append(f"page error: {error}"))
        context.route("**/*", self._guard)
        if self._before:
            self.page.add_init_script(self._before)
        self.page.goto(
            f"{self._address}/{path}?token={self._token}&reset", wait_until="domcontentloaded"
        )
        return self

    def _note(self, message: object) -> None:
        kind, text = getattr(message, "type", ""), getattr(message, "text", "")
        if kind == "error" and not any(noise in text for noise in KNOWN_NOISE):
            self.problems.append(text[:300])

    def _guard(self, route: Route) -> None:
        url = route.request.url
        if url.startswith((self._address, "data:", "blob:")):
            route.continue_()
        else:
            self.outside.append(url)
            route.abort()

    def run_all(self) -> None:
        """Wait for the kernel, then run every cell to its end."""
        self.page.wait_for_function(
            """() => {
            const panel = window.jupyterapp.shell.currentWidget;
            const kernel = panel && panel.sessionContext && panel.sessionContext.session
              && panel.sessionContext.session.kernel;
            return !!kernel && kernel.connectionStatus === 'connected' && kernel.status === 'idle';
            }"""
        )
        self.command("notebook:run-all-cells")

    def command(self, name: str, **arguments: str) -> None:
        """Run a command of JupyterLab."""
        self.page.evaluate(
            "async ([name, args]) => { await window.jupyterapp.commands.execute(name, args) }",
            [name, arguments],
        )

    def theme(self, *, dark: bool) -> None:
        """Switch JupyterLab's theme and wait for it."""
        self.command("apputils:change-theme", theme=f"JupyterLab {'Dark' if dark else 'Light'}")
        light = str(not dark).lower()
        self.page.locator(f"body[data-jp-theme-light='{light}']").wait_for(state="attached")

    def shut_down_kernel(self) -> None:
        """Save the notebook and end its kernel."""
        self.command("docmanager:save")
        self.page.evaluate(
            "async () => { await window.jupyterapp.shell.currentWidget.sessionContext.shutdown() }"
        )

    def explorer(self, at: int = 0) -> Locator:
        """The live explorers of the notebook, in order."""
        return self.page.locator(".lnb-live[aria-label='Lance dataset explorer']").nth(at)

    def close(self) -> None:
        """Close the page and its profile."""
        self.page.context.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
