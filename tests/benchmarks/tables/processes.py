"""Whole processes: import an engine, open a dataset, use one verb; the same lines for both engines.

The table has the time of the process, its start included, and its peak of memory. As first call
stands what the dataset and the verb took beyond the import.

pylance has no verb for a diff of two versions, so none is measured.
"""

from __future__ import annotations

from tests.benchmarks.tables.operations import HEAD, POINT, Operation

UPSERT = "when_matched_update_all().when_not_matched_insert_all().execute(rows)"
# Title, dataset, line. What prints nothing changes a copy of its dataset, by ten ``rows`` perhaps.
VERBS = {
    "head": (f"head({HEAD})", "rows", f"print(dataset.head({HEAD}).num_rows)"),
    "take": ("take 3 rows", "rows", "print(dataset.take([3, 17, 10_000]).num_rows)"),
    "filter": (f"count {POINT}", "rows", f'print(dataset.count_rows(filter="{POINT}"))'),
    "versions": ("list versions", "tiny", "print(len(dataset.versions()))"),
    "append": ("append 10 rows", "small", "engine.write_dataset(rows, uri, mode='append')"),
    "update": ("update 10 rows", "small", "dataset.update({'x': 'x + 1'})"),
    "delete": ("delete 3 of 10 rows", "small", "dataset.delete('x > 6')"),
    "upsert": ("upsert 10 rows", "small", f"dataset.merge_insert('x').{UPSERT}"),
    "tag": ("create a tag", "small", "dataset.tags.create('new', 1)"),
    "columns": ("add a column", "small", "dataset.add_columns({'y': 'x * 2'})"),
    "compact": ("compact", "tiny", "dataset.optimize.compact_files()"),
}
PROCESSES = tuple(
    Operation(
        f"process-{verb}",
        lambda _, title=title: f"process: import, open, {title}",
        1.0,
        None,
        reads=data if line.startswith("print") else "",
        copied=None if line.startswith("print") else data,
        source="" if line.startswith("print") else "small.arrow",
        script=line,
    )
    for verb, (title, data, line) in VERBS.items()
)
