r"""Lines of code that a person may copy and run: every one that is shown is written here.

Names and values of a dataset stand in such lines, so that nothing in them may become code.

**Python**: ``Python("lance_nb.dataset").call(uri, version=3)`` is an expression. What is code are
names of ours; every value is written as a constant.

**%lance**: ``magic("head", "main:3", options={"--where": text})`` is a line; ``split`` takes it
apart again, and gives back exactly these texts. The words of a line:

=================== =============================================================================
written             means
=================== =============================================================================
``word``            itself; ``{name}`` and ``$name`` in it are filled in (see ``split``)
``"some words"``    one word, in which names are filled in as well; ``{{name}}`` and ``$$name``
                    are the texts ``{name}`` and ``$name``
``'some words'``    one word as it stands
``U&'a\007Bb'``     one word, as in SQL: ``\XXXX`` and ``\+XXXXXX`` are characters by their
                    hexadecimal numbers, ``\\`` is a backslash; ``U&"..."`` is the same
=================== =============================================================================

Quotes may begin and end inside of a word (``label='a b'``). A word that begins with a quote, or
with what is filled in, is never an option. A backslash outside of ``U&`` is a backslash, as paths
on Windows have it.

What is filled in is looked up by name and becomes one word, or a part of one, whatever it holds.
Expressions are not evaluated.

Why U&: IPython evaluates ``{...}`` and ``$...`` in the line of a magic, quotes or not, before most
magics see it. ``%lance`` asks it not to, but a line should be harmless wherever it is pasted. So
what is offered has neither braces nor dollars, no control characters and no line separators, and no
backslash at its end.

Limits: a line of more than ``LINE_CHARS`` characters is not offered; a comment stands in its place.
Source: string constants with Unicode escapes of SQL:2003; ``InteractiveShell.var_expand`` and
``IPython.core.inputtransformer2``.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Mapping, Sequence

from lance_nb.errors import InternalError, InvalidInputError
from lance_nb.shown_text import INVISIBLE, visible
from lance_nb.value_classes import dataclass

LINE_CHARS = 20_000
TOO_LONG = "# this line would be too long to be shown"
# In the place of a %lance line where only Python has the words for it.
PYTHON_ONLY = "# %lance has no words for this: use the line in Python"
MAGIC = "%lance"

_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
# Without %, ! and ?, which mean something to IPython, or did in some release of it.
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_./:~=+@,][A-Za-z0-9_./:~=+@,-]*")
_FLAG = re.compile(r"--?[a-z][a-z-]*")
# Words that are asked for help with, wherever they stand.
_HELP = frozenset({"help"})
_FILLED = frozenset("{}$")
_SPACES = " \t\r\n"


# --- Python ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Python:
    r"""An expression. Make one from code of ours, never from a text of a dataset.

    >>> from lance_nb.code_lines import Python
    >>> Python("lance_nb.dataset").call("a'b", version=3).attribute("tags.list").call().code
    'lance_nb.dataset("a\'b", version=3).tags.list()'
    """

    code: str

    def attribute(self, names: str) -> Python:
        """Go on with an attribute, or several: ``tags.create``. Raises InternalError."""
        return Python(f"{self.code}.{_names(names)}")

    def call(self, *values: object, **named: object) -> Python:
        """Call it with values, which become constants, and with other expressions."""
        arguments = [literal(value) for value in values]
        arguments += [f"{_names(name)}={literal(value)}" for name, value in named.items()]
        return Python(f"{self.code}({', '.join(arguments)})")

    def line(self, limit: int = LINE_CHARS) -> str:
        """Return it as one line of code, or a comment where it is too long."""
        return self.code if len(self.code) <= limit else TOO_LONG


def literal(value: object) -> str:
    """Write a value as Python: a constant, a container of them, or an expression.

    Raises InternalError for a value that has no constant.
    """
    if isinstance(value, Python):
        return value.code
    if isinstance(value, str):
        return _ESCAPES.sub(_python_escape, str.__repr__(value))
    if value is None or isinstance(value, bool | bytes):
        return repr(value)
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return float.__repr__(value) if math.isfinite(value) else f"float('{float(value)}')"
    if isinstance(value, Mapping):
        items = (f"{literal(key)}: {literal(element)}" for key, element in value.items())
        return f"{{{', '.join(items)}}}"
    if isinstance(value, tuple):
        inner = ", ".join(map(literal, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(literal, value))}]"
    raise InternalError(f"a value of type {type(value).__name__} cannot be written as a constant")


_ESCAPES = INVISIBLE  # invisible characters that repr leaves, such as U+3164


def _python_escape(match: re.Match[str]) -> str:
    number = ord(match.group())
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _names(names: str) -> str:
    if not _DOTTED.fullmatch(names):
        raise InternalError(f"{names[:80]!r} is not the name of an attribute or argument")
    return names


# --- %lance: writing ------------------------------------------------------------------------------


def magic(*words: str, options: Mapping[str, object] | None = None) -> str:
    r"""Write a line of ``%lance``: a verb, its words, its options.

    The value of an option is a text or a number, or a list of them for an option that is repeated;
    True writes the option alone, and None and False leave it out. Every other word is a text,
    whatever it looks like.

    >>> from lance_nb.code_lines import magic
    >>> magic("head", "main:3", options={"--where": "a = 'x'"})
    '%lance head main:3 --where "a = \'x\'"'
    """
    written = [MAGIC, *map(word, words)]
    for flag, value in (options or {}).items():
        if not _FLAG.fullmatch(flag):
            raise InternalError(f"{flag[:80]!r} is not the name of an option")
        if value is None or value is False:
            continue
        if value is True:
            written.append(flag)
            continue
        for element in value if isinstance(value, list | tuple) else (value,):
            written += [flag, word(str(element))]
    line = " ".join(written)
    return line if len(line) <= LINE_CHARS else TOO_LONG


def word(text: str) -> str:
    r"""Write a text as one word of a line: as it is, in quotes, or with ``U&`` escapes.

    >>> from lance_nb.code_lines import word
    >>> word("HEAD~1"), word("a b"), word("{a}")
    ('HEAD~1', "'a b'", "U&'\\007Ba\\007D'")
    """
    if _PLAIN_WORD.fullmatch(text) and text not in _HELP:
        return text
    if not text.endswith("\\") and not any(map(_is_escaped, text)):
        for quote in "'\"":
            if quote not in text:
                return f"{quote}{text}{quote}"
    quote = '"' if "'" in text and '"' not in text else "'"
    inner = "".join(_escaped(character) if character == quote or _is_escaped(character) else
                    "\\\\" if character == "\\" else character for character in text)  # fmt: skip
    return f"U&{quote}{inner}{quote}"


def _is_escaped(character: str) -> bool:
    return (
        character in _FILLED
        or not character.isprintable()
        or INVISIBLE.match(character) is not None
    )


def _escaped(character: str) -> str:
    number = ord(character)
    return f"\\{number:04X}" if number < 0x10000 else f"\\+{number:06X}"


def shell_variable(name: str, value: str) -> str:
    """Write the line that exports a variable of a POSIX shell; empty for a text that cannot be.

    Raises InternalError.
    """
    if not all(character.isprintable() for character in value) or INVISIBLE.search(value):
        return ""
    return f"export {_names(name)}={shlex.quote(value)}"


def can_be_listed(names: Sequence[str]) -> bool:
    """Tell whether names can be written with commas between them, as options take them."""
    return bool(names) and all(name and "," not in name for name in names)


def offered(python: Python | str, magic_line: str) -> dict[str, str]:
    """Return both lines as views take them: ``{python, magic}``."""
    code = python.line() if isinstance(python, Python) else python
    return {"python": code, "magic": magic_line}


# --- %lance: reading ------------------------------------------------------------------------------

_ESCAPE = re.compile(r"\\(?:(\\)|([0-9A-Fa-f]{4})|\+([0-9A-Fa-f]{6}))?")
_NAME = re.compile(
    r"\{\{(?P<braced>\w+)\}\}|\$\$(?P<dollar>\w+)|\{(?P<name>[^{}]+)\}|\$(?P<short>[^\W\d]\w*)"
)
_BRACES = re.compile(r"\{[^{}'\"]*\}")
# What stands for a name: from the name to its text. Raises InvalidInputError.
Fill = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a line. ``is_plain``: it begins without a quote, and may be an option."""

    text: str
    is_plain: bool = True


def split(line: str, fill: Fill | None = None) -> list[Word]:
    """Take a line apart; ``fill`` gives the text for a name, without it names stay as written.

    Raises InvalidInputError when a quote is not closed, or an escape or a name is none.
    """
    words: list[Word] = []
    position = 0
    while True:
        while position < len(line) and line[position] in _SPACES:
            position += 1
        if position == len(line):
            return words
        word, position = _word_at(line, position, fill)
        words.append(word)


def _word_at(line: str, position: int, fill: Fill | None) -> tuple[Word, int]:
    parts: list[str] = []
    start, is_plain = position, True
    while position < len(line) and line[position] not in _SPACES:
        begin = position
        if line.startswith(("U&'", 'U&"'), position):
            end = _closed(line, position + 2)
            parts.append(_ESCAPE.sub(_character, line[position + 3 : end]))
            is_literal, position = True, end + 1
        elif line[position] in "'\"":
            end = _closed(line, position)
            inner = line[position + 1 : end]
            parts.append(inner if line[position] == "'" else _filled_in(inner, fill))
            is_literal, position = True, end + 1
        else:
            end = _unquoted_end(line, position, fill)
            raw = line[position:end]
            parts.append(_filled_in(raw, fill))
            is_literal, position = fill is not None and _begins_filled(raw), end
        if begin == start:
            is_plain = not is_literal
    return Word("".join(parts), is_plain), position


def _unquoted_end(line: str, position: int, fill: Fill | None) -> int:
    """Return where the part of a word that has no quotes ends; what is in braces belongs to it."""
    start = position
    while position < len(line) and line[position] not in _SPACES and line[position] not in "'\"":
        braces = _BRACES.match(line, position) if fill is not None else None
        position = braces.end() if braces is not None else position + 1
    is_quoted = position < len(line) and line[position] not in _SPACES
    return (
        position - 2
        if is_quoted and position - 2 > start and line[position - 2 : position] == "U&"
        else position
    )


def _closed(line: str, position: int) -> int:
    """Return where the quote that opens at ``position`` closes."""
    end = line.find(line[position], position + 1)
    if end < 0:
        raise InvalidInputError(f"a quote is not closed: {_start(line[position:])}")
    return end


def _character(match: re.Match[str]) -> str:
    backslash, four, six = match.groups()
    if backslash:
        return "\\"
    number = int(four or six or "110000", 16)
    if number > 0x10FFFF:
        raise InvalidInputError(
            f"{visible(match.group())} in U&'...' is no character: write \\XXXX or \\+XXXXXX, "
            "hexadecimal, and \\\\ for a backslash"
        )
    return chr(number)


def _begins_filled(raw: str) -> bool:
    match = _NAME.match(raw)
    return match is not None and (match["name"] or match["short"]) is not None


def _filled_in(raw: str, fill: Fill | None) -> str:
    if fill is None or ("{" not in raw and "$" not in raw):
        return raw
    return _NAME.sub(lambda match: _value(match, fill), raw)


def _value(match: re.Match[str], fill: Fill) -> str:
    if match["braced"]:
        return f"{{{match['braced']}}}"
    if match["dollar"]:
        return f"${match['dollar']}"
    name = match["name"] or match["short"]
    if not name.isidentifier():
        raise InvalidInputError(
            f"{_start(match.group())} is not filled in: only the name of a variable is, such as "
            "{name}; give the value a name first, or put text with braces into single quotes"
        )
    return fill(name)


def _start(words: str) -> str:
    return visible(words if len(words) <= 40 else f"{words[:40]}...")
