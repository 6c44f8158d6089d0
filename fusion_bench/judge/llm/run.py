"""``fusion-bench judge --llm`` as functions: estimate prices, ask the models, write grades."""

from __future__ import annotations

import asyncio
import csv
import hashlib
import io
import statistics
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fusion_bench.errors import ConfigError, DataError
from fusion_bench.io.provenance import write_with_meta
from fusion_bench.judge.llm.config import LlmJudgeConfig
from fusion_bench.judge.llm.grade_pairs import (
    GradingLimits,
    OnProgress,
    estimate_grading,
    grade_all,
    run_key,
)
from fusion_bench.judge.llm.model import JudgeModel
from fusion_bench.judge.llm.records import GradesMeta
from fusion_bench.judge.llm.request import GradingRequest
from fusion_bench.judge.llm.samples import PairGrade
from fusion_bench.rerank.ledger import CostEstimate, sum_booked_costs, summarize_events
from fusion_bench.rerank.store import ScoreStore
from fusion_bench.rerank.store_lock import lock_models
from fusion_bench.util.files.atomic_files import require_folder
from fusion_bench.util.yaml_text import format_compact_yaml

#: Folder beside the ``dataset.yaml``; people's grades are in another one.
FOLDER = "machine-judgments"
COLUMNS = ("query", "document", "grade", "judge", "samples", "spread")
#: Pairs without a grade that the record names.
MOST_NAMED = 20


@dataclass(frozen=True)
class WrittenGrades:
    """The grades of one model on disk.

    Attributes:
        path: The file.
        meta: Its provenance, which stands beside it.
    """

    path: Path
    meta: GradesMeta

    @property
    def entry(self) -> dict[str, str]:
        """What the dataset.yaml says of the file, as ``qrels`` or below ``judges``."""
        family = {} if self.meta.family is None else {"family": self.meta.family}
        return {"path": f"{FOLDER}/{self.path.name}", "kind": "machine", **family}

    @property
    def dataset_entry(self) -> str:
        """The line below ``judges`` of the dataset.yaml."""
        return format_compact_yaml({self.meta.judge: self.entry}).strip()


def estimate_judges(
    request: GradingRequest, config: LlmJudgeConfig, store: Path
) -> dict[str, CostEstimate]:
    """What each judge would ask for and cost; asks nobody."""
    with closing(ScoreStore(store)) as opened:
        return {
            name: estimate_grading(request, config, model, opened)
            for name, model in config.judges.items()
        }


def run_judges(
    request: GradingRequest,
    config: LlmJudgeConfig,
    store: Path,
    *,
    max_cost: float | None = None,
    on_progress: OnProgress,
) -> list[WrittenGrades]:
    """Ask each model for every grade that is not stored, and write a file for each.

    Args:
        request: What is graded.
        config: The models, and how they are asked.
        store: SQLite file of the answers, which may be that of rerankers.
        max_cost: Limit of the price of all judges, earlier runs included; None = no limit.
        on_progress: Called with pairs done, pairs in all, and the price so far, judge by judge.

    Raises:
        FusionBenchError: A price is not known though it is limited, a server refuses, the limit
            was reached, or no pair got a grade. Answers stay in the store.
    """
    unpriced = [name for name, model in config.judges.items() if model.price is None]
    if max_cost is not None and unpriced:
        raise ConfigError(
            f"--max-cost needs the price of {', '.join(unpriced)}: give 'price' with "
            "per_million_tokens and per_million_output_tokens"
        )
    require_folder(request.folder / FOLDER)
    settings = config.resolve_settings()
    written = []
    for name, model in config.judges.items():
        with lock_models(store, [model.model_identity]), closing(ScoreStore(store)) as opened:
            others = _sum_other_costs(request.dataset, config, model, opened)
            limits = GradingLimits(settings, max_cost, others)
            grading = grade_all(request, config, model, opened, limits, on_progress)
            grades = asyncio.run(grading)
            written.append(_write(request, config, name, grades, opened))
    return written


def _sum_other_costs(
    dataset: str, config: LlmJudgeConfig, model: JudgeModel, store: ScoreStore
) -> float:
    """What the other judges cost so far on this dataset."""
    keys = {run_key(dataset, other) for other in config.judges.values()}
    rest = keys - {run_key(dataset, model)}
    return sum(sum_booked_costs(store.read_events(key)) for key in rest)


def _write(
    request: GradingRequest,
    config: LlmJudgeConfig,
    name: str,
    grades: Sequence[PairGrade],
    store: ScoreStore,
) -> WrittenGrades:
    """Write the grades and their provenance, which never stands beside other grades."""
    if not any(each.grade is not None for each in grades):
        first = grades[0]
        raise DataError(
            f"{request.dataset}: judge {name!r} graded no pair: {first.problem}: {first.reason}"
        )
    data = _render(name, grades)
    meta = _describe(request, config, name, grades, store, hashlib.sha256(data).hexdigest())
    path = request.folder / FOLDER / f"{name}.csv"
    write_with_meta(path, data, meta)
    return WrittenGrades(path, meta)


def _render(name: str, grades: Sequence[PairGrade]) -> bytes:
    """A row a pair with a grade."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for each in grades:
        if each.grade is not None:
            samples = " ".join(map(str, each.samples))
            row = (each.query, each.document, each.grade, name, samples, f"{each.spread:.4g}")
            writer.writerow(row)
    return text.getvalue().encode()


def _describe(
    request: GradingRequest,
    config: LlmJudgeConfig,
    name: str,
    grades: Sequence[PairGrade],
    store: ScoreStore,
    digest: str,
) -> GradesMeta:
    model = config.judges[name]
    identity = model.model_identity
    problems = Counter(each.problem for each in grades if each.problem is not None)
    spreads = [each.spread for each in grades if len(each.samples) > 1]
    answers = [answer for each in grades for answer in each.answers]
    counts = Counter(each.grade for each in grades if each.grade is not None)
    ungraded = [each for each in grades if each.grade is None][:MOST_NAMED]
    return GradesMeta(
        grades_sha256=digest,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        dataset=request.dataset,
        judge=name,
        family=model.family,
        asked=identity.label,
        models=dict(Counter(answer.model for answer in answers if answer.model)),
        endpoint=identity.endpoint,
        prompt_sha256=request.prompt.digest,
        examples=tuple((*pair, grade) for grade, pairs in request.examples.pairs for pair in pairs),
        temperature=model.temperature,
        samples=config.samples,
        combine=config.combine,
        pairs=len(grades),
        by_grade={str(grade): counts[grade] for grade in request.prompt.grades},
        refused=problems["refused"],
        malformed=problems["malformed"],
        failed=problems["failed"],
        unread_answers=sum(each.problem in {"refused", "malformed"} for each in answers),
        mean_spread=statistics.fmean(spreads) if spreads else None,
        ungraded=tuple(f"{e.query} {e.document}: {e.problem}: {e.reason}" for e in ungraded),
        ledger=summarize_events(store.read_events(run_key(request.dataset, model))),
    )
