"""``fusion-bench judge --llm-config`` as functions: estimate prices, ask models, write grades."""

from __future__ import annotations

import asyncio
import csv
import hashlib
import io
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from fusion_bench.config.models import StrictModel
from fusion_bench.config.yaml_files import format_compact_yaml
from fusion_bench.errors import ConfigError, CostLimitError, DataError, ProviderError
from fusion_bench.io.dataset_config import DatasetSpec
from fusion_bench.io.provenance import write_with_meta
from fusion_bench.judging import llm_judge
from fusion_bench.judging.judge_files import JUDGMENTS_FOLDER, find_named_files, list_unnamed_files
from fusion_bench.judging.llm_request import GradingRequest
from fusion_bench.judging.pools import Pair
from fusion_bench.models import call_limits
from fusion_bench.models.answer_stores import ScoreStore, lock_models
from fusion_bench.models.endpoints import run_workers
from fusion_bench.models.provider_session import ProviderSession
from fusion_bench.models.rerank_config import merge_settings
from fusion_bench.models.reranker_protocol import Usage
from fusion_bench.util.files import require_folder
from fusion_bench.util.http_client import open_client


class GradesMeta(StrictModel):
    """Provenance of the grades of one model.

    Attributes:
        format: Always ``fusion-bench-machine-grades``.
        format_version: Always 1.
        grades_sha256: SHA-256 of the file of grades as it was written.
        created: When, UTC, ISO 8601.
        dataset: The dataset.
        judge: Name of the judge.
        family: Family of the model; None = not declared.
        asked: The model that was asked, as ``chat/MODEL``.
        models: Model as the provider resolved it → its answers; several where the provider
            changed it meanwhile.
        endpoint: URL of the endpoint.
        prompt_sha256: SHA-256 of everything in the prompts but the texts.
        examples: Query, document and grade of each pair that may stand in a prompt.
        temperature: Sampling temperature; None = the provider's own.
        samples: Answers for each pair.
        combine: How they become one grade.
        pairs: Pairs of query and document.
        by_grade: Grade → pairs that have it.
        refused: Pairs without a grade because the model declines.
        malformed: Pairs without a grade because no answer could be read.
        failed: Pairs without an answer.
        unread_answers: Refused and malformed answers among all samples.
        mean_spread: Mean standard deviation of the samples of a pair; None with one sample.
        ungraded: The first pairs without a grade: ``QUERY DOCUMENT: PROBLEM: REASON``.
        ledger: What all runs with this model on this dataset cost, see ``rerank.ledger``.
    """

    format: Literal["fusion-bench-machine-grades"] = "fusion-bench-machine-grades"
    format_version: Literal[1] = 1
    grades_sha256: str
    created: str
    dataset: str
    judge: str
    family: str | None
    asked: str
    models: dict[str, int]
    endpoint: str
    prompt_sha256: str
    examples: tuple[tuple[str, str, int], ...] = ()
    temperature: float | None
    samples: int
    combine: Literal["majority", "mean"]
    pairs: int
    by_grade: dict[str, int]
    refused: int
    malformed: int
    failed: int
    unread_answers: int
    mean_spread: float | None
    ungraded: tuple[str, ...] = ()
    ledger: dict[str, Any] = Field(default_factory=dict)

    @property
    def graded(self) -> int:
        """Pairs with a grade."""
        return sum(self.by_grade.values())


@dataclass(frozen=True)
class PairGrade:
    """What a model said of one pair.

    Attributes:
        query: Id of the query.
        document: Id of the document.
        answers: One a sample: the last attempt of each.
        grade: The grade; None = no more than half of the samples have one.
    """

    query: str
    document: str
    answers: tuple[llm_judge.GradeAnswer, ...]
    grade: int | None

    @property
    def samples(self) -> tuple[int, ...]:
        """The grades of the samples that have one."""
        return tuple(each.grade for each in self.answers if each.grade is not None)

    @property
    def spread(self) -> float:
        """Population standard deviation of these grades."""
        return statistics.pstdev(self.samples)

    @property
    def problem(self) -> llm_judge.Problem | None:
        """Why there is no grade: the most frequent problem of its samples."""
        problems = [each.problem for each in self.answers if each.problem is not None]
        return None if self.grade is not None else Counter(problems).most_common(1)[0][0]

    @property
    def reason(self) -> str:
        """The first sample's words for that problem."""
        return next((a.reason for a in self.answers if a.problem == self.problem), "")


def combine_samples(
    pair: tuple[str, str],
    answers: Sequence[llm_judge.GradeAnswer],
    grades: Sequence[int],
    how: Literal["majority", "mean"],
) -> PairGrade:
    """One grade of several answers.

    Args:
        pair: Query and document.
        answers: One a sample.
        grades: The grades of the scale.
        how: ``majority`` = the most frequent grade; ``mean`` = the grade nearest to the mean. Of
            equals the least, so that no tie raises a grade.
    """
    given = [answer.grade for answer in answers if answer.grade is not None]
    grade = None
    if 2 * len(given) > len(answers):
        if how == "majority":
            grade = min(statistics.multimode(given))
        else:
            mean = statistics.fmean(given)
            grade = min(grades, key=lambda each: (abs(each - mean), each))
    return PairGrade(*pair, tuple(answers), grade)


#: Called with pairs done, pairs in all, and the price so far.
OnProgress = Callable[[int, int, float], None]


def _run_key(dataset: str, model: llm_judge.JudgeModel) -> str:
    return call_limits.run_key(model.model_identity, "judge", dataset)


async def _grade_all(
    request: GradingRequest,
    model: llm_judge.JudgeModel,
    store: ScoreStore,
    budget: call_limits.Budget,
    on_progress: OnProgress,
) -> list[PairGrade]:
    """The grade of each pair, in their order.

    Args:
        request: What is graded.
        model: The model.
        store: Stored answers.
        budget: Limit of the cost, with that of earlier runs and of other judges.
        on_progress: Called after each pair.

    Raises:
        ConfigError: The key is missing.
        ProviderError: The server refuses, as for a wrong key, and settings are strict.
        CostLimitError: The limit was reached; answers are stored.
    """
    grades: dict[Pair, PairGrade] = {}
    async with open_client(model.base_url, model) as remote:
        session = ProviderSession(
            llm_judge.ConnectedJudge(model, remote, store, request.prompt.grades),
            merge_settings("bench", request.config.settings),
            provider=model,
            store=store,
            run=_run_key(request.dataset, model),
            budget=budget,
        )
        judge = _Judge(session, model, store, request)

        async def grade_pair(pair: Pair) -> None:
            grades[pair] = await judge.grade_pair(pair)
            on_progress(len(grades), len(request.pairs), budget.spent)

        # Enough pairs to keep the model's slots busy.
        await run_workers(request.pairs, grade_pair, 2 * model.concurrency)
    return [grades[pair] for pair in request.pairs]


@dataclass(frozen=True)
class _Judge:
    """A model's session, with its store of problems."""

    session: ProviderSession
    model: llm_judge.JudgeModel
    store: ScoreStore
    request: GradingRequest

    async def grade_pair(self, pair: Pair) -> PairGrade:
        """The grade of one pair, from all its samples."""
        request, config = self.request, self.request.config
        prompt = request.fill_prompt(pair)
        answers = []
        for sample in range(1, config.samples + 1):
            answer = llm_judge.GradeAnswer(problem="malformed")
            for attempt in range(1, config.attempts + 1):
                answer = await self._ask(llm_judge.make_key(prompt, sample, attempt))
                if answer.problem != "malformed":
                    break
            answers.append(answer)  # the last one where all are malformed
        return combine_samples(pair, answers, request.prompt.grades, config.combine)

    async def _ask(self, key: str) -> llm_judge.GradeAnswer:
        try:
            answer = await self.session.score_documents(key, llm_judge.SLOT)
        except CostLimitError:
            raise
        except ProviderError as error:
            if error.is_filtered:
                return llm_judge.GradeAnswer(
                    problem="refused", reason="the content filter of the provider"
                )
            if error.kind == "refused":
                raise
            return llm_judge.GradeAnswer(problem="failed", reason=f"{error.kind}: {error}")
        model = "" if answer.identity is None else answer.identity.model
        if answer.unread or answer.scores is None:
            stored = self.store.read_answer(self.model.model_identity, key)
            return replace(llm_judge.GradeAnswer.from_json(stored), model=model)
        return llm_judge.GradeAnswer(int(answer.scores[0]), model=model)


#: Folder beside the ``dataset.yaml``; people's grades are in another one.
MACHINE_JUDGMENTS_FOLDER = "machine-judgments"
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
        return {"path": f"{MACHINE_JUDGMENTS_FOLDER}/{self.path.name}", "kind": "machine", **family}

    @property
    def dataset_entry(self) -> str:
        """The line below ``judges`` of the dataset.yaml."""
        return format_compact_yaml({self.meta.judge: self.entry}).strip()


def estimate_judges(request: GradingRequest, store: Path) -> dict[str, call_limits.CostEstimate]:
    """What each judge would ask for and cost; asks nobody."""
    estimates = {}
    samples = request.config.samples
    answers, queries = len(request.pairs) * samples, len({query for query, _ in request.pairs})
    with closing(ScoreStore(store)) as opened:
        for name, model in request.config.judges.items():
            identity = model.model_identity
            resolved = replace(identity, model=opened.resolved_model(identity))
            stored, usage = 0, Usage()
            for prompt in map(request.fill_prompt, request.pairs):
                for sample in range(1, samples + 1):
                    key = llm_judge.make_key(prompt, sample, 1)
                    if opened.read_scores(resolved, key, llm_judge.SLOT) != [None]:
                        stored += 1
                    else:
                        usage += model.estimate_usage(key, llm_judge.SLOT)
            cost = None if model.price is None else model.price.cost_of(usage)
            estimates[name] = call_limits.CostEstimate(
                identity.label, queries, answers, stored, answers - stored, usage, cost
            )
    return estimates


def run_judges(
    request: GradingRequest,
    store: Path,
    *,
    max_cost: float | None = None,
    on_progress: OnProgress,
) -> list[WrittenGrades]:
    """Ask each model for every grade that is not stored, and write a file for each.

    Args:
        request: What is graded.
        store: SQLite file of the answers, which may be that of rerankers.
        max_cost: Limit of the price of all judges, earlier runs included; None = no limit.
        on_progress: Called with pairs done, pairs in all, and the price so far, judge by judge.

    Raises:
        FusionBenchError: A price is not known though it is limited, a server refuses, the limit
            was reached, or no pair got a grade. Answers stay in the store.
    """
    judges = request.config.judges
    unpriced = [name for name, model in judges.items() if model.price is None]
    if max_cost is not None and unpriced:
        raise ConfigError(
            f"--max-cost needs the price of {', '.join(unpriced)}: give 'price' with "
            "per_million_tokens and per_million_output_tokens"
        )
    require_folder(request.folder / MACHINE_JUDGMENTS_FOLDER)
    written = []
    for name, model in judges.items():
        with lock_models(store, [model.model_identity]), closing(ScoreStore(store)) as opened:
            # Both this judge's costs so far and those of the others count.
            own = _run_key(request.dataset, model)
            models = request.config.judges.values()
            rest = {_run_key(request.dataset, other) for other in models} - {own}
            others = sum(call_limits.sum_booked_costs(opened.read_events(key)) for key in rest)
            budget = call_limits.Budget(
                max_cost, call_limits.sum_booked_costs(opened.read_events(own)) + others
            )
            grading = _grade_all(request, model, opened, budget, on_progress)
            grades = asyncio.run(grading)
            written.append(_write(request, name, grades, opened))
    return written


def _write(
    request: GradingRequest, name: str, grades: Sequence[PairGrade], store: ScoreStore
) -> WrittenGrades:
    """Write the grades and their provenance, which never stands beside other grades."""
    if not any(each.grade is not None for each in grades):
        first = grades[0]
        raise DataError(
            f"{request.dataset}: judge {name!r} graded no pair: {first.problem}: {first.reason}"
        )
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for each in grades:
        if each.grade is not None:
            samples = " ".join(map(str, each.samples))
            row = (each.query, each.document, each.grade, name, samples, f"{each.spread:.4g}")
            writer.writerow(row)
    data = text.getvalue().encode()
    meta = _describe(request, name, grades, store, hashlib.sha256(data).hexdigest())
    path = request.folder / MACHINE_JUDGMENTS_FOLDER / f"{name}.csv"
    write_with_meta(path, data, meta)
    return WrittenGrades(path, meta)


def _describe(
    request: GradingRequest,
    name: str,
    grades: Sequence[PairGrade],
    store: ScoreStore,
    digest: str,
) -> GradesMeta:
    config = request.config
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
        examples=tuple((*p, grade) for grade, pairs in request.examples.items() for p in pairs),
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
        ledger=call_limits.summarize_events(store.read_events(_run_key(request.dataset, model))),
    )


def list_new_entries(
    spec: DatasetSpec, path: Path, written: Sequence[WrittenGrades]
) -> tuple[dict[str, Any] | None, dict[str, dict[str, Any]]]:
    """The files of grades that the ``dataset.yaml`` does not name yet.

    Where it has no ``qrels``, the first model's grades take that place, and the files of people
    become judges: agreement is measured between both. People's files are also named where the
    judgments are a model's; judgments of people may have been made of these very files.

    Args:
        spec: What the ``dataset.yaml`` says.
        path: The ``dataset.yaml``.
        written: The grades of each model.

    Returns:
        The value of ``qrels``, None = it stays as it is; and the new judges by name.
    """
    known = find_named_files(path, spec)
    new = [(each.meta.judge, each.entry) for each in written if each.path.resolve() not in known]
    qrels = new.pop(0)[1] if spec.qrels is None and new else None
    if spec.qrels is None or spec.is_judged_by_machine:
        new += [
            (name, {"path": f"{JUDGMENTS_FOLDER}/{file.name}", "kind": "human"})
            for name, file in list_unnamed_files(path, spec).items()
        ]
    judges: dict[str, dict[str, Any]] = {}
    for name, entry in new:
        free = name
        while free in judges or free in spec.judges or free == "qrels":
            free += f"-{entry['kind']}"
        judges[free] = entry
    return qrels, judges
