from __future__ import annotations

import pickle

import pytest

import lance_nb
from lance_nb import Compaction, CompactionPlan, CompactionTask, RewriteResult
from lance_nb.errors import InvalidInputError, RetryableCommitConflictError

OPTIONS = {"target_rows_per_fragment": 4}


def pickled(value):
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - our own


@pytest.fixture
def made(make):
    """Ten rows in five fragments."""
    return make(max_rows_per_file=2)


def test_plan_run_and_commit_by_themselves(made, rows):
    plan = Compaction.plan(made, OPTIONS)
    assert (plan.read_version, plan.num_tasks()) == (1, 2)
    assert [len(task.fragments) for task in plan.tasks] == [2, 3]
    results = [task.execute(made) for task in plan.tasks]
    assert made.version == 1
    done = Compaction.commit(made, results)
    assert (done.fragments_removed, done.fragments_added) == (5, 2)
    assert made.version == 2
    assert made.to_table().equals(rows)


def test_tasks_and_results_travel(made, rows, uri):
    plan = Compaction.plan(made, OPTIONS)
    assert CompactionPlan.from_json(plan.json()) == pickled(plan) == plan
    results = []
    for task in plan.tasks:
        assert CompactionTask.from_json(task.json()) == task
        result = pickled(task).execute(lance_nb.dataset(uri))
        assert RewriteResult.from_json(result.json()) == result
        assert result.original_fragments == task.fragments
        results.append(pickled(result))
    Compaction.commit(made, results)
    assert made.to_table().equals(rows)


def test_a_part_of_the_results_can_be_committed_beside_what_others_do(made, rows, uri):
    plan = made.optimize.plan_compaction(**OPTIONS)
    first, second = (task.execute(made) for task in plan.tasks)
    lance_nb.dataset(uri).insert(rows)
    made.optimize.commit_compaction([first])
    assert (made.version, made.count_rows()) == (3, 20)
    lance_nb.dataset(uri).delete("id = 9")
    with pytest.raises(RetryableCommitConflictError, match="changed since"):
        made.optimize.commit_compaction([second])
    with pytest.raises(RetryableCommitConflictError, match="removed since"):
        made.optimize.commit_compaction([first])
    assert lance_nb.dataset(uri).version == 4


def test_a_task_of_an_older_version_reads_that_version(made):
    (task, *_) = Compaction.plan(made, OPTIONS).tasks
    made.delete("id = 0")
    assert task.execute(made).new_fragments[0].physical_rows == 4


def test_nothing_to_commit_makes_no_version(made):
    assert Compaction.commit(made, []).fragments_added == 0
    assert made.version == 1


def test_what_is_not_of_this_dataset_is_refused(made, rows):
    other = lance_nb.write_dataset(rows, f"{made.uri}.other", max_rows_per_file=2)
    (task, *_) = Compaction.plan(other, OPTIONS).tasks
    with pytest.raises(InvalidInputError, match="not one of"):
        task.execute(made)
    (mine, *_) = Compaction.plan(made, OPTIONS).tasks
    result = mine.execute(made)
    with pytest.raises(InvalidInputError, match="two of the results"):
        Compaction.commit(made, [result, result])
    with pytest.raises(InvalidInputError, match="nonsense"):
        Compaction.plan(made, {"nonsense": 1})
    for text in ("", "[]", "{}", '{"task": 1, "read_version": 1, "options": {}}'):
        with pytest.raises(InvalidInputError):
            CompactionTask.from_json(text)


def test_everything_at_once_and_with_progress(made):
    seen = []
    (task, *_) = Compaction.plan(made, OPTIONS).tasks
    task.execute(made, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (4, 4)
    assert Compaction.execute(made, OPTIONS).fragments_added == 2


def test_defaults_stand_in_the_configuration(made):
    made.update_config({"lance.compaction.target_rows_per_fragment": "4"})
    assert made.optimize.plan_compaction().num_tasks() == 2
