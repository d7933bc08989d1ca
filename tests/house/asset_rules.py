"""Rules about browser assets and about every text file."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Iterator

from tests.house.source import Source

# All views, also those that are loaded later; tests/unit/explorer/test_assets.py has the budget of
# the first screen. 40 KB are for maps, pictures, sounds and films, which come when their tabs are
# opened, 10 KB for the editor of rows, which comes with the first edit, 1 KB for the menu of a cell
# and the comparison of two pictures, which come when they are asked for.
JS_GZIP_BYTES_MAX = 166 * 1024
# Text from a dataset must never become markup or code.
INJECTING = re.compile(
    r"\.(?:inner|outer)HTML\b|\binsertAdjacentHTML\b|\beval\s*\(|\bnew\s+Function\b"
    r"|\bdocument\.write(?:ln)?\b|\bcreateContextualFragment\b|\bsrcdoc\b"
)
# Views load nothing: no CDN, no font, no beacon. SVG's namespace is a name, not an address.
ADDRESS = re.compile(r"(?:https?|wss?):" + r"//(?!www\.w3\.org/(?:2000/svg|1999/xhtml)\b)")
COMMENT = re.compile(r"/\*[^\n]*?\*/|^[ \t]*(?:/\*\*|\*|//)[^\n]*", re.MULTILINE)
# What does not travel (see explorer/assets.py).
COMMENT_BLOCK = re.compile(r"^[ \t]*(?://[^\n]*|/\*\*(?:(?!\*/).)*\*/)\n", re.MULTILINE | re.DOTALL)
COMMENT_BEHIND = re.compile(r"(?<=[;,{)]) +// [^\"'`\n]*$", re.MULTILINE)
LOADING = re.compile(r"@import\b|\bimport\s*\(|\bimportScripts\b")
# It imports the views that the kernel has sent, from a blob.
LOADER = "lance_nb/explorer/js/loader.js"
# Written in pieces: this file must not contain what it looks for.
MACHINE_WORDS = ("/wo" + "rk/", "/tmp/" + "dev", "fa" + "rm")
LINE_CHARS_MAX = 100
COMMENT_TEXT = re.compile(r"(?:^\s*\*|//|/\*).*")
FILE_IN_COMMENT = re.compile(r"(?<![\w./])((?:\w+/)*\w+\.(?:py|js))\b(?!\()")
MACHINE = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, MACHINE_WORDS))})", re.IGNORECASE)


def no_injection(source: Source) -> Iterator[str]:
    """A view builds elements and sets their text. What tests compare with may be markup."""
    if source.path.endswith(".js") and not source.path.startswith("tests/js/"):
        yield from _matches(source, INJECTING, "text could become markup or code")


def no_address(source: Source) -> Iterator[str]:
    """A view works on a machine without a network."""
    if source.path.endswith((".js", ".css")):
        yield from _matches(source, ADDRESS, "a web address in a view")
        # JSDoc names types as `import("./x.js").X`, so comments do not count here.
        code = Source(source.path, COMMENT.sub("", source.text))
        if source.path != LOADER:
            yield from _matches(code, LOADING, "a view loads nothing by itself")


def short_lines(source: Source) -> Iterator[str]:
    """Lines of modules and style sheets are short; the formatter breaks no text or comment."""
    if source.path.endswith((".js", ".ts", ".css")):
        for number, line in enumerate(source.text.splitlines(), 1):
            if len(line) > LINE_CHARS_MAX:
                yield source.at(number, f"{len(line)} characters, more than {LINE_CHARS_MAX}")


def files_in_comments(sources: Iterable[Source]) -> Iterator[str]:
    """A Python or JavaScript file that a comment of a browser module names exists."""
    sources = list(sources)
    ends = {end for source in sources for end in _path_ends(source.path)}
    for source in sources:
        if not source.path.startswith("lance_nb/"):
            continue
        if not source.path.endswith((".js", ".ts", ".css")):
            continue
        for number, line in enumerate(source.text.splitlines(), 1):
            for name in FILE_IN_COMMENT.findall("".join(COMMENT_TEXT.findall(line))):
                if name not in ends:
                    yield source.at(number, f"names {name}, which does not exist")


def _path_ends(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[at:]) for at in range(len(parts))]


def no_machine_words(source: Source) -> Iterator[str]:
    """Nothing of the machine that a file was written on belongs into it."""
    yield from _matches(source, MACHINE, "names the machine that it was written on")


def _matches(source: Source, pattern: re.Pattern[str], message: str) -> Iterator[str]:
    for number, line in enumerate(source.text.splitlines(), 1):
        found = pattern.search(line)
        if found:
            yield source.at(number, f"'{found.group().strip()}': {message}")


def asset_bytes(sources: Iterable[Source]) -> int:
    """Return what all modules of all views weigh together, linked and compressed as they travel."""
    modules = [
        COMMENT_BEHIND.sub("", COMMENT_BLOCK.sub("", source.text))
        for source in sources
        if source.path.startswith("lance_nb/") and source.path.endswith(".js")
    ]
    text = re.sub(r"\n[ \t]+", "\n", "".join(modules))
    return len(gzip.compress(text.encode(), mtime=0)) if modules else 0


ASSET_RULES = (no_injection, no_address, short_lines, no_machine_words)
