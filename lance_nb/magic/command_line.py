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
import shlex
import signal
import sys
import traceback
import webbrowser
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
from lance_nb.magic.verb import Result, one_line
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
# Commands of the terminal only: usage and description.
COMMANDS = {
    "lab": (
        "[URI] [options of JupyterLab]",
        "open JupyterLab with a notebook that explores the dataset",
    ),
    "view": (
        "URI [--no-browser] [--port N] [--read-only]",
        "explore a dataset or a folder of tables in a browser, without a notebook; Ctrl-C ends it",
    ),
    "report": (
        "URI [VERSION] [-o FILE]",
        "write one offline HTML file with pictures of the dataset",
    ),
    "demo": ("[PATH] [--force]", "write the demo dataset (default: demo.lance)"),
}


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
    if words[0] == "lab":
        return _lab(words[1:])
    if words[0] == "view":
        return _view(words[1:])
    if words[0] == "report":
        return _report(words[1:])
    if words[0] == "demo":
        return _demo(words[1:])
    context = MagicContext(
        show=dataset_summary, prog=PROG, ask=_ask if sys.stdin.isatty() else None
    )
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
        usage, description = COMMANDS[words[0]]
        _say(f"{PROG} {words[0]} {usage}\n{description}")
        return 0
    if words:
        return _show(help_of(words[0], PROG), as_json=False)
    for name, (usage, description) in COMMANDS.items():
        _say(f"{PROG} {name} {usage}: {description}")
    return _show(help_of_all(PROG, without=_NOTEBOOK_ONLY), as_json=False)


def _demo(words: list[str]) -> int:
    """Write the demo dataset, and print how to explore it."""
    paths = [word for word in words if not word.startswith("-")] or ["demo.lance"]
    if len(paths) > 1 or set(words) - {*paths, "--force"}:
        raise InvalidInputError(f"usage: {PROG} demo {COMMANDS['demo'][0]}")
    _say(ensure(Path(paths[0]), force="--force" in words))
    path = shlex.quote(paths[0])
    _say(f"explore it: {PROG} lab {path}   or: {PROG} log {path} --graph")
    return 0


def _apart(words: list[str]) -> list[str]:
    """Write ``--option=value`` as two words."""
    parts = (word.split("=", 1) if word.startswith("--") else [word] for word in words)
    return [part for word_parts in parts for part in word_parts]


def _view(words: list[str]) -> int:
    """Serve the explorer to a browser of this machine until Ctrl-C."""
    usage = f"usage: {PROG} view {COMMANDS['view'][0]}"
    words = _apart(words)
    targets, port, left = [], 0, iter(words)
    for argument in left:
        if argument == "--port":
            number = next(left, "")
            if not number.isdecimal() or int(number) > MAX_PORT:
                raise InvalidInputError(f"--port takes a number up to {MAX_PORT}; {usage}")
            port = int(number)
        elif argument.startswith("-"):
            if argument not in {"--no-browser", "--read-only"}:
                raise InvalidInputError(f"unknown option {argument}; {usage}")
        else:
            targets.append(argument)
    if len(targets) != 1:
        raise InvalidInputError(usage)
    try:
        from lance_nb.explorer.app import explore
        from lance_nb.explorer.browser_server import ExplorerServer
    except ImportError as error:
        raise MissingPackageError("view", "anywidget", "lance-nb[lab]") from error
    make = partial(explore, targets[0], height=VIEW_HEIGHT, read_only="--read-only" in words)
    first = make()
    if first.error is not None:  # report a wrong name here, not in the browser
        raise first.error
    first.close()
    server = ExplorerServer(make, port=port)
    _say(f"exploring {without_url_secrets(targets[0])} at {server.url}\nCtrl-C ends it")
    sys.stdout.flush()
    if "--no-browser" not in words:
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
    return 0


def _report(words: list[str]) -> int:
    """Write the report of a dataset, and print where it lies and how large it is."""
    from lance_nb.explorer.report_page import report_page

    usage = f"usage: {PROG} report {COMMANDS['report'][0]}"
    targets, target = [], None
    left = iter(_apart(words))
    for argument in left:
        if argument in {"-o", "--output"}:
            target = next(left, None)
            if target is None:
                raise InvalidInputError(usage)
        elif argument.startswith("-") and argument != "-":
            raise InvalidInputError(f"unknown option {argument}; {usage}")
        else:
            targets.append(argument)
    if not 1 <= len(targets) <= 2:
        raise InvalidInputError(usage)
    dataset = open_source(targets[0], targets[1] if len(targets) > 1 else None)
    path = Path(target or f"{_file_name(targets[0])}_report.html")
    page = report_page(dataset)
    path.write_text(page, "utf-8")
    _say(f"wrote {path}: {text.size(len(page.encode()))}, {dataset.uri} at version "
         f"{text.ref_label(dataset.branch, dataset.version)}")  # fmt: skip
    return 0


def _lab(words: list[str]) -> int:
    """Open JupyterLab; with a dataset, open a notebook that explores it."""
    try:
        from jupyterlab.labapp import LabApp
    except ImportError as error:
        raise MissingPackageError("lab", "JupyterLab", "lance-nb[lab]") from error
    targets, options = [], []
    left = iter(words)
    for argument in left:
        if not argument.startswith("-"):
            targets.append(argument)
            continue
        name = argument.lstrip("-")
        takes_value = name in LabApp.aliases or ("." in name and "=" not in name)
        value = next(left, None) if takes_value else None  # --port 9999
        options.append(argument if value is None else f"{argument}={value}")
    if len(targets) > 1:
        raise InvalidInputError(f"usage: {PROG} lab [URI] [options of JupyterLab]")
    notebook = [str(_notebook_for(targets[0]))] if targets else []
    # Also used in the printed address, for a machine without a browser.
    notebook += [f"--LabApp.default_url=/lab/tree/{path}" for path in notebook]
    if (
        hasattr(os, "geteuid") and os.geteuid() == 0
    ):  # in a container; Jupyter refuses to start as root otherwise
        options.append("--allow-root")
    LabApp.launch_instance([*notebook, *options])
    return 0


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
