"""Credentials in URLs of manifest stores."""

from __future__ import annotations

import pytest

from lance_nb.transactions.external.masking import masked_url, without_secrets


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://host:1/0", "redis://host:1/0"),
        ("redis://user:secret@host:1/0", "redis://***@host:1/0"),
        ("redis://:secret@host/0?x=y", "redis://***@host/0"),
        ("postgresql://h/d?password=secret&sslmode=on", "postgresql://h/d?sslmode=on"),
        ("dynamodb://t?region=eu", "dynamodb://t?region=eu"),
    ],
)
def test_what_is_shown(url: str, shown: str):
    assert masked_url(url) == shown


def test_what_a_driver_says():
    url = "postgresql://me:s%20ecret@h/d?password=other"
    text = "no login me / s%20ecret / s ecret / other at " + url
    assert without_secrets(text, url) == "no login me / *** / *** / *** at ***"


def test_a_secret_of_four_characters_is_replaced_and_a_shorter_one_is_not():
    assert without_secrets("no: abcd", "postgresql://h/d?password=abcd") == "no: ***"
    assert without_secrets("no: abc", "postgresql://h/d?password=abc") == "no: abc"
