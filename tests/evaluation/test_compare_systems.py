"""Run files against each other, and systems of finished reports."""

from pathlib import Path

import pytest

from fusion_bench.config.json_records import none_if_nan
from fusion_bench.errors import ConfigError, FusionBenchError, UnknownNameError
from fusion_bench.evaluation.compared_reports import compare_reports
from fusion_bench.evaluation.in_memory import compare_files
from fusion_bench.evaluation.report_file import Report
from fusion_bench.evaluation.report_records import Collection
from tests import tiny
from tests.evaluation.test_run_experiment import report
from tests.tiny import DATASET, EXPERIMENT, edit


def files(root: Path, *names: str, qrels: str = "qrels.txt") -> Report:
    folder = root / "datasets/tiny"
    runs = {name.removesuffix(".trec"): folder / name for name in names}
    return compare_files(folder / qrels, runs, measures=["RR@10", "P@1"])


def test_run_files_against_the_first(tmp_path: Path) -> None:
    found = files(tiny.make(tmp_path), "a.trec", "b.trec")
    [collection] = found.collections
    assert (collection.name, collection.baseline) == ("tiny", "a")
    assert collection.system("a").measures["RR@10"].values == (0.5, 0.5, 1, 0.5)
    assert collection.system("b").measures["RR@10"].values == (1, 0.5, 0.5, 1)
    compared = collection.comparison("b", "RR@10")
    assert compared is not None
    assert compared.difference == pytest.approx((0.5 + 0 - 0.5 + 0.5) / 4)
    assert (compared.wins, compared.ties, compared.losses) == (2, 1, 1)


@pytest.mark.parametrize(
    ("name", "dataset"),
    [("_q.txt", "q"), ("jugés.txt", "jug-s"), ("2019 qrels.v2.trec.gz", "2019-qrels-v2")],
)
def test_qrels_of_any_name_will_do(name: str, dataset: str, tmp_path: Path) -> None:
    folder = tiny.make(tmp_path) / "datasets/tiny"
    (folder / "qrels.txt").rename(folder / name)
    assert files(tmp_path, "a.trec", "b.trec", qrels=name).collections[0].name == dataset


def test_within_a_report_the_numbers_are_its_own(root: Path) -> None:
    edit(root, EXPERIMENT, "baseline: one", "baseline: one\nalpha: 0.1")
    edit(root, EXPERIMENT, "  two:\n", "  a: {runs: [a]}\n  two:\n")
    found = report(root)
    [contrast] = compare_reports(found, None, baseline=None, candidates=[])
    assert contrast.collection == "tiny"
    assert (contrast.queries, contrast.alpha) == (3, 0.1)
    assert contrast.first_group == found.collections[0].first_group == ("one", "a", "two")
    assert contrast.systems == 3
    for made, own in zip(contrast.comparisons, found.collections[0].comparisons, strict=True):
        assert (made.measure, made.candidate) == (own.measure, own.candidate)
        assert made.difference == own.difference
        assert (none_if_nan(made.low), none_if_nan(made.high)) == (own.low, own.high)
        assert made.p == own.p


def test_a_candidate_keeps_the_p_value_of_its_report(root: Path) -> None:
    edit(root, EXPERIMENT, "  two:\n", "  a: {runs: [a]}\n  b: {runs: [b]}\n  two:\n")
    found = report(root)
    [contrast] = compare_reports(found, None, baseline=None, candidates=["a"])
    assert contrast.family == 3
    for made in contrast.comparisons:
        own = found.collections[0].comparison("a", made.measure)
        assert own is not None
        assert (made.candidate, made.p) == ("a", own.p)
    [pair] = compare_reports(found, found, baseline=None, candidates=["a"])
    assert pair.family == 1
    [others] = compare_reports(found, found, baseline="one", candidates=["a"])
    assert others.family == 4


def changed(found: Report, **fields: object) -> Report:
    collection: Collection = found.collections[0].model_copy(update=fields)
    return found.model_copy(update={"collections": (collection,)})


def test_reports_that_cannot_be_compared(root: Path) -> None:
    first = report(root)

    def refused(other: Report, message: str) -> None:
        with pytest.raises(FusionBenchError, match=message):
            compare_reports(first, other, baseline=None, candidates=[])

    refused(report(root, split="all"), "the reports differ in their queries: run both")
    refused(changed(first, name="x"), r"no collection in common \(tiny against x\)")
    refused(changed(first, measures=("RR@10",)), "differ in their measures")
    refused(changed(first, groups=("a", "b", "c")), "differ in their groups")
    refused(changed(first, binary_relevance=2), "differ in their binary relevance")
    edit(root, "datasets/tiny/qrels.txt", "q2 0 d3 2", "q2 0 d3 1")
    refused(report(root), "the reports were judged by different qrels")


def test_names_that_are_not_there(tmp_path: Path) -> None:
    found = report(tiny.make(tmp_path))
    with pytest.raises(UnknownNameError, match=r"'on'.*: one, two"):
        compare_reports(found, None, baseline="on", candidates=[])
    with pytest.raises(UnknownNameError, match="system 'perfect order'"):
        compare_reports(found, None, baseline=None, candidates=["perfect order"])
    with pytest.raises(ConfigError, match=r"'one' .* with itself"):
        compare_reports(found, None, baseline=None, candidates=["one"])


def test_one_system_alone_has_nothing_to_be_compared_with(root: Path) -> None:
    text = "dataset: tiny\nbaseline: one\nsystems: {one: {runs: [a]}}\n"
    (root / EXPERIMENT).write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="nothing to compare"):
        compare_reports(report(root), None, baseline=None, candidates=[])


def test_a_report_that_somebody_changed(tmp_path: Path) -> None:
    found = report(tiny.make(tmp_path))
    without = found.model_copy(update={"settings": {"alpha": 0.05}})
    with pytest.raises(ConfigError, match="'min_gain'"):
        compare_reports(without, None, baseline=None, candidates=[])
    rows = found.collections[0].systems
    cut = rows[1].model_copy(update={"measures": {}})
    with pytest.raises(ConfigError, match=r"'two' .* 'RR@10'"):
        compare_reports(changed(found, systems=(rows[0], cut)), None, baseline=None, candidates=[])
    assert (tmp_path / DATASET).exists()
