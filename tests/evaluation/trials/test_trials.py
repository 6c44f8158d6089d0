"""Systems whose lists were made several times."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fusion_bench.checks.dataset_facts import (
    dataset_notices,
    describe_dataset,
    describe_first_repeat,
    describe_selection,
    select_repeat,
)
from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import AlignmentError, ConfigError
from fusion_bench.evaluation import results
from fusion_bench.evaluation.compared_reports import compare_reports
from fusion_bench.evaluation.details.collector import DetailsCollector
from fusion_bench.evaluation.details.report_details import CollectionDetails
from fusion_bench.evaluation.report_file import Report
from fusion_bench.evaluation.report_records import Collection
from fusion_bench.evaluation.run_experiment import run_experiment
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.io.dataset import Dataset, load_dataset
from fusion_bench.report.comparison_page import build_comparison_page
from fusion_bench.report.evaluation_page import build_page
from fusion_bench.report.markdown import render_page
from fusion_bench.stats.comparison_family import (
    FusionAnswer,
    compare_family,
    decide_fusion,
)
from fusion_bench.stats.repeat_variance import mean_of_repeats
from fusion_bench.stats.values import MeasuredValues, Pair
from tests.counts_project import QUERIES, RANKS
from tests.counts_project import make as make_counts
from tests.evaluation.trials.reports import run
from tests.tiny import DATASET, EXPERIMENT, edit
from tests.trials_project import FIRST, SECOND, THIRD, TRIALS, make, make_plain

KEPT = ("judged_only", "filled")


def repeats_of(values: MeasuredValues) -> FloatArray:
    assert values.repeats is not None
    return values.repeats


def values_of(collection: Collection, name: str, measure: str) -> list[Any]:
    return list(collection.system(name).measures[measure].values)


@pytest.mark.parametrize("name", ["a", "b", "both"])
@pytest.mark.parametrize("measure", ["RR@10", "nDCG@10"])
def test_values_are_those_of_each_trial_and_their_means(
    name: str, measure: str, repeated: Collection, alone: list[Collection]
) -> None:
    expected = [values_of(each, name, measure) for each in alone]
    result = repeated.system(name).measures[measure]
    assert result.values == pytest.approx(np.mean(expected, axis=0), rel=0, abs=1e-15)
    assert [*map(list, result.trials)] == (expected if name != "b" else [])


@pytest.mark.parametrize("name", ["a", "both"])
def test_ties_and_unjudged_documents_are_means_too(
    name: str, repeated: Collection, alone: list[Collection]
) -> None:
    rows = [each.system(name) for each in alone]
    row = repeated.system(name)
    for field in KEPT:
        expected = np.mean([getattr(each, field) for each in rows], axis=0)
        assert np.allclose(getattr(row, field), expected, rtol=0, atol=1e-15)
    shares = [each.unjudged_share or 0 for each in rows]
    assert row.unjudged_share == pytest.approx(np.mean(shares))
    for measure in repeated.measures:
        for kind in ("ties", "source_ties"):
            of_trials = [getattr(each.measures[measure], kind) for each in rows]
            merged = getattr(row.measures[measure], kind)
            for end in ("minimum", "maximum", "expected"):
                expected = np.mean([getattr(each, end) for each in of_trials])
                assert getattr(merged, end) == pytest.approx(expected)


def test_a_query_without_an_answer_counts_0_in_its_trial(repeated: Collection) -> None:
    result = repeated.system("a").measures["RR@10"]
    q4 = repeated.queries.index("q4")
    assert [trial[q4] for trial in result.trials] == [0.5, 0.5, 0]
    assert result.values[q4] == pytest.approx(1 / 3)


def test_references_are_means_over_trials(repeated: Collection, alone: list[Collection]) -> None:
    pools = [values_of(each, "perfect order", "RR@10") for each in alone]
    assert np.allclose(
        values_of(repeated, "perfect order", "RR@10"), np.mean(pools, axis=0), atol=1e-15
    )
    best = np.maximum(values_of(repeated, "a", "RR@10"), values_of(repeated, "b", "RR@10"))
    assert values_of(repeated, "best source per query (oracle)", "RR@10") == best.tolist()


def test_one_trial_makes_the_report_of_one_list(tmp_path: Path) -> None:
    make(tmp_path / "glob", FIRST)
    make_plain(tmp_path / "plain", FIRST)
    first, second = run(tmp_path / "glob"), run(tmp_path / "plain")
    assert first.collections == second.collections


def test_trials_that_agree_keep_their_value_to_the_last_bit() -> None:
    values = np.array([[0.1, 0.1], [0.1, 0.4], [0.1, np.nan]])
    mean = mean_of_repeats(values)
    assert mean[0] == 0.1
    assert np.isnan(mean[1])
    assert not mean.flags.writeable


def test_a_trained_system_learns_from_its_own_trial(tmp_path: Path) -> None:
    for root in (tmp_path / "repeated", tmp_path / "alone"):
        make(root, *TRIALS) if root.name == "repeated" else make_plain(root, TRIALS[1])
        edit(
            root,
            EXPERIMENT,
            "both: {runs: [a, b]}",
            "both: {runs: [a, b], fusion: {method: bayes_fuse, folds: 2}}",
        )
    repeated = run(tmp_path / "repeated").collections[0].table.systems["both"]
    alone = run(tmp_path / "alone").collections[0].table.systems["both"]
    for name, values in alone.items():
        assert repeats_of(repeated[name])[1].tolist() == values.values.tolist()


def test_a_trial_of_other_queries_is_named(tmp_path: Path) -> None:
    make(tmp_path, FIRST, FIRST.replace("q", "x"))
    with pytest.raises(AlignmentError, match="tiny, trial 2: run 'a' "):
        run(tmp_path)


# ── lists with different numbers of files: each side has its own number of trials


MEASURE = "RR@10"


def reciprocal(name: str, count: int | None = None) -> NDArray[np.float64]:
    """(T, Q): the values of a list by hand."""
    ranks = np.array(RANKS[name][:count], dtype=float)
    values = np.zeros_like(ranks)
    values[ranks > 0] = 1 / ranks[ranks > 0]
    return values


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("counts")
    make_counts(root)
    return root


@pytest.fixture(scope="module")
def collection(project: Path) -> Collection:
    return run(project).collections[0]


def test_each_system_has_the_trials_of_its_own_lists(collection: Collection) -> None:
    results = {row.name: row.measures[MEASURE] for row in collection.ranked_systems}
    for name in "abc":
        by_hand = reciprocal(name)
        expected = by_hand.tolist() if len(by_hand) > 1 else []
        assert [*map(list, results[name].trials)] == expected
        assert results[name].values == pytest.approx(by_hand.mean(axis=0), rel=0, abs=1e-15)
    assert {name: len(each.trials) for name, each in results.items()} == {
        "a": 3,
        "b": 2,
        "c": 0,
        "ab": 2,
        "abc": 2,
    }


def test_a_fusion_reads_the_files_that_all_of_its_lists_have(
    collection: Collection, tmp_path: Path
) -> None:
    make_counts(tmp_path, a=RANKS["a"][:2])
    equal = run(tmp_path).collections[0]
    for name in ("ab", "abc", "b", "c"):
        assert collection.system(name) == equal.system(name)
    assert collection.system("a") != equal.system("a")


def test_the_variance_of_a_difference_has_the_terms_of_both_numbers(collection: Collection) -> None:
    """The variance of the means of the repeats of each side ÷ their number, by definition."""
    [item] = [each for each in collection.ranked_comparisons if each.candidate == "a"]
    sides = [reciprocal("a"), reciprocal("b")]
    difference = sides[0].mean(axis=0) - sides[1].mean(axis=0)
    by_query = difference.var(ddof=1) / len(QUERIES)
    added = sum(y.mean(axis=1).var(ddof=1) / len(y) for y in sides)
    assert item.difference == pytest.approx(difference.mean())
    assert item.standard_error == pytest.approx(np.sqrt(by_query))
    assert item.trial_share == pytest.approx(added / (by_query + added))


def test_the_page_and_the_checks_say_each_number(project: Path) -> None:
    page = render_page(build_page(run(project)))
    assert "2 or 3 trials of b, abc, " in page
    summary: Any = describe_dataset(load_dataset(project / "datasets/counts/dataset.yaml"))
    assert {row["name"]: row["trials"] for row in summary["runs"]} == {"a": 3, "b": 2, "c": 1}


def test_no_system_passes_the_perfect_order(tmp_path: Path) -> None:
    """Only the second file of b, the last that it has, finds a relevant document."""
    nothing, found = (0,) * len(QUERIES), (1,) * len(QUERIES)
    make_counts(tmp_path, a=(nothing,) * 3, b=(nothing, found), c=(nothing,))
    result = run(tmp_path).collections[0]
    values = {row.name: row.measures[MEASURE].values for row in result.systems}
    assert set(values["b"]) == {0.5}
    assert values["perfect order"] == values["b"]


def test_two_reports_have_each_their_own_number(project: Path, tmp_path: Path) -> None:
    make_counts(tmp_path, a=RANKS["a"][:2])
    reports = run(project), run(tmp_path)
    [item] = compare_reports(*reports, baseline=None, candidates=["a"])[0].comparisons
    sides = [reciprocal("a"), reciprocal("a", 2)]
    assert item.difference == pytest.approx(sides[1].mean() - sides[0].mean())
    added = sum(y.mean(axis=1).var(ddof=1) / len(y) for y in sides)
    assert item.standard_error is not None
    assert item.trial_share == pytest.approx(added / (item.standard_error**2 + added))


def test_one_trial_can_be_shown_where_all_lists_have_it(project: Path) -> None:
    dataset = load_dataset(project / "datasets/counts/dataset.yaml")
    assert describe_selection(dataset, 2) == "trial 2 of 2 or 3 of a, b"
    assert select_repeat(dataset, 2).files["runs/b"].path.name == "b-2.trec"
    with pytest.raises(ConfigError, match="counts has 2 trials "):
        select_repeat(dataset, 3)
    alone = load_dataset(project / "datasets/counts/dataset.yaml", runs=["a", "c"])
    assert select_repeat(alone, 3).files["runs/a"].path.name == "a-3.trec"


# ── records about trials: disagreement, shares of the variance


SIMULATED, COUNT = 60, 3


def test_a_row_says_how_far_its_trials_lie_apart(repeated: Collection) -> None:
    trials = repeated.system("a").trials
    assert trials is not None
    assert trials.lists == ("runs/a",)
    assert trials.means == pytest.approx([2.5 / 4, 3 / 4, 2 / 4])
    assert trials.sd == pytest.approx(0.125)
    assert (trials.disagreeing_pair, trials.disagreeing) == (1, 2)
    shares = (trials.query_share, trials.trial_share, trials.residual_share)
    assert sum(share or 0 for share in shares) == pytest.approx(1)
    assert repeated.system("b").trials is None


def make_pair(*, is_shared: bool) -> Pair:
    """Two systems whose trials all move by the same amount; what a fusion of one adds is fixed."""
    random = np.random.default_rng(5)
    query = random.normal(0.5, 0.1, SIMULATED)
    moves = np.array([-0.1, 0.0, 0.1])[:, None]
    agent = query + moves
    fused = agent + random.normal(0.01, 0.02, SIMULATED)
    lists = frozenset({"runs/agent"})
    first, second = (
        MeasuredValues(each.mean(axis=0), each, lists if is_shared else frozenset())
        for each in (fused, agent)
    )
    return Pair(first, second, tuple(map(str, range(SIMULATED))))


def test_trials_of_a_shared_list_cancel() -> None:
    [shared] = compare_family([make_pair(is_shared=True)])
    [nested] = compare_family([make_pair(is_shared=False)])
    assert shared.difference == nested.difference
    assert shared.trial_share == 0
    assert (nested.trial_share or 0) > 0.9
    assert nested.high - nested.low > 10 * (shared.high - shared.low)


def test_whether_fusion_pays_accounts_for_trials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Mapping[tuple[str, str], Pair]] = []

    def spy(pairs: Mapping[tuple[str, str], Pair], *, seed: int, alpha: float) -> FusionAnswer:
        calls.append(pairs)
        return decide_fusion(pairs, seed=seed, alpha=alpha)

    monkeypatch.setattr(results, "decide_fusion", spy)
    make(tmp_path, *TRIALS)
    collection = run(tmp_path).collections[0]
    values = collection.table.values_of(collection.primary_measure)
    [pairs] = calls
    both, alone = (repeats_of(values[name]).mean(axis=1) for name in ("both", "a"))
    [shared], [own] = (pairs["both", source].repeats for source in ("a", "b"))
    assert shared == pytest.approx(both - alone)
    assert own == pytest.approx(both)


# ── what is found on the first trial alone, and that it is named


BLENDED = "  blended: {runs: [a, b], blend: {method: replace, reranker: r, missing: below}}\n"
GROUPED = "'groups: auto' compared trial 1 of 2 of a. New trials may give other groups."
VERDICTS = "CRAG's verdicts are those of trial 1 of 2 of a. New trials may give others."


def make_crag(root: Path, *, repeated: bool) -> Collection:
    """A report of CRAG's verdicts, with refined lists of ``b``; ``a`` has two trials or one."""
    if repeated:
        make(root, FIRST, SECOND)
    else:
        make_plain(root, FIRST)
    refined = "q1 Q0 d1 1 0.9 b\nq4 Q0 d4 1 0.9 b\n"
    (root / "datasets/tiny/b2.trec").write_text(refined, encoding="utf-8")
    edit(root, DATASET, "{path: b.trec,", "{path: b.trec, refined: b2.trec,")
    edit(root, DATASET, "{path: r.trec,", "{path: r.trec, refined: r.trec,")
    crag = f"{BLENDED}crag: {{top: 1, upper: 0.95, refine: [ambiguous]}}\n"
    edit(root, EXPERIMENT, "  both: {runs: [a, b]}\n", crag)
    report = run(root)
    page = render_page(build_page(report))
    assert (VERDICTS in page) is repeated
    return report.collections[0]


def test_crag_judges_the_first_trial_and_says_so(tmp_path: Path) -> None:
    repeated = make_crag(tmp_path / "repeated", repeated=True)
    alone = make_crag(tmp_path / "alone", repeated=False)
    assert repeated.first_trial == (VERDICTS,)
    assert alone.first_trial == ()
    assert repeated.crag[0].refined is not None
    assert repeated.crag == alone.crag  # so are the values that refined lists are compared with


def find_groups(dataset: Dataset) -> Dataset:
    """The dataset as 'groups: auto' has it, which so small a one refuses."""
    return replace(dataset, spec=dataset.spec.model_copy(update={"groups": "auto"}))


def test_groups_that_are_found_name_the_trial(tmp_path: Path) -> None:
    path = make(tmp_path, FIRST, SECOND)
    assert describe_first_repeat(load_dataset(path)) == ()
    dataset = find_groups(load_dataset(path))
    assert describe_first_repeat(dataset) == (GROUPED,)
    assert dataset_notices(dataset)[-1] == GROUPED
    assert describe_first_repeat(find_groups(load_dataset(path, runs=["b"]))) == ()


# ── two reports of a system with trials: the same ones, new ones, or one alone


def report_of(root: Path, *texts: str) -> Report:
    make(root, *texts)
    experiment, source = read_experiment(root / EXPERIMENT)
    return run_experiment(experiment, source, folders=[root / "datasets"])


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return report_of(tmp_path_factory.mktemp("first"), *TRIALS)


def test_other_files_are_new_trials(first: Report, tmp_path: Path) -> None:
    second = report_of(tmp_path, *reversed(TRIALS))
    [old], [new] = first.collections, second.collections
    for name in ("a", "both"):
        sides = (each.table.systems[name]["RR@10"].lists for each in (old, new))
        assert next(sides).isdisjoint(next(sides))
    again = compare_reports(first, first, baseline=None, candidates=["a"])[0].comparisons[0]
    other = compare_reports(first, second, baseline=None, candidates=["a"])[0].comparisons[0]
    assert (again.difference, again.trial_share) == (0, 0)
    # The means are equal, and nothing says that these trials belong together.
    assert other.difference == 0
    assert other.standard_error == again.standard_error == 0
    assert other.trial_share == 1


def test_one_trial_beside_several_is_named(first: Report, tmp_path: Path) -> None:
    second = report_of(tmp_path, TRIALS[0])
    [item] = compare_reports(first, second, baseline=None, candidates=["a"])
    [warning] = [each for each in item.warnings if each.key == "single trial"]
    assert "one trial of a," in warning.text
    [item] = compare_reports(second, first, baseline=None, candidates=["b"])
    assert "single trial" not in {each.key for each in item.warnings}


def test_the_page_says_that_values_are_means(first: Report) -> None:
    for candidate, expected in (("a", True), ("b", False)):
        items = compare_reports(first, first, baseline=None, candidates=[candidate])
        [table] = [
            table for section in build_comparison_page(items).sections for table in section.tables
        ]
        assert any("means over these" in note for note in table.notes) is expected


# ── what stands behind the values of systems of several trials: that of the first


def details(root: Path) -> CollectionDetails:
    experiment, source = read_experiment(root / EXPERIMENT)
    collector = DetailsCollector(names=("a", "both"))
    report = run_experiment(experiment, source, folders=[root / "datasets"], details=collector)
    return collector.make_details(report).collections[0]


def test_details_are_those_of_the_first_trial_alone(tmp_path: Path) -> None:
    make(tmp_path / "repeated", SECOND, FIRST, THIRD)  # the first is not like the mean
    make_plain(tmp_path / "alone", SECOND)
    repeated, alone = details(tmp_path / "repeated"), details(tmp_path / "alone")
    assert sorted(repeated.detailed) == sorted(alone.detailed)
    for name in ("leave_one_out", "depth_curve"):
        ours, theirs = (sorted(map(repr, getattr(each, name).rows)) for each in (repeated, alone))
        assert ours == theirs, name
