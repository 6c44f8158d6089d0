"""The gate from end to end on systems with several trials."""

from pathlib import Path

import numpy as np
import pytest

from fusion_bench.errors import DataError
from fusion_bench.gate.baseline import Baseline
from fusion_bench.gate.baseline_files import read_baseline
from fusion_bench.gate.page import format_text
from fusion_bench.gate.result import GateVerdict
from fusion_bench.gate.update import write_baseline
from fusion_bench.gate.verdict import ANCHOR_SUFFIX, CheckRepeatsResult
from tests.gate.cases import (
    EXPERIMENT,
    QUERIES,
    gate_verdict,
    make_project,
    renew_baseline,
    run_lines,
)
from tests.texts import names_in_order
from tests.tiny import edit


def make_trials(
    root: Path, *places: dict[int, int], checks: str = "RR@10: {max_drop: 0.01}"
) -> Path:
    """Write the project; list ``a`` has a trial for each mapping of queries to places.

    Args:
        root: The folder.
        places: Of each trial the place of each query's relevant document.
        checks: Of the gate.
    """
    make_project(root)
    edit(root, "datasets/mine/dataset.yaml", "path: a.trec", 'path: "a-*.trec"')
    edit(
        root,
        EXPERIMENT,
        "    RR@10: {max_drop: 0.01}\n    nDCG@10: {max_drop: 0.01}",
        f"    {checks}",
    )
    edit(root, EXPERIMENT, "  slices: [local]\n", "")
    (root / "datasets/mine/a.trec").unlink()
    write_trials(root, *places)
    return root


def write_trials(root: Path, *places: dict[int, int]) -> None:
    folder = root / "datasets/mine"
    for path in folder.glob("a-*.trec"):
        path.unlink()
    for number, place in enumerate(places, 1):
        (folder / f"a-{number}.trec").write_text(run_lines(place, "a"), encoding="utf-8")


def draw_places(trials: int, *, share: float = 0.3, seed: int = 0) -> list[dict[int, int]]:
    """Trials that put the relevant document second on a share of the queries, at random."""
    rng = np.random.default_rng(seed)
    return [
        {q: 2 if late else 1 for q, late in enumerate((rng.random(QUERIES) < share).tolist())}
        for _ in range(trials)
    ]


def move_places(*shares: float) -> list[dict[int, int]]:
    """Trials that put it second on the first so many queries: all queries of a trial together."""
    return [{q: 2 if q < share * QUERIES else 1 for q in range(QUERIES)} for share in shares]


def stored(path: Path) -> Baseline:
    baseline = read_baseline(path)
    assert baseline is not None
    return baseline


def repeats_of(verdict: GateVerdict) -> CheckRepeatsResult:
    assert verdict.refusals == ()
    trials = verdict.checks[0].trials
    assert trials is not None
    return trials


def test_a_baseline_keeps_the_values_of_each_trial(tmp_path: Path) -> None:
    root = make_trials(tmp_path, *draw_places(3))
    baseline = stored(renew_baseline(root))
    [record] = baseline.collections
    assert record.lists["runs/a"].trials == 3
    assert [part for part in record.digests if part.startswith("runs/")] == ["runs/a"]
    rows = record.trials["RR@10"]
    assert [len(row) for row in rows] == [QUERIES] * 3
    for q, values in enumerate(zip(*rows, strict=True)):
        assert record.values["RR@10"][q] == pytest.approx(sum(values) / 3)
    verdict = gate_verdict(root)
    assert (verdict.exit_code, verdict.checks[0].status) == (0, "unchanged")
    trials = repeats_of(verdict)
    assert (trials.baseline, trials.candidate, trials.share) == (3, 3, 0)


def test_new_trials_of_the_same_system_are_independent(tmp_path: Path) -> None:
    root = make_trials(tmp_path, *draw_places(3, seed=1))
    renew_baseline(root)
    write_trials(root, *draw_places(3, seed=2))
    verdict = gate_verdict(root)
    trials = repeats_of(verdict)
    assert [change.change for change in verdict.list_changes] == ["contents"]
    assert (trials.baseline, trials.candidate, trials.is_paired) == (3, 3, False)
    assert verdict.checks[0].status == "inconclusive"


def test_an_effect_of_trials_is_no_regression(tmp_path: Path) -> None:
    """Trials that differ by more than the fall: the plain test of their means would alarm."""
    root = make_trials(tmp_path, *move_places(0.0, 0.2, 0.4))
    renew_baseline(root)
    write_trials(root, *move_places(0.2, 0.4, 0.6))
    verdict = gate_verdict(root)
    check, trials = verdict.checks[0], repeats_of(verdict)
    assert check.difference == pytest.approx(-0.1)
    assert check.status == "inconclusive"
    assert trials.share > 0.5
    assert check.lower_end is not None
    assert check.lower_end < -0.2
    text = format_text(verdict)
    assert names_in_order(text, "baseline 3", "0.1000)")
    assert "more trials are" in text


def test_another_last_trial_is_a_changed_list(tmp_path: Path) -> None:
    places = draw_places(4, seed=1)
    root = make_trials(tmp_path, *places[:3])
    renew_baseline(root)
    write_trials(root, *places[:2], places[3])
    verdict = gate_verdict(root)
    assert [(each.part, each.change) for each in verdict.list_changes] == [("runs/a", "contents")]
    assert not repeats_of(verdict).is_paired


def test_the_same_fall_in_every_trial_is_one(tmp_path: Path) -> None:
    root = make_trials(tmp_path, *draw_places(3, share=0.1, seed=3))
    renew_baseline(root)
    write_trials(root, *draw_places(3, share=0.8, seed=4))
    verdict = gate_verdict(root)
    assert (verdict.exit_code, verdict.checks[0].status) == (1, "regressed")


def test_the_same_trials_under_another_configuration_are_paired(tmp_path: Path) -> None:
    root = make_trials(tmp_path, *move_places(0.0, 0.2, 0.4))
    renew_baseline(root)
    edit(root, EXPERIMENT, "live: {runs: [a]}", "live: {runs: [a], top_k: 1}")
    verdict = gate_verdict(root)
    trials = repeats_of(verdict)
    assert verdict.list_changes == ()
    assert trials.is_paired


def test_one_trial_borrows_the_spread_of_the_others(tmp_path: Path) -> None:
    root = make_trials(tmp_path, *move_places(0.4), checks="RR@10: {max_drop: 0.1}")
    edit(root, EXPERIMENT, "gate:\n", "gate:\n  unreproduced: accept\n")
    renew_baseline(root)
    write_trials(root, *move_places(0.0, 0.1, 0.2))
    [refusal] = gate_verdict(root).refusals
    assert names_in_order(refusal, "mine: runs/a", "3 repeats", "baseline 1: ")
    renew_baseline(root, "three runs of the agent")
    write_trials(root, *move_places(0.1, 0.3, 0.5))
    verdict = gate_verdict(root)
    [check] = [check for check in verdict.checks if check.reference == "anchor"]
    trials = check.trials
    assert trials is not None
    assert (trials.baseline, trials.candidate, trials.is_borrowed) == (1, 3, True)
    assert check.status == "inconclusive"
    assert "as unsteady as" in format_text(verdict)


def test_lists_keep_each_their_own_number_of_repeats(tmp_path: Path) -> None:
    root = make_trials(tmp_path, *draw_places(3))
    edit(root, "datasets/mine/dataset.yaml", "path: b.trec", 'path: "b-*.trec"')
    (root / "datasets/mine/b.trec").unlink()
    for number, place in enumerate(draw_places(2, seed=1), 1):
        (root / f"datasets/mine/b-{number}.trec").write_text(
            run_lines(place, "b"), encoding="utf-8"
        )
    edit(root, EXPERIMENT, "live: {runs: [a]}", "live: {runs: [a, b], top_k: 3}")
    [record] = stored(renew_baseline(root)).collections
    assert {part: each.trials for part, each in record.lists.items()} == {"runs/a": 3, "runs/b": 2}
    assert len(record.trials["RR@10"]) == 2
    verdict = gate_verdict(root)
    assert (verdict.exit_code, verdict.checks[0].status) == (0, "unchanged")
    # Alone the first list has three trials, two of which the baseline fused.
    edit(root, EXPERIMENT, "live: {runs: [a, b], top_k: 3}", "live: {runs: [a]}")
    trials = repeats_of(gate_verdict(root))
    assert (trials.baseline, trials.candidate, trials.is_paired) == (2, 3, False)
    edit(root, EXPERIMENT, "live: {runs: [a]}", "live: {runs: [a, b], top_k: 3}")
    (root / "datasets/mine/b-2.trec").unlink()
    assert names_in_order(gate_verdict(root).refusals[0], "mine: runs/b", "1 repeat", "baseline 2")


def test_a_new_list_has_as_many_repeats_as_the_baseline_or_one(tmp_path: Path) -> None:
    root = make_trials(tmp_path, *draw_places(3))
    edit(root, EXPERIMENT, "live: {runs: [a]}", "live: {runs: [b]}")
    renew_baseline(root)
    edit(root, EXPERIMENT, "live: {runs: [b]}", "live: {runs: [a]}")
    [refusal] = gate_verdict(root).refusals
    assert names_in_order(refusal, "mine: runs/a", "3 repeats", "baseline 1: ")
    renew_baseline(root, "an agent")
    edit(root, EXPERIMENT, "live: {runs: [a]}", "live: {runs: [b]}")
    assert gate_verdict(root).refusals == ()


def test_a_golden_query_must_hold_in_every_trial(tmp_path: Path) -> None:
    places = draw_places(3, share=0.0)
    places[1] = {**places[1], 5: 4}
    root = make_trials(tmp_path, *places)
    edit(
        root,
        EXPERIMENT,
        "  system: live\n",
        "  system: live\n  golden: [{query: q5, document: d5, top: 3}]\n",
    )
    renew_baseline(root)
    [golden] = gate_verdict(root).golden
    assert (golden.rank, golden.holds) == (4, False)


def test_a_loss_shows_the_ranks_of_the_trial_in_which_it_is_largest(tmp_path: Path) -> None:
    root = make_trials(tmp_path, *draw_places(3, share=0.0))
    renew_baseline(root)
    places = draw_places(3, share=0.0)
    places[1] = {**places[1], 7: 5}
    write_trials(root, *places)
    verdict = gate_verdict(root)
    [loss] = verdict.regressions
    assert (loss.query, loss.trial) == ("q7", 2)
    assert loss.value_after == pytest.approx((1 + 0.2 + 1) / 3)
    assert loss.documents[0].rank_after == 5
    assert "ranks of trial 2)" in format_text(verdict)


def test_an_empty_trial_is_refused(tmp_path: Path) -> None:
    root = make_trials(tmp_path, *draw_places(2))
    edit(root, EXPERIMENT, "dataset: mine\n", "dataset: mine\nquery_type: local\n")
    renew_baseline(root)
    (root / "datasets/mine/a-2.trec").write_text("q0 Q0 d0 1 1 a\n", encoding="utf-8")
    [refusal] = gate_verdict(root).refusals
    assert names_in_order(refusal, "'a' has no result", "in trial 2")


def test_an_update_keeps_the_trials_of_the_anchor(tmp_path: Path) -> None:
    root = make_trials(tmp_path, *draw_places(3, share=0.4))
    first = stored(renew_baseline(root)).collections[0].trials
    write_trials(root, *draw_places(3, share=0.0))
    edit(
        root,
        EXPERIMENT,
        "    RR@10: {max_drop: 0.01}",
        "    RR@10: {max_drop: 0.01}\n    P@1: {max_drop: 0.01}",
    )
    path = renew_baseline(root, "better")
    baseline = stored(path)
    [anchor] = baseline.anchor.collections
    [record] = baseline.collections
    assert anchor.trials["RR@10"] == first["RR@10"] != record.trials["RR@10"]
    assert anchor.trials["P@1"] == record.trials["P@1"]
    names = [check.name for check in gate_verdict(root).checks]
    assert f"mine / RR@10{ANCHOR_SUFFIX}" in names


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda rows: rows[:1], "at least 2 trials"),
        (lambda rows: (rows[0], rows[1], rows[2][:-1]), "59 values for 60 queries"),
        (lambda rows: (rows[0], rows[0], rows[0]), "their means are not the values"),
        (lambda rows: (rows[0], rows[1], (2.0, *rows[2][1:])), "values from 0 to 1 are needed"),
    ],
)
def test_trials_that_do_not_fit_the_values_are_refused(
    tmp_path: Path, change: object, words: str
) -> None:
    path = renew_baseline(make_trials(tmp_path, *draw_places(3)))
    baseline = stored(path)
    [record] = baseline.collections
    assert callable(change)
    broken = record.model_copy(update={"trials": {"RR@10": change(record.trials["RR@10"])}})
    write_baseline(baseline.model_copy(update={"collections": (broken,)}), path)
    with pytest.raises(DataError, match=words):
        read_baseline(path)
