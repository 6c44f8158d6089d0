"""``max_drop: auto``: what the queries can decide, sealed in the baseline."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from fusion_bench.cli import main
from fusion_bench.errors import ConfigError
from fusion_bench.gate.baseline import Baseline
from fusion_bench.gate.baseline_files import read_baseline
from fusion_bench.gate.checks import Check
from fusion_bench.gate.tolerances import (
    CheckSpread,
    find_spread,
    is_near,
    measure_spreads,
    standard_error,
)
from fusion_bench.stats.inference import infer_family
from fusion_bench.stats.values import Pair
from fusion_bench.util.digests import digest_json
from tests.gate.cases import EXPERIMENT, gate_inputs, gate_verdict, renew_baseline, run_lines
from tests.texts import names_in_order
from tests.tiny import edit

BASELINE = Path("reports/baselines/mine.json")


def contest(difference: np.ndarray, *, m: float = 0.01, pairs: bool = False) -> Check:
    keys = tuple(f"g{q // 2 if pairs else q}" for q in range(len(difference)))
    pair = Pair.from_arrays(np.asarray(difference, float), keys=keys, measure="RR")
    return Check("c", None, m, pair)


def noise(seed: int, share: float = 1.0, size: int = 100) -> np.ndarray:
    random = np.random.default_rng(seed)
    return random.normal(0, 0.1, size) * (random.random(size) < share)


def stored(root: Path) -> Baseline:
    baseline = read_baseline(root / BASELINE)
    assert baseline is not None
    return baseline


def state_auto(root: Path, measure: str = "RR@10", old: str = "{max_drop: 0.01}") -> None:
    edit(root, EXPERIMENT, f"    {measure}: {old}", f"    {measure}: {{max_drop: auto}}")


@pytest.mark.parametrize("pairs", [False, True])
def test_the_error_is_that_of_the_inference(pairs: bool) -> None:
    check = contest(noise(1), pairs=pairs)
    [row] = infer_family([check.pair])
    assert standard_error(check) == pytest.approx(row.error)
    assert standard_error(contest(np.ones(1))) == 0


@pytest.mark.parametrize(
    ("error", "drop"),
    [(0.0, 0.005), (0.002, 0.005), (0.0021, 0.006), (0.004, 0.01), (0.00401, 0.011)],
)
def test_the_drop_is_rounded_up(error: float, drop: float) -> None:
    assert CheckSpread(contest(noise(1)), "x", error).drop == drop


def test_the_largest_error_of_three_fusions_counts() -> None:
    check = contest(np.zeros(100))
    fusions = {str(seed): contest(noise(seed) * seed) for seed in (1, 2, 3)}
    spread = find_spread(check, fusions)
    assert spread is not None
    assert (spread.against, spread.error) == ("3", standard_error(fusions["3"]))
    two = {name: fusions[name] for name in ("1", "2")}
    assert find_spread(check, two) is None
    assert find_spread(check, two | {"identical": contest(np.zeros(100))}) is None
    assert find_spread(check, {str(s): contest(noise(s, share=0.4)) for s in range(4)}) is None
    few = find_spread(check, two, is_enough=True)
    assert few is not None
    assert few.against == "2"
    assert find_spread(check, {"identical": contest(np.zeros(100))}, is_enough=True) is None


@pytest.mark.parametrize(
    ("loss", "near"), [(0.0, True), (0.02, True), (0.03, False), (0.2, False), (-0.2, True)]
)
def test_a_fusion_that_loses_more_than_its_errors_allow_does_not_count(
    loss: float, near: bool
) -> None:
    values = noise(1)
    check = contest(values - values.mean() + loss)
    assert standard_error(check) == pytest.approx(0.01, rel=0.2)
    assert is_near(check) == near


def test_a_stated_drop_below_it_names_the_queries_that_would_do() -> None:
    spread = CheckSpread(contest(noise(1), m=0.01), "x", 0.01)
    assert names_in_order(
        str(spread.warning), "c / RR: max_drop 0.01", "100 queries", "about 630", "0.025"
    )
    assert CheckSpread(contest(noise(1), m=0.025), "x", 0.01).warning is None
    none = CheckSpread(contest(noise(1), m=0.0), "x", 0.01).warning
    assert "queries suffices" in str(none)


def test_an_update_seals_it_and_the_gate_prints_it(root: Path) -> None:
    edit(root, EXPERIMENT, "live: {runs: [a]}", "live: {runs: [a, b], fusion: {method: rrf}}")
    edit(root, EXPERIMENT, "plain: {runs: [a, b]}", "plain: {runs: [a]}")
    state_auto(root)
    renew_baseline(root)
    sealed = stored(root).max_drops
    assert [(each.slice, each.measure) for each in sealed] == [(None, "RR@10"), ("local", "RR@10")]
    # no other fusion: RRF with k = 10 and with one list doubled stand in
    spreads = {each.check.name: each for each in measure_spreads(gate_inputs(root))}
    spread = spreads["mine / RR@10"]
    assert spread.against in {"RRF a ×2", "RRF b ×2"}
    assert sealed[0].max_drop == max(0.005, math.ceil(2500 * spread.error) / 1000)
    assert names_in_order(sealed[0].reason, "2.5 × ", spread.against, "60 queries")
    verdict = gate_verdict(root)
    assert verdict.exit_code == 0
    assert [check.max_drop for check in verdict.checks[:2]] == [each.max_drop for each in sealed]
    assert verdict.checks[2].max_drop == 0.01
    assert verdict.max_drops == sealed
    # a gain is accepted; the anchor stays, with twice the drop
    edit(root, EXPERIMENT, "live: {runs: [a, b], fusion: {method: rrf}}", "live: {runs: [a]}")
    renew_baseline(root, "better")
    since = [check for check in gate_verdict(root).checks if check.reference == "anchor"]
    assert since[0].max_drop == 2 * stored(root).drops_of("mine")[None, "RR@10"]


def test_auto_is_the_default_and_a_change_to_it_needs_an_update(root: Path) -> None:
    renew_baseline(root)
    state_auto(root)
    [refusal] = gate_verdict(root).refusals
    assert names_in_order(refusal, "checks.RR@10.max_drop 0.01 → auto", "--update")
    renew_baseline(root, "let the queries say it")
    assert gate_verdict(root).exit_code == 0
    edit(root, EXPERIMENT, "RR@10: {max_drop: auto}", "RR@10: {}")
    assert gate_verdict(root).exit_code == 0
    edit(root, EXPERIMENT, "  slices: [local]\n", "  slices: [local, global]\n")
    assert names_in_order(gate_verdict(root).refusals[0], "slices", "global", "--update")


def test_what_auto_stands_for_is_a_change_of_the_policy(root: Path) -> None:
    edit(root, EXPERIMENT, "live: {runs: [a]}", "live: {runs: [b]}")
    state_auto(root)
    renew_baseline(root)
    before = stored(root).drops_of("mine")
    edit(root, EXPERIMENT, "plain: {runs: [a, b]}", "plain: {runs: [b, a], depth: {b: 3}}")
    renew_baseline(root, "another fusion beside it")
    after = stored(root).drops_of("mine")
    assert before != after
    changes = stored(root).history[-1].policy_changes
    assert {(each.before, each.after) for each in changes} == {
        (before[key], after[key]) for key in before if before[key] != after[key]
    }
    assert all(each.path.startswith("max_drop: auto of mine / ") for each in changes)
    assert {each.effect for each in changes} <= {"looser", "stricter"}


def test_a_drop_that_the_values_cannot_fall_by_is_refused(root: Path) -> None:
    """One query of 60 has its document, at rank 5: the mean is .0033, below the least drop."""
    state_auto(root)
    lines = run_lines(dict.fromkeys(range(60), 5), "a").splitlines()
    kept = [line for line in lines if " d0 " in line or " d" not in line]
    (root / "datasets/mine/a.trec").write_text("\n".join(kept) + "\n")
    with pytest.raises(ConfigError, match=r"auto, .* checks nothing"):
        renew_baseline(root)


def test_an_update_says_which_limits_ask_too_much(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(root)
    edit(root, EXPERIMENT, "live: {runs: [a]}", "live: {runs: [a, b], fusion: {method: rrf}}")
    state_auto(root, "nDCG@10")
    edit(root, EXPERIMENT, "gate:\n", "gate:\n  fell: warn\n")
    assert main(["gate", EXPERIMENT, "--update", "--reason", "first"]) == 0
    out = capsys.readouterr().out
    assert names_in_order(out, "max_drop: auto: mine / nDCG@10", "2.5 × ")
    assert names_in_order(out, "max_drop 0.01 is less")
    assert "mine / nDCG@10: max_drop" not in out
    assert "gate.fell has" in out


def test_a_baseline_of_version_6_is_read(root: Path) -> None:
    path = renew_baseline(root)
    edit(root, EXPERIMENT, "live: {runs: [a]}", "live: {runs: [b]}")
    renew_baseline(root, "worse", anchor=True)
    data = json.loads(path.read_text())
    assert data["history"][-1]["checks"][0]["status"] == "regressed"
    data["format_version"] = 6
    data["history"][-1]["checks"][0]["status"] = "fell"
    data["policy"] |= {"fell": "warn", "small_changes": "pass"}
    data["checksum"] = digest_json({k: v for k, v in data.items() if k != "checksum"})
    path.write_text(json.dumps(data))
    baseline = stored(root)
    assert baseline.format_version == 7
    assert baseline.checksum == data["checksum"]
    assert baseline.history[-1].checks[0].status == "regressed"
    assert gate_verdict(root).exit_code == 0
    renew_baseline(root, "read and written")
    assert json.loads(path.read_text())["format_version"] == 7
    edited = path.read_text().replace('"reasons": ["worse"]', '"reasons": ["better"]')
    assert edited != path.read_text()
    path.write_text(edited)
    with pytest.raises(Exception, match="edited since"):
        stored(root)
