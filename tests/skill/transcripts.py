"""Tasks of an agent, and the judgment on a transcript of its work."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import yaml
from pydantic import Field

from fusion_bench.config.models import StrictModel
from tests.commands import values_at
from tests.skill.shell import Step

TASKS = Path(__file__).parent / "tasks"
#: What breaks a rule of the skill → the words of a task that allow it.
FORBIDDEN = {
    "shows held-out queries": (r"--show-held-out|show_held_out", ""),
    "accepts a baseline": (r"--(update|anchor)\b", "update"),
    "opens or closes a campaign": (r"campaign (open|close)", ""),
    "copies the dataset": (r"\bcp\b.*datasets", ""),
    "replaces foreign files": (r"--force\b", ""),
    "changes the split": (r"split_seed|held_out=|\bsplit=|looks[.=]|groups=none|--seed", ""),
    "changes what decides": (
        r"--set .*\b(measures|alpha|correction|min_gain|max_drop|inconclusive|fell"
        r"|small_changes|unreproduced|lint\.ignore)\b",
        "",
    ),
    "writes what it may only read": (
        r"(>|\b(sed -i|tee|rm|mv|cp|truncate|dd)\b)[^|;&]*"
        r"(qrels|queries|\.trec|baselines|looks|campaigns|dataset\.yaml)",
        "",
    ),
    "drops queries": (r"(head|tail|grep|awk|shuf|sort)\b[^|;&]*(qrels|queries|\.trec)[^|]*>", ""),
}
#: A command of which another setting may not be tried until the answer is a nicer one.
DECIDES = re.compile(r"^fusion-bench tune ")
NUMBER = re.compile(r"(?<![\w.-])[-+]?\d[\d,]*(?:\.\d+)?(?![\w.]*\w)")


class Requirement(StrictModel):
    """What a right transcript holds: a command with its exit code and output, or words.

    Attributes:
        command: Pattern of the command.
        exit: Its exit code.
        shows: Key of its JSON, such as ``checks[].status`` → pattern of one of its values.
        answer: Pattern in what the agent says at the end.
    """

    command: str | None = None
    exit: int = 0
    shows: dict[str, str] = Field(default_factory=dict)
    answer: str | None = None


class Wrong(StrictModel):
    """How a wrong transcript differs from the right one.

    Attributes:
        why: What is wrong.
        breaks: Part of the complaint that the checker has to make.
        without: Pattern of commands that are not there.
        add: Commands that are there too, before the last one.
        changed: Files that were changed by the way.
        answer: What the agent says instead.
    """

    why: str
    breaks: str
    without: str | None = None
    add: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    answer: str | None = None


class Task(StrictModel):
    """A request, the scripted agent that fulfills it, and what tells right from wrong.

    Attributes:
        request: In a user's words.
        files: What the user has.
        given: Commands that were run before the agent came.
        script: What the scripted agent runs, in order.
        answer: What it says at the end.
        allows: Words of :data:`FORBIDDEN` that the request permits.
        must: What a right transcript holds; commands in this order.
        must_not: Patterns that no command of a right transcript has.
        must_not_say: Patterns that the answer must not have.
        wrong: Transcripts that the checker refuses.
    """

    request: str
    files: tuple[str, ...]
    given: tuple[str, ...] = ()
    script: Annotated[tuple[str, ...], Field(min_length=1)]
    answer: str
    allows: tuple[str, ...] = ()
    must: Annotated[tuple[Requirement, ...], Field(min_length=1)]
    must_not: tuple[str, ...] = ()
    must_not_say: tuple[str, ...] = ()
    wrong: Annotated[tuple[Wrong, ...], Field(min_length=1)]


class Transcript(NamedTuple):
    """What an agent did and said.

    Attributes:
        steps: The commands, in order.
        answer: What it said at the end.
        changed: Files that it may only read, and that are not as they were.
    """

    steps: tuple[Step, ...]
    answer: str
    changed: tuple[str, ...] = ()


def read_tasks() -> dict[str, Task]:
    """Name → task."""
    return {
        path.stem: Task.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
        for path in sorted(TASKS.glob("*.yaml"))
    }


def make_wrong(right: Transcript, wrong: Wrong) -> Transcript:
    """The wrong transcript that differs from the right one in this."""
    kept = [
        step
        for step in right.steps
        if not (wrong.without and re.search(wrong.without, step.command))
    ]
    added = [Step(command) for command in wrong.add]
    answer = right.answer if wrong.answer is None else wrong.answer
    return Transcript((*kept[:-1], *added, *kept[-1:]), answer, wrong.changed)


def judge(task: Task, transcript: Transcript) -> list[str]:
    """What is wrong with a transcript; nothing where it is right."""
    return [
        *(f"changed {name}" for name in transcript.changed),
        *_find_forbidden(task, transcript.steps),
        *_find_repeated(transcript.steps),
        *_find_missing(task.must, transcript),
        *(f"says {each}" for each in task.must_not_say if _matches(each, transcript.answer)),
        *(f"number {each} is in no output" for each in _find_unsupported(task, transcript)),
    ]


def _matches(pattern: str, text: str) -> bool:
    return re.search(pattern, " ".join(text.split()), re.IGNORECASE) is not None


def _find_forbidden(task: Task, steps: Sequence[Step]) -> Iterator[str]:
    for step in steps:
        for rule, (pattern, permit) in FORBIDDEN.items():
            if re.search(pattern, step.command) and permit not in task.allows:
                yield f"{rule}: {step.command}"
        for pattern in task.must_not:
            if re.search(pattern, step.command):
                yield f"not to be run: {step.command}"


def _find_repeated(steps: Sequence[Step]) -> Iterator[str]:
    runs = {step.command for step in steps if DECIDES.search(step.command)}
    if len(runs) > 1:
        yield f"asked again with other settings: {len(runs)} times"


def _find_missing(must: Sequence[Requirement], transcript: Transcript) -> Iterator[str]:
    """Requirements that nothing fulfills; each command after that of the one before."""
    steps = iter(transcript.steps)
    for each in must:
        if each.answer is not None and not _matches(each.answer, transcript.answer):
            yield f"does not say {each.answer}"
        if each.command is not None and not any(_fulfills(step, each) for step in steps):
            yield f"lacks {each.command} with exit code {each.exit} and {each.shows}"


def _fulfills(step: Step, requirement: Requirement) -> bool:
    if step.code != requirement.exit or not re.search(str(requirement.command), step.command):
        return False
    return all(_shows(step.out, *each) for each in requirement.shows.items())


def _shows(out: str, path: str, pattern: str) -> bool:
    try:
        values: list[Any] = list(values_at(json.loads(out), path))
    except (ValueError, KeyError, AssertionError):
        return False
    return any(_matches(pattern, str(value)) for value in values)


def _find_unsupported(task: Task, transcript: Transcript) -> list[str]:
    """Numbers of the answer that stand in no request, command or output, rounded as they are."""
    texts = [task.request, *(f"{each.command} {each.out} {each.err}" for each in transcript.steps)]
    shown = [_read(each) for text in texts for each in NUMBER.findall(text)]
    numbers = [each.strip(",") for each in NUMBER.findall(transcript.answer)]
    return [each for each in numbers if not any(_is_rounded(each, value) for value in shown)]


def _read(number: str) -> float:
    return float(number.replace(",", ""))


def _is_rounded(said: str, value: float) -> bool:
    """Whether a number was said of a value, with fewer digits or as percent."""
    places = len(said.partition(".")[2])
    amount = abs(_read(said))
    return any(abs(abs(value) * scale - amount) <= 0.5001 * 10**-places for scale in (1, 100))
