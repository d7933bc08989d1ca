"""Links the plain ES modules and style sheets beside the widgets into what a widget sends.

There is no bundler to install and nothing to build: every ``.js`` file is an ordinary ES module
that a browser, an editor or a test can load as it stands. A widget's module must travel as one
text, so ``compose`` links them with a few textual rules::

    import { a, b } from "./x.js";     ->  const { a, b } = $x;
    export function f / const c        ->  function f / const c, and the module returns { f, c }
    export default expression;         ->  kept for the entry module, dropped elsewhere
    every other module                 ->  const $x = (() => { ... return { ... }; })();

in the order of dependence. Comments that have lines of their own stay behind: they are a good part
of what would travel. One module per view, put together per widget, is the simplest thing
that gives both one card out of many views (``app.js`` imports the views) and each view alone (a
view's own file is an entry as well).

Limits: relative imports of named exports only; no cycles; anything else is an InternalError, raised
when the widget class is made and therefore in every test run.
"""

from __future__ import annotations

import re
from pathlib import Path

from lance_nb.errors import InternalError

ROOT = Path(__file__).parent
SHEET_END = "\f"

_IMPORT = re.compile(r'^import\s*\{([^}]*)\}\s*from\s*"(\.{1,2}/[\w./]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function|const|class) (\w+)", re.MULTILINE)
_DEFAULT = re.compile(r"^export default (.+);\n", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*(?://[^\n]*|/\*\*(?:(?!\*/).)*\*/)\n", re.MULTILINE | re.DOTALL)
_LEFT_OVER = re.compile(r"^(?:import|export)\b.*$", re.MULTILINE)


class _Linked:
    """Modules met so far, in the order in which they must run."""

    def __init__(self) -> None:
        self.done: dict[Path, str] = {}
        self.under_way: list[Path] = []
        self.default = ""


def compose_module(entry: str) -> str:
    """Link ``entry`` (a path below the explorer folder) and all it imports into one ES module."""
    linked = _Linked()
    name = _link((ROOT / entry).resolve(), linked)
    if not linked.default:
        raise InternalError(f"{entry} has no default export")
    return "\n".join([*linked.done.values(), f"export default {name}.$default;\n"])


def modules_of(entry: str) -> tuple[Path, ...]:
    """Every file that ``compose_module(entry)`` links, dependencies first."""
    linked = _Linked()
    _link((ROOT / entry).resolve(), linked)
    return tuple(linked.done)


def compose_style(entry: str) -> str:
    """Return the style sheets beside the linked modules, one text: ``x.css`` goes with ``x.js``.

    Every rule is nested under the widget's root. That keeps it from leaking out, and makes it win
    over the rules with which notebooks style the elements of rendered HTML. ``SHEET_END``, which
    CSS takes for a line end, parts the sheets: a page holds each of them once (js/keeper.js).
    """
    sheets = [path.with_suffix(".css") for path in modules_of(entry)]
    texts = (sheet.read_text("utf-8") for sheet in sheets if sheet.is_file())
    return SHEET_END.join(f".lnb {{\n{text}}}" for text in texts)


def _link(path: Path, linked: _Linked) -> str:
    """Add ``path`` and what it imports; returns the name its exports have in the linked text."""
    name = "$" + re.sub(r"\W", "_", path.stem)
    if path in linked.done:
        return name
    if path in linked.under_way:
        raise InternalError(f"{path.name} imports itself through {linked.under_way[-1].name}")
    linked.under_way.append(path)
    source = _COMMENT.sub("", path.read_text("utf-8"))
    body = _IMPORT.sub(lambda match: _imported(match, path, linked), source)
    names = [found for _, found in _EXPORT.findall(body)]
    body = _EXPORT.sub(r"\1 \2", body)
    default = _DEFAULT.search(body)
    linked.under_way.pop()
    if default and not linked.under_way:
        linked.default = default.group(1)
        names.append(f"$default: {linked.default}")
    body = _DEFAULT.sub("", body)
    left = _LEFT_OVER.search(body)
    if left:
        raise InternalError(f"{path.name}: cannot link {left.group()!r}")
    exports = ", ".join(names)
    linked.done[path] = f"const {name} = (() => {{\n{body}\nreturn {{ {exports} }};\n}})();"
    return name


def _imported(match: re.Match[str], path: Path, linked: _Linked) -> str:
    target = _link((path.parent / match.group(2)).resolve(), linked)
    return f"const {{{match.group(1)}}} = {target};\n"
