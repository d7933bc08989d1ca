"""The README's Binder badges, made from the address of the repository in pyproject.toml.

Layout of the links: ``https://mybinder.org/v2/gh/OWNER/NAME/HEAD?urlpath=...`` for GitHub, and
``/v2/git/ADDRESS/HEAD`` for any other host.
Source: mybinder.org, "Using Git repositories other than GitHub".
"""

from __future__ import annotations

import tomllib
from urllib.parse import quote

from tests.house.source import ROOT

BINDER = "https://mybinder.org"
GITHUB = "https://github.com/"
TOUR = "lab/tree/notebooks/01_tour.ipynb"
EXPLORER = "voila/render/notebooks/explorer.ipynb"


def repository() -> str:
    """Return the address that pyproject.toml gives."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return str(project["urls"]["Repository"]).rstrip("/")


def badges(address: str) -> str:
    """Return the Markdown of both badges."""
    if address.startswith(GITHUB):
        place = f"gh/{address.removeprefix(GITHUB)}"
    else:
        place = f"git/{quote(address, safe='')}"
    link = f"{BINDER}/v2/{place}/HEAD?urlpath="
    return (
        f"[![Tour in JupyterLab]({BINDER}/badge_logo.svg)]({link}{TOUR})\n"
        "[![Explorer in Voila](https://img.shields.io/badge/explorer-Voila-579aca)]"
        f"({link}{EXPLORER})"
    )
