"""Comments that race on S3: each is one conditional put, and none is lost."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

import lance_nb
from tests.interop.remote.conftest import S3Place
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop
COMMENTS = int(os.environ.get("LANCE_NB_RACING_COMMENTS", "60"))


def test_racing_comments_lose_none(s3: S3Place) -> None:
    uri = f"s3://{s3.bucket}/a.lance"
    lance_nb.write_dataset({"id": [1]}, uri, storage_options=s3.options).create_branch("dev")
    reviews = [
        lance_nb.dataset(uri, storage_options=s3.options).branches.review("dev") for _ in range(4)
    ]

    def write(number: int) -> None:
        reviews[number % 4].comment(f"number {number}", author="ada")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(COMMENTS)))
    found = [one.text for one in reviews[0].comments()]
    assert sorted(found) == sorted(f"number {number}" for number in range(COMMENTS))
    lance = require_pylance()
    theirs = lance.dataset(uri, storage_options=s3.pylance_options)
    assert list(theirs.branches.list()) == ["dev"]
