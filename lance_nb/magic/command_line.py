"""The ``lance-nb`` command: the verbs of ``%lance`` in a terminal, and JupyterLab on a dataset.

::

    lance-nb lab [URI]                open JupyterLab with a notebook that explores the dataset
    lance-nb demo [PATH]              write the demo dataset (default: demo.lance)
    lance-nb view URI                 explore the dataset in a browser, without Jupyter
    lance-nb report URI [-o FILE]     write one HTML file with pictures of the dataset
    lance-nb log photos.lance -n 5    any verb that needs no notebook; the dataset comes first
    lance-nb diff photos.lance 3 5 --json
    lance-nb doctor photos.lance      exit status 1 if there are findings
    lance-nb doctor photos.lance --repair    show the repair steps, ask, and run them

Exit status: 0; 1 if the result is a finding (damage, conflicts); 2 for an error, which is one line
on stderr; 130 when interrupted.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import signal
import sys
import traceback
import webbrowser
from argparse import ArgumentTypeError, Namespace
from collections.abc import Sequence
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

import pyarrow as pa

from lance_nb.code_lines import Python, Word
from lance_nb.errors import InvalidInputError, LanceError, MissingPackageError
from lance_nb.explorer import text
from lance_nb.explorer.version_refs import open_source
from lance_nb.magic.context import MagicContext
from lance_nb.magic.demo import ensure
from lance_nb.magic.registry import Request, find, help_of, help_of_all, parse_text, parse_words
from lance_nb.magic.verb import Result, argument, one_line, verb
from lance_nb.magic.verbs.browse import dataset_summary
from lance_nb.shown_text import visible_lines, without_url_secrets
from lance_nb.version import __version__

PROG = "lance-nb"
_NOT_IN_NAMES = re.compile(r"[^\w.-]")
# Verbs that need the state of a notebook.
_NOTEBOOK_ONLY = frozenset({"stage", "status", "commit", "discard"})
VIEW_HEIGHT = 560  # pixels of the tabs in a page of their own
MAX_PORT = 65_535
_TEXT_VERBS = frozenset({"sql", "query"})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:
        _convert_without_pandas()
    is_debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # replace characters that the terminal cannot encode
            stream.reconfigure(errors="replace")
    try:
        status = _run(words)
        sys.stdout.flush()
    except BrokenPipeError:  # `lance-nb log ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        if is_debug:
            raise
        _say(f"{PROG}: interrupted", sys.stderr)
        return 130
    except (LanceError, OSError) as error:
        if is_debug:
            _say(traceback.format_exc().rstrip(), sys.stderr)
        _say(f"{PROG}: {one_line(error)}", sys.stderr)
        return 2
    return status


def _run(words: list[str]) -> int:
    if not words or words[0] in {"help", "--help", "-h"}:
        return _help(words[1:])
    if words[0] in {"--version", "-V"}:
        return _version()
    if _asks_for_help(words):
        return _help(words[:1])
    context = MagicContext(
        show=dataset_summary, prog=PROG, ask=_ask if sys.stdin.isatty() else None
    )
    command = COMMANDS.get(words[0])
    if command is not None:
        parser = command.parser(PROG)
        parser.words = words[1:]
        arguments = Namespace(options=words[1:]) if command is lab else parser.parse_args(words[1:])
        command.run(context, arguments)
        return 0
    request = _request(context, words)
    result = request.verb.run(context, request.arguments)
    return _show(result, as_json=request.as_json)


class _PandasIsAbsent:
    """Finder that reports pandas as not installed."""

    @staticmethod
    def find_spec(name: str, *_of_package: object) -> None:
        if name == "pandas":
            raise MissingPackageError("conversion", name, name)


def _convert_without_pandas() -> None:
    """Let pyarrow convert lists of Python without pandas, in the process of the command only.

    pyarrow looks for pandas once, at the first list that it converts: 0.3 s of processor where
    pandas is installed. ``import pandas`` and ``Table.to_pandas`` work as before.
    """
    if "pandas" in sys.modules:
        return
    sys.meta_path.insert(0, _PandasIsAbsent)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(_PandasIsAbsent)


def _asks_for_help(words: list[str]) -> bool:
    """Whether ``--help`` stands anywhere behind the verb; inside of SQL it may be a comment."""
    ends = {words[-1], *words[1:2]}
    return bool({"--help", "-h"} & (ends if words[0] in _TEXT_VERBS else {*words[1:]}))


def _request(context: MagicContext, words: list[str]) -> Request:
    verb = find(words[0])
    if verb.name in _NOTEBOOK_ONLY:
        raise InvalidInputError(f"{verb.name}: edits are staged in a notebook; use %lance there")
    arguments = words[1:]
    if verb.needs_dataset or verb.is_text:
        if not arguments or arguments[0].startswith("-"):
            raise InvalidInputError(f"usage: {PROG} {verb.name} URI ...; the dataset comes first")
        context.open(arguments.pop(0))
    if verb.is_text:
        return parse_text(verb, " ".join(arguments), PROG)
    return parse_words([Word(word) for word in (verb.name, *arguments)], PROG)


def _show(result: object, *, as_json: bool) -> int:
    if isinstance(result, Result):
        _say(result.json() if as_json else result.picture.text)
        return result.exit_code
    _say(repr(result))
    return 0


def _ask(question: str) -> bool:
    """Ask a question in the terminal; anything but yes is no."""
    _say(question)
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _version() -> int:
    _say(f"{PROG} {__version__}")
    return 0


def _help(words: list[str]) -> int:
    if words and words[0] in COMMANDS:
        command = COMMANDS[words[0]]
        _say(f"{command.synopsis(PROG)}\n{command.help}")
        return 0
    if words:
        return _show(help_of(words[0], PROG), as_json=False)
    for command in COMMANDS.values():
        _say(f"{command.synopsis(PROG)}: {command.help}")
    return _show(help_of_all(PROG, without=_NOTEBOOK_ONLY), as_json=False)


@verb(
    argument("path", nargs="?", default="demo.lance", help="the folder of the dataset"),
    argument("--force", action="store_true", help="replace a dataset that is there"),
    needs_dataset=False,
)
def demo(_context: MagicContext, args: Namespace) -> None:
    """Write the demo dataset (default: demo.lance)."""
    _say(ensure(Path(args.path), force=args.force))
    path = shlex.quote(args.path)
    _say(f"explore it: {PROG} lab {path}   or: {PROG} log {path} --graph")


def _port(word: str) -> int:
    if not word.isdecimal() or int(word) > MAX_PORT:
        raise ArgumentTypeError(f"expected a number up to {MAX_PORT}")
    return int(word)


@verb(
    argument("uri", help="a dataset, or a folder of tables"),
    argument("--no-browser", action="store_true", help="print the address only"),
    argument("--port", type=_port, default=0, metavar="N", help="the port of the address"),
    argument("--read-only", action="store_true", help="offer no changes"),
    needs_dataset=False,
)
def view(_context: MagicContext, args: Namespace) -> None:
    """Explore a dataset or a folder of tables in a browser, without a notebook; Ctrl-C ends it."""
    try:
        from lance_nb.explorer.app import explore
        from lance_nb.explorer.browser_server import ExplorerServer
    except ImportError as error:
        raise MissingPackageError("view", "anywidget", "lance-nb[lab]") from error
    make = partial(explore, args.uri, height=VIEW_HEIGHT, read_only=args.read_only)
    first = make()
    if first.error is not None:  # report a wrong name here, not in the browser
        raise first.error
    first.close()
    server = ExplorerServer(make, port=args.port)
    _say(f"exploring {without_url_secrets(args.uri)} at {server.url}\nCtrl-C ends it")
    sys.stdout.flush()
    if not args.no_browser:
        webbrowser.open(server.url)
    # A service manager, or a shell that started this in the background, ends it by SIGTERM; SIGINT
    # is ignored there.
    previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        server.serve()
    except KeyboardInterrupt:
        _say("ended")
    finally:
        signal.signal(signal.SIGTERM, previous)
        server.close()


@verb(
    argument("uri", help="the dataset"),
    argument("version", nargs="?", help="the version (default: the newest)"),
    argument("-o", "--output", metavar="FILE", help="the file to write"),
    needs_dataset=False,
)
def report(_context: MagicContext, args: Namespace) -> None:
    """Write one offline HTML file with pictures of the dataset."""
    from lance_nb.explorer.report_page import report_page

    dataset = open_source(args.uri, args.version)
    path = Path(args.output or f"{_file_name(args.uri)}_report.html")
    page = report_page(dataset)
    path.write_text(page, "utf-8")
    _say(f"wrote {path}: {text.size(len(page.encode()))}, {dataset.uri} at version "
         f"{text.ref_label(dataset.branch, dataset.version)}")  # fmt: skip


@verb(
    argument("uri", nargs="?", help="the dataset"),
    argument("options", nargs="?", metavar="options of JupyterLab", help="are passed on"),
    needs_dataset=False,
)
def lab(_context: MagicContext, args: Namespace) -> None:
    """Open JupyterLab with a notebook that explores the dataset."""
    try:
        from jupyterlab.labapp import LabApp
    except ImportError as error:
        raise MissingPackageError("lab", "JupyterLab", "lance-nb[lab]") from error
    targets, options = [], []
    left = iter(args.options)
    for word in left:
        if not word.startswith("-"):
            targets.append(word)
            continue
        name = word.lstrip("-")
        takes_value = name in LabApp.aliases or ("." in name and "=" not in name)
        value = next(left, None) if takes_value else None  # --port 9999
        options.append(word if value is None else f"{word}={value}")
    if len(targets) > 1:
        raise InvalidInputError(f"usage: {lab.synopsis(PROG)}")
    notebook = [str(_notebook_for(targets[0]))] if targets else []
    if notebook:
        [path] = notebook
        # Our extension for JupyterLab runs its cell, see explorer/lab_extension.
        run = {"path": path, "id": secrets.token_hex(8)}
        settings = {"page_config_data": {"lanceNbRun": run}}
        # The address is also printed, for a machine without a browser.
        notebook.append(f"--LabApp.default_url=/lab/tree/{path}")
        notebook.append(f"--ServerApp.tornado_settings={settings}")
    if (
        hasattr(os, "geteuid") and os.geteuid() == 0
    ):  # in a container; Jupyter refuses to start as root otherwise
        options.append("--allow-root")
    LabApp.launch_instance([*notebook, *options])


# Commands of the terminal only.
COMMANDS = {command.name: command for command in (lab, view, report, demo)}


def _notebook_for(uri: str) -> Path:
    """Write the notebook that explores ``uri`` into this folder, unless it exists."""
    if without_url_secrets(uri) != uri:
        raise InvalidInputError(
            f"a notebook would keep the credentials of {uri!r}: open the URI without them, and "
            "give them by the environment or, in the notebook, as storage_options"
        )
    MagicContext().open(uri)  # report a wrong name here, not in the browser
    path = Path(f"explore_{_file_name(uri)}.ipynb")
    if not path.exists():
        path.write_text(json.dumps(_notebook(uri), indent=1))
    return path


def _file_name(uri: str) -> str:
    """Return the name of a dataset as the beginning of a file name."""
    name = uri.rstrip("/").rsplit("/", 1)[-1].removesuffix(".lance")
    return _NOT_IN_NAMES.sub("_", name)[:100] or "dataset"


def _notebook(uri: str) -> dict[str, object]:
    opened = Python("lance_nb.dataset").call(uri)
    lines = (
        f"import lance_nb\n\nds = {opened.code}\nds",
        "%load_ext lance_nb\n%lance help",
    )
    cells: list[dict[str, object]] = [
        {"cell_type": "code", "id": f"lance-{index}", "metadata": {}, "outputs": [],
         "execution_count": None, "source": source}
        for index, source in enumerate(lines)
    ]  # fmt: skip
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def _say(message: str, stream: TextIO | None = None) -> None:
    """Print lines. All output of the command goes through here.

    Control characters are escaped, so no text of a dataset is executed by the terminal.
    """
    (sys.stdout if stream is None else stream).write(f"{visible_lines(message)}\n")


if __name__ == "__main__":
    sys.exit(main())
