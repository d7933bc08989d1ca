"""Feature words: what is read, what is only read, what is refused."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.format.feature_flags import FLAGS, check_readable, check_writable, describe


@dataclass(frozen=True)
class Words:
    reader_feature_flags: int = 0
    writer_feature_flags: int = 0
    writer_version: str | None = "lance 99.0.0"
    path: str = "_versions/1.manifest"


@pytest.mark.parametrize("bit", [0, 1, 2, 3, 4, 5, 7, 8, 10, 11, 14])
def test_known_features_in_both_words_pass(bit: int):
    check_readable(Words(1 << bit, 1 << bit))
    check_writable(Words(1 << bit, 1 << bit))


@pytest.mark.parametrize("bit", [6, 9, 12, 13, 16, 17, 40, 63])
def test_unknown_reader_bits_are_refused_with_bits_and_writer(bit: int):
    with pytest.raises(NotSupportedError) as caught:
        check_readable(Words(1 << bit, 1 << bit))
    text = str(caught.value)
    assert f"{1 << bit:#x}" in text
    assert "lance 99.0.0" in text
    assert "_versions/1.manifest" in text


@pytest.mark.parametrize("bit", [6, 9, 12, 13, 17, 63])
def test_unknown_writer_bits_only_forbid_writing(bit: int):
    check_readable(Words(0, 1 << bit))
    with pytest.raises(NotSupportedError, match="writing"):
        check_writable(Words(0, 1 << bit))


@pytest.mark.parametrize("bit", [8, 10, 14])
def test_features_of_both_words_in_one_are_damage(bit: int):
    for words in (Words(1 << bit, 0), Words(0, 1 << bit)):
        with pytest.raises(CorruptFileError, match="both words"):
            check_readable(words)


def test_bit_15_belongs_to_the_writer_word_only():
    check_readable(Words(0, 1 << 15))
    check_writable(Words(0, 1 << 15))
    with pytest.raises(CorruptFileError, match="writer word only"):
        check_readable(Words(1 << 15, 1 << 15))


def test_every_bit_has_one_entry_and_a_meaning():
    assert sorted(flag.bit for flag in FLAGS) == [1 << number for number in range(17)]
    assert all(flag.meaning and flag.name for flag in FLAGS)
    assert describe(0b11) == ["deletion files", "stable row ids"]
    assert describe(1 << 20) == ["unknown (bit 20)"]
