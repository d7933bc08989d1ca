"""The example of CONTRIBUTING.md is as our linters want it, and works."""

from __future__ import annotations

import re
import subprocess
import sys
from argparse import Namespace

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.magic.context import MagicContext
from tests.house.source import ROOT

((PATH, CODE),) = re.findall(
    r"```python\n# (lance_nb/\S+)\n(.*?)```",
    (ROOT / "CONTRIBUTING.md").read_text("utf-8"),
    re.DOTALL,
)


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]], ids=lambda words: words[0])
def test_ruff_accepts_the_example(command: list[str]) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "ruff", *command, "--stdin-filename", PATH, "-"],
        cwd=ROOT, input=CODE, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_example_counts_rows(tmp_path) -> None:
    module: dict[str, object] = {}
    exec(compile(CODE, PATH, "exec"), module)  # noqa: S102 - our own document
    uri = str(tmp_path / "ds.lance")
    lance_nb.write_dataset(pa.table({"id": [1, 2, 3]}), uri).delete("id = 2")
    context = MagicContext()
    context.open(uri)
    ((verb,),) = (module["VERBS"],)
    assert verb.run(context, Namespace(ref=None)).value == 2
    assert verb.run(context, Namespace(ref="1")).value == 3
