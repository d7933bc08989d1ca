"""Text from a dataset, made fit for a page, a terminal or a log: nothing in it is invisible.

A character that is not seen, or that changes how others are seen, is written out: terminals take
escape sequences as commands, bidirectional marks reverse what a person reads, and a carriage return
hides what was before it. ``⟨U+001B⟩`` is what ESC becomes.

A joiner where its script needs it stays: one that makes one picture of two emoji, and one between
two letters of Arabic script (Persian, Urdu), whose shapes it decides. Elsewhere it could hide that
two names differ, and is written out.

Layout: ``visible`` makes one line, in which a line break shows as ``↵`` and a tab as ``⇥``.
``visible_lines`` is for what consists of several lines of ours: their breaks stay. ``visible_json``
uses the escapes of JSON, so that a program that reads it gets the text as it was.
"""

from __future__ import annotations

import re

# Controls (C0 with ESC, CR and backspace; DEL; C1), characters of no width, line and paragraph
# separators, bidirectional marks, lone surrogates, tags.
_EMOJI = "\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
_ARABIC = "\u0620-\u064a\u066e-\u06d3\u06fa-\u06ff\u0750-\u077f"
_NEEDED = (
    f"(?:(?<=[{_EMOJI}\ufe0f])\u200d(?=[{_EMOJI}])|(?<=[{_ARABIC}])[\u200c\u200d](?=[{_ARABIC}]))"
)
INVISIBLE = re.compile(
    f"(?!{_NEEDED})"
    "[\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
# A user with a password, which may hold "/", of web servers also one without (a token), and
# parameters that are signatures, keys or tokens.
# The text may be hostile: each match takes a whole run, so that none is searched twice.
_URL_USER = re.compile(r"(http|https)?://[^\s'\"@?]*@?", re.IGNORECASE)
_CREDENTIALS = (
    r"sig|key|token|secret|pass|pwd|cred|auth|sas|bearer|jwt|cookie|header|cert|private"
    r"|connection_?string|service_account|(?<![a-z])pat(?![a-z])"
)
_CREDENTIAL_NAME = re.compile(_CREDENTIALS, re.IGNORECASE)
_URL_PARAMETER = re.compile(
    rf"([?&;#](?=[^\s'\"=&?;#]*(?:{_CREDENTIALS}))[^\s'\"=&?;#]*=)[^\s'\"&#]+", re.IGNORECASE
)
_SIGNS = {"\n": "↵", "\t": "⇥"}


def visible(text: str) -> str:
    r"""Replace every invisible or direction-changing character by something that can be seen.

    >>> from lance_nb.shown_text import visible
    >>> visible("red: \x1b[31m, and\nmore")
    'red: ⟨U+001B⟩[31m, and↵more'
    """
    return INVISIBLE.sub(_shown, text)


def without_url_secrets(text: str) -> str:
    """Replace passwords and signatures in the URLs of a text.

    >>> from lance_nb.shown_text import without_url_secrets
    >>> without_url_secrets("no s3://KEY:SECRET@b/t, https://host/t?sv=1&sig=SECRET")
    'no s3://***@b/t, https://host/t?sv=1&sig=***'
    """
    if "://" not in text:
        return text
    return _URL_PARAMETER.sub(r"\1***", _URL_USER.sub(_without_password, text))


def is_secret_name(name: str) -> bool:
    """Tell whether an option, a header or a parameter of this name holds a credential.

    >>> from lance_nb.shown_text import is_secret_name
    >>> is_secret_name("aws_session_token"), is_secret_name("region")
    (True, False)
    """
    return _CREDENTIAL_NAME.search(name) is not None


def _without_password(match: re.Match[str]) -> str:
    scheme, _, user = match[0].partition("://")
    name, colon, _ = user.partition(":")
    is_secret = "/" not in name and (colon or scheme)  # an "@" behind "/" is of the path
    return f"{scheme}://***@" if user.endswith("@") and is_secret else match[0]


def visible_lines(text: str) -> str:
    """Do the same to every line of a text, and keep its line breaks."""
    return "\n".join(map(visible, text.split("\n")))


def visible_json(written: str) -> str:
    """Write out, as JSON does, what ``json.dumps`` leaves as it is in a text."""
    return INVISIBLE.sub(_escaped, written)


def _shown(match: re.Match[str]) -> str:
    character = match.group()
    return _SIGNS.get(character) or f"⟨U+{ord(character):04X}⟩"


def _escaped(match: re.Match[str]) -> str:
    character = match.group()
    if character == "\n":  # between the values: inside of a text, json.dumps has escaped it
        return character
    number = ord(character)
    if number < 0x10000:
        return f"\\u{number:04x}"
    number -= 0x10000
    return f"\\u{0xD800 + (number >> 10):04x}\\u{0xDC00 + (number & 0x3FF):04x}"
