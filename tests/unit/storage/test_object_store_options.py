"""Options of pylance and of fsspec's drivers as settings of obstore."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import timedelta
from typing import Any

import obstore.store
import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.storage import object_store_options
from lance_nb.storage.object_store_options import translate

KEYS = {"access_key_id": "a", "secret_access_key": "b"}


@pytest.mark.parametrize(
    "options",
    [
        {"key": "a", "secret": "b"},
        {"username": "a", "password": "b"},
        {"aws_access_key_id": "a", "AWS_SECRET_ACCESS_KEY": "b"},
        {"access_key_id": "a", "secret_access_key": "b"},
        {"client_kwargs": {"aws_access_key_id": "a", "aws_secret_access_key": "b"}},
        {"key": "a", "aws_access_key_id": "other", "secret": "b"},
        {"aws_access_key_id": "other", "key": "a", "secret": "b"},
    ],
)
def test_every_spelling_of_the_keys_of_s3(options: dict[str, Any]):
    assert translate("s3", options).config == KEYS


def test_every_spelling_of_region_and_address():
    for name in ("region", "aws_region", "AWS_DEFAULT_REGION", "default_region"):
        assert translate("s3a", {name: "eu-west-1"}).config == {"region": "eu-west-1"}
    nested = {"client_kwargs": {"region_name": "eu-west-1", "endpoint_url": "http://a"}}
    assert translate("s3", nested).config == {"region": "eu-west-1", "endpoint": "http://a"}
    for name in ("endpoint", "endpoint_url", "aws_endpoint", "aws_endpoint_url"):
        assert translate("s3", {name: "http://a"}).config == {"endpoint": "http://a"}


def test_flags_times_and_retries():
    options = {
        "anon": "true", "requester_pays": True, "allow_http": "1", "connect_timeout": 5,
        "timeout": "30s", "client_max_retries": "3", "client_retry_timeout": 60,
        "config_kwargs": {"read_timeout": 7, "retries": {"max_attempts": 2}},
    }  # fmt: skip
    found = translate("s3", options)
    assert found.config == {"skip_signature": True, "request_payer": True}
    assert found.client == {
        "allow_http": True,
        "connect_timeout": "5s",
        "timeout": "30s",
        "read_timeout": "7s",
    }
    assert found.retry["retry_timeout"] == timedelta(seconds=60)
    assert found.retry["max_retries"] in (2, 3)
    assert translate("s3", {"anon": False, "token": None}).config == {}
    with pytest.raises(InvalidInputError, match="client_max_retries"):
        translate("s3", {"client_max_retries": "many"})


@pytest.mark.parametrize(
    ("scheme", "options"),
    [
        ("s3", {"session": object()}),
        ("s3", {"s3_additional_kwargs": {"ACL": "private"}}),
        ("s3", {"client_kwargs": {"verify": False}}),
        ("s3", {"client_kwargs": object()}),
        ("s3", {"config_kwargs": {"s3": {"addressing_style": "virtual"}}}),
        ("s3", {"config_kwargs": {"signature_version": "s3"}}),
        ("s3", {"use_ssl": False}),
        ("s3", {"key": object()}),
        ("gs", {"token": "browser"}),
        ("gs", {"token": object()}),
        ("gs", {"requester_pays": True}),
        ("az", {"connection_string": "AccountKey=x"}),
        ("az", {"anon": False}),
        ("abfs", {"credential": object()}),
    ],
)
def test_what_only_fsspec_understands_is_named(scheme: str, options: dict[str, Any]):
    found = translate(scheme, options).needs_fsspec
    assert found.partition(".")[0] in options


@pytest.mark.parametrize("scheme", ["s3", "gs", "az"])
def test_what_only_concerns_file_objects_is_left_out(scheme: str):
    options = {"default_block_size": 5, "skip_instance_cache": True, "use_listings_cache": False}
    found = translate(scheme, {**options, "driver": "obstore", "manifest_store": "sqlite:///x"})
    assert (found.config, found.client, found.needs_fsspec) == ({}, {}, "")


@pytest.mark.parametrize("scheme", ["s3", "gs", "az"])
def test_what_nobody_knows_is_refused_without_its_value(scheme: str):
    with pytest.raises(InvalidInputError, match="'sekret' is not known") as caught:
        translate(scheme, {"sekret": "TOPSECRET"})
    assert "TOPSECRET" not in str(caught.value)


def test_options_of_google():
    assert translate("gs", {"token": "anon"}).config == {"skip_signature": True}
    assert translate("gs", {"token": "google_default"}).config == {}
    assert translate("gcs", {"token": "/a/b.json"}).config == {
        "application_credentials": "/a/b.json"
    }
    account = {"type": "service_account", "project_id": "p"}
    found = translate("gs", {"token": account, "project": "p"}).config
    assert json.loads(found["service_account_key"]) == account
    for name in ("google_service_account", "service_account_path", "GOOGLE_SERVICE_ACCOUNT_PATH"):
        assert translate("gs", {name: "f.json"}).config == {"service_account": "f.json"}
    assert translate("gs", {"google_storage_token": "t"}).config == {"bearer_token": "t"}
    assert translate("gs", {"endpoint_url": "http://g"}).config == {"base_url": "http://g"}


def test_options_of_azure():
    expected = {"account_name": "n", "account_key": "k"}
    for prefix in ("", "azure_storage_", "AZURE_STORAGE_"):
        assert (
            translate("az", {f"{prefix}account_name": "n", "account_key": "k"}).config == expected
        )
    assert translate("abfs", {"sas_token": "s=1"}).config == {"sas_key": "s=1"}
    assert translate("abfss", {"azure_tenant_id": "t"}).config == {"tenant_id": "t"}
    assert translate("az", {"anon": True}).config == {"skip_signature": True}


@pytest.mark.parametrize(
    ("service", "make"),
    [
        ("s3", obstore.store.S3Store),
        ("gs", obstore.store.GCSStore),
        ("az", obstore.store.AzureStore),
    ],
)
def test_obstore_knows_every_setting(service: str, make: Any):
    for name in object_store_options._CONFIG[service]:
        with suppress(obstore.exceptions.GenericError):  # the name is known, the value is bad
            make("bucket", config={name: "true"})
    with pytest.raises(obstore.exceptions.UnknownConfigurationKeyError):
        make("bucket", config={"no_such_setting": "true"})
    with pytest.raises(ValueError, match="Invalid key"):
        make("bucket", client_options={"no_such_setting": "true"})


@pytest.mark.parametrize("name", sorted(object_store_options._CLIENT))
def test_obstore_knows_every_setting_of_http(name: str):
    text = ""
    try:
        obstore.store.S3Store("b", config={"skip_signature": True}, client_options={name: "true"})
    except (TypeError, ValueError, obstore.exceptions.BaseError) as error:
        text = str(error)
    assert "Invalid key" not in text
