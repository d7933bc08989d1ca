from __future__ import annotations

import json
import logging
import pickle
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_nb import errors
from lance_nb.errors import CorruptFileError, InvalidInputError, RefNotFoundError
from lance_nb.shown_text import (
    INVISIBLE,
    visible,
    visible_json,
    visible_lines,
    without_url_secrets,
)

ANY = st.text(st.characters())


@given(ANY)
def test_nothing_that_a_terminal_takes_for_a_command_is_left(text: str) -> None:
    shown = visible(text)
    kinds = {unicodedata.category(one) for one in shown}
    assert not kinds & {"Cc", "Cs", "Zl", "Zp"}
    bidi = {unicodedata.bidirectional(one) for one in shown}
    assert not bidi & {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    assert visible(shown) == shown


@given(ANY)
def test_only_our_own_line_breaks_stay(text: str) -> None:
    assert visible_lines(text).split("\n") == [visible(one) for one in text.split("\n")]


@given(st.dictionaries(ANY, ANY))
def test_json_says_the_same_without_hidden_characters(value: dict[str, str]) -> None:
    written = visible_json(json.dumps(value, ensure_ascii=False, indent=2))
    joined = {_joined(key): _joined(one) for key, one in value.items()}
    assert json.loads(written) == joined
    assert not INVISIBLE.search(written.replace("\n", ""))


def _joined(text: str) -> str:
    """Join halves of a pair: JSON has no other way to write what they are together."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


@pytest.mark.parametrize(
    "error",
    [
        InvalidInputError("red \x1b[31m\r\x08\x9b\u202e"),
        RefNotFoundError("tag", "x\x1b]0;t\x07", ("a\x1b",)),
        CorruptFileError("data/\x1b.lance", 3, "a\x9b", "b\u202e"),
    ],
)
def test_no_error_speaks_to_a_terminal(error: Exception) -> None:
    assert not INVISIBLE.search(str(error))
    assert not INVISIBLE.search(str(pickle.loads(pickle.dumps(error))))  # noqa: S301 - our own


def test_an_error_keeps_the_lines_that_it_was_given() -> None:
    assert str(InvalidInputError("a\nb")) == "a\nb"


def test_a_log_has_no_hidden_characters(caplog: pytest.LogCaptureFixture) -> None:
    from lance_nb.explorer.messages import Job, finish

    def fail(progress: object) -> None:
        raise KeyError("\x1b[31m") from ValueError("\x1b]0;x\x07\u202e\r")

    with caplog.at_level(logging.WARNING):
        finish("1", Job(fail))
    (record,) = caplog.records
    said = logging.Formatter().format(record)
    assert "KeyError" in said
    assert not INVISIBLE.search(said.replace("\n", ""))


@pytest.mark.parametrize(
    "needed",
    [
        "\U0001f468\u200d\U0001f4bb",
        "\u2764\ufe0f\u200d\U0001f525",
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
    ],
)
def test_joiners_that_their_script_needs_stay(needed: str) -> None:
    assert visible(needed) == needed


@pytest.mark.parametrize(
    "text",
    [
        "a\u200db",
        "\u200d\U0001f468",
        "\U0001f468\u200d",
        "\u0645\u200ca",
        "a\u200c",
        "\U0001f468\u200d\u200d\U0001f4bb",
    ],
)
def test_joiners_elsewhere_are_written_out(text: str) -> None:
    assert "⟨U+200" in visible(text)


URLS = (
    "s3://CANARY:CANARY@bucket/t",
    "s3://KEY:CANARY/CANARY@bucket/t",
    "https://user:CANARY@host/t",
    "https://host/t?sv=1&sig=CANARY",
    "https://host/t?X-Amz-Signature=CANARY&X-Amz-Credential=CANARY%2Fx&a=1",
    "az://c/t?SIG=CANARY",
    "postgresql://me:CANARY@host/db?password=CANARY",
    "rest+https://me:CANARY@host",
    "https://CANARY@host/t",
    "rest+http://CANARY@host",
    "https://host/back#access_token=CANARY",
)


@pytest.mark.parametrize("url", URLS)
def test_no_error_holds_the_secrets_of_a_url(url: str) -> None:
    """Text, repr, fields and pickle of every error whose fields are texts."""
    count = 0
    for kind in vars(errors).values():
        if not (isinstance(kind, type) and issubclass(kind, errors.LanceError)):
            continue
        for num_fields in range(1, 6):
            try:
                error = kind(*[url] * num_fields)
                shown = f"{error} {error!r} {vars(error)}"
            except (TypeError, ValueError):
                continue  # takes another number of fields, or numbers
            count += 1
            assert "CANARY" not in shown, kind
            assert b"CANARY" not in pickle.dumps(error), kind
    assert count > 40


@pytest.mark.parametrize(
    "text",
    [
        "a:b@c",
        "http://host:80/x?a=1&b=2",
        "http://host/x@y",
        "abfss://container@account.dfs/t",
        "s3://b/k=v",
        "s3://b/time=10:00@x/t",
        "file:///data/x:y@z/t",
        "c@d://x",
    ],
)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert without_url_secrets(text) == text


@pytest.mark.parametrize("piece", ["://:", ";sig", "?token", "://a:", "&sig=;", "://;key"])
def test_hostile_text_is_searched_for_secrets_in_linear_time(piece: str) -> None:
    start = time.process_time()
    without_url_secrets("://" + piece * 100_000)
    assert time.process_time() - start < 3  # in time that grows with the square it takes minutes


def test_each_url_of_a_text_loses_its_secrets() -> None:
    text = "from s3://K:CANARY/x+y@b/t?a=1;token=CANARY;b#c to rest+http://u:CANARY@h and s3://b"
    expected = "from s3://***@b/t?a=1;token=***#c to rest+http://***@h and s3://b"
    assert without_url_secrets(text) == expected
