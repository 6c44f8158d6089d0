"""Attempts to ask a campaign more often than was declared, or to see what it hides.

Each is noticed, or changes nothing. What no file can prevent is said in docs/campaign.md.
"""

import json
import random
import shutil
import signal
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fusion_bench.campaign.ask import AskedCandidate, Referee, close_campaign
from fusion_bench.campaign.pages import build_report_page
from fusion_bench.campaign.records import CampaignAnswer
from fusion_bench.cli import main
from fusion_bench.errors import ConfigError, DataError, FusionBenchError
from fusion_bench.io import campaign_ledger
from fusion_bench.io.campaign_ledger import CampaignEvent, append_events, read_events
from fusion_bench.io.dataset import load_dataset
from tests import campaign_project as project
from tests.docs.printed import ROOT
from tests.git_project import commit_all, run_git
from tests.tiny import edit

EXPERIMENT = "experiments/e.yaml"
DATA = "datasets/made"
LEDGER = f"{DATA}/campaigns.jsonl"
#: Asks that a campaign of these tests declares.
ASKS = 20


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = project.make(tmp_path / "here")
    monkeypatch.chdir(root)
    project.open_made(root, asks=ASKS)
    for k in (1, 2):
        ask(root, k)
    return root


def ask(root: Path, k: int, out: str = project.CAMPAIGN) -> CampaignAnswer:
    """Ask about a fusion of one list, which changes nothing and is kept."""
    return Referee(project.paths_of(root, out)).ask(AskedCandidate(None, (f"fusion.k={k}",)))


def left(root: Path, out: str = project.CAMPAIGN) -> int:
    return project.paths_of(root, out).read_state().asks_left


def reopen(name: str, *words: str) -> int:
    return main(
        ["campaign", "open", f"experiments/{name}.yaml", "--asks", "5", "--allow-weak", *words]
    )


class TestRepositories:
    """A ledger from before the last commit, with something around it that hides the commit."""

    @pytest.fixture
    def restored(self, root: Path) -> Path:
        """A project whose ledger was committed with two asks, and has one."""
        text = (root / LEDGER).read_text()
        commit_all(root)
        (root / LEDGER).write_text("".join(text.splitlines(keepends=True)[:3]))
        (root / project.CAMPAIGN / ".last-line").unlink()
        return root

    @pytest.mark.parametrize("folder", ["datasets", DATA])
    @pytest.mark.parametrize("kind", ["empty folder", "empty file", "repository", "commit"])
    def test_one_between_changes_nothing(self, restored: Path, folder: str, kind: str) -> None:
        place = restored / folder
        if kind == "empty folder":
            (place / ".git").mkdir()
        elif kind == "empty file":
            (place / ".git").touch()
        else:
            run_git(place, "init", "--quiet", "--initial-branch=main")
        if kind == "commit":
            commit_all(place)
        with pytest.raises(FusionBenchError, match=r"committed|not accept"):
            ask(restored, 3)

    def test_a_dataset_moved_behind_a_link_is_compared(self, restored: Path) -> None:
        outside = restored.parent / "outside"
        (restored / DATA).rename(outside)
        (restored / DATA).symlink_to(outside)
        with pytest.raises(DataError, match="was committed"):
            ask(restored, 3)
        with pytest.raises(DataError, match="was committed"):
            load_dataset(restored / project.DATASET)


class TestTheFolder:
    def test_renamed_it_is_the_same_campaign(self, root: Path) -> None:
        (root / project.CAMPAIGN).rename(root / "reports/campaigns/renamed")
        assert ask(root, 3, "reports/campaigns/renamed").asks_left == ASKS - 3

    def test_moved_to_another_depth_it_says_what_it_misses(self, root: Path) -> None:
        (root / project.CAMPAIGN).rename(root / "moved")
        with pytest.raises(DataError, match="move the folder"):
            ask(root, 3, "moved")

    def test_copies_count_together(self, root: Path) -> None:
        copy = "reports/campaigns/copy"
        shutil.copytree(root / project.CAMPAIGN, root / copy)
        assert ask(root, 3, copy).asks_left == ASKS - 3
        assert ask(root, 4).asks_left == ASKS - 4
        assert left(root, copy) == ASKS - 4

    @pytest.mark.parametrize("words", [(), ("--force",)])
    def test_no_other_campaign_takes_its_place(self, root: Path, words: tuple[str, ...]) -> None:
        assert reopen("e", *words) == 2
        assert ask(root, 3).asks_left == ASKS - 3

    def test_deleted_it_gives_nothing_back(self, root: Path) -> None:
        held_out = set(project.paths_of(root).read_state().held_out.queries)
        file = (root / project.CAMPAIGN / "campaign.json").read_bytes()
        shutil.rmtree(root / project.CAMPAIGN)
        assert reopen("e") == 2  # the queries that are left were its tuning queries
        assert reopen("e", "--no-guarantee") == 0
        again = project.paths_of(root).read_state()
        assert held_out.isdisjoint({*again.held_out.queries, *again.plan.tuning})
        (root / project.CAMPAIGN / "campaign.json").write_bytes(file)
        assert left(root) == ASKS - 2

    def test_lost_it_is_written_again_by_hand(self, root: Path) -> None:
        """As after a kill between the ledger's line and the folder's file."""
        campaign = project.paths_of(root).campaign
        shutil.rmtree(root / project.CAMPAIGN)
        (root / "again").mkdir()
        record = {"format": "fusion-bench-campaign", "format_version": 1, "campaign": campaign}
        record["dataset"] = f"../{DATA}/dataset.yaml"
        (root / "again/campaign.json").write_text(json.dumps(record))
        assert ask(root, 3, "again").asks_left == ASKS - 3

    @pytest.mark.parametrize(
        ("key", "value"),
        [("campaign", "0" * 16), ("dataset", "../../../datasets/copy/dataset.yaml")],
    )
    def test_edited_it_names_no_other_campaign(self, root: Path, key: str, value: str) -> None:
        path = root / project.CAMPAIGN / "campaign.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
        shutil.copytree(root / DATA, root / "datasets/copy")
        (root / "datasets/copy/campaigns.jsonl").unlink()
        with pytest.raises(DataError):
            ask(root, 3)


class TestTheSameQueries:
    @pytest.mark.parametrize(
        "change",
        [
            ("measures:", "description: other\nmeasures:"),
            ("measures:", "tune: {system: weak, split_seed: another}\nmeasures:"),
            ("measures:", "tune: {system: weak, held_out: 0.9}\nmeasures:"),
            ("baseline: weak", "baseline: both"),
            ("nDCG@10", "RR@10"),
        ],
    )
    def test_no_other_experiment_gets_one(self, root: Path, change: tuple[str, str]) -> None:
        shutil.copy(root / EXPERIMENT, root / "experiments/other.yaml")
        edit(root, "experiments/other.yaml", *change)
        assert reopen("other") == 2
        assert reopen("other", "--no-guarantee") == 0
        first = project.paths_of(root).read_state()
        other = project.paths_of(root, "reports/campaigns/other").read_state()
        seen = {*other.held_out.queries, *other.plan.tuning}
        assert seen.isdisjoint(first.held_out.queries)
        assert first.campaign in other.no_guarantee

    @pytest.mark.parametrize("place", ["datasets", "datasets/alias", f"{DATA}/alias"])
    def test_no_other_dataset_of_the_same_files_gets_one(self, root: Path, place: str) -> None:
        """Whoever opened one, asked it and closed it, would read the values of the first."""
        alias = root / place
        alias.mkdir(exist_ok=True)
        text = (root / DATA / "dataset.yaml").read_text()
        for name in ("qrels.txt", "weak.trec", "strong.trec"):
            if place == "datasets":  # above the files
                text = text.replace(name, f"made/{name}")
            else:
                (alias / name).symlink_to(root / DATA / name)
        (alias / "dataset.yaml").write_text(text)
        shutil.copy(root / EXPERIMENT, root / "experiments/other.yaml")
        edit(root, "experiments/other.yaml", "dataset: made", f"dataset: {alias}/dataset.yaml")
        first = project.paths_of(root).read_state()
        code = reopen("other", "--no-guarantee")
        if code == 0:
            other = project.paths_of(root, "reports/campaigns/other").read_state()
            seen = {*other.held_out.queries, *other.plan.tuning}
            assert seen.isdisjoint(first.held_out.queries)

    def test_reordered_they_are_the_same(self, root: Path) -> None:
        for name in ("qrels.txt", "weak.trec", "strong.trec"):
            path = root / DATA / name
            lines = path.read_text().splitlines(keepends=True)
            random.Random(1).shuffle(lines)
            path.write_text("".join(lines))
        assert ask(root, 3).asks_left == ASKS - 3

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("{path: weak.trec}", "{path: weak.trec, rank_from: column}"),
            ("{path: weak.trec}", "{path: weak.trec, source_ties: file}"),
            ("{path: weak.trec}", "{path: strong.trec}"),
            ("judgments: complete", "judgments: complete\nbinary_relevance: 2"),
            ("judgments: complete", "judgments: complete\ngroups: groups.jsonl"),
            ("judgments: complete", "judgments: complete\nqueries: queries.jsonl"),
            ("judgments: complete", "judgments: sparse"),
        ],
    )
    def test_another_reading_of_the_files_is_noticed(
        self, root: Path, before: str, after: str
    ) -> None:
        rows = [{"id": f"q{q}", "group": f"g{q // 2}"} for q in range(project.QUERIES)]
        lines = "".join(f"{json.dumps(row)}\n" for row in rows)
        for name in ("groups.jsonl", "queries.jsonl"):
            (root / DATA / name).write_text(lines)
        edit(root, f"{DATA}/dataset.yaml", before, after)
        told = ask(root, 3)
        assert (told.answer, told.number) == ("closed", None)

    def test_closed_they_open_never_again_under_other_ids(self, root: Path) -> None:
        held_out = project.held_out_queries(root)
        close_campaign(project.paths_of(root), "A. Person")
        for name in ("qrels.txt", "weak.trec", "strong.trec"):
            path = root / DATA / name
            lines = path.read_text().splitlines(keepends=True)
            path.write_text("".join(f"x{line}" for line in lines if line.split()[0] in held_out))
        with pytest.raises(ConfigError, match="newly judged"):
            project.open_made(root, "reports/campaigns/again")


class TestTheLedger:
    def test_an_edited_line_is_noticed(self, root: Path) -> None:
        edit(root, LEDGER, f'"asks":{ASKS}', '"asks":9999')
        with pytest.raises(DataError, match="edited"):
            ask(root, 3)

    def test_a_missing_end_is_noticed_in_the_folder(self, root: Path) -> None:
        """Such as after ``git checkout .``, which also restores what else was committed."""
        commit_all(root)
        ask(root, 3)
        run_git(root, "checkout", "--", ".")
        with pytest.raises(DataError, match="restore"):
            ask(root, 4)

    def test_a_backup_is_noticed_where_git_has_the_asks(self, root: Path) -> None:
        backup = shutil.copytree(root, root.with_name("backup"))
        ask(root, 3)
        commit_all(root)
        shutil.copy(backup / LEDGER, root / LEDGER)
        shutil.rmtree(root / project.CAMPAIGN)
        shutil.copytree(backup / project.CAMPAIGN, root / project.CAMPAIGN)
        with pytest.raises(DataError, match="committed"):
            ask(root, 4)

    def test_a_fresh_clone_goes_on_where_the_commit_was(self, root: Path) -> None:
        commit_all(root)
        clone = root.with_name("clone")
        run_git(root, "clone", "--quiet", str(root), str(clone))
        assert ask(clone, 3).asks_left == ASKS - 3
        ask(root, 4)
        merged = (root / LEDGER).read_text() + (clone / LEDGER).read_text().splitlines()[-1] + "\n"
        (root / LEDGER).write_text(merged)  # as a merge of both would leave it
        with pytest.raises(DataError):
            left(root)

    def test_a_ledger_that_is_gone_is_noticed(self, root: Path) -> None:
        (root / LEDGER).unlink()
        with pytest.raises(DataError, match="restore"):
            ask(root, 3)

    def test_a_ledger_that_is_gone_opens_nothing_where_git_has_it(self, root: Path) -> None:
        commit_all(root)
        (root / LEDGER).unlink()
        shutil.rmtree(root / project.CAMPAIGN)
        assert reopen("e", "--no-guarantee") == 2

    @pytest.mark.parametrize("number", [2, 9])
    def test_a_forged_ship_is_contradicted_by_its_values(self, root: Path, number: int) -> None:
        """Whoever forges a line with its digests, and has no git to contradict."""
        forged = {"event": "answer", "number": number, "answer": "ship"}

        def add(events: list[CampaignEvent]) -> list[CampaignEvent]:
            fields = {**forged, "campaign": events[0].campaign, "date": events[0].date}
            return [CampaignEvent.model_validate(fields)]

        append_events(root / LEDGER, add)
        report = close_campaign(project.paths_of(root), "A. Person")
        contradicted = [each.number for each in report.asks if each.is_contradicted]
        assert contradicted == [each for each in (number,) if each <= len(report.asks)]
        assert len(report.status.ships) == len(contradicted)
        page = build_report_page(report)
        assert page.headline is not None
        said = [text for text in page.headline.details if "the ledger says" in text]
        assert len(said) == len(contradicted)


def test_of_two_opened_at_once_one_gets_the_queries(tmp_path: Path) -> None:
    root = project.make(tmp_path)
    outcomes: list[str] = []

    def open_one(place: str) -> None:
        try:
            project.open_made(root, place)
        except ConfigError:
            outcomes.append("refused")
        else:
            outcomes.append("opened")

    threads = [threading.Thread(target=open_one, args=(f"c{number}",)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["opened", "refused", "refused"]
    assert [event.event for event in read_events(root / LEDGER)] == ["open"]


class TestTheAsk:
    def test_two_at_once_are_two(self, root: Path) -> None:
        told: list[CampaignAnswer] = []
        threads = [
            threading.Thread(target=lambda k=k: told.append(ask(root, k))) for k in (3, 4, 5, 6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(each.number or 0 for each in told) == [3, 4, 5, 6]
        assert left(root) == ASKS - 6
        assert len(read_events(root / LEDGER)) == 1 + 2 * 6

    def test_killed_it_is_counted_and_may_be_asked_again(self, root: Path) -> None:
        code = (
            "import os, signal, sys\n"
            "from fusion_bench.campaign.frozen_data import FrozenData\n"
            "from fusion_bench.cli import main\n"
            "def kill(*_): os.kill(os.getpid(), signal.SIGKILL)\n"
            "FrozenData.measure_system = kill\n"
            f"main(['campaign', 'ask', '{project.CAMPAIGN}', '--set', 'fusion.k=3'])\n"
        )
        words = [sys.executable, "-c", code]
        done = subprocess.run(words, cwd=root, env={"PYTHONPATH": str(ROOT)}, check=False)
        assert done.returncode == -signal.SIGKILL
        assert left(root) == ASKS - 3
        told = ask(root, 3)
        assert (told.number, told.asks_left) == (3, ASKS - 3)

    def test_a_clock_that_was_set_back_changes_nothing(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Clock:
            @staticmethod
            def now(_zone: object) -> datetime:
                return datetime(2001, 1, 1, tzinfo=UTC)

        monkeypatch.setattr(campaign_ledger, "datetime", Clock)
        assert ask(root, 3).asks_left == ASKS - 3
        assert ask(root, 4).number == 4

    def test_it_is_no_configuration_to_name_another_file(self, root: Path) -> None:
        """A candidate that names a file of judgments, or a list that is not there, reads none."""
        for value in (f"{DATA}/qrels.txt", "../qrels.txt"):
            with pytest.raises(FusionBenchError):
                Referee(project.paths_of(root)).ask(AskedCandidate(None, (f"runs=[{value}]",)))
        assert left(root) == ASKS - 2
