from __future__ import annotations

from dataclasses import replace

import pytest

from lance_nb._pb import table as pb
from lance_nb.format.fragment_wire import FEW_FRAGMENTS, FragmentWire, Joined, entry, stretch
from lance_nb.format.manifest import parse_manifest
from tests.support.manifests import fragment, manifest

RAW = [fragment(n, 1000 + n).to_bytes() for n in range(3 * FEW_FRAGMENTS)]


def _message(raw, **fields) -> bytes:
    return pb.Manifest(fragments=raw, **fields).SerializeToString()


@pytest.mark.parametrize("size", [0, 1, 127, 128, 20_000])
def test_an_entry_is_what_protobuf_writes(size: int):
    assert entry(b"x" * size) == _message([b"x" * size])


def test_the_stretch_between_schema_and_version_is_found():
    built = replace(manifest(200), unknown=b"").to_pb()
    data = built.SerializeToString(deterministic=True)
    found = stretch(memoryview(data))
    assert bytes(found) == _message(list(built.fragments))
    assert data.count(bytes(found)) == 1


@pytest.mark.parametrize(("count", "shared"), [(FEW_FRAGMENTS - 1, False), (FEW_FRAGMENTS, True)])
def test_many_fragments_are_taken_from_the_message_as_they_lie(count: int, shared: bool):
    data = _message(RAW[:count], version=7)
    first, tail = FragmentWire(RAW[:count], data).pieces()
    assert bytes(first) == _message(RAW[:count])
    assert (isinstance(first, memoryview) and first.obj is data) is shared
    assert tail == b""


def test_offsets_that_are_zero_do_not_hide_it():
    data = _message(RAW, version=3, index_section=0, transaction_section=0)
    assert bytes(stretch(memoryview(data))) == _message(RAW)


def test_a_message_in_another_order_is_serialized_fragment_by_fragment():
    data = pb.Manifest(version=3).SerializeToString() + _message(RAW) + _message([], tag="t")
    assert stretch(memoryview(data)) is None
    assert b"".join(FragmentWire(RAW, data).pieces()) == _message(RAW)


def test_fragments_in_two_stretches_are_not_mistaken_for_one():
    data = _message(RAW[:100]) + _message([], version=9) + _message(RAW[100:])
    assert b"".join(FragmentWire(RAW, data).pieces()) == _message(RAW)


@pytest.mark.parametrize("count", [0, 1, FEW_FRAGMENTS, len(RAW)])
def test_others_follow(count: int):
    data = _message(RAW[:count], version=7)
    wire = FragmentWire(RAW[:count], data).followed_by([b"a"]).followed_by([b"b", b"c"])
    assert b"".join(wire.pieces()) == _message([*RAW[:count], b"a", b"b", b"c"])


def test_the_stretch_is_looked_for_once_however_often_others_follow(
    monkeypatch: pytest.MonkeyPatch,
):
    wire = FragmentWire(RAW, _message(RAW, version=7))
    wire.pieces()
    monkeypatch.setattr("lance_nb.format.fragment_wire.stretch", None)
    for name in (b"a", b"b"):
        wire = wire.followed_by([name])
        wire.pieces()
    assert b"".join(wire.pieces()) == _message([*RAW, b"a", b"b"])


def test_a_manifest_grown_by_appending_is_written_as_if_built_anew():
    data = replace(manifest(300), unknown=b"").to_bytes()
    read = parse_manifest(data, "x")
    more = [fragment(n, 10) for n in range(301, 304)]
    grown = read.fragments.appended(more)
    anew = replace(read, fragments=type(grown)(list(grown.raw)))
    assert replace(read, fragments=grown).to_bytes() == anew.to_bytes()
    assert grown == anew.fragments
    assert [one.id for one in grown[-2:]] == [302, 303]
    assert grown.counts().ids.tolist() == anew.fragments.counts().ids.tolist()


def test_a_list_that_grows_by_every_commit_does_not_grow_deeper():
    grown = parse_manifest(replace(manifest(3), unknown=b"").to_bytes(), "x").fragments
    for n in range(4, 3000):
        grown = grown.appended([fragment(n, 10)])
    assert len(grown) == 3000
    assert [one.id for one in grown[-2:]] == [2998, 2999]
    assert b"".join(grown.wire()) == _message(list(grown.raw))


def test_joined_is_a_sequence():
    joined = Joined([b"a", b"b"], [b"c"])
    assert (len(joined), list(joined), joined[2], joined[-1], joined[0]) == (
        3,
        [b"a", b"b", b"c"],
        b"c",
        b"c",
        b"a",
    )
    assert list(joined[1:]) == [b"b", b"c"]
    with pytest.raises(IndexError):
        joined[3]
