"""Tag and branch records and names."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_nb.errors import CorruptFileError, InvalidRefError
from lance_nb.format.refs import Branch, Tag, check_branch_name, check_tag_name

TIME_NS = 1_795_230_129_147_127_079


def test_a_tag_record_is_written_as_pylance_does():
    tag = Tag(2, None, TIME_NS, TIME_NS, 422)
    assert tag.to_bytes().decode() == (
        '{\n  "branch": null,\n  "version": 2,\n'
        '  "createdAt": "2026-11-21T03:02:09.147127079Z",\n'
        '  "updatedAt": "2026-11-21T03:02:09.147127079Z",\n'
        '  "manifestSize": 422,\n  "metadata": {}\n}'
    )
    assert Tag.from_bytes(tag.to_bytes(), "t.json") == tag
    assert tag.created_at == datetime(2026, 11, 21, 3, 2, 9, 147127, UTC)


def test_the_spelling_of_the_specification_is_read_too():
    tag = b'{"branch": "dev", "version": 3, "manifest_size": 9, "created_at": null}'
    assert Tag.from_bytes(tag, "") == Tag(3, "dev", None, None, 9)
    branch = b'{"parent_branch": "dev", "parent_version": 3, "create_at": 7, "manifest_size": 9}'
    assert Branch.from_bytes(branch, "") == Branch("dev", 3, (), 7, 9)


def test_a_branch_record_round_trips_with_its_ancestors():
    branch = Branch("dev/x", 5, ((2, "ab" * 16), (5, "cd" * 16)), 1_795_230_129, 422, {"k": "v"})
    record = json.loads(branch.to_bytes())
    assert record["identifier"] == {"version_mapping": [[2, "ab" * 16], [5, "cd" * 16]]}
    assert set(record) == {
        "parentBranch",
        "identifier",
        "parentVersion",
        "createAt",
        "manifestSize",
        "metadata",
    }
    assert Branch.from_bytes(branch.to_bytes(), "") == branch
    assert branch.to_bytes().decode() == json.dumps(record, indent=2)


@pytest.mark.parametrize("value", ['é\n"', {"a": {"b": [], "c": [1, None]}}, [], 1.5, True])
def test_a_record_is_indented_whatever_it_holds(value: object):
    record = {"version": 2, "metadata": {"é\n": "\n  "}, "new": value}
    data = Tag.from_bytes(json.dumps(record).encode(), "").to_bytes().decode()
    assert data == json.dumps(json.loads(data), indent=2, ensure_ascii=False)
    assert json.loads(data)["new"] == value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:01Z", 1_000_000_000),
        ("1970-01-01t00:00:01.5z", 1_500_000_000),
        ("1970-01-01T01:00:00.000000001+01:00", 1),
        ("1969-12-31T23:59:59.999999999Z", -1),
    ],
)
def test_times_of_rfc_3339(text: str, expected: int):
    record = json.dumps({"version": 1, "createdAt": text}).encode()
    assert Tag.from_bytes(record, "").created_at_ns == expected


@given(st.integers(-(10**18), 10**19))
def test_times_round_trip_to_the_nanosecond(time_ns: int):
    tag = Tag(1, None, time_ns, None)
    assert Tag.from_bytes(tag.to_bytes(), "").created_at_ns == time_ns


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"{}",
        b"\xff\xfe",
        b'{"version": -1}',
        b'{"version": true}',
        b'{"version": 1.5}',
        b'{"version": "1"}',
        b'{"version": 99999999999999999999999}',
        b'{"version": 1, "branch": 7}',
        b'{"version": 1, "createdAt": "yesterday"}',
        b'{"version": 1, "createdAt": "2026-13-41T99:00:00Z"}',
        b'{"version": 1, "createdAt": "0001-01-01T00:00:00+23:00"}',
        b'{"version": 1, "metadata": {"a": 1}}',
        b'{"version": 1, "metadata": "x"}',
        b"[" * 100_000,
        b" " * 1_000_001,
    ],
    ids=lambda record: repr(record[:40]),
)
def test_a_broken_record_is_damage(record: bytes):
    with pytest.raises(CorruptFileError, match=r"t\.json"):
        Tag.from_bytes(record, "t.json")


@pytest.mark.parametrize(
    "identifier",
    ["1", '{"version_mapping": 3}', '{"version_mapping": [[1]]}', '{"version_mapping": [["a",1]]}'],
)
def test_a_broken_identifier_is_damage(identifier: str):
    record = f'{{"parentVersion": 1, "identifier": {identifier}}}'.encode()
    with pytest.raises(CorruptFileError, match="identifier"):
        Branch.from_bytes(record, "b.json")


GOOD_TAGS = ["v1.0.0", "a", "A-b_c.d", "-a", "main", "lock", "é", "1", "हिनदी", "ⓐ"]
BAD_TAGS = [
    "",
    "e\u0301",
    ".a",
    "a.",
    "a..b",
    "a.lock",
    ".lock",
    "a b",
    "a/b",
    "../x",
    "a\\b",
    "a\n",
    "<b>",
]
GOOD_BRANCHES = [
    "dev",
    "fix/issue-1",
    "a/b/c",
    ".a",
    "a.",
    "a/.b",
    "a.lock/b",
    "-a",
    "Main",
    "é",
    "a/ि",
]
BAD_BRANCHES = [
    "",
    "main",
    "/a",
    "a/",
    "/",
    "a//b",
    "a..b",
    "../x",
    "a/../b",
    "a\\b",
    "a b",
    "a.lock",
    "a/b.lock",
    ".lock",
    "a/./b",
    ".",
    "a\0",
    "a%2Fb",
    "a\n",
]


@pytest.mark.parametrize("name", GOOD_TAGS)
def test_good_tag_names(name: str):
    assert check_tag_name(name) == name


@pytest.mark.parametrize("name", BAD_TAGS)
def test_bad_tag_names(name: str):
    with pytest.raises(InvalidRefError, match="tag name"):
        check_tag_name(name)


@pytest.mark.parametrize("name", GOOD_BRANCHES)
def test_good_branch_names(name: str):
    assert check_branch_name(name) == name


@pytest.mark.parametrize("name", BAD_BRANCHES)
def test_bad_branch_names(name: str):
    with pytest.raises(InvalidRefError, match="branch name"):
        check_branch_name(name)


@pytest.mark.parametrize("kind", [Tag, Branch])
def test_keys_of_newer_writers_are_written_back(kind: type[Tag | Branch]):
    record = {"version": 2, "parentVersion": 2, "metadata": {}, "protected": {"by": ["x", 1]}}
    found = kind.from_bytes(json.dumps(record).encode(), "x")
    again = json.loads(found.to_bytes())
    assert again["protected"] == {"by": ["x", 1]}
    assert kind.from_bytes(found.to_bytes(), "x") == found
    assert replace(found, metadata={"a": "b"}).unknown == found.unknown
