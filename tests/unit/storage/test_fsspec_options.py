"""Options in the spelling of pylance and in that of fsspec."""

from __future__ import annotations

from typing import Any

import pytest

from lance_nb.storage.fsspec_options import secrets_of, secrets_of_uri, translate


def test_options_in_pylance_spelling_reach_s3fs():
    options = {
        "aws_access_key_id": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "aws_session_token": "c",
        "region": "eu-central-1",
        "aws_endpoint": "http://localhost:5555",
        "allow_http": "true",
        "skip_signature": "true",
        "default_block_size": 5,
    }
    before = dict(options)
    assert translate("s3", options) == {
        "key": "a",
        "secret": "b",
        "token": "c",
        "client_kwargs": {"region_name": "eu-central-1"},
        "endpoint_url": "http://localhost:5555",
        "anon": True,
        "default_block_size": 5,
    }
    assert options == before


def test_options_in_fsspec_spelling_are_kept_and_win():
    options = {"key": "mine", "aws_access_key_id": "other", "client_kwargs": {"verify": False}}
    options["aws_region"] = "x"
    assert translate("s3", options) == {
        "key": "mine",
        "client_kwargs": {"region_name": "x", "verify": False},
    }
    assert translate("gs", {"google_service_account": "f.json"}) == {"token": "f.json"}
    azure = {"azure_storage_account_name": "n", "azure_storage_account_key": "k"}
    assert translate("az", azure) == {"account_name": "n", "account_key": "k"}
    assert translate("http", {"region": "kept"}) == {"region": "kept"}


def test_options_that_only_pylance_needs_do_not_reach_s3fs():
    options = {"dynamodb_endpoint": "http://x", "AWS_CONDITIONAL_PUT": "etag", "timeout": "30s"}
    assert translate("s3", options) == {}
    assert translate("az", {"timeout": 30}) == {"timeout": 30}


def test_the_addressing_style_and_the_payer():
    options = {"aws_virtual_hosted_style_request": "false", "aws_request_payer": "true"}
    assert translate("s3", options) == {
        "config_kwargs": {"s3": {"addressing_style": "path"}},
        "requester_pays": True,
    }
    options = {"virtual_hosted_style_request": True}
    expected = {"config_kwargs": {"s3": {"addressing_style": "virtual"}}}
    assert translate("s3", options) == expected


def test_every_text_in_the_options_counts_as_secret():
    options = {"key": "abcd", "nested": {"token": b"bytes"}, "flag": True, "short": "abc", "n": 5}
    assert sorted(secrets_of(options)) == ["abcd", "bytes"]


@pytest.mark.parametrize(
    ("options", "quoted"),
    [
        ({"headers": {"Authorization": "Bearer CANARY"}}, ["CANARY"]),
        ({"proxy_url": "http://me:CANARY@proxy:1"}, ["CANARY", "me:CANARY"]),
        ({"connection_string": "AccountName=acc;AccountKey=CANARY==;Suffix=x"}, ["CANARY=="]),
        ({"sas_token": "?sv=1&sig=CAN%2FARY"}, ["CAN%2FARY", "CAN/ARY"]),
        ({"secret": "CAN/ARY+"}, ["CAN/ARY+", "CAN%2FARY%2B"]),
        ({"keys": [{"x": "CANARY"}]}, ["CANARY"]),
    ],
)
def test_parts_that_a_message_may_quote_alone_count_as_secrets(
    options: dict[str, Any], quoted: list[str]
):
    assert set(quoted) <= set(secrets_of(options))
    assert not {"http", "proxy:1", "acc", "me"} & set(secrets_of(options))


def test_secrets_of_a_uri():
    assert {"AKIAIOSFODNN7", "CANARY"} <= set(secrets_of_uri("s3://AKIAIOSFODNN7:CANARY@b/t"))
    assert "AKIAIOSFODNN" in set(secrets_of_uri("s3://AKIAIOSFODNN:CANARY@b/t"))
    assert "AKIAIOSFODN" not in set(secrets_of_uri("s3://AKIAIOSFODN:CANARY@b/t"))
    assert "CAN/ARY" in set(secrets_of_uri("s3://K:CAN/ARY@b/t"))
    assert "CANARY" in set(secrets_of_uri("https://CANARY@h/t"))
    assert set(secrets_of_uri("https://h/t?sv=2026&sig=CANARY")) == {"CANARY"}
    assert not set(secrets_of_uri("abfss://container@account.dfs.core.windows.net/t?a=1"))
