r"""Translate regular expressions of Rust's dialect, which pylance has, to RE2 or to Python.

RE2 runs in time linear in the text, but its ``\w``, ``\d``, ``\s`` and ``\b`` know ASCII only,
Rust's Unicode. The classes are written as classes of properties. A boundary (``\b``, ``\B``)
cannot be written for RE2: texts beyond ASCII are then searched one by one by Python, whose time may
grow with a power of the length; a pattern and a text that might take long are refused.

Not supported: sets of classes (``[a&&b]``, ``[a[bc]]``), ``(?x)``; beside a boundary in texts
beyond ASCII also ``\p{Script}``.
Source: documentation of the regex crate, section Syntax; values compared with pylance 14.0.2.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache, cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.errors import PredicateError
from lance_nb.table.predicate.expression import Value
from lance_nb.table.predicate.lists import Mask, arrays_kernel

_STEPS_MAX = 10**8  # of Python's search in one text, at worst
_OPTIONAL_MAX = 10
_SPACES = (
    (0x9, 0xD), (0x20, 0x20), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A),
    (0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000),
)  # fmt: skip
# Symbols that count as letters (Other_Alphabetic), and joiners.
_MORE_WORD = (
    (0x200C, 0x200D), (0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189),
)  # fmt: skip
_WORD_CATEGORIES = frozenset(
    ("Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "Pc")
)  # fmt: skip
_ASCII = {"w": "0-9A-Za-z_", "d": "0-9", "s": r"\t\n\v\f\r "}
_POSIX = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7f", "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f", "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~",
    "punct": r"!-/:-@\[-`{-~", "space": r"\t\n\v\f\r ", "upper": "A-Z", "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_FLAGS = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]*))?([:)])")
_CODE = re.compile(r"\\[xuU](?:\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{8}|[0-9A-Fa-f]{4}|[0-9A-Fa-f]{2}))")
_PROPERTY = re.compile(r"\\[pP](?:\{(\^?)([^}]*)\}|([A-Za-z]))")
Ranges = tuple[tuple[int, int], ...]


class Regex:
    """A pattern; raises PredicateError for one that is none."""

    def __init__(self, pattern: str) -> None:
        self.text = pattern
        for_re2 = _Writer(pattern, is_python=False)
        self.re2 = for_re2.written
        self.has_boundary = for_re2.has_boundary
        self._looks_around = "\\b" in self.re2.lower()

    def matches(self, values: Value) -> Value:
        """Tell whether the pattern is found in each text."""
        return self._apply(
            values,
            lambda rows: pc.match_substring_regex(rows, pattern=self.re2),
            lambda text: self._python.search(text) is not None,
            pa.bool_(),
        )

    def replaced(self, values: Value, replacement: str, times: int | None) -> Value:
        """Replace the first matches, all of them for None; the replacement is written as RE2's."""

        def replace_text(text: str) -> str:
            def expand(match: re.Match[str]) -> str:
                return re.sub(
                    r"\\(\d)", lambda reference: match[int(reference[1])] or "", replacement
                )

            # Python also finds an empty match right behind another one; Rust does not.
            parts, done = [], 0
            for number, match in enumerate(self._matches(text)):
                if number == times:
                    break
                parts += [text[done : match.start()], expand(match)]
                done = match.end()
            return "".join([*parts, text[done:]])

        pattern, made_of, most = self.re2, replacement, times
        if times == 1 and self._looks_around:
            # Arrow replaces within the match alone, where a boundary is another one.
            pattern, most = rf"\A((?s:.*?))({self.re2})", None
            made_of = r"\1" + re.sub(r"\\(\d)", _two_groups_on, replacement)

        def replace_array(rows: pa.Array) -> pa.Array:
            return pc.replace_substring_regex(
                rows, pattern=pattern, replacement=made_of, max_replacements=most
            )

        return self._apply(values, replace_array, replace_text, None)

    def counted(self, values: Value) -> Value:
        """Count the matches, empty ones too; null in a null."""

        def count_array(rows: pa.Array) -> pa.Array:
            # Arrow's own count takes empty matches inside of characters, and twice at the end.
            marked = pc.replace_substring_regex(rows, pattern=f"({self.re2})", replacement="\\1\0")
            counts = (pc.count_substring(texts, pattern="\0") for texts in (marked, rows))
            return pc.cast(pc.subtract(*counts), pa.int64())

        return self._apply(
            values, count_array, lambda text: sum(1 for _ in self._matches(text)), pa.int64()
        )

    def place(self, text: str) -> int:
        """Return where in a text, in characters from 0, the pattern is found; -1 for nowhere."""
        if self.has_boundary and not text.isascii():
            self.check_cost(text)
            match = self._python.search(text)
            return -1 if match is None else match.start()
        if not pc.match_substring_regex(text, pattern=self.re2).as_py():
            return -1
        # Before its version 26, Arrow searches bytes, not characters, in find_substring_regex.
        before = pc.replace_substring_regex(
            text, pattern=rf"\A((?s:.*?))(?:{self.re2})(?s:.*)\z", replacement=r"\1"
        )
        return len(before.as_py())

    def groups(self, text: str) -> list[str | None] | None:
        """Return the groups of the first match, the whole of it if there are none."""
        self.check_cost(text)
        match = self._python.search(text)
        if match is None:
            return None
        return list(match.groups()) if match.re.groups else [match[0]]

    @staticmethod
    def beyond_ascii(rows: pa.Array) -> Mask:
        """Mark the texts in which RE2 would look for other boundaries than Rust does."""
        is_ascii = pc.fill_null(pc.string_is_ascii(rows), True)
        return ~np.asarray(is_ascii.to_numpy(zero_copy_only=False))

    def _matches(self, text: str) -> list[re.Match[str]]:
        self.check_cost(text)
        matches: list[re.Match[str]] = []
        for match in self._python.finditer(text):
            is_empty = match.start() == match.end()
            if not (is_empty and matches and matches[-1].end() == match.start()):
                matches.append(match)
        return matches

    def _apply(
        self,
        values: Value,
        array_kernel: Callable[[pa.Array], pa.Array],
        text_kernel: Callable[[str], Any],
        type_: pa.DataType | None,
    ) -> Value:
        if not self.has_boundary:
            return array_kernel(values)

        def kernel(rows: pa.Array) -> pa.Array:
            odd = self.beyond_ascii(rows)
            if not odd.any():
                return array_kernel(rows)
            texts = pc.filter(rows, pa.array(odd)).to_pylist()
            for text in texts:
                self.check_cost(text)
            usual = array_kernel(pc.filter(rows, pa.array(~odd)))
            other = pa.array(
                [text_kernel(text) for text in texts], usual.type if type_ is None else type_
            )
            merged = pa.concat_arrays([usual, pc.cast(other, usual.type)])
            place = np.where(odd, len(usual) + np.cumsum(odd) - 1, np.cumsum(~odd) - 1)
            return pc.take(merged, pa.array(place))

        return arrays_kernel(kernel)(values)

    @cached_property
    def _python(self) -> re.Pattern[str]:
        try:
            return re.compile(_Writer(self.text, is_python=True).written)
        except (re.error, OverflowError, RecursionError) as exc:
            raise pa.ArrowInvalid(
                f"the pattern {self.text!r} has a boundary (\\b), and cannot be searched in texts "
                f"beyond ASCII: {exc}; write (?-u:\\b) for boundaries of ASCII letters"
            ) from exc

    @cached_property
    def _repeats(self) -> tuple[int, bool]:
        """Count what may repeat without end, and tell whether repeats may multiply."""
        return _repeats(self.text)

    def check_cost(self, text: str) -> None:
        """Refuse a text in which Python's search might take long."""
        count, multiplies = self._repeats
        if multiplies or (count and len(text) ** (count + 1) > _STEPS_MAX):
            raise pa.ArrowInvalid(
                f"the pattern {self.text!r} has a boundary (\\b) beside repeats, which may take "
                f"too long in a text of {len(text):,} characters beyond ASCII; write (?-u:\\b) for "
                "boundaries of ASCII letters"
            )


class _Writer:
    """Reads a pattern in Rust's dialect and writes it in another."""

    def __init__(self, pattern: str, *, is_python: bool) -> None:
        self._pattern = pattern
        self._is_python = is_python
        self._position = 0
        self._unicode = [True]
        self._lines = [False]
        self.has_boundary = False
        parts = []
        while self._position < len(pattern):
            parts.append(self._next())
        self.written = "".join(parts)

    def _next(self) -> str:
        sign = self._pattern[self._position]
        if sign == "\\":
            return self._escape()
        if sign == "[":
            return self._class()
        if sign == "(":
            return self._group()
        self._position += 1
        if sign == ")" and len(self._unicode) > 1:
            self._unicode.pop()
            self._lines.pop()
        if sign == "$" and self._is_python:
            return r"(?=\n|\Z)" if self._lines[-1] else r"\Z"
        return sign

    def _group(self) -> str:
        flags = _FLAGS.match(self._pattern, self._position)
        unicode, lines = self._unicode[-1], self._lines[-1]
        if flags is None:
            self._unicode.append(unicode)
            self._lines.append(lines)
            is_named = self._pattern.startswith("(?<", self._position)
            self._position += 3 if is_named else 1
            return "(?P<" if is_named else "("
        self._position = flags.end()
        on, off, end = flags[1], flags[2] or "", flags[3]
        unicode = ("u" in on or unicode) and "u" not in off
        lines = ("m" in on or lines) and "m" not in off
        if end == ":":
            self._unicode.append(unicode)
            self._lines.append(lines)
        else:
            self._unicode[-1], self._lines[-1] = unicode, lines
        on, off = on.replace("u", ""), off.replace("u", "")
        if not on and not off:
            return "(?:" if end == ":" else ""
        return f"(?{on}{'-' if off else ''}{off}{end}"

    def _escape(self) -> str:
        word = self._pattern[self._position + 1 : self._position + 2]
        if word and word in "wWdDsS":
            self._position += 2
            members = self._members(word)
            return f"[{members}]"
        if word and word in "bB":
            self._position += 2
            if not self._unicode[-1]:
                return f"(?a:\\{word})" if self._is_python else f"\\{word}"
            self.has_boundary = True
            if not self._is_python:
                return f"\\{word}"
            inside = self._ranges(_word())
            if word == "b":
                return f"(?:(?<=[{inside}])(?![{inside}])|(?<![{inside}])(?=[{inside}]))"
            return f"(?:(?<=[{inside}])(?=[{inside}])|(?<![{inside}])(?![{inside}]))"
        if word == "z" and self._is_python:
            self._position += 2
            return r"\Z"
        code = _CODE.match(self._pattern, self._position)
        if code is not None:
            self._position = code.end()
            return self._character(int(code[1] or code[2], 16))
        match = _PROPERTY.match(self._pattern, self._position)
        if match is not None:
            self._position = match.end()
            return match[0] if not self._is_python else f"[{self._property(match)}]"
        self._position += 2
        return f"\\{word}"

    def _class(self) -> str:
        pattern = self._pattern
        self._position += 1
        parts = ["["]
        if pattern.startswith("^", self._position):
            parts.append("^")
            self._position += 1
        if pattern.startswith("]", self._position):
            parts.append(r"\]")
            self._position += 1
        while self._position < len(pattern) and pattern[self._position] != "]":
            parts.append(self._member())
        self._position += 1
        return "".join(parts) + "]"

    def _member(self) -> str:
        pattern, position = self._pattern, self._position
        posix = re.compile(r"\[:(\^?)([a-z]+):\]").match(pattern, position)
        if posix is not None:
            self._position = posix.end()
            if not self._is_python:
                return posix[0]
            if posix[1] or posix[2] not in _POSIX:
                raise re.error(f"the class {posix[0]} is not supported")
            return _POSIX[posix[2]]
        if pattern[position] == "[" or pattern[position : position + 2] in {"&&", "--", "~~"}:
            raise PredicateError(
                f"the pattern {pattern!r} has a class made of classes, which is not supported; "
                "write one class, or alternatives: (?:[ab]|[cd])"
            )
        if pattern[position] != "\\":
            self._position += 1
            return pattern[position]
        word = pattern[position + 1 : position + 2]
        if word and word in "wWdDsS":
            self._position += 2
            return self._members(word)
        code = _CODE.match(pattern, position)
        if code is not None:
            self._position = code.end()
            return self._character(int(code[1] or code[2], 16))
        match = _PROPERTY.match(pattern, position)
        if match is not None:
            self._position = match.end()
            return match[0] if not self._is_python else self._property(match)
        self._position += 2
        return f"\\{word}"

    def _members(self, word: str) -> str:
        r"""Write \\w and its like as members of a class."""
        lower = word.lower()
        if not self._unicode[-1]:
            if word == lower:
                return _ASCII[lower]
            return self._ranges(_complement(_ASCII_RANGES[lower]))
        if lower == "d" and not self._is_python:
            return r"\p{Nd}" if word == "d" else r"\P{Nd}"
        if word == "w" and not self._is_python:
            return r"\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}" + self._ranges(_MORE_WORD)
        ranges: Ranges = _SPACES
        if lower != "s":
            ranges = _word() if lower == "w" else _categories(frozenset({"Nd"}))
        return self._ranges(ranges if word == lower else _complement(ranges))

    def _property(self, match: re.Match[str]) -> str:
        name = match[2] or match[3] or ""
        category_names = {f"{a}{b}" for a in "LMNPSZC" for b in "ultmodecpfkis"} | set("LMNPSZC")
        if name not in category_names:
            raise re.error(f"the property {match[0]} is not supported")
        codes = _categories(frozenset({name}))
        is_negated = (match[0][1] == "P") != bool(match[1])
        return self._ranges(_complement(codes) if is_negated else codes)

    def _character(self, code: int) -> str:
        if self._is_python:
            return f"\\U{code:08x}"
        return f"\\x{{{code:x}}}"

    def _ranges(self, ranges: Ranges) -> str:
        return "".join(
            self._character(a) if a == b else f"{self._character(a)}-{self._character(b)}"
            for a, b in ranges
        )


_ASCII_RANGES: dict[str, Ranges] = {
    "w": ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)), "d": ((0x30, 0x39),),
    "s": ((0x9, 0xD), (0x20, 0x20)),
}  # fmt: skip


@cache
def _categories(names: frozenset[str]) -> Ranges:
    """Return the characters of some general categories; one letter stands for all below it."""
    codes = [
        code
        for code in range(0x110000)
        if not 0xD800 <= code < 0xE000
        and ((category := unicodedata.category(chr(code))) in names or category[0] in names)
    ]
    return _joined(np.array(codes, np.int64))


@cache
def _word() -> Ranges:
    ranges = [*_categories(_WORD_CATEGORIES), *_MORE_WORD]
    codes = np.unique(np.concatenate([np.arange(a, b + 1) for a, b in ranges]))
    return _joined(codes)


def _joined(codes: np.ndarray[Any, Any]) -> Ranges:
    breaks = np.flatnonzero(np.diff(codes) != 1)
    firsts, lasts = codes[np.append(0, breaks + 1)], codes[np.append(breaks, codes.size - 1)]
    return tuple(zip(firsts.tolist(), lasts.tolist(), strict=True))


@cache
def _complement(ranges: Ranges) -> Ranges:
    """Return all other characters; no half of a pair is one."""
    gaps, start = [], 0
    for first, last in sorted([*ranges, (0xD800, 0xDFFF)]):
        if start < first:
            gaps.append((start, first - 1))
        start = max(start, last + 1)
    if start < 0x110000:
        gaps.append((start, 0x10FFFF))
    return tuple(gaps)


def _two_groups_on(group: re.Match[str]) -> str:
    number = int(group[1]) + 2
    if number > 9:
        raise pa.ArrowInvalid(f"beside \\b, a replacement takes groups up to 7, not {group[1]}")
    return f"\\{number}"


def _repeats(pattern: str) -> tuple[int, bool]:
    """Count repeats without a small bound; tell whether some lie inside others, or are many."""
    pieces = re.findall(r"\\.|\[\^?\]?(?:\\.|\[:\w+:\]|[^\]])*\]|\(\?[a-zA-Z-]*[:)]|\{[\d,]+\}|.",
                        pattern, re.DOTALL)  # fmt: skip
    count = optional = 0
    nested = False
    groups = [False]
    closed = False
    for number, piece in enumerate(pieces):
        is_lazy = piece in {"?", "+"} and number and _is_repeat(pieces[number - 1])
        if piece.startswith("(") and not piece.endswith(")"):
            groups.append(False)
        elif piece == ")" and len(groups) > 1:
            closed = groups.pop()
            groups[-1] |= closed
            continue
        elif _is_repeat(piece) and not is_lazy:
            nested |= closed
            groups[-1] = True
            optional += piece == "?"
            count += piece != "?"
        closed = False
    return count, nested or optional > _OPTIONAL_MAX


def _is_repeat(piece: str) -> bool:
    return piece in {"*", "+", "?"} or (len(piece) > 1 and piece[0] == "{")
