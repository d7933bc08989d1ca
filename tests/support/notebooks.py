"""The notebooks: executed on a clean kernel in a folder of their own, and saved with their outputs.

``python -m tests.support.notebooks [NUMBER ...]`` executes them and saves what came out; ``make
notebooks`` does. What is saved has no live widgets, only their pictures, so that it reads the same
on GitHub, in an e-mail and in a notebook that is opened without a kernel.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from lance_nb.magic.demo import demo_dataset
from tests.house.source import ROOT

FOLDER = ROOT / "notebooks"
NOTEBOOKS = tuple(sorted(FOLDER.glob("[0-9][0-9]_*.ipynb")))
WIDGET = "application/vnd.jupyter.widget-view+json"
TIMEOUT_S = 400
HIDDEN = "…/notebooks"
_KINDS = {"stream": "words", "display_data": "value", "execute_result": "value", "error": "error"}
# Found by every Python below, and refuses whatever is not this machine.
OFFLINE = """
import socket

class _Offline(socket.socket):
    def connect(self, address):
        is_network = self.family in (socket.AF_INET, socket.AF_INET6)
        if is_network and address[0] not in ("127.0.0.1", "::1"):
            raise OSError(f"the notebooks run offline: {address}")
        return super().connect(address)

socket.socket = _Offline
"""


def execute(path: Path, folder: Path, environment: Mapping[str, str]) -> nbformat.NotebookNode:
    """Run all cells of a copy of a notebook in ``folder``; an error that is not shown raises."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    client = NotebookClient(
        notebook,
        timeout=TIMEOUT_S,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        store_widget_state=False,
    )
    return client.execute(env=dict(environment))


def offline_without_java(folder: Path) -> dict[str, str]:
    """Return an environment in which neither the network nor Java can be reached."""
    (folder / "sitecustomize.py").write_text(OFFLINE)
    own = {
        "PATH": str(Path(sys.executable).parent),
        "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]),
        "IPYTHONDIR": str(folder / "ipython"),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }
    return {**{name: one for name, one in os.environ.items() if name != "JAVA_HOME"}, **own}


def as_saved(notebook: nbformat.NotebookNode, folder: Path) -> nbformat.NotebookNode:
    """Return the notebook as the repository keeps it; the name of ``folder`` is hidden."""
    saved = nbformat.reads(nbformat.writes(notebook).replace(str(folder), HIDDEN), as_version=4)
    saved.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in saved.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = [one for one in cell.outputs if _stays(one)]
            for output in cell.outputs:
                output.pop("transient", None)
    return saved


def _stays(output: Any) -> bool:
    """Leave out live widgets, and what Java says about itself."""
    return WIDGET not in output.get("data", {}) and output.get("name") != "stderr"


def kinds(notebook: nbformat.NotebookNode) -> list[list[str]]:
    """Say of every code cell what kinds of output it has: words, a value that is shown, an error.

    How a value shows itself may change, and does not make a saved notebook stale.
    """
    return [
        sorted({_KINDS[one.output_type] for one in cell.outputs})
        for cell in notebook.cells if cell.cell_type == "code"
    ]  # fmt: skip


def text_of(notebook: nbformat.NotebookNode) -> str:
    """Return everything that the outputs say, as one text."""
    outputs = [one for cell in notebook.cells for one in cell.get("outputs", ())]
    return "\n".join(str(_said(one)) for one in outputs)


def _said(output: Any) -> Any:
    return output.get("text") or output.get("data") or output.get("traceback")


def save(paths: Iterable[Path]) -> None:
    """Execute notebooks and save them with their outputs."""
    with tempfile.TemporaryDirectory(prefix="notebooks-") as name:
        folder = Path(name)
        demo_dataset(folder / "data" / "demo.lance")
        # Spark, if there is one, shows what it does; everything else as in CI.
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(folder / "ipython")}
        for path in paths:
            nbformat.write(as_saved(execute(path, folder, environment), folder), path)
            print(path.name)


if __name__ == "__main__":
    wanted = tuple(sys.argv[1:])
    save(one for one in NOTEBOOKS if not wanted or one.name.startswith(wanted))
