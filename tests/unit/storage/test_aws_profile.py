"""Profiles of AWS's shared files."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.storage.aws_profile import find_profile

VARIABLES = (
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_REGION",
    "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT",
    "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    (tmp_path / "credentials").write_text(
        "[default]\naws_access_key_id = A\naws_secret_access_key = B\n"
        "[work]\naws_access_key_id = W\naws_secret_access_key = X%Y\naws_session_token = T\n"
    )
    (tmp_path / "config").write_text(
        "[default]\nregion = eu-west-1\n[profile work]\nregion = eu-central-1\n"
        "endpoint_url = http://here\n[profile single]\nsso_session = corp\n"
    )
    return tmp_path


def test_the_default_profile_has_the_keys_and_the_region():
    expected = {"access_key_id": "A", "secret_access_key": "B", "region": "eu-west-1"}
    assert find_profile().config == expected


def test_a_profile_is_named_by_an_option_or_a_variable(monkeypatch: pytest.MonkeyPatch):
    expected = {
        "access_key_id": "W", "secret_access_key": "X%Y", "session_token": "T",
        "region": "eu-central-1", "endpoint": "http://here",
    }  # fmt: skip
    assert find_profile("work").config == expected
    monkeypatch.setenv("AWS_PROFILE", "work")
    assert find_profile().config == expected
    with pytest.raises(InvalidInputError, match="no profile 'other'"):
        find_profile("other")


def test_what_is_given_and_the_environment_go_before_the_files(monkeypatch: pytest.MonkeyPatch):
    assert find_profile("", {"access_key_id": "mine"}).config == {"region": "eu-west-1"}
    assert find_profile("", {"skip_signature": True, "region": "x"}).config == {}
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "E")
    monkeypatch.setenv("AWS_REGION", "us-east-2")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://there")
    assert find_profile().config == {"endpoint": "http://there"}


def test_without_files_nothing_is_added(folder: Path):
    (folder / "config").unlink()
    (folder / "credentials").unlink()
    found = find_profile()
    assert (found.config, found.fetch) == ({}, None)


def test_credentials_that_must_be_fetched_need_botocore(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("botocore")
    assert find_profile("single").fetch is not None
    monkeypatch.setitem(sys.modules, "botocore.session", None)
    with pytest.raises(NotSupportedError, match="pip install boto3"):
        find_profile("single")


def test_a_damaged_file_is_named_without_its_lines(folder: Path):
    (folder / "credentials").write_text("TOPSECRET\n")
    with pytest.raises(InvalidInputError, match="credentials") as caught:
        find_profile()
    assert "TOPSECRET" not in f"{caught.value} {caught.value.__cause__}"
