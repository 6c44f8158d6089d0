"""What a campaign freezes, and what it refuses to rest on."""

import hashlib
import json
import re
from pathlib import Path
from unittest.mock import Mock

import pytest

from fusion_bench.campaign import opening
from fusion_bench.campaign.ask import AskedCandidate, Referee, close_campaign
from fusion_bench.config.plugin_files import loaded_plugins
from fusion_bench.errors import ConfigError, DataError, FusionBenchError
from fusion_bench.experiment.experiment import read_experiment
from fusion_bench.io import campaign_ledger
from fusion_bench.io.dataset import load_dataset
from fusion_bench.io.provenance import ListMeta, meta_path
from fusion_bench.stats.inference import MIN_UNITS
from tests import campaign_project as project
from tests.tiny import edit
from tests.tune.cases import make_look


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return project.make(tmp_path)


def test_half_of_the_queries_decide_and_the_baseline_is_frozen(root: Path) -> None:
    status = project.open_made(root, asks=50, ships=2)
    assert status.tuning_queries + status.held_out_queries == project.QUERIES
    assert abs(status.tuning_queries - status.held_out_queries) <= 1
    assert (status.asks_left, status.phase, status.ships) == (50, 1, ())
    assert status.baseline["runs"] == ["weak"]
    assert status.measure == "nDCG@10"
    assert not status.no_guarantee


def test_each_phase_says_what_it_can_find(root: Path) -> None:
    first, second, third = project.open_made(root, asks=50, ships=3).phases
    assert first.share == pytest.approx(0.05 / 2 / 50)
    assert second.share == pytest.approx(0.05 / 4 / 50 / 50)
    assert third.share == pytest.approx(0.05 / 4 / 50 / (50 * 49 / 2))
    gains = [phase.detectable_gain for phase in (first, second, third)]
    assert gains == sorted(gains, key=lambda gain: gain or 1)
    assert gains[0] is not None
    assert 0.02 < gains[0] < 0.3


def test_what_is_found_counts_the_groups_that_are_held_out(root: Path) -> None:
    """Not those that the mean size of the tuning groups would make of them."""
    rows = [{"id": f"q{q}", **_place(q)} for q in range(project.QUERIES)]
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    (root / "datasets/made/queries.jsonl").write_text(lines, encoding="utf-8")
    edit(
        root, project.DATASET, "judgments: complete", "judgments: complete\nqueries: queries.jsonl"
    )
    status = project.open_made(root)
    assert status.held_out_groups == MIN_UNITS
    assert status.phases[0].detectable_gain is not None


def _place(query: int) -> dict[str, str]:
    """Twenty groups of five queries decide; ten of ten are tuned on."""
    if query < project.QUERIES // 2:
        return {"split": "test", "group": f"t{query % MIN_UNITS}"}
    return {"split": "dev", "group": f"d{query % 10}"}


@pytest.mark.parametrize("seed", ["fusion-bench", "another"])
def test_no_query_is_held_out_twice_even_after_closing(root: Path, seed: str) -> None:
    project.open_made(root)
    close_campaign(project.paths_of(root), "A. Person")
    other = f"tune: {{system: weak, split_seed: {seed}}}\nmeasures:"
    edit(root, "experiments/e.yaml", "measures:", other)
    with pytest.raises(ConfigError, match="held out twice"):
        project.open_made(root, "reports/campaigns/again")


def test_a_second_campaign_holds_out_others(root: Path) -> None:
    project.open_made(root)
    first = project.paths_of(root).read_state()
    place = "reports/campaigns/second"
    with pytest.raises(ConfigError, match=first.campaign):  # which tells all about them
        project.open_made(root, place)
    status = project.open_made(root, place, accepts_no_guarantee=True)
    assert first.campaign in status.no_guarantee
    second = project.paths_of(root, "reports/campaigns/second").read_state()
    assert set(first.held_out.queries).isdisjoint(second.held_out.queries)
    assert set(first.held_out.queries).isdisjoint(second.plan.tuning)
    assert status.tuning_queries + status.held_out_queries == len(first.plan.tuning)


@pytest.mark.parametrize("name", ["reports/e/report.json", "reports/baselines/e.json"])
def test_a_record_with_held_out_queries_is_a_look(root: Path, name: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True)
    record = {"format": "fusion-bench-report", "name": "made", "queries": ["q1", "q2", "q3", "q4"]}
    path.write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(ConfigError, match="--no-guarantee"):
        project.open_made(root)
    path.write_text(json.dumps(record | {"name": "other"}), encoding="utf-8")
    assert not project.open_made(root).no_guarantee


def test_a_counted_look_of_tune_is_a_look(root: Path) -> None:
    from fusion_bench.io.fingerprints import query_digests
    from fusion_bench.io.looks import format_line

    queries = query_digests(f"q{q}" for q in range(project.QUERIES))
    look = make_look(*queries, version=2, system="weak", numbers="ab")
    (root / "datasets/made/looks.jsonl").write_text(format_line(look), encoding="utf-8")
    with pytest.raises(ConfigError, match="100 held-out queries"):
        project.open_made(root)
    experiment, source = read_experiment(root / "experiments/e.yaml")
    from fusion_bench.campaign.opening import open_campaign
    from fusion_bench.campaign.records import CampaignRules

    status = open_campaign(
        experiment,
        source,
        root / project.DATASET,
        root / project.CAMPAIGN,
        CampaignRules(asks=5),
        accepts_no_guarantee=True,
        accepts_weakness=True,
    )
    assert "looks.jsonl" in status.no_guarantee
    assert "looks.jsonl" in project.paths_of(root).read_state().no_guarantee


@pytest.mark.parametrize(
    ("file", "before", "after", "part"),
    [
        ("datasets/made/dataset.yaml", "runs:", "groups: none\nruns:", "groups: none"),
        ("experiments/e.yaml", "baseline: weak", "baseline: both\nsplit: dev", ""),
        ("experiments/e.yaml", "runs: [weak]}", "runs: [lost]}", "lost"),
    ],
)
def test_what_no_campaign_can_rest_on_is_refused(
    root: Path, file: str, before: str, after: str, part: str
) -> None:
    edit(root, file, before, after)
    if part:
        with pytest.raises(FusionBenchError, match=part):
            project.open_made(root)
        assert not (root / "datasets/made/campaigns.jsonl").exists()
    else:  # the split that eval looks at is none of a campaign's business
        assert project.open_made(root).held_out_queries


def test_new_queries_with_answers_or_groups_of_old_ones_take_no_part(root: Path) -> None:
    """Two questions often have one answer: that refuses no campaign, and tells in none."""
    project.open_made(root)
    old = project.held_out_queries(root)
    close_campaign(project.paths_of(root), "A. Person")
    folder = root / "datasets/made"
    for name in ("qrels.txt", "weak.trec", "strong.trec"):
        lines = (folder / name).read_text(encoding="utf-8").splitlines(keepends=True)
        added = [f"new-{line}" for line in lines if line.split()[0] in old[:5]]
        added += [f"own-{line.replace(' r', ' s')}" for line in lines]
        (folder / name).write_text("".join([*lines, *added]), encoding="utf-8")
    splits = {"q": "dev", "n": "test", "o": "test"}
    text = (folder / "qrels.txt").read_text(encoding="utf-8")
    ids = dict.fromkeys(line.split()[0] for line in text.splitlines())
    rows = [f'{{"id": "{query}", "split": "{splits[query[0]]}"}}\n' for query in ids]
    grouped = [query for query in ids if query.startswith("own-")][:3]
    rows = [row for row in rows if not any(f'"{query}"' in row for query in grouped)]
    rows += [f'{{"id": "{q}", "split": "test", "group": "{old[5]}"}}\n' for q in grouped]
    (folder / "queries.jsonl").write_text("".join(rows), encoding="utf-8")
    edit(root, project.DATASET, "runs:", "queries: queries.jsonl\nruns:")
    status = project.open_made(root, "reports/campaigns/second")
    counts = (status.tuning_queries, status.held_out_queries)
    assert counts == (project.QUERIES, project.QUERIES - len(grouped))
    assert not status.no_guarantee


PLUGIN = '''
from fusion_bench.measures import BinaryMeasure
from fusion_bench.methods.fuse import Fusion
class First(BinaryMeasure):
    """``First``: nothing."""
    method: str = "First"
    def compute_values(self, ranking):
        raise AssertionError
class Mine(Fusion):
    """``mine``: nothing."""
    method: str = "mine"
    def fuse(self, runs):
        raise AssertionError
'''


@pytest.mark.parametrize(
    ("before", "after"),
    [("nDCG@10", "First"), ("weak: {runs: [weak]}", "weak: {runs: [weak], fusion: mine}")],
)
def test_code_of_the_user_s_own_is_refused(root: Path, before: str, after: str) -> None:
    """No ask and no close would know it."""
    plugin = root / "own.py"
    plugin.write_text(PLUGIN, encoding="utf-8")
    edit(root, "experiments/e.yaml", before, after)
    with (
        loaded_plugins([plugin], None),
        pytest.raises(ConfigError, match=r"(First|mine) is "),
    ):
        project.open_made(root)


def test_a_baseline_with_a_degraded_list_is_refused(root: Path) -> None:
    folder = root / "datasets/made"
    data = (folder / "strong.trec").read_bytes()
    (folder / "r.trec").write_bytes(data)
    meta = ListMeta(
        list_sha256=hashlib.sha256(data).hexdigest(),
        created="2026-01-01T00:00:00Z",
        dataset="made",
        system="weak",
        depth=8,
        score_space="unbounded",
        asked="one/model",
        providers={"two/model": ("q1",)},
        degraded={"q1": "one/model timed out"},
    )
    meta_path(folder / "r.trec").write_text(meta.model_dump_json(), encoding="utf-8")
    rerank = "rerank: {r: {path: r.trec, score_space: unbounded}}\nruns:"
    edit(root, project.DATASET, "runs:", rerank)
    blend = "{runs: [weak], blend: {method: replace, reranker: r}}"
    edit(root, "experiments/e.yaml", "weak: {runs: [weak]}", f"weak: {blend}")
    with pytest.raises(ConfigError, match="degraded"):
        project.open_made(root)
    edit(root, "experiments/e.yaml", blend, "{runs: [weak]}")
    assert project.open_made(root).asks_left


def test_judgments_that_nobody_declared_are_refused(root: Path) -> None:
    """Whether documents that nobody judged count against a system is not known."""
    path = root / "datasets/made/qrels.txt"
    rows = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(row for row in rows if row.endswith("1\n")), encoding="utf-8")
    edit(root, project.DATASET, "judgments: complete\n", "")
    with pytest.raises(ConfigError, match="'judgments: complete', 'sparse'"):
        project.open_made(root)


def test_judgments_that_are_links_are_refused(root: Path) -> None:
    """Another dataset that links to them would show what this one hides."""
    file, store = root / "datasets/made/qrels.txt", root / "store"
    store.mkdir()
    file.rename(store / "qrels.txt")
    file.symlink_to(store / "qrels.txt")
    edit(root, project.DATASET, "runs:", f"follow_links_to: [{store}]\nruns:")
    with pytest.raises(ConfigError, match="copy the file"):
        project.open_made(root)


def test_too_few_groups_can_never_ship(tmp_path: Path) -> None:
    root = project.make(tmp_path, queries=30)
    with pytest.raises(ConfigError, match="20"):
        project.open_made(root)


def test_more_ships_than_asks_are_refused(root: Path) -> None:
    with pytest.raises(ConfigError, match="--ships"):
        project.open_made(root, asks=2, ships=3)


def test_declared_groups_never_straddle(root: Path) -> None:
    lines = [f'{{"id": "q{q}", "group": "g{q // 4}"}}\n' for q in range(project.QUERIES)]
    groups = "".join(lines)
    (root / "datasets/made/groups.jsonl").write_text(groups, encoding="utf-8")
    edit(root, project.DATASET, "runs:", "groups: groups.jsonl\nruns:")
    project.open_made(root)
    held_out = {int(query[1:]) // 4 for query in project.held_out_queries(root)}
    tuning = load_dataset(root / project.DATASET).qrels.queries
    assert held_out.isdisjoint(int(query[1:]) // 4 for query in tuning)


def test_queries_that_depend_on_each_other_need_groups(root: Path) -> None:
    path = root / "datasets/made/qrels.txt"
    text = path.read_text(encoding="utf-8")
    for q in range(0, 80, 2):  # judged alike: r0, r2, … are what q1, q3, … look for, too
        text = text.replace(f"q{q + 1} 0 r{q + 1} 1", f"q{q + 1} 0 r{q} 1")
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="groups: auto"):
        project.open_made(root)
    edit(root, project.DATASET, "runs:", "groups: auto\nruns:")
    assert project.open_made(root).held_out_groups < project.QUERIES / 2


def test_a_share_beside_splits_of_the_dataset_is_refused(root: Path) -> None:
    splits = ((f"q{q}", "test" if q % 2 else "dev") for q in range(project.QUERIES))
    lines = [f'{{"id": "{query}", "split": "{split}"}}\n' for query, split in splits]
    (root / "datasets/made/queries.jsonl").write_text("".join(lines), encoding="utf-8")
    edit(root, project.DATASET, "runs:", "queries: queries.jsonl\nruns:")
    with pytest.raises(ConfigError, match="--held-out"):
        project.open_made(root, held_out=0.3)
    project.open_made(root)
    assert {int(query[1:]) % 2 for query in project.held_out_queries(root)} == {1}


def test_a_folder_with_another_file_of_that_name_is_kept(root: Path) -> None:
    from fusion_bench.io.outputs import guard_outputs

    folder = root / project.CAMPAIGN
    folder.mkdir(parents=True)
    (folder / "campaign.json").write_text("mine", encoding="utf-8")
    with (
        pytest.raises(ConfigError, match=r"campaign\.json"),
        guard_outputs({"--out": folder}, (), is_forced=False),
    ):
        project.open_made(root)
    assert not (root / "datasets/made/campaigns.jsonl").exists()


class TestWeakness:
    """A campaign that finds no gain of .05 is refused, with what would find it."""

    def test_it_is_refused_before_anything_is_written(self, root: Path) -> None:
        with pytest.raises(ConfigError) as caught:
            project.open_made(root, asks=1000, accepts_weakness=False)
        shown = str(caught.value)
        assert re.search(r"1,000 asks and 100 .* below 0\.\d+ ", shown)
        assert re.search(r"0\.05 needs .* groups; 0\.03 ", shown)
        assert "--allow-weak" in shown
        assert not (root / project.CAMPAIGN).exists()
        assert not (root / "datasets/made/campaigns.jsonl").exists()

    def test_what_the_refusal_names_is_what_the_rule_finds(self, root: Path) -> None:
        with pytest.raises(ConfigError) as caught:
            project.open_made(root, asks=1000, accepts_weakness=False)
        needed = [
            int(each.replace(",", ""))
            for each in re.findall(r"about ([\d,]+) held", str(caught.value))
        ]
        assert needed == sorted(needed)
        larger = project.make(root / "larger", queries=2 * needed[0])
        status = project.open_made(larger, asks=1000, accepts_weakness=False)
        assert (status.phases[0].detectable_gain or 1) < 0.055
        assert "mostly" not in status.guarantee

    def test_allowed_every_answer_says_so(self, root: Path) -> None:
        status = project.open_made(root, asks=1000)
        gain = status.phases[0].detectable_gain
        assert gain is not None
        words = (
            f"With 1,000 asks and 100 held-out groups a gain below {gain:.4f} mostly does not ship"
        )
        assert words in status.guarantee
        assert words in project.paths_of(root).read_state().guarantee
        answer = Referee(project.paths_of(root)).ask(AskedCandidate(None, ("fusion.k=3",)))
        assert words in answer.guarantee

    def test_systems_that_do_not_differ_say_nothing(self, root: Path) -> None:
        edit(root, "experiments/e.yaml", "runs: [weak, strong]", "runs: [weak]")
        status = project.open_made(root, accepts_weakness=False)
        assert status.phases[0].detectable_gain is None


class TestWriting:
    """The ledger's line comes last, and what is half done can be repeated."""

    @pytest.mark.parametrize("failure", [OSError(28, "full"), KeyboardInterrupt()])
    def test_a_ledger_that_cannot_be_written_leaves_nothing_open(
        self, root: Path, failure: BaseException, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(campaign_ledger, "write_atomic", Mock(side_effect=failure))
            with pytest.raises(type(failure)):
                project.open_made(root)
        assert not (root / project.CAMPAIGN / "campaign.json").exists()
        assert project.open_made(root).asks_left

    def test_a_folder_that_cannot_be_written_leaves_nothing_open(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(opening, "write_outputs", Mock(side_effect=FusionBenchError("full")))
            with pytest.raises(FusionBenchError, match="full"):
                project.open_made(root)
        assert not (root / "datasets/made/campaigns.jsonl").exists()
        assert len(load_dataset(root / project.DATASET).qrels.queries) == project.QUERIES
        assert project.open_made(root).asks_left

    def test_killed_before_the_ledger_it_is_repeated(self, root: Path) -> None:
        project.open_made(root)
        (root / "datasets/made/campaigns.jsonl").unlink()
        first = project.paths_of(root).campaign
        status = project.open_made(root)
        assert status.campaign != first
        assert project.paths_of(root).read_state().asks_left == 20

    @pytest.mark.parametrize("is_asked", [True, False])
    def test_a_campaign_that_is_open_is_not_replaced(self, root: Path, *, is_asked: bool) -> None:
        project.open_made(root)
        if is_asked:  # the folder knows of it though the ledger is gone
            Referee(project.paths_of(root)).ask(AskedCandidate(None, ("fusion.k=3",)))
            (root / "datasets/made/campaigns.jsonl").unlink()
        with pytest.raises(ConfigError, match="exists: name another"):
            project.open_made(root)


def test_a_last_line_that_is_no_text_is_one_error(root: Path) -> None:
    project.open_made(root)
    (root / project.CAMPAIGN / ".last-line").write_bytes(b"\xff\x80")
    with pytest.raises(DataError, match=r"last-line: .* byte 0"):
        project.paths_of(root).read_state()
