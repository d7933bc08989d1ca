"""Translate ``storage_options`` into what ``obstore`` takes: of the service, of HTTP, of retries.

Known are the names of pylance (those of Rust's ``object_store``, with and without the prefix of the
service, in any case) and those of the fsspec drivers s3fs, gcsfs and adlfs. Each name stands in one
of the tables below. Three kinds have no counterpart:

* settings of a Python file object or of an event loop (``default_block_size``, ``asynchronous``):
  they change nothing that a reader of Lance could notice, and are left out;
* what only the fsspec driver can do (``session``, ``client_kwargs.verify``, ``version_aware``):
  ``Settings.needs_fsspec`` names it, and the fsspec driver is used instead;
* an unknown option is refused by its name, since a misspelled ``aws_acces_key`` would otherwise
  surface as a denied request.

Limits: a value that is not text, a number, a truth value or a mapping needs the fsspec driver.
Source: obstore 0.12.1 (``S3Config``, ``GCSConfig``, ``AzureConfig``, ``ClientConfig``); arguments
of s3fs 2026.9.0, gcsfs 2026.10.1, adlfs 2026.8.0; storage options of pylance 14.0.2.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from lance_nb.errors import InvalidInputError
from lance_nb.storage.fsspec_options import NOT_FOR_DRIVERS, ONLY_GIVEN, is_true
from lance_nb.value_classes import dataclass

_CONNECT_TIMEOUT = "connect_timeout"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a store of ``obstore`` is made with.

    ``service`` is "s3", "gs" or "az"; ``needs_fsspec`` is the option that only fsspec's driver
    understands, "" if there is none. ``profile`` names a profile of AWS's shared files. With
    ``only_given``, credentials of the environment and of profiles are not used.
    """

    service: str
    config: dict[str, Any] = field(default_factory=dict, repr=False)
    client: dict[str, Any] = field(default_factory=dict, repr=False)
    retry: dict[str, Any] = field(default_factory=dict)
    needs_fsspec: str = ""
    profile: str = ""
    only_given: bool = False


SERVICES = {
    **dict.fromkeys(("s3", "s3a"), "s3"),
    **dict.fromkeys(("gs", "gcs"), "gs"),
    **dict.fromkeys(("az", "abfs", "abfss"), "az"),
}
_PREFIXES = {"s3": ("aws_",), "gs": ("google_",), "az": ("azure_storage_", "azure_")}

# Names of obstore's own settings, without the prefix of the service.
_CONFIG = {
    "s3": frozenset({
        "access_key_id", "checksum_algorithm", "container_authorization_token_file",
        "container_credentials_full_uri", "container_credentials_relative_uri", "disable_tagging",
        "endpoint", "imdsv1_fallback", "metadata_endpoint", "region", "request_payer", "role_arn",
        "role_session_name", "s3_express", "secret_access_key", "server_side_encryption",
        "endpoint_url_sts", "session_token", "skip_signature",
        "sse_bucket_key_enabled", "sse_customer_key_base64",
        "sse_kms_key_id", "unsigned_payload", "virtual_hosted_style_request",
        "web_identity_token_file",
    }),
    "gs": frozenset({
        "application_credentials", "base_url", "bearer_token", "service_account",
        "service_account_key", "skip_signature",
    }),
    "az": frozenset({
        "account_key", "account_name", "authority_host", "bearer_token", "client_id",
        "client_secret", "credential_type", "disable_tagging", "encryption_key", "endpoint",
        "federated_token_file", "msi_endpoint", "msi_resource_id", "object_id", "sas_key",
        "skip_signature", "tenant_id", "use_azure_cli", "use_emulator", "use_fabric_endpoint",
    }),
}  # fmt: skip
# Other names of the same settings, those of the fsspec drivers among them.
_ALIASES = {
    "s3": {
        "key": "access_key_id", "username": "access_key_id",
        "secret": "secret_access_key", "password": "secret_access_key",
        "token": "session_token", "default_region": "region", "region_name": "region",
        "endpoint_url": "endpoint", "endpoint_url_s3": "endpoint",
        "anon": "skip_signature", "requester_pays": "request_payer",
        "sts_endpoint": "endpoint_url_sts",
    },
    "gs": {
        "service_account_path": "service_account", "storage_token": "bearer_token",
        "endpoint_url": "base_url",
    },
    "az": {
        "access_key": "account_key", "master_key": "account_key", "sas_token": "sas_key",
        "authority_id": "tenant_id", "token": "bearer_token", "identity_endpoint": "msi_endpoint",
    },
}  # fmt: skip
# Settings of the HTTP client and of retries, for every service.
_CLIENT = frozenset({
    "allow_http", "allow_invalid_certificates", _CONNECT_TIMEOUT, "default_content_type",
    "default_headers", "http1_only", "http2_keep_alive_interval", "http2_keep_alive_timeout",
    "http2_keep_alive_while_idle", "http2_only", "pool_idle_timeout", "pool_max_idle_per_host",
    "proxy_ca_certificate", "proxy_excludes", "proxy_url", "randomize_addresses", "read_timeout",
    "root_certificate", "timeout", "user_agent",
})  # fmt: skip
_DURATIONS = frozenset({
    _CONNECT_TIMEOUT, "http2_keep_alive_interval", "http2_keep_alive_timeout", "pool_idle_timeout",
    "read_timeout", "timeout",
})  # fmt: skip
_RETRY = {"client_max_retries": "max_retries", "client_retry_timeout": "retry_timeout"}
# What changes nothing here: file objects, event loops and caches of fsspec; retries of downloads,
# refreshing of credentials, and conditional requests, which are always used.
_WITHOUT_EFFECT = frozenset({
    "asynchronous", "batch_size", "block_size", "blocksize", "cache_regions", "conditional_put",
    "consistency", "copy_if_not_exists", "default_block_size", "default_cache_type",
    "default_fill_cache", "disable_bulk_delete", "dircache", "download_retry_count",
    "expires_at_millis", "fixed_upload_size", "listings_expiry_time", "local_expiry_check",
    "loop", "max_concurrency", "max_paths", "project", "refresh_offset_millis",
    "skip_instance_cache", "use_listings_cache",
})  # fmt: skip
# Arguments that only the fsspec driver understands.
_FSSPEC_ONLY = {
    "s3": frozenset({"s3_additional_kwargs", "session", "version_aware"}),
    "gs": frozenset({
        "access", "cache_timeout", "check_connection", "default_location", "requester_pays",
        "requests_timeout", "secure_serialize", "session_kwargs", "version_aware",
    }),
    "az": frozenset({
        "account_host", "assume_container_exists", "connection_string", "credential",
        "location_mode", "request_session", "socket_timeout", "version_aware",
    }),
}  # fmt: skip
_FLAGS = frozenset({
    "allow_http", "allow_invalid_certificates", "disable_tagging", "http1_only", "http2_only",
    "imdsv1_fallback", "request_payer", "s3_express", "skip_signature", "sse_bucket_key_enabled",
    "unsigned_payload", "use_azure_cli", "use_emulator", "use_fabric_endpoint",
    "virtual_hosted_style_request",
})  # fmt: skip


def translate(scheme: str, options: Mapping[str, Any]) -> Settings:
    """Return the settings that options mean. ``scheme`` is one of ``SERVICES``.

    Raises InvalidInputError, which names an unknown option.
    """
    collected = _Collected(SERVICES[scheme])
    # A name of the service's own drivers wins over the prefixed one, as it does for fsspec.
    for name, value in sorted(options.items(), key=lambda item: not _prefix(collected, item[0])):
        if value is not None and name not in NOT_FOR_DRIVERS:
            _put(collected, name, value)
    if collected.config.get("skip_signature") is False:
        del collected.config["skip_signature"]
    return Settings(
        collected.service,
        collected.config,
        collected.client,
        retry=collected.retry,
        needs_fsspec=collected.needs_fsspec,
        profile=collected.profile,
        only_given=is_true(options.get(ONLY_GIVEN, False)),
    )


def setting_of(scheme: str, name: str) -> str:
    """Return the setting that the name of an option means, in any of its spellings."""
    service = SERVICES[scheme]
    lower = name.lower()
    prefix = next((text for text in _PREFIXES[service] if lower.startswith(text)), "")
    plain = lower[len(prefix) :]
    return _ALIASES[service].get(plain, plain)


class _Collected:
    """Settings while the options are read one by one."""

    def __init__(self, service: str) -> None:
        self.service = service
        self.config: dict[str, Any] = {}
        self.client: dict[str, Any] = {}
        self.retry: dict[str, Any] = {}
        self.needs_fsspec = ""
        self.profile = ""


def _prefix(collected: _Collected, name: str) -> str:
    lower = name.lower()
    return next((prefix for prefix in _PREFIXES[collected.service] if lower.startswith(prefix)), "")


def _put(collected: _Collected, name: str, value: Any) -> None:
    service = collected.service
    lower = name.lower()
    plain = lower[len(_prefix(collected, name)) :]
    setting = _ALIASES[service].get(plain, plain)
    if service == "s3" and lower in ("client_kwargs", "config_kwargs"):
        _put_nested(collected, lower, value)
    elif service == "s3" and plain == "profile":
        collected.profile = str(value)
    elif service == "s3" and lower == "use_ssl":
        if not is_true(value):
            collected.needs_fsspec = name
    elif service == "gs" and lower == "token":
        _put_google_token(collected, value)
    elif service == "az" and lower == "anon":
        if is_true(value):
            collected.config["skip_signature"] = True
        else:  # adlfs asks azure-identity for credentials
            collected.needs_fsspec = name
    elif service == "az" and lower == "connection_string":
        collected.needs_fsspec = name
    elif setting in _CONFIG[service]:
        collected.config[setting] = _value(collected, name, setting, value)
    elif plain in _CLIENT:
        collected.client[plain] = _value(collected, name, plain, value)
    elif lower in _RETRY:
        _put_retry(collected, lower, value)
    elif plain in _FSSPEC_ONLY[service]:
        collected.needs_fsspec = name
    elif plain not in _WITHOUT_EFFECT:
        raise _unknown(collected, name)


def _put_nested(collected: _Collected, name: str, value: Any) -> None:
    """Take over s3fs's arguments of boto's client (``client_kwargs``) and its configuration."""
    if not isinstance(value, Mapping):
        collected.needs_fsspec = name
        return
    for inner, inner_value in value.items():
        style = inner_value.get("addressing_style") if isinstance(inner_value, Mapping) else None
        attempts = inner_value.get("max_attempts") if isinstance(inner_value, Mapping) else None
        if name == "client_kwargs" and inner in (
            "region_name", "endpoint_url", "aws_access_key_id", "aws_secret_access_key",
            "aws_session_token",
        ):  # fmt: skip
            _put(collected, inner, inner_value)
        elif name == "config_kwargs" and inner in (_CONNECT_TIMEOUT, "read_timeout"):
            collected.client[inner] = _duration(inner_value)
        elif inner == "s3" and inner_value == {"addressing_style": style}:
            if style == "virtual":  # boto puts the bucket into the address, obstore does not
                collected.needs_fsspec = f"{name}.s3.addressing_style"
        elif (
            inner == "retries"
            and attempts is not None
            and set(inner_value) <= {"max_attempts", "mode"}
        ):
            collected.retry["max_retries"] = int(attempts)
        elif inner not in ("max_pool_connections", "tcp_keepalive"):
            collected.needs_fsspec = f"{name}.{inner}"


def _put_google_token(collected: _Collected, value: Any) -> None:
    """Take over gcsfs's ``token``: a way to find credentials, a file, or what it holds."""
    if value == "anon":
        collected.config["skip_signature"] = True
    elif isinstance(value, Mapping) and value.get("type") == "service_account":
        collected.config["service_account_key"] = json.dumps(dict(value))
    elif isinstance(value, str) and value.endswith(".json"):
        collected.config["application_credentials"] = value
    elif value not in ("google_default", "cloud"):
        collected.needs_fsspec = "token"


def _put_retry(collected: _Collected, name: str, value: Any) -> None:
    from datetime import timedelta

    try:
        number = float(str(value).strip().removesuffix("s"))
        if name == "client_max_retries":
            collected.retry[_RETRY[name]] = int(number)
        else:
            collected.retry[_RETRY[name]] = timedelta(seconds=number)
    except (ValueError, OverflowError) as error:
        raise InvalidInputError(
            f"storage option {name!r} is a number of {'retries' if 'max' in name else 'seconds'}, "
            f"not {value!r}"
        ) from error


def _value(collected: _Collected, name: str, setting: str, value: Any) -> Any:
    if setting == "request_payer" and str(value).lower() == "requester":
        return True
    if setting in _FLAGS:
        return is_true(value)
    if setting in _DURATIONS:
        return _duration(value)
    if setting == "default_headers" and isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (str, int, float)):
        return str(value)
    collected.needs_fsspec = name
    return value


def _duration(value: Any) -> str:
    """Return a time as obstore reads it; a number alone counts seconds."""
    text = str(value).strip()
    return f"{text}s" if text.replace(".", "", 1).isdigit() else text


def _unknown(collected: _Collected, name: str) -> InvalidInputError:
    service = collected.service
    names = {*_CONFIG[service], *_ALIASES[service], *_CLIENT, *_RETRY, *_FSSPEC_ONLY[service]}
    names |= {prefix + setting for prefix in _PREFIXES[service] for setting in _CONFIG[service]}
    near = difflib.get_close_matches(name.lower(), sorted(names), 1)
    advice = f"did you mean {near[0]!r}?" if near else "remove it"
    return InvalidInputError(f"storage option {name!r} is not known for {service}://; {advice}")
