"""What readers see of a dataset: ours, and pylance in a process of its own.

pylance is not imported here: its threads would not survive the forks of ``kills``.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

import lance_nb
from lance_nb.format.layout import QUARANTINE
from lance_nb.session.session import open_session
from lance_nb.table import refs
from tests.faults.verbs.verb import AT_ONCE, OPTIONS, Verb, opened, rows
from tests.house.source import ROOT

CLOSING_S = 60
SHORT = 20  # characters at most of a manifest's name in the first naming scheme
NOTHING: dict[str, Any] = {}
State = dict[str, Any]


def look(path: str) -> State:
    """Return what a reader sees: every version of every branch, tags, settings of the newest."""
    root = open_session(path, OPTIONS).root
    names = [name for name in root.list_names("_versions") if name.endswith(".manifest")]
    if not names:
        return NOTHING
    main = opened(path)
    branches = {}
    for name in refs.branch_names(root):
        inside = root.child(f"tree/{name}").list_names("_versions")
        whole = any(file.endswith(".manifest") for file in inside)
        branches[name] = _line(main.checkout_version((name, None))) if whole else "unfinished"
    return {
        "main": _line(main),
        "branches": branches,
        "branch_metadata": {
            name: record["metadata"]
            for name, record in main.branches.list().items()
            if branches[name] != "unfinished"
        },
        "detached": sum(name.startswith("d") for name in names),
        "long_names": sorted({len(name) > SHORT for name in names if name[0] != "d"}),
        "tags": {
            name: [record["branch"], record["version"], record["metadata"]]
            for name, record in main.tags.list().items()
        },
    }


def _line(dataset: Any) -> dict[str, Any]:
    newest = dataset.to_table()
    numbers = dataset.version_numbers()
    return {
        "version": dataset.version,
        "versions": numbers,
        "counts": [dataset.checkout_version(n).to_table().num_rows for n in numbers],
        "schema": str(newest.schema),
        "rows": newest.to_pylist(),
        "config": dataset.config(),
        "metadata": dict(dataset.metadata),
        "indices": sorted(index["name"] for index in dataset.list_indices()),
        "bases": sorted(str(base.name) for base in dataset.base_paths().values()),
    }


def is_between(verb: Verb, state: State, before: State, after: State) -> bool:
    """Tell whether a state may be seen of a verb that takes several commits.

    "same rows": the newest version shows what the one before the verb shows, under another number;
    "versions": some of the versions are gone that all go; "cleaned": the commit has landed, and
    some of the versions are gone that its clean-up takes; "unfinished": a branch has its record and
    no version, or the other way round; "tag": only a tag is there that keeps files of the verb.
    """
    if not state or not before:
        return False
    main, old = state["main"], before["main"]
    if "same rows" in verb.between:
        return _without_numbers(main) == _without_numbers(old)
    if "cleaned" in verb.between:
        return has_landed(verb, state, after)
    if "versions" in verb.between and verb.on == "dev":
        main, old = state["branches"]["dev"], before["branches"]["dev"]
        kept, last = set(main["versions"]), set(after["branches"]["dev"]["versions"])
        return main["rows"] == old["rows"] and last <= kept <= set(old["versions"])
    if "versions" in verb.between:
        kept = set(main["versions"])
        last = set(after["main"]["versions"])
        return main["rows"] == old["rows"] and last <= kept <= set(old["versions"])
    if "unfinished" in verb.between:
        return main == old and state["tags"] == before["tags"]
    if "tag" in verb.between:
        return main == old and state["branches"] == before["branches"]
    return False


def has_landed(verb: Verb, state: State, after: State) -> bool:
    """Tell whether the commit of a verb is seen whose clean-up has not ended."""
    if "cleaned" not in verb.between or not state:
        return False
    kept, last = set(state["main"]["versions"]), set(after["main"]["versions"])
    return is_same(state, after) and last <= kept


def _without_numbers(line: dict[str, Any]) -> dict[str, Any]:
    return {
        key: value for key, value in line.items() if key not in ("version", "versions", "counts")
    }


def is_same(left: State, right: State) -> bool:
    """Compare states, the numbers of versions aside: a repetition may have taken other ones."""
    if not left or not right:
        return left == right
    return unnumbered(left) == unnumbered(right)


def unnumbered(state: State) -> State:
    """Return a state without the numbers of versions."""
    branches = state["branches"].items()
    return {
        "main": _without_numbers(state["main"]),
        "branches": {
            name: line if isinstance(line, str) else _without_numbers(line)
            for name, line in branches
        },
        "tags": state["tags"],
        "branch_metadata": state["branch_metadata"],
        "detached": state["detached"],
        "long_names": state["long_names"],
    }


def errors_of(path: str) -> list[str]:
    """Return what ``verify`` calls an error."""
    bases = [str(Path(path).parent)]
    report = lance_nb.verify(path, storage_options=OPTIONS, allow_bases=bases)
    return [str(finding) for finding in report.of("error")]


def left_behind(path: str) -> list[str]:
    """Clean the dataset up, every branch of it, and return the files that nobody needs."""
    main = opened(path)
    options: dict[str, Any] = {"delete_unverified": True, "error_if_tagged_old_versions": False}
    for name in (None, *main.branches.names()):
        dataset = main if name is None else main.checkout_version((name, None))
        dataset.cleanup_old_versions(AT_ONCE, **options)
    bases = [str(Path(path).parent)]
    report = lance_nb.verify(path, values=False, storage_options=OPTIONS, allow_bases=bases)
    strays = [
        str(file)
        for file in Path(path).rglob(".tmp*")
        if f"/{QUARANTINE}/" not in str(file)  # moved there by a repair, until somebody removes it
    ]
    return [*report.orphans, *strays]


class Judge:
    """pylance in a process of its own; the answers are those of ``_answer``."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.disk.looking"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    def ask(self, question: str, path: str) -> Any:
        """Send one question about a dataset and wait for the answer. Raises AssertionError."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([question, path]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the process of pylance has ended"
        answer = json.loads(line)
        assert "error" not in answer, f"pylance, asked to {question} {path}: {answer['error']}"
        return answer["answer"]

    def compare(self, path: str, state: State) -> None:
        """Let pylance read what is there. Raises AssertionError when it sees something else."""
        if not state:
            return
        theirs = self.ask("read", path)
        assert theirs["rows"] == state["main"]["rows"], "pylance reads other rows"
        assert theirs["tags"] == sorted(state["tags"]), "pylance finds other tags"
        for name, line in state["branches"].items():
            if line != "unfinished":
                assert theirs["branches"][name] == line["rows"], f"pylance reads others of {name}"

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(CLOSING_S)
        except subprocess.TimeoutExpired:  # the machine is busy, and nothing is asked any more
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def _answer(question: str, path: str) -> Any:
    import lance

    dataset = lance.dataset(path)
    if question == "append":
        row = {name: rows(9999, 1)[name][0].as_py() for name in ("id", "n", "text")}
        made = pa.Table.from_pylist([{"m": 1} | row], dataset.schema)
        lance.write_dataset(made, path, mode="append")
        return lance.dataset(path).count_rows()
    if question == "clean up":
        dataset.cleanup_old_versions(
            AT_ONCE, delete_unverified=True, error_if_tagged_old_versions=False
        )
        for name in dataset.branches.list():
            branch = dataset.checkout_version((name, None))
            branch.cleanup_old_versions(AT_ONCE, error_if_tagged_old_versions=False)
        return None
    if question.endswith(" beside"):
        _commit_beside(lance, dataset, question.split(maxsplit=1)[0])
        dataset = lance.dataset(path)
        return {"version": dataset.version, "rows": dataset.to_table().to_pylist()}
    state = {}
    for name in dataset.branches.list():
        if list(Path(path, "tree", name, "_versions").glob("*.manifest")):
            state[name] = dataset.checkout_version((name, None)).to_table().to_pylist()
    return {
        "rows": dataset.to_table().to_pylist(),
        "tags": sorted(dataset.tags.list()),
        "branches": state,
    }


def _commit_beside(lance: Any, dataset: Any, verb: str) -> None:
    if verb == "append":
        row = {"id": 9000, "n": 1, "m": 1, "text": "beside"}
        lance.write_dataset(pa.Table.from_pylist([row], dataset.schema), dataset, mode="append")
    elif verb == "delete":
        dataset.delete("id = 53")
    elif verb == "update":
        dataset.update({"id": "id + 10000"}, where="id = 52")
    else:
        dataset.update_config({"beside": "1"})


def _main() -> None:
    for line in sys.stdin:
        question, path = json.loads(line)
        try:
            answer = {"answer": _answer(question, path)}
        except Exception as error:  # noqa: BLE001 (whatever it is, the asker reports it)
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    _main()
