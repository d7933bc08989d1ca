"""A notebook in JupyterLab, driven the way a person drives it.

Nothing waits for a fixed time: the application, the kernel and the outputs are asked whether they
are ready. Requests to anything but the server are kept in ``NotebookPage.outside``; the browser is
started so that it resolves no other name (``OFFLINE``). Nothing routes requests: each of the files
of JupyterLab would go through this process.
"""

from __future__ import annotations

from playwright.sync_api import Browser, Error, Locator, Page, Request

# Options of Chromium by which nothing leaves the machine.
OFFLINE = ("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",)
# Things JupyterLab itself says; everything else on the console fails a test.
KNOWN_NOISE = ("ResizeObserver loop",)
# The kernel's state and the end of what each cell printed, views included.
_SAID = """
() => {
  const panel = window.jupyterapp?.shell?.currentWidget;
  const kernel = panel?.sessionContext?.session?.kernel;
  const cells = [...document.querySelectorAll(".jp-CodeCell")].map((cell) =>
    (cell.querySelector(".jp-InputPrompt")?.textContent ?? "") + " "
      + (cell.querySelector(".jp-OutputArea")?.innerText ?? "").slice(-1500));
  return [`kernel ${kernel?.connectionStatus} ${kernel?.status}`, ...cells].join("\\n");
}
"""


class NotebookPage:
    """A notebook in JupyterLab. ``problems``: console errors; ``outside``: refused requests."""

    def __init__(self, browser: Browser, address: str, token: str, before: str = "") -> None:
        self._before = before
        self._browser = browser
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
        context = self._browser.new_context(viewport={"width": width, "height": height})
        self.page = context.new_page()
        self.page.set_default_timeout(180_000)
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.problems.append(f"page error: {error}"))
        self.page.on("request", self._note_request)
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

    def _note_request(self, request: Request) -> None:
        if not request.url.startswith((self._address, "data:", "blob:")):
            self.outside.append(request.url)

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

    def wait_for_output(self, label: str, kind: str, words: str) -> None:
        """Wait until the notebook holds an output of a kind with some words in it."""
        self.page.wait_for_function(
            """([label, kind, words]) => {
            const { cells } = window.jupyterapp.shell.currentWidget.content.model.toJSON();
            const outputs = cells.flatMap((cell) => cell.outputs ?? []).map((one) => one.data);
            return outputs.some((data) => [data?.[kind] ?? ""].flat().join("").includes(words)
              && [data["text/plain"]].flat().join("").includes(label));
            }""",
            arg=[label, kind, words],
        )

    def shut_down_kernel(self) -> None:
        """Save the notebook and end its kernel."""
        self.command("docmanager:save")
        self.page.evaluate(
            "async () => { await window.jupyterapp.shell.currentWidget.sessionContext.shutdown() }"
        )

    def explorer(self, at: int = 0) -> Locator:
        """The live explorers of the notebook, in order."""
        return self.page.locator(".lnb-live[aria-label='Lance dataset explorer']").nth(at)

    def told(self) -> str:
        """What the kernel and the page said, for the report of a test that failed."""
        if not hasattr(self, "page") or self.page.is_closed():
            return ""
        try:  # not `evaluate`, which would wait for a page that hangs
            said = self.page.wait_for_function(_SAID, timeout=5_000).json_value()
        except Error as error:
            said = str(error)
        return "\n".join([f"{self.page.url.split('?')[0]}: {said}", *self.problems[-5:]])

    def close(self) -> None:
        """Close the page and its profile."""
        self.page.context.close()
