"""Options in the spelling of pylance and in that of fsspec."""

from __future__ import annotations

from lance_nb.storage.fsspec_options import secrets_of, translate


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
    options = {"key": "abcd", "nested": {"token": b"bytes"}, "flag": True, "short": "ab", "n": 5}
    assert sorted(secrets_of(options)) == ["abcd", "bytes"]
