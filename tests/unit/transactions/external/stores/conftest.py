"""Servers of the manifest stores; each starts once, when a test asks for it."""

from __future__ import annotations

from tests.interop.remote.conftest import moto, postgres_port, redis_port, table  # noqa: F401
