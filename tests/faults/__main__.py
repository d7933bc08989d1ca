"""Make faults of one kind happen: ``python -m tests.faults NAME [size] [seed] [options]``.

``python -m tests.faults`` lists the kinds. Every run prints its seeds and ends with 1 if it found
something; ``--keep`` stores the result, of which ``report`` writes the page of the documentation.
"""

from __future__ import annotations

import importlib
import sys

# Name -> module, what it does.
KINDS: dict[str, tuple[str, str]] = {
    "kills": ("disk.kills", "kill writers at every call that changes the disk"),
    "losses": ("disk.losses", "lose what was not synced when the power failed"),
    "beside": ("disk.beside", "kill writers while pylance commits"),
    "cleaned": ("disk.cleaned", "pylance cleans up between any two steps of a change"),
    "stores": ("disk.stores", "kill writers that commit through a manifest store; --kind redis"),
    "replies": ("disk.replies", "each of six errors at every call to the disk; --times 2"),
    "cells": ("memory.cells", "one or two faults at the steps of every change, in memory"),
    "simulate": ("memory.simulation", "seeded histories of writers that meet and fail"),
    "race": ("processes.race", "8 processes, ours and pylance's, commit to one dataset"),
    "spark": ("on_spark.kills:fail", "tasks of jobs on Spark fail, replies to commits are lost"),
    "spark-kills": ("on_spark.kills", "kill workers, executors and drivers of jobs on Spark"),
    "streams": ("on_spark.streams", "offer batches of streams on Spark again"),
    "datasets": ("damage.cases", "damage whole datasets, call every verb"),
    "files": ("damage.files", "damage data files of every version and read them"),
    "indices": ("damage.indices", "damage index files of every kind and search them"),
    "kernels": ("damage.kernels", "hostile input to the compiled loops under AddressSanitizer"),
    "stateful": ("differential.sequences", "long random histories that must never change"),
    "differential": ("differential.run", "random schemas, histories and reads against pylance"),
    "differential-planted": ("differential.planted", "how soon it finds planted defects"),
    "report": ("report", "write the page on reliability from the stored results"),
}


def main(arguments: list[str]) -> int:
    """Run a kind; return its exit code."""
    if not arguments or arguments[0] not in KINDS:
        print(__doc__)
        for name, (_, text) in KINDS.items():
            print(f"  {name:20} {text}")
        return 0 if arguments[:1] in ([], ["--help"], ["-h"]) else 2
    module, _, function = KINDS[arguments[0]][0].partition(":")
    call = getattr(importlib.import_module(f"tests.faults.{module}"), function or "main")
    return int(call(arguments[1:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
