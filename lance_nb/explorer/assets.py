"""Link the ES modules and style sheets of the views, and send each view to the browser once.

There is no bundler to install and nothing to build: every ``.js`` file is an ordinary ES module
that a browser, an editor or a test can load as it stands. A widget's module must travel as one
text, so ``compose_module`` links them with a few textual rules::

    import { a, b } from "./x.js";     ->  const { a, b } = $x;
    export function f / const c        ->  function f / const c, and the module returns { f, c }
    export default expression;         ->  kept for the entry module, dropped elsewhere
    every other module                 ->  const $x = (() => { ... return { ... }; })();

in the order of dependence. A module that is loaded later (``base``) is linked as a function of the
modules that the first one holds, so that both share one instance of each. Comments, indentation and
most spaces stay behind: they are a good part of what would travel. A source map at the end leads
each line back to its file and line, so that errors in a browser's console name them.

Modules as separate blob URLs with rewritten imports would name their files in every stack trace.
They were not chosen: a page whose policy allows one script (html_export.py) would have to allow
every ``blob:``, and a first screen would load some seventy scripts one after the other.

The linked module of the explorer weighs hundreds of kilobytes. In every widget it would be sent,
parsed and compiled anew for each cell that is run, which is most of what a first screen costs. So a
widget's own module is a small loader (``js/loader.js``); the views travel in a model of their own,
one per kind of view and kernel, which registers them in the page (``js/view_registration.js``) for
all loaders.

Views of the explorer that its first screen does without (``LATE_VIEWS``) have a model each, made
when the browser requests it. They share the modules of the explorer.

marimo loads the models that it displays and no others, so there a widget's own module is the whole
of its views (``standalone_texts``). In any other host of this kind the loader asks the kernel for
that text after a moment.

Layout of the synced traits: ``key``, a hash of the linked module and the style sheet; ``style``;
``base``, the key of the view whose modules this one shares, or empty; the module is the model's
own. A widget has the same ``_views_key``, and names this model in ``_views`` as
``IPY_MODEL_<id>``, the form in which saved states name other models, so that a notebook saved with
its states re-renders.

Limits: relative imports of named exports only; no cycles; anything else is an InternalError, raised
when the widget class is made and therefore in every test run. A text in backticks that spans lines
loses its indentation. The formatter (tests/js) keeps imports and exports in the forms above.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

import anywidget
import traitlets

from lance_nb.errors import InternalError

ROOT = Path(__file__).parent
SHEET_END = "\f"

_IMPORT = re.compile(r'^import\s*\{([^}]*)\}\s*from\s*"(\.{1,2}/[\w./]+\.js)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function|const|class) (\w+)", re.MULTILINE)
_DEFAULT = re.compile(r"^export default (.+);$", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*(?://[^\n]*|/\*\*(?:(?!\*/).)*\*/)$", re.MULTILINE | re.DOTALL)
# Code, whose texts are complete and whose signs start no comment, and the comment behind it.
_COMMENT_BEHIND = re.compile(r'^((?:"(?:[^"\\]|\\.)*"|`[^`]*`|/(?!/)|[^"\'`/])*?)[ \t]+// .*$')
_LEFT_OVER = re.compile(r"^(?:import|export)\b.*$", re.MULTILINE)
_TYPE = re.compile(r"/\*\* @type .*?\*/ ?")
# Spaces around signs, and the texts in which signs stay as they are. Lines with other texts or
# regular expressions are left alone.
_SPACED_SIGN = re.compile(r'("(?:[^"\\]|\\.)*"|`[^`]*`)| ?([={}()\[\];,<>?:&|!*]+) ?')
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"|`[^`]*`')
_CSS_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

# A line of the linked text, with the file and the line (from 0) that it comes from.
_Line = tuple[str, Path, int]


class _Linked:
    """Modules met so far, in the order in which they must run."""

    def __init__(self) -> None:
        self.done: dict[Path, list[_Line]] = {}
        self.under_way: list[Path] = []
        self.has_default = False
        self.held: set[Path] = set()  # modules that the page has already


def compose_module(
    entry: str, *, views: str | None = None, late: Sequence[str] = (), base: str | None = None
) -> str:
    """Link ``entry`` (a path below the explorer folder) and all it imports into one ES module.

    With ``views`` the default export of that module stands before ``entry``, as ``VIEWS``; its
    ``modules`` are what the views ``late`` import from it. With ``base`` it is instead a function
    that takes the modules of the view ``base`` and returns the default export.
    """
    linked = _Linked()
    if views is not None:
        if base is None:
            path = (ROOT / views).resolve()
            name = _link(path, linked)
            names = sorted(
                {_name(shared) for module in late for shared in shared_modules(module, views)}
            )
            modules = f"Object.assign({name}.$default, {{ modules: {{ {', '.join(names)} }} }})"
            linked.done[path].append((f"const VIEWS = {modules};", path, 0))
        else:
            _link_late(views, base, linked)
    name = _link((ROOT / entry).resolve(), linked)
    if not linked.has_default:
        raise InternalError(f"{entry} has no default export")
    lines = [line for module in linked.done.values() for line in module]
    text = "\n".join(text for text, _, _ in lines)
    return f"{text}\nexport default {name}.$default;\n{_source_map(lines)}\n"


def modules_of(entry: str) -> tuple[Path, ...]:
    """Every file that ``compose_module(entry)`` links, dependencies first."""
    modules: dict[Path, None] = {}
    under_way: set[Path] = set()

    def add(path: Path) -> None:
        if path in modules or path in under_way:
            return
        under_way.add(path)
        for imported in _imports_of(path):
            add(imported)
        modules[path] = None

    add((ROOT / entry).resolve())
    return tuple(modules)


def shared_modules(late: str, base: str) -> tuple[Path, ...]:
    """Return the modules of the view ``base`` that the modules of ``late`` alone import."""
    held = set(modules_of(base))
    own = [path for path in modules_of(late) if path not in held]
    taken = (imported for path in own for imported in _imports_of(path) if imported in held)
    return tuple(dict.fromkeys(taken))


def _imports_of(path: Path) -> list[Path]:
    source = path.read_text("utf-8")
    return [(path.parent / target).resolve() for _, target in _IMPORT.findall(source)]


def compose_style(entry: str, *, base: str | None = None) -> str:
    """Return the style sheets beside the linked modules, one text: ``x.css`` goes with ``x.js``.

    The sheets of the view ``base`` are left out.

    Every rule is nested under the widget's root. That keeps it from leaking out, and makes it win
    over the rules with which notebooks style the elements of rendered HTML. ``SHEET_END``, which
    CSS takes for a line end, separates the sheets: a page holds each of them once
    (js/view_registration.js).
    """
    held = set() if base is None else set(modules_of(base))
    sheets = [path.with_suffix(".css") for path in modules_of(entry) if path not in held]
    texts = (_compact(sheet.read_text("utf-8")) for sheet in sheets if sheet.is_file())
    return SHEET_END.join(f".lnb{{{text}}}" for text in texts)


def _compact(style: str) -> str:
    """Leave out of a style sheet what only people read."""
    text = re.sub(r"\s+", " ", _CSS_COMMENT.sub("", style))
    return re.sub(r" ?([{};,]) ?|(?<=:) ", r"\1", text).replace(";}", "}").strip()


def _name(path: Path) -> str:
    """Return the name that the exports of a module have in the linked text."""
    return "$" + re.sub(r"\W", "_", path.stem)


def _link_late(entry: str, base: str, linked: _Linked) -> None:
    """Add ``entry`` without the modules of ``base``, as the function ``VIEWS`` of these modules."""
    path = (ROOT / entry).resolve()
    own = _Linked()
    own.held = set(modules_of(base))
    name = _link(path, own)
    names = ", ".join(map(_name, shared_modules(entry, base)))
    linked.done[path] = [
        (f"const VIEWS = ({{ {names} }}) => {{", path, 0),
        *(line for module in own.done.values() for line in module),
        (f"return {name}.$default;", path, 0),
        ("};", path, 0),
    ]


def _link(path: Path, linked: _Linked) -> str:
    """Add ``path`` and what it imports; returns the name its exports have in the linked text."""
    name = _name(path)
    if path in linked.held or path in linked.done:
        return name
    if path in linked.under_way:
        raise InternalError(f"{path.name} imports itself through {linked.under_way[-1].name}")
    linked.under_way.append(path)
    # Every step keeps the number of lines: a source map of lines in sequence is small.
    source = _COMMENT.sub(lambda match: "\n" * match.group().count("\n"), path.read_text("utf-8"))
    body = _IMPORT.sub(partial(_imported, path=path, linked=linked), source)
    names = [exported for _, exported in _EXPORT.findall(body)]
    body = _EXPORT.sub(r"\1 \2", body)
    default = _DEFAULT.search(body)
    linked.under_way.pop()
    linked.has_default = default is not None
    if default:
        names.append(f"$default: {default.group(1)}")
    body = _DEFAULT.sub("", body)
    left = _LEFT_OVER.search(body)
    if left:
        raise InternalError(f"{path.name}: cannot link {left.group()!r}")
    lines = [
        (_squeezed(line), path, line_number) for line_number, line in enumerate(body.split("\n"))
    ]
    linked.done[path] = [
        (f"const {name} = (() => {{", path, 0),
        *lines,
        (f"return {{ {', '.join(names)} }};", path, 0),
        ("})();", path, 0),
    ]
    return name


@cache  # most modules are linked for several views
def _squeezed(line: str) -> str:
    """Return a line of code without the comment and the spaces that only people read."""
    text = _COMMENT_BEHIND.sub(r"\1", _TYPE.sub("", line)).strip()
    if text.count("`") not in {0, 2} or set("/'") & set(_TEXT.sub("", text)):
        return text
    return _SPACED_SIGN.sub(lambda match: match.group(1) or match.group(2), text)


def _imported(match: re.Match[str], path: Path, linked: _Linked) -> str:
    target = _link((path.parent / match.group(2)).resolve(), linked)
    return f"const {{{match.group(1)}}} = {target};"


def _source_map(lines: list[_Line]) -> str:
    """Return the comment that leads each line of the linked text to its file and line."""
    files = {
        path: file_number
        for file_number, path in enumerate(dict.fromkeys(path for _, path, _ in lines))
    }
    mappings, before = [], (0, 0)
    for _, path, line in lines:
        file = files[path]
        steps = (0, file - before[0], line - before[1], 0)
        mappings.append("".join(map(_base64_number, steps)))
        before = (file, line)
    sources = [f"lance_nb/explorer/{path.relative_to(ROOT.resolve()).as_posix()}" for path in files]
    source_map = {"version": 3, "sources": sources, "names": [], "mappings": ";".join(mappings)}
    text = quote(json.dumps(source_map, separators=(",", ":")), safe="{}[]:,;/+")
    return f"//# sourceMappingURL=data:application/json,{text}"


def _base64_number(value: int) -> str:
    """Write a number as source maps have it: base64 digits of five bits, the sign in the lowest."""
    left = -2 * value + 1 if value < 0 else 2 * value
    digits = ""
    while True:
        left, digit = left >> 5, left & 31
        digits += _BASE64[digit | 32 if left else digit]
        if not left:
            return digits


EXPLORER = "app.js"
STANDALONE_EXPLORER = "standalone_app.js"
LATE_VIEWS = (
    "refs/branches.js",
    "changes/changes.js",
    "map/embedding_map.js",
    "checks/expectations.js",
    "history/history_strip.js",
    "log/operations_log.js",
    "pictures/picture_wall.js",
    "retention/retention.js",
    "review/review.js",
    "editing/row_editor.js",
    "stage/stage.js",
    "storage/storage.js",
)
REGISTRATION = "js/view_registration.js"
LOADER = compose_module("js/loader.js")


class ViewModule(anywidget.AnyWidget):
    """The ES module and the style sheet of one kind of view; it shows nothing itself."""

    _esm = traitlets.Unicode().tag(sync=True)
    key = traitlets.Unicode().tag(sync=True)
    style = traitlets.Unicode().tag(sync=True)
    base = traitlets.Unicode().tag(sync=True)

    _of_entry: ClassVar[dict[str, ViewModule]] = {}

    @classmethod
    def of(cls, entry: str) -> ViewModule:
        """Return the model of the view whose module is ``entry``; made anew when it was closed."""
        held = cls._of_entry.get(entry)
        if held is None or held.comm is None:
            late = LATE_VIEWS if entry == EXPLORER else ()
            module = compose_module(REGISTRATION, views=entry, late=late)
            held = cls(_esm=module, key=key_of(entry), style=texts(entry)[1])
            cls._of_entry[entry] = held
        return held

    @classmethod
    def late(cls, entry: str, *, again: bool = False) -> ViewModule:
        """Return the model of a late view of the explorer; with ``again`` it is sent once more."""
        name = f"{EXPLORER} {entry}"
        held = cls._of_entry.get(name)
        if held is not None and again:
            held.close()
        if held is None or held.comm is None:
            module, style = late_texts(entry)
            key, base = late_key_of(entry), key_of(EXPLORER)
            held = cls(_esm=module, key=key, style=style, base=base)
            cls._of_entry[name] = held
        return held


@cache
def late_texts(entry: str) -> tuple[str, str]:
    """Return the linked module and style sheet of a late view, without those of the explorer."""
    module = compose_module(REGISTRATION, views=entry, base=EXPLORER)
    return module, compose_style(entry, base=EXPLORER)


@cache
def late_key_of(entry: str) -> str:
    """Return a hash of a late view's module and style sheet and of the explorer's."""
    return _digest(key_of(EXPLORER), *late_texts(entry))


@cache
def texts(entry: str) -> tuple[str, str]:
    """Return the linked module and style sheet of a view."""
    return compose_module(entry), compose_style(entry)


def standalone_texts(entry: str) -> tuple[str, str]:
    """Return the module and style sheet of a widget that shares nothing with others."""
    return texts(STANDALONE_EXPLORER if entry == EXPLORER else entry)


@cache
def key_of(entry: str) -> str:
    """Return a hash of what a view's module and style sheet hold."""
    return _digest(*texts(entry))


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
