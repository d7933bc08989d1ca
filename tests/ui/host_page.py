"""A minimal host of widgets, as anywidget documents one: it loads the module that it displays.

It knows ``get``, ``set``, ``save_changes``, ``on``, ``off`` and ``send``, and calls ``render``. No
other model is loaded, so the views can only come from the kernel. With ``drops_buffers`` it loses
the binary buffers of messages and of traits, as hosts do that carry text only (Colab, some
versions). It stands in for hosts that cannot be run here: VS Code, Colab.
"""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page, Route

from lance_nb.explorer.assets import LOADER
from lance_nb.explorer.widget import LanceWidget
from tests.ui.bare_page import MODEL, NONCE, ORIGIN, BarePage

# anywidget itself imports a widget's module from a blob.
POLICY = (
    f"default-src 'none'; script-src 'nonce-{NONCE}' blob:; style-src 'unsafe-inline'; "
    "img-src blob:; media-src blob:; base-uri 'none'; form-action 'none'"
)


class HostPage(BarePage):
    """One widget in a host that loads nothing else."""

    def __init__(self, page: Page, widget: LanceWidget, *, drops_buffers: bool = False) -> None:
        super().__init__(page, widget)
        self._drops_buffers = drops_buffers

    def open(self, **_how: Any) -> HostPage:
        """Load the page and mount the widget."""
        model = MODEL
        if self._drops_buffers:
            model = model.replace("event.buffers.map(bytes)", "[]")
            model = model.replace("return bytes(value.$bytes)", "return null")
        loader = LOADER.replace("export default ", "const LOADER = ")
        html = (
            '<!doctype html><meta charset="utf-8"><title>host</title>'
            '<body data-jp-theme-light="true"><div id="here"></div>'
            f'<script type="module" nonce="{NONCE}">{loader}\n{model}</script>'
        )

        def serve(route: Route) -> None:
            if route.request.url == f"{ORIGIN}/":
                headers = {"content-security-policy": POLICY, "content-type": "text/html"}
                route.fulfill(body=html, headers=headers)
            elif route.request.url.startswith("blob:"):
                route.continue_()
            else:
                self.problems.append(f"request for {route.request.url}")
                route.abort()

        self.page.route("**/*", serve)
        self.page.expose_function("toKernel", self._to_kernel)
        self.widget.send = self._collect
        self.page.goto(f"{ORIGIN}/")
        self.page.wait_for_function("window.ready")
        traits = self._traits("screen", "height", "_entry", "_code_key", "_code")
        self.page.evaluate("(events) => { window.start(events); }", traits)
        return self
