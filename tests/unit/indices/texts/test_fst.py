"""Finite-state maps: what is written is read, and damage is an error in bounded time."""

from __future__ import annotations

import random
import struct

import pytest

from lance_nb.errors import CorruptFileError, InvalidInputError, LanceError
from lance_nb.indices.texts.fst import Fst, _masked, crc32c, write_fst

WORDS = ["fox", "fur", "für", "quack", "quick", "quik"]


def fst(*words: str) -> Fst:
    return Fst(write_fst(sorted(word.encode() for word in words)), "tokens")


def test_crc32c_of_known_values() -> None:
    assert crc32c(b"123456789") == 0xE3069283  # the check value of CRC-32C
    assert crc32c(bytes(32)) == 0x8A9136AA
    data = random.Random(1).randbytes(100_000)
    assert crc32c(data) == crc32c_bitwise(data)


def crc32c_bitwise(data: bytes) -> int:
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


@pytest.mark.parametrize("seed", range(4))
def test_random_keys_come_back(seed: int) -> None:
    print("seed", seed)
    chance = random.Random(seed)
    letters = [b"ab", bytes(range(256)), b"\xff", b"etaoin"][seed]
    keys = {bytes(chance.choices(letters, k=chance.randrange(9))) for _ in range(3000)}
    ordered = sorted(keys)
    found = Fst(write_fst(ordered), "tokens")
    assert list(found.items()) == [(key, number) for number, key in enumerate(ordered)]
    assert [found.get(key) for key in ordered] == list(range(len(ordered)))
    for key in (b"\x00nothing", b"zzzzzzzzzz", ordered[-1] + b"a"):
        assert (found.get(key) is None) == (key not in keys)


def test_wide_states_of_256_transitions() -> None:
    keys = sorted([bytes((byte,)) for byte in range(256)] + [b"ab", b""])
    assert [key for key, _ in Fst(write_fst(keys), "tokens").items()] == keys


def test_an_empty_map_has_no_keys() -> None:
    assert list(Fst(write_fst([]), "tokens").items()) == []


def test_equal_ends_are_shared() -> None:
    many = [f"{number:04d}ending-of-all-words".encode() for number in range(1000)]
    assert len(write_fst(many)) < sum(map(len, many)) / 4


def test_keys_must_ascend() -> None:
    with pytest.raises(InvalidInputError, match="must ascend"):
        write_fst([b"b", b"a"])


@pytest.mark.parametrize(
    ("word", "distance", "prefix", "most", "near"),
    [
        ("quack", 1, 0, 50, ["quack", "quick"]),
        ("quack", 2, 0, 50, ["quack", "quick", "quik"]),
        ("quack", 2, 0, 2, ["quack", "quick"]),
        ("quack", 2, 4, 9, ["quack"]),
        ("für", 1, 0, 50, ["fur", "für"]),
        ("zzz", 1, 2, 50, []),
        ("fox", 0, 0, 50, ["fox"]),
    ],
)
def test_words_that_are_near(
    word: str, distance: int, prefix: int, most: int, near: list[str]
) -> None:
    assert [one for one, _ in fst(*WORDS).within(word, distance, prefix, most)] == near


def sealed(data: bytes) -> bytes:
    """Return a map with the checksum of its bytes."""
    return data[:-4] + struct.pack("<I", _masked(crc32c(data[:-4])))


def test_a_changed_byte_is_noticed() -> None:
    data = write_fst(sorted(f"{number}word".encode() for number in range(50)))
    assert Fst(data, "tokens").get(b"7word") is not None
    for place in range(16, len(data)):
        changed = bytearray(data)
        changed[place] ^= 1
        with pytest.raises(CorruptFileError, match="checksum"):
            Fst(bytes(changed), "tokens")


def test_damage_ends_in_an_error_or_another_answer() -> None:
    data = write_fst(sorted(f"{number}word{number % 7}".encode() for number in range(200)))
    chance = random.Random(7)
    num_errors = 0
    for _ in range(300):
        damaged = bytearray(data)
        for _ in range(chance.randrange(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        cut = damaged[: chance.choice([len(damaged), chance.randrange(len(damaged))])]
        try:
            found = Fst(sealed(bytes(cut)), "tokens")
            found.get(b"5word5")
            found.within("5word5", 2, 0, 50)
            list(found.items())
        except LanceError:
            num_errors += 1
    assert num_errors > 100


def test_a_root_outside_is_refused() -> None:
    data = bytearray(write_fst([b"ab"]))
    data[-12:-4] = struct.pack("<Q", len(data) + 5)
    with pytest.raises(CorruptFileError, match="root"):
        Fst(sealed(bytes(data)), "tokens")
    with pytest.raises(CorruptFileError):
        Fst(b"short", "tokens")
