"""The degradation bench: against numbers that can be worked out by hand."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from fusion_bench.cli import main
from fusion_bench.errors import UnknownNameError
from fusion_bench.experiment.system import System
from fusion_bench.models.rerank_config import (
    Deadline,
    LatencyModel,
    RerankSettings,
    SimulationSettings,
)
from fusion_bench.models.rerank_simulation import (
    SimulationInput,
    SimulationPoint,
    SimulationResult,
    measure_outcomes,
    run_simulation,
)
from tests import tiny
from tests.tiny import DATASET

Capture = pytest.CaptureFixture[str]
#: First provider 1, second .8, fused .5: a mean tells what the queries ended with.
QUALITY = SimulationInput("nDCG@10", np.array([[1.0] * 4, [0.8] * 4, [0.5] * 4]))
STEADY = LatencyModel(p50=40, p95=40)
PRODUCTION = RerankSettings.for_profile("production")


def simulated(settings: RerankSettings = PRODUCTION, **given: object) -> SimulationResult:
    base: dict[str, object] = {
        "latency": STEADY,
        "fallback_latency": STEADY,
        "elapsed_ms": 0,
        "queries": 1000,
        "repeats": 2,
        "failure_rates": (0.0,),
    }
    return run_simulation(QUALITY, SimulationSettings.model_validate(base | given), settings)


def point(
    found: SimulationResult, rate: float, *, breaker: bool, fallback: bool
) -> SimulationPoint:
    return next(
        p
        for p in found.by_failure
        if (p.failure_rate, p.breaker, p.fallback) == (rate, breaker, fallback)
    )


def test_without_failures_everything_is_the_first_providers() -> None:
    found = simulated()
    for breaker in (False, True):
        at = point(found, 0.0, breaker=breaker, fallback=True)
        assert (at.quality, at.reranked) == (1.0, 1.0)
        assert (at.p50, at.p95) == pytest.approx((40.0, 40.0))
    assert (found.reranked, found.fused) == (1.0, 0.5)


def test_failures_of_either_provider_cost_their_share() -> None:
    """f of the calls fail at once: quality is 1 − f/2 without a fallback, 1 − f/5 with one."""
    found = simulated(failing="connection", outage_seconds=0, failure_rates=(0.1,), queries=6000)
    plain = point(found, 0.1, breaker=False, fallback=False)
    assert plain.quality == pytest.approx(1 - 0.1 / 2, abs=0.01)
    assert plain.p95 == pytest.approx(40)
    spare = point(found, 0.1, breaker=False, fallback=True)
    assert spare.quality == pytest.approx(1 - 0.1 / 5, abs=0.004)
    assert spare.reranked == 1.0
    assert spare.p95 == pytest.approx(42.0)  # the refused connection, then the second provider
    found = simulated(failing="connection", failure_rates=(1.0,), fallback_failure_rate=1.0)
    assert point(found, 1.0, breaker=False, fallback=True).quality == 0.5
    assert point(found, 1.0, breaker=True, fallback=True).reranked == 0.0


def test_in_an_outage_the_breaker_saves_the_wait() -> None:
    """Without it every query of an outage waits for the deadline; with it, only the trials do."""
    found = simulated(failure_rates=(0.5,), outage_seconds=100)
    without = point(found, 0.5, breaker=False, fallback=False)
    opened = point(found, 0.5, breaker=True, fallback=False)
    assert without.quality == pytest.approx(0.75, abs=0.02)
    assert without.p95 == pytest.approx(100)
    assert opened.p95 == pytest.approx(40)
    assert opened.mean < 0.6 * without.mean
    assert opened.quality <= without.quality  # it stays open a little longer than the outage
    both = point(found, 0.5, breaker=True, fallback=True)
    assert both.quality > without.quality + 0.1


def test_a_timeout_goes_on_to_the_next_only_where_that_is_asked_for() -> None:
    wide = PRODUCTION.model_copy(update={"deadline": None})
    given = {"failure_rates": (0.3,), "timeout_ms": 200, "outage_seconds": 0}
    at_once = point(simulated(wide, **given), 0.3, breaker=False, fallback=True)
    assert at_once.reranked == pytest.approx(0.7, abs=0.02)
    following = wide.model_copy(update={"on_timeout": "next"})
    later = point(simulated(following, **given), 0.3, breaker=False, fallback=True)
    assert later.reranked == 1.0
    assert later.p95 == pytest.approx(240)


def test_the_deadline_is_weighed() -> None:
    """Half of the calls take longer than the median, so a deadline there costs half the gain."""
    found = simulated(
        PRODUCTION.model_copy(update={"deadline": Deadline(rerank_ms=60)}),
        latency=LatencyModel(p50=60, p95=150),
        deadlines_ms=(30, 60, 150),
        failure_rates=(0.0,),
        queries=4000,
    )
    by_deadline = {p.deadline_ms: p for p in found.by_deadline}
    assert by_deadline[None].quality == 1.0
    assert by_deadline[60.0].quality < by_deadline[150.0].quality < 1.0
    for one, other in pairwise(p for p in found.by_deadline if p.deadline_ms):
        assert one.quality <= other.quality
    assert by_deadline[150.0].p95 == pytest.approx(150, rel=0.05)
    assert by_deadline[60.0].p95 <= 60.0 + 1e-9
    assert "60 ms" in found.answer


def test_what_the_breaker_is_worth_is_said() -> None:
    found = simulated(failure_rates=(0.0, 0.5), outage_seconds=100)
    without = point(found, 0.5, breaker=False, fallback=False)
    opened = point(found, 0.5, breaker=True, fallback=False)
    text = found.notes[0]
    assert f"from {without.mean:.0f} ms to {opened.mean:.0f} ms" in text
    assert f"nDCG@10 by {opened.quality - without.quality:+.4f}" in text
    assert any("changes nothing" in note for note in found.notes)
    passed_on = PRODUCTION.model_copy(update={"on_timeout": "next", "deadline": None})
    later = simulated(passed_on, failure_rates=(0.5,))
    assert not any("changes nothing" in note for note in later.notes)


def test_a_breaker_that_takes_scores_away_is_explained() -> None:
    """A third of the calls are late, so that a breaker seldom closes again."""
    late = simulated(
        PRODUCTION.model_copy(update={"deadline": Deadline(rerank_ms=60)}),
        latency=LatencyModel(p50=50, p95=100),
        failure_rates=(0.0, 0.2),
        repeats=6,
    )
    without = point(late, 0.0, breaker=False, fallback=False)
    opened = point(late, 0.0, breaker=True, fallback=False)
    assert without.low is not None
    assert opened.high is not None
    assert opened.high < without.low
    assert any("open_seconds" in note for note in late.notes)
    assert not any("open_seconds" in note for note in simulated().notes)


def test_repeats_tell_the_noise_of_the_simulation() -> None:
    once = simulated(failure_rates=(0.1,), repeats=1)
    assert {(p.low, p.high) for p in once.by_failure} == {(None, None)}
    found = point(simulated(failure_rates=(0.1,), repeats=6), 0.1, breaker=True, fallback=False)
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.quality < found.high
    still = point(simulated(repeats=4), 0.0, breaker=False, fallback=False)
    assert (still.low, still.quality, still.high) == (1.0, 1.0, 1.0)


def test_without_a_second_list_a_deadline_or_a_gain_it_is_said() -> None:
    alone = run_simulation(
        SimulationInput("nDCG@10", QUALITY.values, second=None),
        SimulationSettings(queries=200, repeats=1, failure_rates=(0.0, 0.4)),
        PRODUCTION,
    )
    assert not any(p.fallback for p in (*alone.by_failure, *alone.by_deadline))
    assert "--fallback-list" in alone.notes[-1]
    free = simulated(PRODUCTION.model_copy(update={"deadline": None}))
    assert "No deadline" in free.answer
    worse = SimulationInput("nDCG@10", np.array([[0.4], [0.4], [0.5]]))
    result = run_simulation(worse, SimulationSettings(queries=50, repeats=1), PRODUCTION)
    assert "no gain from" in result.answer


def test_the_same_seed_is_the_same_study() -> None:
    assert simulated(queries=300) == simulated(queries=300)
    assert simulated(queries=300, latency=LatencyModel()) != simulated(
        queries=300, latency=LatencyModel(), seed=8
    )


def test_what_a_query_may_end_with_is_measured(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    system = System(name="x", runs=("a",))
    found = measure_outcomes(root / DATASET, system, "RR@10")
    assert found.values.shape == (3, 4)
    assert found.values[0].tolist() == found.values[1].tolist() == [1.0, 1.0, 1.0, 1.0]
    assert found.values[2].tolist() == [0.5, 0.5, 1.0, 0.5]
    assert "no blend" in found.first
    assert found.second is None
    with pytest.raises(UnknownNameError, match="rerank list 'no'"):
        measure_outcomes(root / DATASET, system, "RR@10", reranker="no")


def test_the_command_answers_and_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tiny.make(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    given = ["rerank", "experiments/e.yaml", "--dataset", "tiny", "--system", "two", "--simulate"]
    given += ["--set", "queries=100", "--set", "repeats=2"]
    Path("c.yaml").write_text("settings: {deadline: {rerank_ms: 80}}\n", encoding="utf-8")
    assert main([*given, "--config", "c.yaml", "--json"]) == 0
    assert "80 ms" in json.loads(capsys.readouterr().out)["answer"]
    assert main(given) == 0
    out = capsys.readouterr().out
    folder = Path("reports/rerank/simulate-tiny-two")
    assert "deadline of 100 ms" in out
    assert (folder / "simulation.png").read_bytes().startswith(b"\x89PNG")
    written = json.loads((folder / "simulation.json").read_text(encoding="utf-8"))
    assert len(written["by_failure"]) == 7 * 2, "no second list, no rows of it"
    assert "reranker r, position_aware" in out
    assert "latency mean, ms" in " ".join(out.split())
    assert "failure_rate" not in out
    assert main([*given, "--fallback-list", "r"]) == 0
    assert "second provider: r." in capsys.readouterr().out
    written = json.loads((folder / "simulation.json").read_text(encoding="utf-8"))
    assert len(written["by_failure"]) == 7 * 4
    assert main([*given, "--set", "seed=x", "--json"]) == 2
    assert "--set seed" in capsys.readouterr().out
