"""Servers and stores that the tests of this folder share; each starts once, when asked for."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pytest

from lance_nb.storage import conditional_put
from tests.support.ceph_server import ceph_server
from tests.support.fault_proxy import FaultProxy, fault_proxy
from tests.support.requirements import require_package
from tests.support.servers import moto_server, postgres_server, redis_server

CREDENTIALS = {"key": "test", "secret": "testtest"}


@dataclass(frozen=True)
class S3Place:
    """An empty bucket of a server, as fsspec and as pylance call it."""

    endpoint: str
    bucket: str
    driver: str = "obstore"

    @property
    def options(self) -> dict[str, Any]:
        region = {"region_name": "us-east-1"}
        address = {"endpoint_url": self.endpoint, "client_kwargs": region}
        return {**CREDENTIALS, **address, "driver": self.driver}

    @property
    def pylance_options(self) -> dict[str, str]:
        return {
            "aws_access_key_id": "test",
            "aws_secret_access_key": "testtest",
            "aws_endpoint": self.endpoint,
            "aws_region": "us-east-1",
            "allow_http": "true",
            "dynamodb_endpoint": self.endpoint,
        }

    def through(self, proxy: FaultProxy) -> S3Place:
        return S3Place(f"http://127.0.0.1:{proxy.port}", self.bucket, self.driver)


def client(service: str, endpoint: str) -> Any:
    boto3 = require_package("boto3")
    return boto3.client(
        service,
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="testtest",
    )


@pytest.fixture(scope="session")
def moto() -> Iterator[str]:
    require_package("s3fs")
    require_package("obstore")
    with moto_server() as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def s3_endpoint(request: pytest.FixtureRequest) -> Iterator[str]:
    """The S3 server: moto, or a Ceph that is started for the run (S3_SERVER=ceph)."""
    if os.environ.get("S3_SERVER") != "ceph":
        yield request.getfixturevalue("moto")
        return
    require_package("s3fs")
    require_package("obstore")
    with ceph_server(CREDENTIALS["key"], CREDENTIALS["secret"]) as endpoint:
        yield endpoint


@pytest.fixture
def table(moto: str) -> str:
    """A new DynamoDB table with Lance's keys."""
    name = f"manifests-{uuid.uuid4().hex[:12]}"
    client("dynamodb", moto).create_table(
        TableName=name,
        KeySchema=[
            {"AttributeName": "base_uri", "KeyType": "HASH"},
            {"AttributeName": "version", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": "base_uri", "AttributeType": "S"},
            {"AttributeName": "version", "AttributeType": "N"},
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    return name


@pytest.fixture
def driver() -> str:
    """Name the driver of ``s3://``; modules that run with each have a fixture of their own."""
    return "obstore"


@pytest.fixture
def s3(s3_endpoint: str, driver: str) -> S3Place:
    """A new bucket."""
    bucket = f"bucket-{uuid.uuid4().hex[:12]}"
    client("s3", s3_endpoint).create_bucket(Bucket=bucket)
    conditional_put._faults.clear()
    return S3Place(s3_endpoint, bucket, driver)


@pytest.fixture
def s3_proxy(s3: S3Place) -> Iterator[FaultProxy]:
    place = urlsplit(s3.endpoint)
    assert place.hostname is not None
    assert place.port is not None
    with fault_proxy(place.hostname, place.port) as proxy:
        yield proxy


@pytest.fixture(scope="session")
def redis_port() -> Iterator[int]:
    with redis_server() as port:
        yield port


@pytest.fixture(scope="session")
def postgres_port() -> Iterator[int]:
    with postgres_server() as port:
        yield port
