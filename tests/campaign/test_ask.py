"""The answers of a campaign: what ships, what is kept, what is counted, what is told."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fusion_bench as fb
from fusion_bench.campaign.ask import AskedCandidate, Referee, close_campaign
from fusion_bench.campaign.records import CampaignAnswer
from fusion_bench.config.yaml_files import Source
from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.ordering import FloatArray
from fusion_bench.errors import ConfigError
from fusion_bench.io.campaign_ledger import read_events
from fusion_bench.methods.fuse import Fusion, fusions
from tests import campaign_project as project
from tests.tiny import edit

STRONG = {"runs": ["strong"]}
BOTH = {"runs": ["weak", "strong"], "fusion": {"method": "rrf", "k": 60}}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return project.make(tmp_path)


def ask(
    root: Path, system: dict[str, Any] | None, *changes: str, **options: bool
) -> CampaignAnswer:
    source = None if system is None else Source(Path("candidate"), system)
    candidate = AskedCandidate(source, changes, options.pop("allow_lists", False))
    return Referee(project.paths_of(root)).ask(candidate, **options)


def test_a_true_gain_ships_and_is_the_next_baseline(root: Path) -> None:
    project.open_made(root, ships=2)
    first = ask(root, BOTH)
    assert (first.answer, first.number, first.phase, first.asks_left) == ("ship", 1, 1, 19)
    state = project.paths_of(root).read_state()
    assert state.baseline_of(2)["runs"] == ["weak", "strong"]
    second = ask(root, {"runs": ["weak"]})
    assert (second.answer, second.phase) == ("keep", 2)
    assert second.tuning is not None
    assert second.tuning.gain.difference < 0


def test_after_the_last_ship_it_is_closed(root: Path) -> None:
    project.open_made(root)
    assert ask(root, STRONG).answer == "ship"
    after = ask(root, BOTH)
    assert (after.answer, after.number, after.asks_left) == ("closed", None, 0)
    assert "ship" in after.reason


def test_a_change_of_nothing_is_kept(root: Path) -> None:
    project.open_made(root)
    told = ask(root, {"runs": ["weak"], "fusion": {"method": "rrf", "k": 10}})
    assert told.answer == "keep"
    assert told.tuning is not None
    assert told.tuning.changes == ()


def test_the_same_configuration_costs_nothing_however_it_is_written(root: Path) -> None:
    project.open_made(root, level=1e-9)
    first = ask(root, BOTH)
    again = ask(root, {"fusion": {"k": 60.0, "method": "rrf"}, "runs": ["weak", "strong"]})
    assert (again.number, again.asks_left, again.answer) == (1, 19, first.answer)
    assert again.is_repeated
    assert not first.is_repeated
    assert ask(root, BOTH | {"fusion": {"method": "rrf", "k": 61}}).asks_left == 18
    for fusion in ("rrf", {"method": "rrf", "k": 60}):
        by_type = {"hybrid": {"fusion": fusion}}
        assert ask(root, {"runs": ["weak"], "by_query_type": by_type}).asks_left == 17


def test_changes_are_made_to_the_baseline_of_the_phase(root: Path) -> None:
    project.open_made(root, ships=2)
    ask(root, BOTH)
    told = ask(root, None, "fusion.k=20")
    asked: Any = project.paths_of(root).read_state().asks[-1].config
    assert (asked["runs"], asked["fusion"]["k"]) == (["weak", "strong"], 20)
    assert told.number == 2


def test_no_ask_is_answered_beyond_the_declared_number(root: Path) -> None:
    project.open_made(root, asks=2)
    for k in (1, 2):
        ask(root, None, f"fusion.k={k}")
    assert ask(root, None, "fusion.k=3").answer == "closed"
    assert ask(root, None, "fusion.k=1").answer == "keep"
    assert len(project.paths_of(root).read_state().asks) == 2


def test_lint_knows_the_dataset(root: Path) -> None:
    project.open_made(root)
    told = ask(root, {**BOTH, "fusion": {"method": "convex", "normalize": "none"}})
    assert told.tuning is not None
    findings = {each.id: each.datasets for each in told.tuning.lint}
    assert findings == {"missing-zero-negative": ("made",)}


def test_only_tuning_queries_are_told(root: Path) -> None:
    project.open_made(root)
    told = ask(root, {"runs": ["weak", "strong"], "fusion": {"method": "isr"}}, explain=True)
    text = told.model_dump_json()
    held_out = project.held_out_queries(root)
    assert held_out
    assert told.tuning is not None
    assert told.tuning.gain.queries == project.QUERIES - len(held_out)
    assert not [query for query in held_out if f'"{query}"' in text]


def test_lost_documents_are_those_that_fall_out_of_the_first_ten(root: Path) -> None:
    project.open_made(root)
    told = ask(root, {"runs": ["strong"], "depth": 2}, explain=True)
    assert told.tuning is not None
    assert told.tuning.lost
    assert all(each.rank is None for each in told.tuning.lost)
    changed = {each.query for each in told.tuning.changes}
    assert {each.query for each in told.tuning.lost} <= changed


def add_list(root: Path, copied: str) -> None:
    """Give the dataset the list ``new``, or new contents of it."""
    folder = root / "datasets/made"
    (folder / "new.trec").write_bytes((folder / f"{copied}.trec").read_bytes())
    text = (folder / "dataset.yaml").read_text(encoding="utf-8")
    if "new:" not in text:
        (folder / "dataset.yaml").write_text(f"{text}  new: {{path: new.trec}}\n", encoding="utf-8")


def test_a_new_list_that_shipped_is_frozen_from_then_on(root: Path) -> None:
    """Whoever could change it would make the baseline worse, and ship against it."""
    project.open_made(root, ships=2)
    add_list(root, "strong")
    assert ask(root, {"runs": ["new"]}, allow_lists=True).answer == "ship"
    told = ask(root, {"runs": ["weak"]})
    assert (told.answer, told.number) == ("keep", 2)
    assert told.tuning is not None
    assert told.tuning.gain.difference < 0
    assert ask(root, None, "fusion.k=3").number == 3  # it is allowed from now on
    add_list(root, "weak")
    for runs in (["strong"], ["strong", "new"]):
        told = ask(root, {"runs": runs}, allow_lists=True)
        assert (told.answer, told.number) == ("closed", None)
        assert "runs/new" in told.reason
    report = close_campaign(project.paths_of(root), "A. Person")
    assert "runs/new" in report.changes
    assert report.asks[0].is_contradicted


def test_a_campaign_closes_without_a_new_list_that_is_gone(root: Path) -> None:
    project.open_made(root)
    add_list(root, "strong")
    ask(root, {"runs": ["new"]}, allow_lists=True)
    edit(root, project.DATASET, "  new: {path: new.trec}\n", "")
    report = close_campaign(project.paths_of(root), "A. Person")
    assert report.asks[0].gain is None
    assert "runs/new" in report.changes


class Oracle(Fusion):
    """``oracle``: reads the grades, which a fusion gets with the lists."""

    method: str = "oracle"

    def fuse(self, runs: AlignedRuns) -> FloatArray:
        return runs.grades.astype(float)


ORACLE = {"runs": ["weak", "strong"], "fusion": Oracle}


@pytest.mark.parametrize(
    "system",
    [
        ORACLE,
        {"runs": ["weak", "s"], "stages": {"s": ORACLE}},
    ],
)
def test_code_is_no_configuration(root: Path, system: dict[str, Any]) -> None:
    project.open_made(root)
    fusions.add_own(Oracle)
    with pytest.raises(ConfigError, match="oracle is code"):
        fb.ask_campaign(root / project.CAMPAIGN, system)
    assert not project.paths_of(root).read_state().asks


def test_a_candidate_that_cannot_be_computed_is_kept_and_counted(root: Path) -> None:
    project.open_made(root)
    lo = {"method": "theoretical_min_max", "lo": {"weak": 15, "strong": 15}}
    told = ask(root, {**BOTH, "fusion": {"method": "convex", "normalize": lo}})
    assert (told.answer, told.tuning, told.asks_left) == ("keep", None, 19)
    assert "lower 'lo'" in told.error


@pytest.mark.parametrize(
    ("system", "part"),
    [
        ({"runs": ["missing"]}, "missing"),
        ({"runs": ["weak"], "fusions": 1}, "fusions"),
        ({}, "runs"),
        ({"runs": ["weak"], "fusion": {"method": "rrf", "k": float("nan")}}, "k"),
    ],
)
def test_what_breaks_a_rule_is_refused_and_costs_nothing(
    root: Path, system: dict[str, Any], part: str
) -> None:
    project.open_made(root)
    with pytest.raises(ConfigError, match=part):
        ask(root, system)
    assert project.paths_of(root).read_state().asks == ()


def test_a_new_list_is_no_configuration(root: Path) -> None:
    project.open_made(root)
    dataset = root / project.DATASET
    text = dataset.read_text(encoding="utf-8")
    dataset.write_text(f"{text}  new: {{path: strong.trec}}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="--allow-lists"):
        ask(root, {"runs": ["new"]})
    told = ask(root, {"runs": ["new"]}, allow_lists=True)
    assert told.answer == "ship"
    [asked] = project.paths_of(root).read_state().asks
    assert [text.split()[0] for text in asked.lists] == ["runs/new"]


@pytest.mark.parametrize(
    ("file", "before", "after", "part"),
    [
        ("qrels.txt", "q3 0 r3 1", "q3 0 r3 2", "qrels"),
        ("weak.trec", "q3 Q0 r3", "q3 Q0 z3", "runs/weak"),
        ("dataset.yaml", "judgments: complete", "judgments: pooled", "judgments"),
    ],
)
def test_changed_data_close_it_until_they_are_restored(
    root: Path, file: str, before: str, after: str, part: str
) -> None:
    project.open_made(root)
    path = root / "datasets/made" / file
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after), encoding="utf-8")
    told = ask(root, STRONG)
    assert (told.answer, told.number, told.asks_left) == ("closed", None, 20)
    assert part in told.reason
    path.write_text(text, encoding="utf-8")
    assert ask(root, STRONG).answer == "ship"


def test_another_version_of_the_code_closes_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project.open_made(root)
    monkeypatch.setattr("fusion_bench.campaign.frozen_data.RULE", 99)
    assert ask(root, STRONG).answer == "closed"


def test_the_charge_is_on_disk_before_the_work_and_a_killed_ask_is_answered_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.open_made(root)
    ledger = project.paths_of(root).ledger
    with monkeypatch.context() as patched:
        patched.setattr(
            "fusion_bench.campaign.frozen_data.FrozenData.measure_system",
            lambda *_: (_ for _ in ()).throw(KeyboardInterrupt),
        )
        with pytest.raises(KeyboardInterrupt):
            ask(root, STRONG)
    assert [event.event for event in read_events(ledger)] == ["open", "ask"]
    told = ask(root, STRONG)
    assert (told.number, told.answer, told.asks_left) == (1, "ship", 0)


def test_of_two_asks_at_once_one_ships(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project.open_made(root)
    inner: list[str] = []
    record = Referee._record

    def record_late(self: Referee, number: int, phase: int, word: Any) -> Any:  # noqa: ANN401 - the word
        if not inner:
            inner.append("")
            inner[0] = ask(root, STRONG).answer
        return record(self, number, phase, word)

    monkeypatch.setattr(Referee, "_record", record_late)
    outer = ask(root, BOTH)
    assert (inner, outer.answer) == (["ship"], "keep")
    assert project.paths_of(root).read_state().ships == (2,)


def test_the_ledger_holds_no_value(root: Path) -> None:
    project.open_made(root)
    ask(root, BOTH)
    lines = [json.loads(line) for line in project.paths_of(root).ledger.read_text().splitlines()]
    asked, answered = lines[1:]
    assert set(answered) == {
        *("version", "event", "campaign", "date", "number", "lists", "answer"),
        *("line", "previous", "sha256"),
    }
    assert set(asked) - set(answered) == {"config"}


def test_every_ask_evaluates_the_held_out_queries(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fusion_bench.ranking.system_scores import evaluate_systems

    project.open_made(root, level=1e-40)
    sizes: list[int] = []

    def count(systems: Any, runs: Any, measures: Any, **options: Any) -> Any:  # noqa: ANN401 - passed on
        sizes.append(len(runs.queries))
        return evaluate_systems(systems, runs, measures, **options)

    monkeypatch.setattr("fusion_bench.campaign.frozen_data.evaluate_systems", count)
    for system in ({"runs": ["weak"], "depth": 1}, {**BOTH, "depth": 7}, STRONG):
        sizes.clear()
        ask(root, system)
        held_out = len(project.held_out_queries(root))
        assert sizes.count(held_out) >= 2
        assert np.isclose(sum(sizes), 2 * project.QUERIES)
