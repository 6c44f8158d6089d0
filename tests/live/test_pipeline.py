"""The live pipeline: what is shown for one query."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from fusion_bench.blend import to_unit_scale
from fusion_bench.data.records import ScoreSpace
from fusion_bench.errors import DataError, ProviderError
from fusion_bench.live.pipeline import LiveResult, rerank_candidates
from fusion_bench.rerank.chain import ProviderChain
from fusion_bench.rerank.protocol import Candidate, Identity, Reply
from fusion_bench.rerank.session import ProviderSession
from fusion_bench.rerank.settings import Deadline, RerankSettings
from fusion_bench.rerank.truncation import Truncation, approximate_tokens


class Lengths:
    """Scores a document by the number that it consists of."""

    batch = 100

    def __init__(self, space: ScoreSpace = "unit", seconds: float = 0.0) -> None:
        self.identity = Identity("lengths", "m", space)
        self.seconds = seconds
        self.seen: list[list[str]] = []

    async def score(self, query: str, documents: Sequence[str]) -> Reply:
        self.seen.append(list(documents))
        await asyncio.sleep(self.seconds)
        if query == "fail":
            raise ProviderError("no", kind="server")
        return Reply(tuple(float(document) for document in documents))


def candidates(*scores: float) -> list[Candidate]:
    return [Candidate(f"d{i}", str(s), 1 - i / 100) for i, s in enumerate(scores)]


def shown(
    given: Sequence[Candidate],
    settings: RerankSettings,
    *,
    query: str = "q",
    reranker: Lengths | None = None,
    elapsed_ms: float = 0.0,
) -> LiveResult:
    async def go() -> LiveResult:
        chain = ProviderChain([ProviderSession(reranker or Lengths(), settings)], settings)
        return await rerank_candidates(query, given, chain, settings, elapsed_ms=elapsed_ms)

    return asyncio.run(go())


def test_the_best_by_score_equal_ones_by_fused_order() -> None:
    found = shown(candidates(0.2, 0.9, 0.2, 0.5), RerankSettings())
    assert found.ranked == (("d1", 0.9), ("d3", 0.5), ("d0", 0.2), ("d2", 0.2))
    assert (found.provider, found.degraded, found.skipped) == ("lengths/m", "", False)


def test_duplicates_and_what_is_beyond_the_cap_are_not_asked_about() -> None:
    given = [*candidates(0.1, 0.2), Candidate("d0", "0.9", 0.5), Candidate("d9", "0.7", 0.4)]
    reranker = Lengths()
    found = shown(given, RerankSettings(max_candidates=2), reranker=reranker)
    assert reranker.seen == [["0.1", "0.2"]]
    assert found.ranked == (("d1", 0.2), ("d0", 0.1))


def test_the_figures_of_the_design() -> None:
    production = RerankSettings.for_profile("production")
    assert production.max_candidates == 50
    assert production.top_k == 10
    assert production.min_score == 0.1
    assert production.deadline == Deadline(rerank_ms=100, total_ms=300)
    assert not production.always_rerank
    assert production.on_timeout == "fused"
    assert RerankSettings.for_profile("bench").deadline is None
    found = shown(candidates(*(i / 20 for i in range(20))), production)
    assert len(found.ranked) == 10
    assert found.ranked[0] == ("d19", 0.95)
    few = shown(candidates(0.05, 0.5), production.model_copy(update={"always_rerank": True}))
    assert few.ranked == (("d1", 0.5),)  # 0.05 is below min_score


def test_few_candidates_are_left_alone() -> None:
    settings = RerankSettings(always_rerank=False)
    few, enough = candidates(*[0.5] * 10), candidates(*[0.5] * 11)
    assert shown(few, settings).skipped
    assert [name for name, _ in shown(few, settings).ranked] == [c.id for c in few]
    assert not shown(enough, settings).skipped
    assert not shown(few, RerankSettings()).skipped
    assert shown([], RerankSettings()) == LiveResult((), "fused order", skipped=True)


def test_only_logits_get_a_sigmoid() -> None:
    logit = shown(candidates(-3, 0, 3), RerankSettings(), reranker=Lengths("logit"))
    assert [score for _, score in logit.ranked] == pytest.approx([0.9525741, 0.5, 0.0474259])
    unit = shown(candidates(0.1, 0.9), RerankSettings())
    assert [score for _, score in unit.ranked] == [0.9, 0.1]


def test_a_failure_leaves_the_fused_order() -> None:
    settings = RerankSettings.for_profile("production").model_copy(
        update={"top_k": 2, "always_rerank": True}
    )
    found = shown(candidates(0.1, 0.9, 0.5), settings, query="fail")
    assert found.ranked == (("d0", 1.0), ("d1", 0.99))
    assert found.provider == "fused order"
    assert found.degraded == "fused order after lengths/m: server"


def test_the_deadline_counts_what_has_passed() -> None:
    settings = RerankSettings(deadline=Deadline(rerank_ms=100, total_ms=300))
    late = Lengths()
    found = shown(candidates(0.1, 0.9), settings, reranker=late, elapsed_ms=300)
    assert late.seen == []
    assert found.degraded == "fused order after lengths/m: timeout"
    slow = shown(candidates(0.1, 0.9), settings, reranker=Lengths(seconds=5), elapsed_ms=250)
    assert slow.degraded == "fused order after lengths/m: timeout"
    assert slow.latency_ms >= 50
    assert Deadline().remaining_ms(250) == 50
    assert Deadline().remaining_ms(0) == 100


@pytest.mark.parametrize(
    ("space", "scores", "unit"),
    [
        ("unit", [0.3, 0.7], [0.3, 0.7]),
        ("unbounded", [5.0, 15.0, 10.0], [0, 1, 0.5]),
        ("unbounded", [5.0, 5.0], [1, 1]),
        ("log_prob", [0.0, -1e9], [1, 0]),
        ("order", [9.0, 3.0, 3.0, 20.0], [0.75, 0.5, 0.25, 1.0]),
        ("order", [], []),
    ],
)
def test_scores_on_the_unit_scale(
    space: ScoreSpace, scores: list[float], unit: list[float]
) -> None:
    assert to_unit_scale(scores, space).tolist() == unit


# ── cutting documents


def test_documents_are_cut_at_tokens() -> None:
    assert Truncation(None)("a b c") == "a b c"
    assert Truncation(2)("one, two") == "one,"
    assert Truncation(2)("検索結果") == "検索"
    assert Truncation(3)("relevance") == "relevance"
    assert Truncation(2)("relevance") == "relevanc"
    assert approximate_tokens("") == 0
    assert Truncation(2048).label == "2048 tokens, estimated"
    assert Truncation(None).label == "none"


@settings(max_examples=40)
@given(st.text(max_size=60), st.integers(1, 20))
def test_what_is_kept_is_a_beginning_that_fits(text: str, tokens: int) -> None:
    kept = Truncation(tokens)(text)
    assert text.startswith(kept)
    assert approximate_tokens(kept) <= tokens
    if approximate_tokens(text) <= tokens:
        assert kept == text


def test_a_tokenizer_counts_exactly(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    words = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))  # noqa: S106
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.enable_padding(length=9)
    words.save(str(path))
    cut = Truncation(2, path)
    assert cut("incomprehensibilities a b") == "incomprehensibilities a"
    assert cut.label.startswith("2 tokens, sha256 ")
    with pytest.raises(DataError, match=r"none\.json: cannot be read"):
        _ = Truncation(2, tmp_path / "none.json").label
