"""nablarch's reranking: its application.yml, its figures, its failures (sections 3, 5, 6 and 9)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from fusion_bench import Pipeline
from fusion_bench.errors import ConfigError
from fusion_bench.models.rerank_config import Deadline
from fusion_bench.serving.live.configuration import parse_system
from fusion_bench.serving.live.final_list import LiveResult
from fusion_bench.serving.live.profiles import write_rerank_section
from tests.models.rerank.server import Loopback, serving
from tests.serving.live.test_pipeline import Numbers

YAML = """\
nablarch:
  rag:
    rerank:
      enabled: true
      max-candidates: 50
      default-top-k: 10
      min-score: 0.1
      timeout-ms: 100
      score-combination:
        beta: 1.0
      primary-provider: jina
      fallback-provider: cohere
      jina:
        api-key: ${JINA_API_KEY}
        model: jina-reranker-v2-base-multilingual
        endpoint: https://api.jina.ai/v1/rerank
      cohere:
        api-key: ${COHERE_API_KEY}
        model: rerank-multilingual-v3.0
        endpoint: https://api.cohere.ai/v1/rerank
      circuit-breaker:
        failure-threshold: 5
        wait-duration-seconds: 30
        half-open-max-calls: 3
"""
HYBRID = [(f"d{i:02d}", 1 - i / 100, f"0.{i:02d}") for i in range(60)]


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JINA_API_KEY", "sk-jina-0123456789")
    monkeypatch.setenv("COHERE_API_KEY", "sk-cohere-0123456789")


def search(
    config: Mapping[str, Any] | None = None,
    limit: int | None = None,
    **options: Any,  # noqa: ANN401
) -> LiveResult:
    with Pipeline.profile("nablarch", config=config, **options) as pipeline:
        return pipeline.search_sync("q", {"hybrid": HYBRID}, limit=limit)


def test_the_files_defaults_are_the_profiles(tmp_path: Path) -> None:
    path = tmp_path / "application.yml"
    path.write_text(YAML, encoding="utf-8")
    read, default = Pipeline.profile("nablarch", config=path), Pipeline.profile("nablarch")
    assert read.system == default.system
    blend = read.system.blend.model_dump()
    assert (blend["beta"], blend["depth"], blend["min_score"]) == (1.0, 50, 0.1)
    assert (blend["tail"], blend["always_rerank"], read.system.top_k) == ("drop", True, 10)
    [((first, second), settings)] = read._config.chains.values()
    assert (first.method, first.base_url) == ("jina", "https://api.jina.ai")  # type: ignore[union-attr]
    assert (second.method, second.base_url) == ("cohere_v1", "https://api.cohere.ai")  # type: ignore[union-attr]
    limits = [(p.batch, p.max_tokens, p.price.per_1000_searches) for p in (first, second)]  # type: ignore[union-attr]
    assert limits == [(1000, 8192, 0.02), (1000, 4096, 1.0)]
    assert second.model == "rerank-multilingual-v3.0"  # type: ignore[union-attr]
    assert settings.deadline == Deadline(rerank_ms=100, total_ms=300)
    assert settings.breaker.model_dump() == {
        "failures": 5,
        "open_seconds": 30.0,
        "half_open_calls": 3,
    }
    assert default._config.chains["reranker"][1] == settings


def test_the_best_of_the_first_fifty_by_both_scores_or_the_list() -> None:
    found = search(rerankers={"reranker": Numbers()})
    assert [name for name, _ in found.ranked] == [f"d{i}" for i in range(49, 39, -1)]
    assert found.documents[0].score == 0.49
    few = search({"max-candidates": 12}, rerankers={"reranker": Numbers()})
    assert [name for name, _ in few.ranked] == ["d11", "d10"]  # min-score .1 drops the others
    assert len(search(limit=3, rerankers={"reranker": Numbers()}).documents) == 3
    found = search({"score-combination": {"beta": 0.7}}, rerankers={"reranker": Numbers()})
    best = found.documents[0]
    assert best.id == "d49"
    assert best.score == pytest.approx(0.7 * 0.49 + 0.3 * 0.51)
    assert best.fused_score == 0.51
    found = search({"enabled": False})
    assert found.ranked == tuple((name, score) for name, score, _ in HYBRID[:10])


def test_cohere_counts_searches_that_the_server_does_not_state() -> None:
    scores = [{"index": i, "relevance_score": 0.5} for i in range(50)]
    keys = {"method": "cohere_v1", "key": None, "price": None}
    with serving(Loopback("cohere_v1", reply={"results": scores})) as state:
        chain = {"reranker": {**keys, "base_url": state.url}}
        with Pipeline.profile("nablarch", rerankers=chain) as pipeline:
            for query in ("q1", "q2"):
                pipeline.search_sync(query, {"hybrid": HYBRID})
            summary = pipeline.summarize_calls()["reranker"]
    assert (summary["searches"], summary["cost"]) == (2, None)


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"jina": {"api-key": "sk-1"}}, "nablarch.rag.rerank.jina.api-key: "),
        ({"jina": {"endpoint": "https://x/v2/rerank"}}, "endpoint 'https://x/v2/rerank':"),
        ({"beta": 1}, "unknown key 'beta'"),
        ({"primary-provider": "voyage"}, "nablarch.rag.rerank.primary_provider:"),
        ({"score-combination": {"beta": 2}}, "score_combination.beta: "),
        ({"min-score": "x"}, "nablarch.rag.rerank.min_score:"),
    ],
)
def test_what_an_application_yml_may_not_say(config: Mapping[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Pipeline.profile("nablarch", config=config)
    assert problem in str(caught.value)
    assert "sk-1" not in str(caught.value)


# ── one provider, and the way back


@pytest.mark.parametrize("unset", ["COHERE_API_KEY", "JINA_API_KEY"])
def test_a_provider_without_its_key_is_not_configured(
    unset: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv(unset)
    with Pipeline.profile("nablarch") as pipeline:
        (providers, _) = pipeline._config.chains["reranker"]
    left = {"COHERE_API_KEY": "JINA_API_KEY", "JINA_API_KEY": "COHERE_API_KEY"}[unset]
    assert [provider.key for provider in providers] == [left]  # type: ignore[union-attr]
    assert f"{unset} is not set" in caplog.text


def test_without_any_key_the_error_names_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JINA_API_KEY", "COHERE_API_KEY"):
        monkeypatch.delenv(name)
    with pytest.raises(ConfigError, match="JINA_API_KEY"), Pipeline.profile("nablarch"):
        pass


@pytest.mark.parametrize("config", [None, "application.yml"])
def test_a_tuned_system_is_written_and_read_again(config: str | None, tmp_path: Path) -> None:
    path = tmp_path / "application.yml"
    path.write_text(YAML.replace("timeout-ms: 100", "timeout-ms: 80"))
    blend = {"method": "linear", "reranker": "reranker", "beta": 0.7, "depth": 30, "tail": "drop",
             "min_score": 0.2}  # fmt: skip
    tuned = parse_system({"name": "tuned", "runs": ["hybrid"], "top_k": 7, "blend": blend})
    path.write_text(write_rerank_section(tuned, path if config else None))
    again = Pipeline.profile("nablarch", config=path)
    assert (again.system.blend, again.system.top_k) == (tuned.blend, 7)
    assert again._config.settings.timeout_ms == (80 if config else 100)
    assert "api-key: ${JINA_API_KEY}" in path.read_text() or config is None


def test_a_system_without_a_blend_switches_the_reranking_off() -> None:
    text = write_rerank_section(parse_system({"runs": ["hybrid"]}))
    assert yaml.safe_load(text)["nablarch"]["rag"]["rerank"]["enabled"] is False


@pytest.mark.parametrize(
    ("blend", "message"),
    [
        ({"method": "replace", "tail": "drop"}, "means 'linear'"),
        ({"method": "linear", "tail": "keep"}, "blend.tail: 'keep'"),
    ],
)
def test_what_has_no_key_is_refused(blend: dict[str, str], message: str) -> None:
    system = parse_system({"runs": ["hybrid"], "blend": {**blend, "reranker": "r"}})
    with pytest.raises(ConfigError, match=message):
        write_rerank_section(system)
