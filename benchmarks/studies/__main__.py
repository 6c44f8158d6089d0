"""Make every page and table of docs/ that holds a verdict again, one part after the other.

    FUSION_BENCH_PARITY_DATA=… python -m benchmarks.studies [NAME …]

All parts together take some hours. A part that fails does not stop the others.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DATA = "FUSION_BENCH_PARITY_DATA"


@dataclass(frozen=True)
class Part:
    """A page or a table.

    Attributes:
        name: For the command line.
        page: The file that it writes, relative to the repository.
        module: The module to run.
        options: Its words.
        mark: Of the table in the page; empty = the whole page, or a mark of its own kind.
    """

    name: str
    page: str
    module: str
    options: tuple[str, ...] = ("--write",)
    mark: str = ""


#: The short ones first.
PARTS = (
    Part("referee", "docs/studies/referee.md", "benchmarks.studies.referee", mark="weights"),
    Part(
        "classify", "docs/reference/queries.md", "benchmarks.studies.classify_table", mark="types"
    ),
    Part("printed", "README.md", "benchmarks.studies.printed_blocks", ()),
    Part("guidance", "docs/choosing.md", "benchmarks.studies.guidance", mark="strategies"),
    Part("adr-005", "docs/studies/tuning.md", "benchmarks.studies.adr_005", mark="adr-005"),
    Part(
        "front-example",
        "docs/studies/tuning.md",
        "benchmarks.studies.front_example",
        (),
        "front-example",
    ),
    Part("types", "docs/studies/tuning.md", "benchmarks.studies.types", mark="types"),
    Part(
        "judges",
        "docs/studies/judges.md",
        "benchmarks.studies.judge_sensitivity_table",
        (),
        "judge-sensitivity",
    ),
    Part(
        "estimates",
        "docs/studies/judges.md",
        "benchmarks.studies.prediction_powered_table",
        (),
        "prediction-powered",
    ),
    Part("self-test", "docs/studies/gate-self-test.md", "benchmarks.studies.self_test", ()),
    Part(
        "agreement", "docs/studies/judges.md", "benchmarks.studies.agreement_table", (), "agreement"
    ),
    Part(
        "judging-effort",
        "docs/studies/judges.md",
        "benchmarks.studies.judging_effort",
        (),
        "judging effort",
    ),
    Part("samplers", "docs/studies/tuning.md", "benchmarks.studies.samplers", mark="samplers"),
    Part("choices", "docs/studies/tuning.md", "benchmarks.studies.choices", mark="choices"),
    Part("rivals", "docs/studies/tuning.md", "benchmarks.studies.tuning", mark="rivals"),
    Part("front", "docs/studies/tuning.md", "benchmarks.studies.front", mark="front"),
    Part("salts", "docs/studies/tuning.md", "benchmarks.studies.salts", mark="salts"),
    Part(
        "leaderboard",
        "docs/studies/leaderboard.md",
        "benchmarks.studies.leaderboard",
        ("--docs",),
    ),
    Part(
        "how_many_queries",
        "docs/studies/how-many-queries.md",
        "benchmarks.studies.how_many_queries",
    ),
    Part("list_gain", "docs/studies/list-gain.md", "benchmarks.studies.list_gain", (), "list-gain"),
    Part(
        "documents", "docs/studies/documents.md", "benchmarks.studies.documents", mark="documents"
    ),
    Part("choice_rules", "docs/studies/choice-rules.md", "benchmarks.studies.choice_rules", ()),
    Part("campaigns", "docs/studies/campaigns.md", "benchmarks.studies.campaigns", ()),
    Part("simulations", "docs/studies/statistics.md", "benchmarks.studies.simulations", ()),
)


def run_part(part: Part) -> bool:
    """Make a part in a process of its own; whether that went well."""
    started = time.perf_counter()
    print(f"{part.name}: {part.page}", flush=True)
    command = [sys.executable, "-m", part.module, *part.options]
    done = subprocess.run(command, cwd=ROOT, check=False)  # noqa: S603 - our own module
    word = "done" if done.returncode == 0 else f"FAILED with exit code {done.returncode}"
    print(f"{part.name}: {word}, {time.perf_counter() - started:.0f} s", flush=True)
    return done.returncode == 0


def make_pages(arguments: Sequence[str] | None = None, every: Sequence[Part] = PARTS) -> int:
    """Make the named parts, or all; 1 where one failed."""
    parts = {part.name: part for part in every}
    parser = argparse.ArgumentParser(prog="python -m benchmarks.studies", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(parts))
    names = parser.parse_args(arguments).names or [*parts]
    if unknown := [name for name in names if name not in parts]:
        parser.error(f"no part {', '.join(unknown)}: {', '.join(parts)}")
    if not os.environ.get(DATA):
        print(f"{DATA} is not set: only the built-in collections take part", file=sys.stderr)
    failed = [name for name in names if not run_part(parts[name])]
    print(f"failed: {', '.join(failed)}" if failed else f"{len(names)} parts done")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(make_pages())
