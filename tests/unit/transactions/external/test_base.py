"""Entries of manifest stores, and URLs without their secrets."""

from __future__ import annotations

import pytest

from lance_nb.errors import CorruptFileError
from lance_nb.format.layout import ManifestName, NamingScheme
from lance_nb.transactions.external.base import ManifestEntry, masked_url, without_secrets

UUID = "2c60ef98-98ed-4799-ad2a-a32d3c5e98ee"


@pytest.mark.parametrize(
    ("file", "scheme"),
    [("2.manifest", NamingScheme.V1), ("18446744073709551613.manifest", NamingScheme.V2)],
)
def test_staged_and_final_paths(file: str, scheme: NamingScheme):
    final = ManifestEntry(2, f"a/b/_versions/{file}", 434, "tag")
    staged = ManifestEntry(2, f"{final.path}-{UUID}", 434, "tag")
    assert (final.is_staged, staged.is_staged) == (False, True)
    assert staged.finished("x") == final.finished("x") == final
    assert staged.name("x") == final.name("x") == ManifestName(2, scheme)
    assert staged.object_path == f"_versions/{file}-{UUID}"


@pytest.mark.parametrize(
    "path",
    ["", "2.manifest", "a/2.manifest", "a/_versions/3.manifest", "a/_versions/2.manifest-x",
     "a/_versions/2.manifest#1", "a/_versions/..", f"a/_versions/{UUID}"],
)  # fmt: skip
def test_other_paths_are_damage(path: str):
    with pytest.raises(CorruptFileError, match="version 2"):
        ManifestEntry(2, path).name("the store")


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
