"""One grammar for versions, on datasets that pylance writes."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import RefNotFoundError


@pytest.fixture
def written(tmp_path: Path) -> lance.LanceDataset:
    """Main has versions 1 to 5; ``dev`` forks at 3 and has one more; ``v1`` is version 2."""
    uri = str(tmp_path / "d.lance")
    for number in range(5):
        ds = lance.write_dataset(
            pa.table({"id": [number]}), uri, mode="append" if number else "create"
        )
    ds.tags.create("v1", 2)
    ds.create_branch("dev", 3)
    branch = ds.checkout_version(("dev", None))
    lance.write_dataset(pa.table({"id": [9]}), branch, mode="append")
    return lance.dataset(uri)


def _places(uri: str, ref: object) -> set[tuple[str | None, int]]:
    """Return the version that each way to name one opens."""
    ds = lance_nb.dataset(uri)
    opened = lance_nb.dataset(uri, ref), ds.checkout_version(ref)  # type: ignore[arg-type]
    return {(version.branch, version.version) for version in opened} | {ds.diff(ref, ds).a}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ref", "place"),
    [
        (2, (None, 2)), ("2", (None, 2)), ("v1", (None, 2)), ("tag:v1", (None, 2)),
        ("HEAD", (None, 5)), ("HEAD~4", (None, 1)), ("main:3", (None, 3)), ("main", (None, 5)),
        ("dev", ("dev", 4)), ("dev:3", ("dev", 3)), ("dev:HEAD~1", ("dev", 3)),
        (("dev", None), ("dev", 4)),
    ],
)  # fmt: skip
def test_each_way_to_open_a_version_understands_each_ref(written, ref, place) -> None:
    assert _places(written.uri, ref) == {place}


def test_times_are_those_that_pylance_lists(written) -> None:
    times = {entry["version"]: entry["timestamp"] for entry in written.versions()}
    for number in (2, 3, 5):
        # pylance rounds its nanoseconds by way of a float.
        moment: datetime = times[number] + timedelta(microseconds=2)
        assert _places(written.uri, moment) == {(None, number)}
        assert _places(written.uri, moment.isoformat()) == {(None, number)}
        assert lance_nb.dataset(written.uri, asof=moment).version == number
    assert _places(written.uri, times[5].date()) == {(None, 5)}


def test_texts_that_pylance_takes_mean_the_same(written) -> None:
    for name in ("v1", "nope"):
        try:
            expected = written.checkout_version(name).version
        except (ValueError, OSError):
            with pytest.raises(RefNotFoundError):
                lance_nb.dataset(written.uri, name)
        else:
            assert lance_nb.dataset(written.uri, name).version == expected


def test_what_is_made_from_a_ref_is_what_pylance_reads(written) -> None:
    ds = lance_nb.dataset(written.uri)
    ds.tags.create("before", "dev:HEAD~1")
    ds.create_branch("again", "HEAD~2")
    ds.checkout_version("main:1").restore()

    theirs = lance.dataset(written.uri)
    assert theirs.tags.list()["before"]["branch"] == "dev"
    assert theirs.tags.list()["before"]["version"] == 3
    assert theirs.branches.list()["again"]["parent_version"] == 3
    assert theirs.to_table()["id"].to_pylist() == [0]
