"""Tasks of a coding agent, replayed through the shell alone; wrong transcripts are refused."""

import shutil
from pathlib import Path

import pytest

from tests.skill.shell import Projects, Step, list_changed, read_protected, run
from tests.skill.transcripts import FORBIDDEN, Task, Transcript, judge, make_wrong, read_tasks

TASKS = read_tasks()
#: What the wrong transcripts of all tasks break together.
KINDS = {*FORBIDDEN, "changed", "asked again", "lacks", "does not say", "says ", "number "}


def play(task: Task, root: Path) -> Transcript:
    """What the scripted agent does in a project, and says."""
    assert all((root / name).exists() for name in task.files)
    before = read_protected(root)
    steps = tuple(run(command, root) for command in task.script)
    return Transcript(steps, task.answer, tuple(list_changed(before, read_protected(root))))


@pytest.mark.parametrize("name", TASKS)
def test_the_scripted_agent_does_the_task_and_wrong_ones_are_refused(
    name: str, projects: Projects, tmp_path: Path
) -> None:
    task = TASKS[name]
    right = play(task, projects.copy(task.given, tmp_path))
    assert judge(task, right) == [], right
    for wrong in task.wrong:
        complaints = judge(task, make_wrong(right, wrong))
        assert any(wrong.breaks in each for each in complaints), (wrong.why, complaints)


def test_there_are_ten_tasks_and_every_rule_is_broken_by_a_wrong_transcript() -> None:
    assert len(TASKS) == 10
    broken = [wrong.breaks for task in TASKS.values() for wrong in task.wrong]
    assert {kind for kind in KINDS if not any(each.startswith(kind) for each in broken)} == set()


#: Adds a line to a ledger.
GROW = "echo '{}' >> datasets/mine/looks.jsonl"


@pytest.mark.parametrize(
    "command",
    [
        "sed -i 1d qrels.txt",
        "rm datasets/mine/queries.jsonl",
        f"{GROW} && sed -i 1d datasets/mine/looks.jsonl",
    ],
)
def test_a_file_that_an_agent_changed_is_noticed_whatever_its_command(
    command: str, projects: Projects, tmp_path: Path
) -> None:
    root = projects.copy((), tmp_path)
    place = root / "datasets" / "mine"
    place.mkdir(parents=True)
    shutil.copy(root / "queries.jsonl", place)
    (place / "looks.jsonl").write_text('{"look": 1}\n', encoding="utf-8")
    before = read_protected(root)
    assert run(GROW, root) == Step(GROW)
    assert list_changed(before, read_protected(root)) == []  # a ledger grows
    assert run(command, root).code == 0
    assert len(list_changed(before, read_protected(root))) == 1
