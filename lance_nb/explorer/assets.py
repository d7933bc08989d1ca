"""Send the modules and style sheets of the views to the browser, each once in a page.

Every ``.js`` file is an ordinary ES module that a browser, an editor or a test loads as it stands,
and the browser gets it as it stands: the kernel sends the texts by their paths, and the loader of
the page (``js/loader.js``) makes a blob URL of each and puts it in place of the path in ``import``
statements. Nothing is bundled, and stack traces name our files and lines. Only comments and
indentation are left out, which are a third of what would travel.

Measured on the 64 modules of the first screen (109 with all tabs), beside other work on two cores.
Import: of the first screen, in a bare page of Chromium. JupyterLab: from running a cell to rows and
bars, in a page that has no code yet, median of 4. Lines with "~" are of a prototype:

===================== ================ ============ ======= ========== =============================
form                  our lines        gzip, KB:    import  JupyterLab what it needs or breaks
                      (Python, loader) first, all
===================== ================ ============ ======= ========== =============================
modules, blob URLs    185 + 161        82, 172      151 ms  476 ms     pages with a policy must
                                                                       allow ``blob:``, which
                                                                       ``'strict-dynamic'`` does not
                                                                       include
a bundle in the wheel ~150 + 161, a    63, 134      38 ms              esbuild has no maintained
(bun 1.4)             build step                                       wheel, bun's is unofficial
                                                                       and 50 MB; a clone is built
                                                                       after each change; tabs share
                                                                       modules through chunks, which
                                                                       need blob URLs again
one linked text       357 + 168;       78, 165      35 ms   488 ms     rewrites imports and exports
(as before)           ~240 + 161                                       by regular expressions, needs
                      cleaned                                          a source map; no two modules
                                                                       of one name
===================== ================ ============ ======= ========== =============================

Cells that are run later import nothing. The simplest form was chosen.

Where the code travels:

========================== ====================================================================
JupyterLab, Notebook,      a model of its own for each kind of view and kernel, ``ViewCode``, so
Voila, saved states        that cells that are run later send none of it. A widget names it in
                           ``_views`` as ``IPY_MODEL_<id>``, by which saved states keep it
other hosts                load only the models that they display. After a moment the loader
                           requests the code (``views.send``)
marimo                     is such a host; the widget brings the code as a trait
``to_html``, ``lance-nb``  JSON in the page (``page_views``), whose policy allows the loader and
                           ``blob:``
tabs opened later          the answer to ``views.load``, without what the page has
========================== ====================================================================

A page tells the code of two versions of the package apart by ``code_key``.

Limits: an import ends its line as ``from "./path.js";``, as the formatter (tests/js) writes it. A
text in backticks that spans lines loses its indentation.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path
from typing import ClassVar

import anywidget
import traitlets

ROOT = Path(__file__).parent
EXPLORER = "app.js"
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
    "rows/grid_panes.js",
    "editing/row_editor.js",
    "stage/stage.js",
    "storage/storage.js",
)

_IMPORT = re.compile(r'(?<= from ")\.{1,2}/[\w./]+\.js(?=";$)', re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*(?://[^\n]*|/\*\*(?:(?!\*/).)*\*/)$", re.MULTILINE | re.DOTALL)
_INDENTATION = re.compile(r"^[ \t]+", re.MULTILINE)
_CSS_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)

Code = dict[str, list[tuple[str, str]]]


def modules_of(*entries: str) -> tuple[str, ...]:
    """Return the paths of ``entries`` and of all modules that they import, dependencies first."""
    paths: dict[str, None] = {}

    def add(path: str) -> None:
        if path not in paths:
            for imported in _module(path)[1]:
                add(imported)
            paths[path] = None

    for entry in entries:
        add(entry)
    return tuple(paths)


def view_code(*entries: str, without: str | None = None) -> Code:
    """Return what a page loads for the views ``entries``: pairs of a path and a text.

    ``modules`` are in the order of dependence; ``sheets`` are the style sheets beside them:
    ``x.css`` goes with ``x.js``. The code of the view ``without`` is left out. Notebooks are saved
    with the keys of objects sorted, hence the pairs.
    """
    held = set(modules_of(without)) if without else set()
    paths = [path for path in modules_of(*entries) if path not in held]
    styled = [path for path in paths if (ROOT / path).with_suffix(".css").is_file()]
    return {
        "modules": [(path, _module(path)[0]) for path in paths],
        "sheets": [(path, _sheet(path)) for path in styled],
    }


@cache
def code_key() -> str:
    """Return a hash of all modules and style sheets of the package."""
    files = sorted(path for kind in ("*.js", "*.css") for path in ROOT.rglob(kind))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()[:32]


@cache
def _module(path: str) -> tuple[str, tuple[str, ...]]:
    """Return the text of a module as it travels, and the paths of what it imports."""
    folder = (ROOT / path).parent
    imports: dict[str, None] = {}

    def from_root(match: re.Match[str]) -> str:
        imported = (folder / match.group()).resolve().relative_to(ROOT.resolve()).as_posix()
        imports[imported] = None
        return imported

    # The number of lines stays, so that stack traces name the lines of the file.
    source = _COMMENT.sub(lambda comment: "\n" * comment.group().count("\n"), _read(path))
    text = _IMPORT.sub(from_root, _INDENTATION.sub("", source))
    return text, tuple(imports)


def _sheet(path: str) -> str:
    """Return the style sheet of a module, without what only people read.

    Every rule is nested under the widget's root. That keeps it from leaking out, and makes it win
    over the rules with which notebooks style the elements of rendered HTML.
    """
    style = _CSS_COMMENT.sub("", (ROOT / path).with_suffix(".css").read_text("utf-8"))
    return f".lnb{{{' '.join(style.split())}}}"


def _read(path: str) -> str:
    return (ROOT / path).read_text("utf-8")


LOADER = _module("js/loader.js")[0]
PAGE_SCRIPT = f"{LOADER}\nstartPage(document);\n"


def page_views(entry: str) -> tuple[str, dict[str, object]]:
    """Return the script of a page with views of its own, and what it reads in the page."""
    return PAGE_SCRIPT, {"entry": entry, "key": code_key(), "code": view_code(entry)}


class ViewCode(anywidget.AnyWidget):
    """The code of one kind of view, for all widgets of a kernel; it shows nothing itself."""

    _esm = LOADER
    _code = traitlets.Dict().tag(sync=True)
    _code_key = traitlets.Unicode().tag(sync=True)

    _of_entry: ClassVar[dict[str, ViewCode]] = {}

    @classmethod
    def of(cls, entry: str) -> ViewCode:
        """Return the model with the code of the view ``entry``; made anew when it was closed."""
        held = cls._of_entry.get(entry)
        if held is None or held.comm is None:
            held = cls(_code=view_code(entry), _code_key=code_key())
            cls._of_entry[entry] = held
        return held
