"""Test many candidates on held-out queries; each answer is ship or keep.

Examples:
    fusion-bench campaign open experiments/mine.yaml --asks 1000
    fusion-bench campaign ask reports/campaigns/mine --set fusion.k=20
    fusion-bench campaign status reports/campaigns/mine
    fusion-bench campaign close reports/campaigns/mine --by "A. Person"
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

import fusion_bench.cli.application.commands as base
from fusion_bench.cli.application.console import echo, print_json, print_result
from fusion_bench.cli.application.exit_codes import ExitCode
from fusion_bench.config.models import parse_model
from fusion_bench.config.options import Argument, Changes, Folder, Name, Option
from fusion_bench.util.files import name_experiment, require_folder

if TYPE_CHECKING:
    from fusion_bench.campaign.ask import Referee
    from fusion_bench.campaign.client import ServedCampaign
    from fusion_bench.campaign.state import CampaignPaths

CampaignFolder: TypeAlias = Annotated[Path, Argument("CAMPAIGN")]
#: A folder, or the address of a served campaign.
CampaignPlace: TypeAlias = Annotated[str, Argument("CAMPAIGN")]

command = base.command_group(__doc__)


class OpenOptions(base.NamedExperimentOptions, base.BriefOptions):
    """Options of ``campaign open``.

    Attributes:
        dataset: Dataset, if the experiment has several.
        asks: Candidates that may be tested.
        ships: Candidates that may ship, one after the other.
        level: Share of campaigns that may ship what gains nothing.
        tails: t = Student's t alone decides: more power, for differences that are not skewed.
        held_out: Share of the queries that decides. Default: tune.held_out, or half.
        no_guarantee: Open it though the held-out queries were looked at.
        allow_weak: Open it though a gain of .05 would mostly not ship.
        out: Folder of the campaign. Default: reports/campaigns/EXPERIMENT.
    """

    dataset: Name | None = None
    asks: Annotated[int, Option(min=1, metavar="K")] = 1000
    ships: Annotated[int, Option(min=1, metavar="S")] = 1
    level: Annotated[float, Option(metavar="ALPHA")] = 0.05
    tails: Annotated[Literal["bounded", "t"], Option(metavar="TAILS")] = "bounded"
    held_out: Annotated[float, Option("--held-out", metavar="SHARE")] | None = None
    no_guarantee: Annotated[bool, Option("--no-guarantee")] = False
    allow_weak: Annotated[bool, Option("--allow-weak")] = False
    out: Folder | None = None


@base.add_command(command, name="open")
def open_command(options: OpenOptions) -> None:
    """Freeze the held-out queries, the baseline, the measure and the number of asks.

    Writes campaign.json, and campaigns.jsonl beside the dataset: commit both. While the campaign
    is open, every other command sees the tuning queries alone. Refused if a gain of .05 would
    mostly not ship, with how many asks or groups would do.

    Examples:
        fusion-bench campaign open experiments/mine.yaml
        fusion-bench campaign open experiments/mine.yaml --asks 200 --ships 3 --tails t
    """
    from fusion_bench.campaign.opening import open_campaign
    from fusion_bench.campaign.pages import build_status_page
    from fusion_bench.campaign.records import CampaignRules
    from fusion_bench.experiment.experiment import find_one_dataset
    from fusion_bench.report.page import NextStep

    name = name_experiment(options.experiment)
    out = require_folder(options.out or Path("reports/campaigns") / name)
    with options.open() as (parsed, source, folders, _):
        declared = {key: getattr(options, key) for key in ("asks", "ships", "level", "tails")}
        rules = parse_model(CampaignRules, {**declared, "min_gain": parsed.min_gain}, "campaign")
        status = open_campaign(
            parsed,
            source,
            find_one_dataset(parsed, source, options.dataset, folders),
            out,
            rules,
            held_out=options.held_out,
            accepts_no_guarantee=options.no_guarantee,
            accepts_weakness=options.allow_weak,
        )
    step = NextStep(f"fusion-bench campaign ask {out} candidate.yaml", "ask whether one may ship")
    print_result(status, build_status_page(status, [step]), options, [out / "campaign.json"])


class CampaignOptions(base.BriefOptions):
    """Options of a command about one campaign.

    Attributes:
        campaign: Folder of the campaign.
    """

    campaign: CampaignFolder

    def find(self) -> CampaignPaths:
        """Where it stands.

        Raises:
            DataError: There is none.
        """
        from fusion_bench.campaign.state import CampaignPaths

        return CampaignPaths.read(self.campaign)


class PlaceOptions(base.BriefOptions):
    """Options of a command about one campaign, here or served.

    Attributes:
        campaign: Folder of the campaign, or the address of a served one, whose token is in
            FUSION_BENCH_CAMPAIGN_TOKEN.
    """

    campaign: CampaignPlace

    def find(self) -> Referee | ServedCampaign:
        """Find the referee of the campaign.

        Raises:
            DataError: There is none.
        """
        from fusion_bench.campaign.client import find_referee

        return find_referee(self.campaign)


class AskOptions(PlaceOptions):
    """Options of ``campaign ask``.

    Attributes:
        candidate: YAML file of one system, as under a name of systems.
        changes: Value of the baseline to replace, such as fusion.k=20; repeatable.
        explain: List the relevant documents that the candidate loses.
        allow_lists: Let it read lists that the dataset has got since; the log names them.
    """

    campaign: CampaignPlace
    candidate: Annotated[Path, Argument("CANDIDATE")] | None = None
    changes: Changes = ()
    explain: bool = False
    allow_lists: Annotated[bool, Option("--allow-lists")] = False


@base.add_command(command, ExitCode.REGRESSION, ExitCode.INCONCLUSIVE, name="ask")
def ask_command(options: AskOptions) -> None:
    """Ask whether a candidate may ship; exit with 0 to ship, 1 to keep, 3 where it is closed.

    Tells everything about the tuning queries, and one word about the held-out ones. The ask is
    counted before it is answered; the same configuration again costs nothing.

    Examples:
        fusion-bench campaign ask reports/campaigns/mine candidate.yaml
        fusion-bench campaign ask reports/campaigns/mine --set fusion.k=20 --json
        fusion-bench campaign ask http://127.0.0.1:8123 candidate.yaml --explain
    """
    from fusion_bench.campaign.ask import AskedCandidate
    from fusion_bench.campaign.pages import build_answer_page

    referee = options.find()
    candidate = AskedCandidate.read(
        options.candidate, options.changes, allow_lists=options.allow_lists
    )
    answer = referee.ask(candidate, explain=options.explain)
    print_result(answer, build_answer_page(answer), options)
    codes = {"ship": ExitCode.DONE, "keep": ExitCode.REGRESSION, "closed": ExitCode.INCONCLUSIVE}
    raise typer.Exit(codes[answer.answer])


@base.add_command(command, name="status")
def status_command(options: PlaceOptions) -> None:
    """Print the state of a campaign: asks left, the baseline to beat, whether its level holds.

    Examples:
        fusion-bench campaign status reports/campaigns/mine
        fusion-bench campaign status reports/campaigns/mine --json
    """
    from fusion_bench.campaign.pages import build_status_page

    status = options.find().read_status()
    print_result(status, build_status_page(status), options)


@base.add_command(command, name="log")
def log_command(options: CampaignOptions) -> None:
    """List the asks of a campaign with their answers, and who saw held-out queries.

    Examples:
        fusion-bench campaign log reports/campaigns/mine
    """
    from fusion_bench.campaign.pages import build_log_page

    state = options.find().read_state()
    record = {"campaign": state.campaign, "guarantee": state.guarantee, "events": state.events}
    print_result(record, build_log_page(state), options)


class CloseOptions(CampaignOptions):
    """Options of ``campaign close``.

    Attributes:
        by: The person who closes it.
    """

    by: Annotated[str, Option("--by", metavar="PERSON")]


@base.add_command(command, name="close")
def close_command(options: CloseOptions) -> None:
    """Close a campaign for good, and print every ask with its held-out values.

    Writes report.json and report.md into its folder. The same queries never open again.

    Examples:
        fusion-bench campaign close reports/campaigns/mine --by "A. Person"
    """
    from fusion_bench.campaign.ask import close_campaign
    from fusion_bench.campaign.pages import build_report_page
    from fusion_bench.cli.application.progress import progress_bar
    from fusion_bench.report.write import write_record

    with progress_bar() as progress:
        report = close_campaign(options.find(), options.by, progress)
    page = build_report_page(report)
    written = write_record("report", report, page, options.campaign)
    print_result(report, page, options, written)


class ServeCampaignOptions(base.JsonOptions):
    """Options of ``campaign serve``.

    Attributes:
        campaign: Folder of the campaign.
        port: Port on 127.0.0.1; 0 = any free one.
    """

    campaign: CampaignFolder
    port: Annotated[int, Option(min=0, max=65535)] = 0


@base.add_command(command, name="serve")
def serve_command(options: ServeCampaignOptions) -> None:
    """Serve a campaign on 127.0.0.1 until Ctrl-C, so that a proposer needs no judgments.

    The data are read once. The token is printed, or taken from FUSION_BENCH_CAMPAIGN_TOKEN.

    Examples:
        fusion-bench campaign serve reports/campaigns/mine --port 8123
    """
    from fusion_bench.campaign.ask import Referee
    from fusion_bench.campaign.state import CampaignPaths
    from fusion_bench.util.loopback import open_socket
    from fusion_bench.util.optional_imports import import_optional

    for package in ("starlette", "uvicorn"):
        import_optional(package, extra="serve", purpose="fusion-bench campaign serve")
    from fusion_bench.campaign.client import TOKEN
    from fusion_bench.campaign.server import create_application
    from fusion_bench.util.local_requests import serve_guarded

    def announce(address: str, token: str | None) -> None:
        if options.json:
            print_json({"address": address, "token": token})
            return
        echo(f"Campaign {options.campaign}: {address}")
        if token is not None:
            echo(f"{TOKEN}={token}")

    referee = Referee(CampaignPaths.read(options.campaign), is_served=True)
    referee.prepare()
    with open_socket(options.port) as listener:
        serve_guarded(create_application(referee), listener, announce, variable=TOKEN)
