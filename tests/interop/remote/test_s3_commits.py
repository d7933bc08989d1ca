"""Tables in S3 by conditional PUT: with pylance in turn and together, over broken connections."""

from __future__ import annotations

import os
import pickle
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import NotSupportedError
from lance_nb.storage.object_store import DRIVERS
from lance_nb.storage.registry import open_store
from tests.interop.remote.conftest import CREDENTIALS, S3Place
from tests.interop.remote.shared_table import PATH, Shared
from tests.support.fault_proxy import fault_proxy
from tests.support.header_proxy import header_dropping_proxy
from tests.support.requirements import require_pylance

SECRET = CREDENTIALS["secret"]

pytestmark = pytest.mark.interop


@pytest.fixture(params=DRIVERS)
def driver(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def shared(s3: S3Place) -> Shared:
    return Shared(s3, f"s3://{s3.bucket}/{PATH}", require_pylance())


@pytest.mark.parametrize("creator", ["ours", "theirs"])
def test_both_commit_in_turn(shared: Shared, creator: str):
    getattr(shared, creator)(0, mode="create")
    shared.ours(1)
    shared.theirs(2)
    lance_nb.dataset(shared.uri, storage_options=shared.s3.options).delete("x = 1")
    shared.theirs(3)
    shared.check([0, 2, 3])


def test_both_commit_at_the_same_time(shared: Shared):
    shared.ours(-1, mode="create")
    shared.check([-1, *shared.together(writers=4, appends=4)])


def test_secrets_are_neither_shown_nor_stored(shared: Shared):
    shared.ours(0, mode="create")
    dataset = lance_nb.dataset(shared.uri, storage_options=shared.options)
    dataset.insert(pa.table({"x": [1]}))
    dataset.tags.create("v2", 2)
    shown = [repr(dataset), str(dataset), repr(vars(dataset)), dataset.uri, str(dataset.versions())]
    assert SECRET not in "".join(shown)
    store = open_store(f"s3://{shared.s3.bucket}", shared.s3.options)
    for info in store.list_recursive(""):
        assert SECRET.encode() not in bytes(store.read(info.name))
    assert SECRET.encode() not in pickle.dumps(dataset)


@pytest.mark.parametrize("kind", ["before", "lost", "unavailable"])
def test_a_broken_connection_commits_once(shared: Shared, kind: str):
    shared.ours(0, mode="create")
    place = urlsplit(shared.s3.endpoint)
    with fault_proxy(str(place.hostname), int(place.port or 0)) as proxy:
        options = shared.s3.through(proxy).pylance_options
        fault = proxy.arm(rb"PUT \S+\.manifest ", kind)
        shared.ours(1, options=options)
        assert fault.hits == 1
    shared.check([0, 1])


@pytest.mark.parametrize("kind", ["lost", "unavailable"])
def test_a_commit_whose_every_reply_is_lost_is_found_and_not_repeated(shared: Shared, kind: str):
    if shared.s3.driver == "fsspec":
        pytest.skip("botocore's own retries take a minute")
    shared.ours(0, mode="create")
    place = urlsplit(shared.s3.endpoint)
    with fault_proxy(str(place.hostname), int(place.port or 0)) as proxy:
        options = {**shared.s3.through(proxy).pylance_options, "client_max_retries": 1}
        fault = proxy.arm(rb"PUT \S+\.manifest ", kind, times=10**6)
        shared.ours(1, options=options)
        assert fault.hits == 2
    shared.check([0, 1])


def test_requests_of_an_append_and_of_reading(shared: Shared):
    if shared.s3.driver == "fsspec":
        pytest.skip("the requests of obstore are counted")
    shared.ours(0, mode="create")
    place = urlsplit(shared.s3.endpoint)
    with fault_proxy(str(place.hostname), int(place.port or 0)) as proxy:
        options = {**shared.s3.through(proxy).pylance_options, "driver": "obstore"}
        shared.ours(1, options=options)  # also the probe
        patterns = {
            "listing": rb"GET /\S+list-type=2", "manifest": rb"GET /\S+\.manifest ",
            "data": rb"PUT /\S+/data/", "transaction": rb"PUT /\S+/_transactions/",
            "commit": rb"PUT /\S+\.manifest ", "hint": rb"PUT /\S+/latest_version_hint",
            "other": rb"(HEAD|POST|DELETE) /",
        }  # fmt: skip
        counts = {name: proxy.arm(one, "count", times=10**6) for name, one in patterns.items()}
        shared.ours(2, options=options)
        # pylance sends the same without the hint, by which verify finds a newest version that
        # was lost.
        expected = dict.fromkeys(patterns, 1) | {"listing": 2, "other": 0}
        assert {name: one.hits for name, one in counts.items()} == expected
        dataset = lance_nb.dataset(shared.uri, storage_options=options)
        assert dataset.count_rows() == 3
        assert (counts["listing"].hits, counts["manifest"].hits, counts["other"].hits) == (3, 2, 0)
    shared.check([0, 1, 2])


def test_a_table_in_a_store_that_ignores_the_condition_needs_a_manifest_store(
    shared: Shared, tmp_path
):
    if os.environ.get("S3_SERVER") == "ceph":
        pytest.skip("a proxy cannot take a header out of a request whose signature is checked")
    with header_dropping_proxy(shared.s3.endpoint, "if-none-match") as endpoint:
        options = S3Place(endpoint, shared.s3.bucket).pylance_options
        with pytest.raises(NotSupportedError, match="manifest_store"):
            shared.ours(0, mode="create", options=options)
        decided = {**options, "manifest_store": f"sqlite:///{tmp_path}/manifests.db"}
        shared.ours(0, mode="create", options=decided)
        shared.ours(1, options=decided)
    shared.check([0, 1])
