"""Settings for the whole test run: a clean environment and one Hypothesis profile."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# No deadline: two busy cores make a slow example, not a bug. A failure prints how to repeat it.
settings.register_profile(
    "house", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("house")

# A developer's credentials and proxies must neither help a test nor be used by one.
SCRUBBED_PREFIXES = ("AWS_", "AZURE_", "GOOGLE_", "LANCE_")


@pytest.fixture(autouse=True, scope="session")
def clean_environment() -> Iterator[None]:
    """Hide what would make a test depend on whose machine it runs on."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(SCRUBBED_PREFIXES):
                patch.delenv(name)
        yield
