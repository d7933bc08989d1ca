"""Check a location and storage options that a server named before anything is opened with them.

A catalog says where a table is. What it may name is what a catalog needs and nothing more:

* a folder in a bucket or container of an object store; a local folder only from a server on this
  machine. Other schemes of fsspec open files, chain file systems (``::``) or run templates.
* the options in ``_OPTIONS``, as short texts. A region and an account become part of a host name,
  so that they are limited to what those are made of.
* an endpoint of S3 that is not this machine, a link-local address or, unless the server is in a
  private network itself, one of a private network.

Who names the endpoint receives what requests are signed with. A location whose endpoint is the
server's therefore gets no credentials but the server's own: those of the caller are left out, and
``ONLY_GIVEN`` in the options keeps the driver from those of the environment. Without credentials
of the server, requests are not signed.

Limits: the host of an endpoint is resolved once, here; a name whose address changes afterwards is
not seen. Options that hold the name of a local file are not among those that a server may name.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from lance_nb.errors import NotSupportedError
from lance_nb.storage.fsspec_options import ONLY_GIVEN
from lance_nb.storage.object_store_options import SERVICES, setting_of
from lance_nb.storage.registry import StorageOptions, split_uri

_OPTIONS = {
    "s3": frozenset({
        "access_key_id", "secret_access_key", "session_token", "region", "endpoint", "allow_http",
        "skip_signature", "virtual_hosted_style_request", "expires_at_millis",
    }),
    "gs": frozenset({"bearer_token", "skip_signature", "expires_at_millis"}),
    "az": frozenset({
        "account_name", "account_key", "sas_key", "bearer_token", "skip_signature",
        "expires_at_millis",
    }),
}  # fmt: skip
_VALUES = {
    "region": re.compile(r"[a-z0-9-]{1,40}"),
    "account_name": re.compile(r"[a-z0-9]{3,24}"),
}
_TEXT = re.compile(r"[\x21-\x7e]{0,16384}")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")
_CONTAINER = re.compile(
    r"[A-Za-z0-9$][A-Za-z0-9-]{0,62}@[a-z0-9]{3,24}"
    r"\.(dfs|blob)\.(core\.windows\.net|fabric\.microsoft\.com)"
)
_LOCATION = re.compile(r"([A-Za-z0-9+.-]+)://([^/]*)")
_S3_CREDENTIALS = frozenset({"access_key_id", "secret_access_key", "session_token"})
_PUBLIC, _PRIVATE, _HERE = 0, 1, 2


def checked_location(
    uri: str,
    named: Mapping[Any, Any],
    caller_options: StorageOptions | None,
    server: str,
) -> tuple[str, StorageOptions | None]:
    """Return the URI and the options to open what ``server`` named.

    Args:
        uri: the location that the server named.
        named: the options that the server named.
        caller_options: the caller's options, which come first.
        server: URL of the server.

    Raises NotSupportedError for a location or an option that a server may not name,
    InvalidInputError for what is no URI.
    """
    is_here = _reach(urlsplit(server).hostname or "", resolve=False) == _HERE
    location = _LOCATION.match(uri)
    scheme = location.group(1).lower() if location else ""
    if scheme not in SERVICES or "::" in uri:
        if "::" in uri or split_uri(uri)[0] != "file":
            raise _refused(
                server, f"names a location {uri!r}; expected one of {', '.join(SERVICES)}"
            )
        if not is_here:
            raise _refused(
                server, "names a local folder, which only a server on this machine can know"
            )
        if named:
            raise _refused(server, "names storage options for a local folder, which has none")
        return uri, caller_options
    service = SERVICES[scheme]
    bucket = location.group(2) if location else ""
    if not (_BUCKET.fullmatch(bucket) or (service == "az" and _CONTAINER.fullmatch(bucket))):
        raise _refused(server, "names a location whose bucket or container is no name of one")
    options = _checked_options(scheme, named, server)
    return uri, _joined(scheme, options, caller_options or {}, server)


def _checked_options(scheme: str, named: Mapping[Any, Any], server: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for name, value in named.items():
        setting = setting_of(scheme, str(name))
        if setting not in _OPTIONS[SERVICES[scheme]]:
            raise _refused(server, f"names the storage option {str(name)[:80]!r}")
        pattern = _VALUES.get(setting, _TEXT)
        if not isinstance(value, (str, int, float)) or not pattern.fullmatch(str(value)):
            raise _refused(server, f"names a value of the storage option {name!r} that is none")
        options[str(name)] = value
    return options


def _joined(
    scheme: str, options: dict[str, Any], caller_options: StorageOptions, server: str
) -> StorageOptions | None:
    """Join the server's options and the caller's, which come first."""
    own = {setting_of(scheme, name) for name in caller_options}
    if "client_kwargs" in own or "endpoint" in own:  # the caller says where requests go
        options = _without(scheme, options, frozenset({"endpoint", "allow_http"}))
    endpoint = next(
        (v for name, v in options.items() if setting_of(scheme, name) == "endpoint"), None
    )
    if endpoint is None:
        return {**_without(scheme, options, frozenset(own)), **caller_options} or None
    _check_endpoint(str(endpoint), server)
    settings = {setting_of(scheme, name) for name, value in options.items() if value}
    if not {"access_key_id", "secret_access_key"} <= settings:
        options = _without(scheme, options, _S3_CREDENTIALS | {"skip_signature"})
        options["skip_signature"] = True
    # Of the caller's options go with it only what says nothing about the caller.
    region_option = {
        name: value
        for name, value in caller_options.items()
        if setting_of(scheme, name) == "region"
    }
    return {
        **_without(scheme, options, frozenset({"region"} & own)),
        **region_option,
        ONLY_GIVEN: True,
    }


def _without(scheme: str, options: Mapping[str, Any], settings: frozenset[str]) -> dict[str, Any]:
    return {k: v for k, v in options.items() if setting_of(scheme, k) not in settings}


def _check_endpoint(endpoint: str, server: str) -> None:
    try:
        parts = urlsplit(endpoint)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        parts, host, port = urlsplit(""), "", None
    has_more = parts.username or parts.password or parts.query or parts.fragment or port == 0
    if parts.scheme not in ("http", "https") or not host or has_more:
        raise _refused(server, "names an endpoint that is no http(s)://HOST[:PORT]")
    limit = _reach(urlsplit(server).hostname or "", resolve=False)
    if limit == _HERE:
        return
    if _reach(host) > max(limit, _reach(urlsplit(server).hostname or "")) or _reach(host) == _HERE:
        raise _refused(server, "names an endpoint on this machine or in a private network")


def _reach(host: str, *, resolve: bool = True) -> int:
    """Tell how near a host is: on this machine or its link, in a private network, or elsewhere."""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return _HERE
    addresses = [name]
    if resolve:
        try:
            addresses = [str(entry[4][0]) for entry in socket.getaddrinfo(name, None)]
        except (OSError, UnicodeError):
            return _PUBLIC  # what has no address cannot be reached
    return max((_reach_of_address(address) for address in addresses), default=_PUBLIC)


def _reach_of_address(text: str) -> int:
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return _PUBLIC
    address = getattr(address, "ipv4_mapped", None) or address
    if address.is_loopback or address.is_link_local or address.is_unspecified:
        return _HERE
    return _PUBLIC if address.is_global else _PRIVATE


def _refused(server: str, problem: str) -> NotSupportedError:
    return NotSupportedError(
        f"{server} {problem}; open the table by its own URI if you trust the place"
    )
