from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

import lance_nb
from lance_nb.errors import InvalidRefError, RefNotFoundError, VersionNotFoundError
from lance_nb.format.refs import Tag
from lance_nb.table import versions
from lance_nb.table.ref_grammar import resolve
from lance_nb.table.refs import Target
from lance_nb.table.versions import load_manifest, version_asof, version_names
from tests.golden.copies import copy_to_memory
from tests.golden.opening import WatchedStore


@pytest.mark.parametrize(
    ("ref", "branch", "target"),
    [
        (None, None, Target(None, None)),
        (None, "side", Target("side", None)),
        (3, None, Target(None, 3)),
        (3, "side", Target("side", 3)),
        ("first", None, Target(None, 1)),
        ("first", "side", Target(None, 1)),
        ("on-side", None, Target("side", 3)),
        ((None, 4), "side", Target(None, 4)),
        (("main", 4), "side", Target(None, 4)),
        ((None, None), "side", Target(None, None)),
        (("side", None), None, Target("side", None)),
        (2**63 + 1, None, Target(None, 2**63 + 1)),
        (("team/deep", 4), None, Target("team/deep", 4)),
    ],
)
def test_a_ref_resolves_to_a_branch_and_a_version(history, ref, branch, target):
    assert resolve(history, ref, branch) == target


@pytest.mark.parametrize(
    "ref",
    [True, 0, -1, 2**64, 1.5, b"first", [1], {}, ("side",), ("side", 1, 2), ("side", "1"), (1, 2),
     ("side", True), ("side", -1), ("side", 0)],
    ids=repr,
)  # fmt: skip
def test_what_is_no_ref_is_refused(history, ref):
    with pytest.raises(InvalidRefError):
        resolve(history, ref, None)


@pytest.mark.parametrize(
    ("ref", "error", "expected"),
    [
        (
            "First",
            RefNotFoundError,
            "tag or branch 'First' does not exist; names that exist: 'first'",
        ),
        ("tag:side", RefNotFoundError, "tag 'side' does not exist; tags that exist: 'on-side'"),
        ("sid:1", RefNotFoundError, "branches that exist: 'side'"),
        ("main:HEAD~99", VersionNotFoundError, "HEAD~13 is the oldest"),
        ("HEAD~14", VersionNotFoundError, "HEAD~13 is the oldest"),
        ("1999-12-31", VersionNotFoundError, "as of 1999-12-31T23:59:59"),
        ("2026-13-01", InvalidRefError, "is not a date or time; write a number"),
        ("", InvalidRefError, "HEAD~2, or a date"),
        ("side:", InvalidRefError, "'side:' is not a version; write a number"),
        (":1", InvalidRefError, "write a number"),
        ("side:1:2", InvalidRefError, "branch name 'side:1'"),
        ("side:0", InvalidRefError, "not a positive number"),
        ("0", InvalidRefError, "not a positive number"),
        ("HEAD~-1", InvalidRefError, "write a number"),
        ("../x", InvalidRefError, "write a number"),
        ("a b", InvalidRefError, "write a number"),
        ("x" * 5000, InvalidRefError, "write a number"),
        ("9" * 100, RefNotFoundError, "does not exist"),
        ("\u0661", RefNotFoundError, "does not exist"),
    ],
)
def test_a_text_that_means_nothing_is_refused_with_what_there_is(history, ref, error, expected):
    with pytest.raises(error) as caught:
        resolve(history, ref, None)
    assert expected in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_an_unknown_branch_is_refused_with_those_that_exist(history):
    with pytest.raises(RefNotFoundError, match=r"branches that exist: 'side', 'main', 'team/deep'"):
        resolve(history, ("sid", None), None)


@pytest.mark.parametrize("name", ["..", "a/../b", "/side", "side/", "a\\b", "", "a b"])
def test_a_branch_name_that_breaks_the_rules_is_refused(history, name):
    with pytest.raises(InvalidRefError):
        resolve(history, (name, None), None)


def test_a_dataset_without_refs_says_what_can_be_written(stores):
    with pytest.raises(RefNotFoundError, match=r"names that exist: 'HEAD', 'main'$"):
        resolve(stores["empty"], "v1", None)
    with pytest.raises(RefNotFoundError, match="no tags exist"):
        resolve(stores["empty"], "tag:v1", None)


def test_a_tag_that_moved_is_seen_at_once():
    store = copy_to_memory("history")
    store.write("_refs/tags/first.json", Tag(5).to_bytes())
    assert resolve(store, "first", None) == Target(None, 5)


def test_a_branch_is_found_by_its_own_file_however_many_there_are(history):
    store = WatchedStore(history)
    assert resolve(store, ("side", None), None) == Target("side", None)
    assert not store.listed
    with pytest.raises(RefNotFoundError, match="sid"):
        resolve(store, ("sid", None), None)


def test_a_branch_whose_file_another_writer_spelled_otherwise_is_found(history):
    store = copy_to_memory("history")
    data = bytes(store.read("_refs/branches/team%2Fdeep.json"))
    store.delete("_refs/branches/team%2Fdeep.json")
    store.write("_refs/branches/team%2fdeep.json", data)
    assert resolve(store, ("team/deep", 1), None) == Target("team/deep", 1)


@pytest.mark.parametrize(
    ("ref", "branch", "target"),
    [
        ("3", None, Target(None, 3)),
        (" 3 ", "side", Target("side", 3)),
        ("side", None, Target("side", None)),
        ("main", "side", Target(None, None)),
        ("team/deep", None, Target("team/deep", None)),
        ("side:3", None, Target("side", 3)),
        ("main:2", "side", Target(None, 2)),
        ("tag:on-side", None, Target("side", 3)),
        ("HEAD", "side", Target("side", None)),
        ("HEAD~2", None, Target(None, 12)),
        ("HEAD~13", None, Target(None, 1)),
        ("main:HEAD~2", "side", Target(None, 12)),
        ("side:HEAD", None, Target("side", None)),
    ],
)
def test_a_text_means_a_version(history, ref, branch, target):
    assert resolve(history, ref, branch) == target


def _times(store):
    return {name.version: load_manifest(store, name).timestamp for name in version_names(store)}


def test_a_time_means_the_newest_version_that_is_not_later(history):
    moment = _times(history)[7]
    assert resolve(history, moment, None) == Target(None, 7)
    assert resolve(history, moment.isoformat(), None) == Target(None, 7)
    before = moment - timedelta(microseconds=1)
    assert resolve(history, before, None) == Target(None, 6)
    assert resolve(history, before.isoformat(), None) == Target(None, 6)
    utc = moment.astimezone(UTC)
    assert resolve(history, f"{utc:%Y-%m-%dT%H:%M:%S.%fZ}", None) == Target(None, 7)
    local = moment.astimezone().replace(tzinfo=None)
    assert resolve(history, local, None) == Target(None, 7)
    assert resolve(history, str(local), None) == Target(None, 7)


def test_a_day_means_its_end(history):
    day = _times(history)[14].astimezone().date()
    assert resolve(history, day, None) == Target(None, 14)
    assert resolve(history, day.isoformat(), None) == Target(None, 14)
    with pytest.raises(VersionNotFoundError):
        resolve(history, _times(history)[1].astimezone().date() - timedelta(days=1), None)


@pytest.fixture
def several_meanings(tmp_path):
    """Versions 1 to 4; tags and branches with names that also mean something else."""
    ds = lance_nb.write_dataset({"a": [1]}, str(tmp_path / "d"))
    for number in range(2, 5):
        ds.insert({"a": [number]})
    for tag in ("3", "7", "HEAD", "2026-08-01", "dev", "main", "four"):
        ds.tags.create(tag, 2)
    ds.tags.create("4", 4)
    ds.create_branch("dev", 3)
    return ds


@pytest.mark.parametrize(
    ("ref", "readings"),
    [
        (
            "3",
            "'3' has more than one meaning here: write tag:3 for the tag, main:3 for the version",
        ),
        ("dev", "write tag:dev for the tag, dev:HEAD for the branch"),
        ("main", "write tag:main for the tag, main:HEAD for the branch"),
        ("HEAD", "write tag:HEAD for the tag, main:HEAD for the newest versions"),
    ],
)
def test_a_word_with_two_meanings_is_refused_with_both(several_meanings, ref, readings):
    with pytest.raises(InvalidRefError) as caught:
        several_meanings.checkout_version(ref)
    assert readings in str(caught.value)
    for written in readings.partition("write ")[2].split(", "):
        several_meanings.checkout_version(written.split(" ")[0])  # what is advised works


def test_a_date_that_is_a_tag_is_refused_where_it_means_another_version(several_meanings):
    year = datetime.now(UTC).year + 1
    several_meanings.tags.create(f"{year}-01-01", 2)
    with pytest.raises(InvalidRefError, match=f"tag:{year}-01-01 for the tag, {year}-01-01T23:59"):
        several_meanings.checkout_version(f"{year}-01-01")


def test_a_word_is_not_ambiguous_where_its_meanings_agree_or_one_names_nothing(several_meanings):
    assert several_meanings.checkout_version("4").version == 4
    assert several_meanings.checkout_version("7").version == 2  # there is no version 7
    assert several_meanings.checkout_version("four").version == 2
    assert several_meanings.checkout_version(3).version == 3  # a number is a number


@pytest.mark.parametrize("seed", range(20))
def test_times_of_writers_whose_clocks_differ_are_found_as_by_reading_all(monkeypatch, seed):
    random_source = random.Random(seed)
    store = copy_to_memory("history")
    start = datetime(2026, 8, 1, tzinfo=UTC)
    apart = random_source.choice([1, 60, 600])
    times = {
        name.version: start
        + timedelta(seconds=apart * name.version + random_source.uniform(-140, 140))
        for name in version_names(store)
    }

    class Described:
        def __init__(self, version: int) -> None:
            self.timestamp = times[version]

    monkeypatch.setattr(versions, "load_manifest", lambda _, name: Described(name.version))
    for _ in range(50):
        moment = start + timedelta(seconds=random_source.uniform(-100, apart * 15))
        expected = max((v for v, time in times.items() if time <= moment), default=None)
        if expected is None:
            with pytest.raises(VersionNotFoundError):
                version_asof(store, moment)
        else:
            assert version_asof(store, moment).version == expected, (seed, moment)
