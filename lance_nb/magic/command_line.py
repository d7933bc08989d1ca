"""The ``lance-nb`` command: the verbs of ``%lance`` in a terminal, and JupyterLab on a dataset.

::

    lance-nb lab [URI]                open JupyterLab, on a notebook that explores the dataset
    lance-nb demo [PATH]              write the demo dataset (here: demo.lance), to try things on
    lance-nb log photos.lance -n 5    any verb that needs no notebook; the dataset comes first
    lance-nb diff photos.lance 3 5 --json
    lance-nb doctor photos.lance      exit status 1 when there is something to mend
    lance-nb doctor photos.lance --repair    show what can be mended, ask, and do it

Exit status: 0, 1 when the answer is a finding (unhealthy, conflicts), 2 for an error, which is one
line on stderr; 130 when interrupted.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

from lance_nb.code_lines import Python, Word
from lance_nb.errors import InvalidInputError, LanceError, NotSupportedError
from lance_nb.magic.answer import Answer, one_line
from lance_nb.magic.demo.history import ensure
from lance_nb.magic.desk import Desk
from lance_nb.magic.help import help_of, help_of_all
from lance_nb.magic.registry import find
from lance_nb.magic.request import Request, parse_text, parse_words
from lance_nb.magic.verbs.looking import in_words
from lance_nb.shown_text import visible_lines

PROG = "lance-nb"
_NOT_IN_NAMES = re.compile(r"[^\w.-]")
# What lives between two lines of a notebook, which a terminal does not have.
_NOTEBOOK_ONLY = frozenset({"stage", "status", "commit", "discard"})
# What only a terminal has: usage and what it does.
COMMANDS = {
    "lab": ("[URI]", "open JupyterLab, on a notebook that explores the dataset"),
    "demo": ("[PATH] [--force]", "write the demo dataset, here as demo.lance"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    is_debug = "--debug" in words
    words = [one for one in words if one != "--debug"]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a sign that a terminal cannot show is no error
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
    if words[-1] in {"--help", "-h"}:
        return _help(words[:1])
    if words[0] == "lab":
        return _lab(words[1:])
    if words[0] == "demo":
        return _demo(words[1:])
    desk = Desk(show=in_words, prog=PROG, ask=_ask if sys.stdin.isatty() else None)
    request = _request(desk, words)
    found = request.verb.run(desk, request.arguments)
    return _show(found, as_json=request.as_json)


def _request(desk: Desk, words: list[str]) -> Request:
    verb = find(words[0])
    if verb.name in _NOTEBOOK_ONLY:
        raise InvalidInputError(
            f"{verb.name}: what is staged lives in a notebook; use %lance there"
        )
    rest = words[1:]
    if verb.needs_dataset or verb.is_text:
        if not rest or rest[0].startswith("-"):
            raise InvalidInputError(f"usage: {PROG} {verb.name} URI ...; the dataset comes first")
        desk.open(rest.pop(0))
    if verb.is_text:
        return parse_text(verb, " ".join(rest), PROG)
    return parse_words([Word(one) for one in (verb.name, *rest)], PROG)


def _show(found: object, *, as_json: bool) -> int:
    if isinstance(found, Answer):
        _say(found.json() if as_json else found.picture.text)
        return found.exit_code
    _say(repr(found))
    return 0


def _ask(question: str) -> bool:
    """Ask somebody at a terminal; anything but yes is no."""
    _say(question)
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _version() -> int:
    try:
        _say(f"{PROG} {version('lance-nb')}")
    except PackageNotFoundError:
        _say(f"{PROG}, from a checkout that is not installed")
    return 0


def _help(words: list[str]) -> int:
    if words and words[0] in COMMANDS:
        usage, what = COMMANDS[words[0]]
        _say(f"{PROG} {words[0]} {usage}\n{what}")
        return 0
    if words:
        return _show(help_of(words[0], PROG), as_json=False)
    for name, (usage, what) in COMMANDS.items():
        _say(f"{PROG} {name} {usage}: {what}")
    return _show(help_of_all(PROG, without=_NOTEBOOK_ONLY), as_json=False)


def _demo(words: list[str]) -> int:
    """Write the demo dataset, and say how to look at it."""
    paths = [one for one in words if not one.startswith("-")] or ["demo.lance"]
    if len(paths) > 1 or set(words) - {*paths, "--force"}:
        raise InvalidInputError(f"usage: {PROG} demo {COMMANDS['demo'][0]}")
    _say(ensure(Path(paths[0]), force="--force" in words))
    path = shlex.quote(paths[0])
    _say(f"look at it: {PROG} lab {path}   or: {PROG} log {path} --graph")
    return 0


def _lab(words: list[str]) -> int:
    """Open JupyterLab; with a dataset, on a new notebook that explores it."""
    try:
        from jupyterlab.labapp import LabApp
    except ImportError as error:
        message = "JupyterLab is not installed: pip install 'lance-nb[lab]'"
        raise NotSupportedError(message) from error
    targets = [one for one in words if not one.startswith("-")]
    options = [one for one in words if one.startswith("-")]
    if len(targets) > 1:
        raise InvalidInputError(f"usage: {PROG} lab [URI] [options of JupyterLab]")
    notebook = [str(_notebook_for(targets[0]))] if targets else []
    # The address that is printed leads there as well, for a machine without a browser.
    notebook += [f"--LabApp.default_url=/lab/tree/{one}" for one in notebook]
    if hasattr(os, "geteuid") and os.geteuid() == 0:  # a container: Jupyter would refuse to start
        options.append("--allow-root")
    LabApp.launch_instance([*notebook, *options])
    return 0


def _notebook_for(uri: str) -> Path:
    """Write the notebook that explores ``uri`` into this folder, unless it is there."""
    Desk().open(uri)  # a wrong name is said here, not in a browser
    name = uri.rstrip("/").rsplit("/", 1)[-1].removesuffix(".lance")
    path = Path(f"explore_{_NOT_IN_NAMES.sub('_', name)[:100] or 'dataset'}.ipynb")
    if not path.exists():
        path.write_text(json.dumps(_notebook(uri), indent=1))
    return path


def _notebook(uri: str) -> dict[str, object]:
    opened = Python("lance_nb.dataset").call(uri)
    lines = (
        f"import lance_nb\n\nds = {opened.code}\nds",
        "%load_ext lance_nb\n%lance help",
    )
    cells: list[dict[str, object]] = [
        {"cell_type": "code", "id": f"lance-{at}", "metadata": {}, "outputs": [],
         "execution_count": None, "source": source}
        for at, source in enumerate(lines)
    ]  # fmt: skip
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def _say(said: str, stream: TextIO | None = None) -> None:
    """Write lines. All that this command writes goes through here.

    A terminal takes no text of a dataset for a command.
    """
    (sys.stdout if stream is None else stream).write(f"{visible_lines(said)}\n")


if __name__ == "__main__":
    sys.exit(main())
