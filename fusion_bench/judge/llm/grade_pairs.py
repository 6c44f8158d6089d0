"""Ask one model for the grades of all pairs; what is stored is not asked, and not paid, again."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from fusion_bench.errors import CostLimitError, FusionBenchError, ProviderError
from fusion_bench.judge.llm.answer import GradeAnswer
from fusion_bench.judge.llm.config import LlmJudgeConfig
from fusion_bench.judge.llm.model import SLOT, JudgeModel, make_key
from fusion_bench.judge.llm.request import GradingRequest, Pair
from fusion_bench.judge.llm.samples import PairGrade, combine_samples
from fusion_bench.rerank.calls.limits import Budget
from fusion_bench.rerank.calls.session import ProviderSession
from fusion_bench.rerank.ledger import CostEstimate, sum_booked_costs
from fusion_bench.rerank.protocol import Usage
from fusion_bench.rerank.settings import RerankSettings
from fusion_bench.rerank.store import ScoreStore

#: Called with pairs done, pairs in all, and the price so far.
OnProgress = Callable[[int, int, float], None]


def run_key(dataset: str, model: JudgeModel) -> str:
    """Key of a model's runs on a dataset in the ledger."""
    identity = model.model_identity
    return json.dumps(["judge", dataset, identity.provider, identity.model, identity.endpoint])


def estimate_grading(
    request: GradingRequest, config: LlmJudgeConfig, model: JudgeModel, store: ScoreStore
) -> CostEstimate:
    """What the first attempts of all samples that are not stored would cost.

    Args:
        request: What is graded.
        config: How many samples.
        model: The model.
        store: The stored answers.
    """
    identity = model.model_identity
    resolved = replace(identity, model=store.resolved_model(identity))
    stored, usage = 0, Usage()
    for pair in request.pairs:
        prompt = request.fill_prompt(pair)
        for sample in range(1, config.samples + 1):
            key = make_key(prompt, sample, 1)
            if store.read_scores(resolved, key, SLOT) != [None]:
                stored += 1
            else:
                usage += model.estimate_usage(key, SLOT)
    answers = len(request.pairs) * config.samples
    cost = None if model.price is None else model.price.cost_of(usage)
    queries = len({query for query, _ in request.pairs})
    return CostEstimate(identity.label, queries, answers, stored, answers - stored, usage, cost)


@dataclass(frozen=True)
class GradingLimits:
    """What bounds a run.

    Attributes:
        settings: Timeouts, retries and breaker.
        max_cost: Stop before the price, earlier runs included, exceeds this; None = no limit.
        spent_by_others: What the other judges of the command cost so far; it counts, too.
    """

    settings: RerankSettings
    max_cost: float | None = None
    spent_by_others: float = 0.0


async def grade_all(
    request: GradingRequest,
    config: LlmJudgeConfig,
    model: JudgeModel,
    store: ScoreStore,
    limits: GradingLimits,
    on_progress: OnProgress,
) -> list[PairGrade]:
    """The grade of each pair, in their order.

    Args:
        request: What is graded.
        config: Samples, attempts, and how samples become one grade.
        model: The model.
        store: Stored answers.
        limits: What bounds the run.
        on_progress: Called after each pair.

    Raises:
        ConfigError: The key is missing.
        ProviderError: The server refuses, as for a wrong key, and settings are strict.
        CostLimitError: The limit was reached; answers are stored.
    """
    # The ledger counts retries; without a handler each would print its event's bare name.
    logging.getLogger("stamina").addHandler(logging.NullHandler())
    run = run_key(request.dataset, model)
    spent = sum_booked_costs(store.read_events(run)) + limits.spent_by_others
    budget = Budget(limits.max_cost, spent)
    grades: dict[Pair, PairGrade] = {}
    errors: list[FusionBenchError] = []
    waiting = iter(request.pairs)
    async with model.connect(store, request.prompt.grades) as reranker:
        session = ProviderSession(
            reranker, limits.settings, provider=model, store=store, run=run, budget=budget
        )
        judge = _Judge(session, model, store, config)

        async def grade_waiting() -> None:
            """Take one pair after the other until an error stops all workers."""
            while not errors and (pair := next(waiting, None)) is not None:
                try:
                    grades[pair] = await judge.grade_pair(pair, request)
                except FusionBenchError as error:
                    errors.append(error)
                on_progress(len(grades), len(request.pairs), budget.spent)

        # Enough pairs to keep the model's slots busy.
        await asyncio.gather(*(grade_waiting() for _ in range(2 * model.concurrency)))
    if errors:
        raise errors[0]
    return [grades[pair] for pair in request.pairs]


@dataclass(frozen=True)
class _Judge:
    """A model's session, with its store of problems."""

    session: ProviderSession
    model: JudgeModel
    store: ScoreStore
    config: LlmJudgeConfig

    async def grade_pair(self, pair: Pair, request: GradingRequest) -> PairGrade:
        """The grade of one pair, from all its samples."""
        prompt = request.fill_prompt(pair)
        samples = range(1, self.config.samples + 1)
        answers = [await self._ask_sample(prompt, sample) for sample in samples]
        return combine_samples(pair, answers, request.prompt.grades, self.config.combine)

    async def _ask_sample(self, prompt: str, sample: int) -> GradeAnswer:
        """The first answer that is not malformed; the last one where all are."""
        answer = GradeAnswer(problem="malformed")
        for attempt in range(1, self.config.attempts + 1):
            answer = await self._ask(make_key(prompt, sample, attempt))
            if answer.problem != "malformed":
                break
        return answer

    async def _ask(self, key: str) -> GradeAnswer:
        try:
            answer = await self.session.score_documents(key, SLOT)
        except CostLimitError:
            raise
        except ProviderError as error:
            if error.is_filtered:
                return GradeAnswer(problem="refused", reason="the content filter of the provider")
            if error.kind == "refused":
                raise
            return GradeAnswer(problem="failed", reason=f"{error.kind}: {error}")
        model = "" if answer.identity is None else answer.identity.model
        if answer.unread or answer.scores is None:
            stored = self.store.read_answer(self.model.model_identity, key)
            return replace(GradeAnswer.from_json(stored), model=model)
        return GradeAnswer(int(answer.scores[0]), model=model)
