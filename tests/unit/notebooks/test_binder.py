"""The folder that Binder builds from; build_as_binder.sh builds it for real."""

from __future__ import annotations

import os
import subprocess
import tomllib

from packaging.requirements import Requirement

from tests.house.source import ROOT

BINDER = ROOT / "binder"
EXTRAS = ("lab", "sql", "spark")


def wanted() -> dict[str, Requirement]:
    """Everything that the demo needs, by name, as pyproject.toml says it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    requirements = {line: Requirement(line) for line in project["dependencies"]}
    extras = list(EXTRAS)
    for extra in extras:  # grows: an extra may name extras of this package
        for line in project["optional-dependencies"][extra]:
            requirement = Requirement(line)
            if requirement.name == "lance-nb":
                extras += sorted(requirement.extras.difference(extras))
            else:
                requirements[line] = requirement
    return {requirement.name: requirement for requirement in requirements.values()}


def pinned() -> dict[str, str]:
    lines = (BINDER / "requirements.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def test_every_dependency_is_pinned_within_what_we_allow() -> None:
    versions = pinned()
    for name, requirement in wanted().items():
        assert name in versions, f"binder/requirements.txt does not pin {name}"
        assert requirement.specifier.contains(versions[name]), (name, versions[name])


def test_nothing_else_is_installed_but_voila() -> None:
    assert set(pinned()) - set(wanted()) == {"voila"}


def test_the_build_script_can_be_run() -> None:
    assert os.access(BINDER / "postBuild", os.X_OK)
    subprocess.run(["bash", "-n", BINDER / "postBuild"], check=True)
    assert (BINDER / "runtime.txt").read_text().strip() == "python-3.11"
    assert "jre" in (BINDER / "apt.txt").read_text()
