"""Credentials and region of AWS's shared files (``~/.aws``), as every tool of AWS reads them.

``obstore`` finds credentials in the environment and those of machines and containers in AWS, and
does not read the shared files. This module adds them, in the order of AWS's own tools: environment
variables first, then the profile (``AWS_PROFILE``, else ``default``), then the machine's role.

A profile with fixed keys is read here. One whose credentials are fetched (single sign-on, a role to
assume, a process) is left to ``botocore``, if that is installed.

Limits: only what names credentials, region and address is used.
Source: "Configuration and credential file settings" of the AWS CLI user guide.
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from lance_nb.errors import InvalidInputError, MissingPackageError
from lance_nb.value_classes import dataclass

Credentials = dict[str, Any]

# Any of these says that the credentials come from the environment, which obstore knows.
_VARIABLES = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
_KEYS = {
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "session_token",
}
_ENCRYPTION = frozenset({"aws_sse_customer_key_base64", "aws_sse_kms_key_id"})
_FETCHED = ("sso_session", "sso_start_url", "role_arn", "credential_process")


@dataclass(frozen=True, slots=True)
class Profile:
    """What a profile adds to the options: settings of obstore, and where credentials come from.

    ``fetch`` returns credentials whenever obstore asks for them; None if ``config`` has them or
    obstore finds them itself.
    """

    config: Mapping[str, str] = field(default_factory=dict, repr=False)
    fetch: Callable[[], Credentials] | None = field(default=None, repr=False)


def find_profile(name: str = "", config: Mapping[str, Any] | None = None) -> Profile:
    """Read a profile as far as ``config``, obstore's settings, leaves something open.

    Without a ``name``, the environment goes before the files. Raises InvalidInputError for a
    profile that is not there, MissingPackageError for one that needs botocore.
    """
    profile_config = config or {}
    profile = name or os.environ.get("AWS_PROFILE", "") or "default"
    sections = _read(profile)
    if sections is None:
        if name:
            raise InvalidInputError(
                f"AWS's shared files have no profile {name!r}: `aws configure list-profiles` lists "
                "those that exist"
            )
        sections = {}
    settings = {}
    in_environment = not name and any(variable in os.environ for variable in _VARIABLES)
    has_credentials = (
        "access_key_id" in profile_config or "skip_signature" in profile_config or in_environment
    )
    fetch = None
    if not has_credentials:
        settings = {ours: sections[theirs] for theirs, ours in _KEYS.items() if theirs in sections}
        if "access_key_id" not in settings and any(setting in sections for setting in _FETCHED):
            fetch = _fetcher(profile)
    in_region = {"AWS_REGION", "AWS_DEFAULT_REGION"} & set(os.environ)
    if "region" in sections and (name or not in_region):
        settings["region"] = sections["region"]
    endpoint = (
        os.environ.get("AWS_ENDPOINT_URL_S3")
        or os.environ.get("AWS_ENDPOINT_URL")
        or os.environ.get("AWS_ENDPOINT")
        or sections.get("endpoint_url")
    )
    if endpoint:
        settings["endpoint"] = endpoint
    return Profile(
        {key: value for key, value in settings.items() if key not in profile_config}, fetch
    )


def encryption_variables() -> list[str]:
    """Return the variables of the environment with a key that objects are encrypted with.

    obstore sends it with each request, and has no option that keeps it back.
    """
    return sorted(name for name in os.environ if name.lower() in _ENCRYPTION)


def _read(profile: str) -> dict[str, str] | None:
    """Return the settings of a profile in both files, None if neither has it."""
    values: dict[str, str] = {}
    is_there = False
    for variable, file, section in (
        ("AWS_CONFIG_FILE", "~/.aws/config", f"profile {profile}"),
        ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials", profile),
    ):
        parser = configparser.RawConfigParser(strict=False)
        place = Path(os.environ.get(variable) or file).expanduser()
        try:
            parser.read(place, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError):
            # The parser's own error may quote a line with a key.
            raise InvalidInputError(f"{place} is not a file of AWS profiles") from None
        for name in (section, profile):
            if parser.has_section(name):
                is_there = True
                values |= dict(parser.items(name))
                break
    return values if is_there else None


def _fetcher(profile: str) -> Callable[[], Credentials]:
    try:
        from botocore.session import Session
    except ImportError as error:
        raise MissingPackageError(
            f"fetching the credentials of the AWS profile {profile!r}", "boto3", "boto3"
        ) from error
    session = Session(profile=profile)

    def fetch() -> Credentials:
        from datetime import UTC, datetime, timedelta

        frozen = session.get_credentials().get_frozen_credentials()
        return {
            "access_key_id": frozen.access_key,
            "secret_access_key": frozen.secret_key,
            "token": frozen.token,
            # botocore renews them in time, when it is asked again.
            "expires_at": datetime.now(UTC) + timedelta(minutes=5),
        }

    return fetch
