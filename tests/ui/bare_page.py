"""A widget in a bare browser page: its ES module, a fake front-end model, no Jupyter.

The page may load nothing and run nothing but the widget's own module and style sheet: its content
security policy is ``default-src 'none'`` with one nonce. The model speaks to the Python widget
through a binding, so a test sees the whole way from a click to the kernel's answer in a second.
The widget's modules are the page's blobs, as anywhere (js/loader.js).
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, Route

from lance_nb.explorer.assets import LOADER, view_code
from lance_nb.explorer.widget import LanceWidget

ORIGIN = "http://widget.test"
NONCE = "only-ours"
POLICY = (
    f"default-src 'none'; script-src 'nonce-{NONCE}' blob:; style-src 'nonce-{NONCE}'; "
    "img-src blob:; media-src blob:; base-uri 'none'; form-action 'none'"
)
DARK = """
:root { --jp-layout-color0: #111; --jp-layout-color1: #212121; --jp-layout-color2: #424242;
  --jp-ui-font-color0: rgba(255,255,255,1); --jp-ui-font-color1: rgba(255,255,255,.87);
  --jp-border-color1: #616161; }
"""
# The least of anywidget's model: what the views use, and nothing that they must not rely on.
MODEL = """
const state = {}; const handlers = new Map();
const on = (name, f) => handlers.set(name, [...(handlers.get(name) ?? []), f]);
const off = (name, f) => handlers.set(name, (handlers.get(name) ?? []).filter((g) => g !== f));
const fire = (name, ...args) => (handlers.get(name) ?? []).forEach((f) => f(...args));
const bytes = (text) => new DataView(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
const revive = (value) => {
  if (Array.isArray(value)) return value.map(revive);
  if (!value || typeof value !== "object") return value;
  if ("$bytes" in value) return bytes(value.$bytes);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, revive(inner)]));
};
const deliver = (events) => events.forEach((event) => {
  if (event.trait) { state[event.trait] = revive(event.value); fire(`change:${event.trait}`); }
  else fire("msg:custom", event.content, event.buffers.map(bytes));
});
window.deliver = deliver; window.fire = fire;
const model = {
  get: (name) => state[name], set() {}, save_changes() {}, on, off,
  async send(content) {
    if (window.toKernel) deliver(await window.toKernel(content));
    else (window.unheard ??= []).push(content);
  },
};
window.start = async (events) => {
  deliver(events);
  LOADER.initialize({ model });
  window.stop = await LOADER.render({ model, el: document.getElementById("here") });
};
window.ready = true;
"""


def _plain(value: Any) -> Any:
    """JSON form of a trait, binary parts marked."""
    if isinstance(value, (bytes, memoryview)):
        return {"$bytes": base64.b64encode(value).decode()}
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return value


class BarePage:
    """One widget in one page. ``events`` counts what went to the kernel."""

    def __init__(self, page: Page, widget: LanceWidget, *, kernel: bool = True) -> None:
        self.page = page
        self.widget = widget
        self.requests: list[dict[str, Any]] = []
        self.problems: list[str] = []
        self._queue: list[dict[str, Any]] = []
        self._kernel = kernel
        page.on("console", self._note_console)
        page.on("pageerror", lambda error: self.problems.append(str(error)))

    def _note_console(self, message: Any) -> None:
        # A browser without a graphics card says that it copies pixels to compose the page.
        is_of_driver = "GL Driver Message (OpenGL, Performance" in message.text
        if message.type in ("error", "warning") and not is_of_driver:
            self.problems.append(message.text)

    def open(self, *, dark: bool = False, style: str = "") -> BarePage:
        """Load the page and mount the widget."""
        theme = f'data-jp-theme-light="{str(not dark).lower()}"'
        css = f"{DARK}body {{ margin: 12px; background: #111 }}" if dark else "body {margin: 12px}"
        loader = LOADER.replace("export default ", "const LOADER = ")
        html = (
            f'<!doctype html><meta charset="utf-8"><title>widget</title>'
            f'<style nonce="{NONCE}">{css} {style}</style><body {theme}><div id="here"></div>'
            f'<script type="module" nonce="{NONCE}">{loader}\n{MODEL}</script>'
        )

        def serve(route: Route) -> None:
            if route.request.url == f"{ORIGIN}/":
                headers = {"content-security-policy": POLICY, "content-type": "text/html"}
                route.fulfill(body=html, headers=headers)
            else:
                self.problems.append(f"request for {route.request.url}")
                route.abort()

        self.page.route("**/*", serve)
        if self._kernel:
            self.page.expose_function("toKernel", self._to_kernel)
        self.widget.send = self._collect
        self.page.goto(f"{ORIGIN}/")
        self.page.wait_for_function("window.ready")
        traits = self._traits("screen", "height", "_entry", "_code_key")
        code = {"trait": "_code", "value": view_code(self.widget.entry)}
        self.page.evaluate("(events) => window.start(events)", [*traits, code])
        return self

    def wake(self) -> None:
        """Let the kernel hear what was said while it did not listen, and all that follows."""
        self.page.expose_function("toKernel", self._to_kernel)
        self.page.evaluate(
            """async () => {
            for (const content of window.unheard) window.deliver(await window.toKernel(content));
            }"""
        )

    def hold(self, *types: str) -> None:
        """Keep back what the kernel hears of these types, until ``release``: it is slow."""
        self.page.evaluate(
            """(types) => {
            const told = window.toKernel, kept = [];
            let held = true;
            window.heard = 0;
            window.toKernel = async (content) => {
              if (!types.includes(content.type)) return told(content);
              if (held) await new Promise((go) => kept.push(go));
              const events = await told(content);
              setTimeout(() => { window.heard += 1; });
              return events;
            };
            window.release = () => { held = false; kept.splice(0).forEach((go) => go()); };
            }""",
            list(types),
        )

    def release(self, count: int) -> None:
        """Let what was held go on; that many answers have been taken in then."""
        self.page.evaluate("window.release()")
        self.page.wait_for_function("(count) => window.heard >= count", arg=count)

    def show(self, widget: LanceWidget) -> None:
        """Show another widget's screen in the same page, as after a journey."""
        self.widget.screen = widget.screen
        self.page.evaluate("(events) => window.deliver(events)", self._traits("screen"))

    def _traits(self, *names: str) -> list[dict[str, Any]]:
        return [{"trait": name, "value": _plain(getattr(self.widget, name))} for name in names]

    def _collect(self, content: Any, buffers: Any = None) -> None:
        encoded = [base64.b64encode(part).decode() for part in buffers or ()]
        self._queue.append({"content": content, "buffers": encoded})

    def _to_kernel(self, content: dict[str, Any]) -> list[dict[str, Any]]:
        self.requests.append(content)
        before = self.widget.screen
        self.widget._on_message(self.widget, content, [])
        changed = self._traits("screen") if self.widget.screen is not before else []
        events, self._queue = [*changed, *self._queue], []
        return events


OpenWidget = Callable[..., BarePage]
Screenshot = Callable[..., None]
