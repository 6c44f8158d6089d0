"""Small losses are summed up since the anchor."""

from pathlib import Path

import pytest

from fusion_bench.cli import main
from fusion_bench.errors import FusionBenchError
from fusion_bench.experiment.settings import Tolerance
from fusion_bench.gate.baseline import Baseline
from fusion_bench.gate.baseline_files import read_baseline
from fusion_bench.gate.verdict import ANCHOR_SUFFIX
from tests.gate import cases
from tests.gate.cases import EXPERIMENT, gate_verdict, renew_baseline
from tests.tiny import edit

BASELINE = Path("reports/baselines/mine.json")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    cases.make_project(tmp_path)
    edit(tmp_path, EXPERIMENT, "  slices: [local]\n", "  unreproduced: accept\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def stored(root: Path) -> Baseline:
    baseline = read_baseline(root / BASELINE)
    assert baseline is not None
    return baseline


def anchor_values(root: Path) -> dict[str, tuple[float, ...]]:
    [collection] = stored(root).anchor.collections
    return collection.values


def lose(root: Path, *queries: int) -> None:
    place = {q: 2 if q in queries else 1 for q in range(cases.QUERIES)}
    (root / "datasets/mine/a.trec").write_text(cases.run_lines(place, "a"))


def allow(root: Path, limit: float) -> None:
    """A tolerance that a loss of .5 by one query of 60 passes, and one since the anchor."""
    for name in ("RR@10", "nDCG@10"):
        new = f"    {name}: {{max_drop: 0.03, max_drop_since_anchor: {limit}}}"
        edit(root, EXPERIMENT, f"    {name}: {{max_drop: 0.01}}", new)


def test_the_tolerance_since_the_anchor() -> None:
    assert Tolerance(max_drop="auto", max_drop_since_anchor=0.005).stated_limits == {
        "max_drop_since_anchor": 0.005
    }
    with pytest.raises(ValueError, match="max_drop"):
        Tolerance(max_drop=0.01, max_drop_since_anchor=0.005)


def test_losses_that_pass_one_by_one_are_refused_together(root: Path) -> None:
    allow(root, 0.04)
    renew_baseline(root)
    for step in range(2):
        lose(root, *range(0, 4 * (step + 1), 4))
        assert gate_verdict(root).exit_code == 0
        renew_baseline(root, f"step {step}")
        verdict = gate_verdict(root)
        assert [check.reference for check in verdict.checks] == ["baseline"] * 2 + ["anchor"] * 2
        assert verdict.checks[0].status == "unchanged"
        assert verdict.checks[2].difference == pytest.approx(-(step + 1) / 120)
        assert verdict.checks[2].name == f"mine / RR@10{ANCHOR_SUFFIX}"
        assert verdict.anchor_reason == "first"
    lose(root, 0, 4, 8)
    verdict = gate_verdict(root)
    assert [check.status for check in verdict.checks[:2]] == ["pass"] * 2
    assert "inconclusive" in {check.status for check in verdict.checks[2:]}
    assert (verdict.exit_code, verdict.needs_anchor) == (3, True)
    before = (root / BASELINE).read_bytes()
    with pytest.raises(FusionBenchError, match=r"the anchor: -0\.0250.*--anchor"):
        renew_baseline(root, "step 2")
    assert (root / BASELINE).read_bytes() == before
    renew_baseline(root, "agreed", anchor=True)
    assert [update.is_anchor for update in stored(root).history] == [True, False, False, True]
    assert stored(root).is_anchor
    assert gate_verdict(root).exit_code == 0


def test_new_lists_keep_the_anchor_and_new_judgments_need_one(root: Path) -> None:
    allow(root, 0.1)
    renew_baseline(root)
    lose(root, 0)
    renew_baseline(root, "a new index")
    assert anchor_values(root)["RR@10"] == (1.0,) * 60
    edit(root, "datasets/mine/qrels.txt", "q7 0 d7 1\n", "q7 0 d7 1\nq7 0 d8 1\n")
    assert gate_verdict(root).needs_anchor
    with pytest.raises(FusionBenchError, match=r"anchor .*: mine: .*qrels"):
        renew_baseline(root, "more judgments")
    renew_baseline(root, "more judgments", anchor=True)
    assert stored(root).anchor.reason == "more judgments"


def test_a_new_measure_begins_with_its_new_values(root: Path) -> None:
    renew_baseline(root)
    edit(root, EXPERIMENT, "    RR@10:", "    P@1: {max_drop: 0.01}\n    RR@10:")
    before = anchor_values(root)
    renew_baseline(root, "one measure more")
    assert anchor_values(root) == {**before, "P@1": (1.0,) * 60}


def test_the_anchor_follows_the_order_of_the_queries(root: Path) -> None:
    allow(root, 0.1)
    lose(root, 3)
    renew_baseline(root)
    qrels = root / "datasets/mine/qrels.txt"
    qrels.write_text("\n".join(reversed(qrels.read_text().splitlines())) + "\n")
    lose(root, 3, 5)
    renew_baseline(root, "another order")
    [anchor] = stored(root).anchor.collections
    values = dict(zip(anchor.queries, anchor.values["RR@10"], strict=True))
    assert {query for query, value in values.items() if value < 1} == {"q3"}


def test_blessing_needs_no_other_change(root: Path) -> None:
    allow(root, 0.1)
    renew_baseline(root)
    lose(root, 0)
    renew_baseline(root, "cheaper")
    assert not stored(root).is_anchor
    renew_baseline(root, "cheaper", anchor=True)
    assert stored(root).is_anchor
    assert stored(root).history[-1].reasons == ("cheaper",)
    assert len(stored(root).history) == 2


def test_an_older_format_names_the_command_that_renews_it(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    renew_baseline(root)
    path = root / BASELINE
    path.write_text(path.read_text().replace('"format_version": 7', '"format_version": 5'))
    assert main(["gate", EXPERIMENT]) == 2
    assert "--anchor --reason" in capsys.readouterr().err
    assert main(["gate", EXPERIMENT, "--update", "--reason", "renew"]) == 2
    assert main(["gate", EXPERIMENT, "--anchor", "--reason", "renewed"]) == 0
    assert [update.reason for update in stored(root).history] == ["renewed"]
    assert main(["gate", EXPERIMENT]) == 0
