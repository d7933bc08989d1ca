"""Summaries of manifests: counted once, whatever versions share and however they are written."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_nb.errors import CorruptFileError
from lance_nb.format import manifest_summary as summaries
from lance_nb.format.fragment import DataFile, DeletionFile, DeletionFileType, Fragment
from lance_nb.format.fragment_list import FragmentList
from lance_nb.format.manifest import Manifest, WriterVersion, build_manifest_file
from lance_nb.format.manifest_summary import TotalsMemo, parse_summary
from lance_nb.format.schema import Schema


def fragment(number: int, rows: int = 10, name: str = "a") -> Fragment:
    file = DataFile(f"{name}{number}.lance", (0,), (0,), 2, 2, file_size_bytes=100 + number)
    return Fragment(number, (file,), rows)


WRITER = WriterVersion("lance", "0.9.0")


def manifest_file(
    version: int, fragments: list[Fragment], writer: WriterVersion | None = WRITER
) -> bytes:
    made = Manifest(
        version,
        Schema(()),
        FragmentList.of(fragments),
        timestamp_ns=version,
        writer_version=writer,
    )
    return made.to_bytes(transaction=b"\x08\x01")


BASE = [fragment(n) for n in range(40)]
LONG = [fragment(n, name="n" * 200) for n in range(40)]
HISTORY = [
    BASE[:5], BASE[:6], BASE, BASE[:3], [*BASE[:7], fragment(7, 99), *BASE[8:]], BASE, [],
    BASE[7:], BASE, LONG, [*LONG, *BASE], BASE[::-1], BASE[:1], BASE,
]  # fmt: skip


def test_a_memo_changes_nothing_but_the_time():
    memo = TotalsMemo()
    for version, fragments in enumerate(HISTORY, 1):
        data = manifest_file(version, fragments)
        assert parse_summary(data, "x", memo) == parse_summary(data, "x")


@given(st.integers(0, 2**32), st.integers(1, 12))
def test_any_order_of_any_lists_of_fragments_is_counted_right(seed: int, count: int):
    choose = random.Random(seed)
    memo = TotalsMemo()
    for version in range(count):
        picked = [choose.choice(BASE + LONG[:9]) for _ in range(choose.randrange(30))]
        fragments = choose.choice([BASE[: choose.randrange(40)], LONG[:17]]) + picked
        data = manifest_file(version, fragments)
        assert parse_summary(data, "x", memo) == parse_summary(data, "x")


def test_only_what_is_new_is_parsed_and_counted(monkeypatch: pytest.MonkeyPatch):
    counted = []
    count_all, count_one = summaries.count_all, summaries.count_one

    def watched_all(raw, path):
        counted.extend(raw)
        return count_all(raw, path)

    def watched_one(raw, path):
        counted.append(raw)
        return count_one(raw, path)

    monkeypatch.setattr(summaries, "count_all", watched_all)
    monkeypatch.setattr(summaries, "count_one", watched_one)
    memo = TotalsMemo()
    numbers = []
    for version, end in enumerate((30, 31, 33, 20), 1):
        parse_summary(manifest_file(version, BASE[:end]), "x", memo)
        numbers.append(len(counted))
    assert numbers == [30, 31, 33, 33]


def test_a_message_in_another_order_is_counted_and_not_shared():
    whole = Manifest(3, Schema(()), FragmentList.of(BASE)).to_pb().SerializeToString()
    late = Manifest(0, Schema(()), FragmentList.of(BASE[:4])).to_pb().SerializeToString()
    memo = TotalsMemo()
    for message in (whole, whole + late, late + whole, whole):
        data = build_manifest_file([], [message])
        assert parse_summary(data, "x", memo) == parse_summary(data, "x")
    assert parse_summary(build_manifest_file([], [whole + late]), "x").totals.num_fragments == 44


def test_counts_of_a_manifest_without_a_writer_are_shown_and_not_checked():
    """Release 0.8.0 counted more deleted rows than rows; the list of versions is shown anyway."""
    deletions = DeletionFile(1, 1, DeletionFileType.BITMAP, 12)
    bad = Fragment(50, (), 4, deletions)
    for before in (BASE, BASE[:3]):
        data = manifest_file(2, [*before, bad], writer=None)
        totals = parse_summary(data, "x", TotalsMemo()).totals
        assert totals.physical_rows == sum(one.physical_rows for one in before) + 4
        assert totals.num_deleted_rows == 12
    assert parse_summary(manifest_file(2, [bad], writer=None), "x").totals.num_rows == 0


def test_impossible_counts_are_damage_with_and_without_a_memo():
    deletions = DeletionFile(1, 1, DeletionFileType.BITMAP, num_deleted_rows=11)
    bad = Fragment(50, (), 10, deletions)
    memo = TotalsMemo()
    parse_summary(manifest_file(1, BASE), "x", memo)
    for known in (memo, None):
        with pytest.raises(CorruptFileError):
            parse_summary(manifest_file(2, [*BASE, bad]), "x", known)
        with pytest.raises(CorruptFileError):
            parse_summary(manifest_file(2, [*BASE[:3], bad]), "x", known)
    half = [fragment(n, 2**61) for n in (60, 61)]
    parse_summary(manifest_file(3, half[:1]), "x", memo)
    with pytest.raises(CorruptFileError, match="2\\*\\*62"):
        parse_summary(manifest_file(4, half), "x", memo)


def test_fragments_behind_a_field_of_a_long_name_are_parsed_once(monkeypatch: pytest.MonkeyPatch):
    """The length of such a field takes two bytes."""
    counted = []
    count_all = summaries.count_all
    monkeypatch.setattr(
        summaries, "count_all", lambda raw, path: counted.append(len(raw)) or count_all(raw, path)
    )
    schema = Schema.from_arrow(pa.schema([("n" * 200, pa.int8()), ("m", pa.int8())]))
    memo = TotalsMemo()
    for version, end in enumerate((20, 40), 1):
        made = Manifest(version, schema, FragmentList.of(BASE[:end]), writer_version=WRITER)
        parse_summary(made.to_bytes(transaction=b"\x08\x01"), "x", memo)
    assert counted == [20, 20]
