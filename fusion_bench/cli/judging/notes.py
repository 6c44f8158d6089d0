"""What ``judge`` says of a comparison, of missing texts, and of the next command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusion_bench.cli.output.console import echo

if TYPE_CHECKING:
    from fusion_bench.judge.judge_work import JudgeWork
    from fusion_bench.judge.pool.judged_systems import JudgedSystems


def describe_plan(work: JudgeWork) -> list[str]:
    """What could still change the comparison, in sentences; none where none was named."""
    from fusion_bench.judge.next.plan_sentences import describe_ends, describe_rest
    from fusion_bench.util.formatting import pluralize

    plan = work.plan
    if plan is None:
        return []
    lines = [describe_ends(plan)]
    if plan.ignored_queries:
        total = pluralize(plan.ignored_queries + plan.queries, "query")
        lines.append(
            f"Without any judgment, and left out: {plan.ignored_queries:,} of {total}. Their "
            f"documents could change the answer. Judge them first: {format_judge(work)}"
        )
    return [*lines, describe_rest(plan, len(work.documents()))]


def format_judge(work: JudgeWork, *words: object) -> str:
    """The command with which the same judge judges the pool of every query."""
    from fusion_bench.cli.next_steps.command_words import format_command

    options = work.options
    limit = () if options.max_grade is None else ("--max-grade", options.max_grade)
    return format_command("judge", work.judged.path, "--judge", options.judge, *limit, *words)


def note_missing_texts(work: JudgeWork) -> list[str]:
    """What a judge misses where the dataset names no texts; nothing where it does."""
    if work.judged.dataset.documents is not None:
        return []
    return [
        "a judge sees ids alone, as the dataset names no texts: add 'documents: FILE' to "
        f"{work.judged.path} (pull writes the file with --texts)"
    ]


def echo_next(judged: JudgedSystems) -> None:
    """Print the command that makes qrels of the grades."""
    from fusion_bench.cli.next_steps.command_words import format_command
    from fusion_bench.judge.files.judge_file import FOLDER

    target = judged.path.parent / FOLDER / "qrels.txt"
    echo("Next: " + format_command("judge", judged.path, "--write-qrels", target))
