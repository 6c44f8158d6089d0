"""The tools of the server: what an agent may ask, each by the function behind a command.

A tool is a method of :class:`Tools`. Its docstring is what an agent reads to choose it: when to use
it, and what each argument means.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias, get_type_hints

from pydantic import Field, create_model
from pydantic_core import from_json

from fusion_bench.api.power import DIFFERENCES, power
from fusion_bench.campaign.ask import CANDIDATE, Referee
from fusion_bench.campaign.client import ServedCampaign
from fusion_bench.campaign.pages import build_answer_page, build_status_page
from fusion_bench.checks.dataset_facts import dataset_notices, describe_dataset, unjudged_shares
from fusion_bench.checks.lint import lint_datasets, make_lint_report, read_fitting_facts
from fusion_bench.config.models import MOST_RANK, StrictModel
from fusion_bench.config.options import read_attributes
from fusion_bench.engines.export import export_experiment
from fusion_bench.engines.options import ExportOptions
from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.evaluation.diagnosis import diagnose_experiment
from fusion_bench.evaluation.explanation import explain_query
from fusion_bench.evaluation.run_experiment import run_experiment, select_systems
from fusion_bench.experiment import method_table
from fusion_bench.experiment.dialect import find_engine
from fusion_bench.gate.inputs import GateInputs
from fusion_bench.gate.page import build_gate_page
from fusion_bench.gate.run import run_gate
from fusion_bench.io import dataset_config
from fusion_bench.io.dataset import load_dataset
from fusion_bench.report.data_warnings import build_lint_page
from fusion_bench.report.diagnosis_page import build_diagnosis_page
from fusion_bench.report.evaluation_page import build_page
from fusion_bench.report.explanation_page import explain_documents
from fusion_bench.report.export_page import build_export_page
from fusion_bench.report.page import Page
from fusion_bench.report.power_page import build_power_page
from fusion_bench.serving.mcp.project import EMPTY, YAML, Project, is_inside, read_candidate
from fusion_bench.util.files import baseline_path
from fusion_bench.util.formatting import Progress

#: A name or an id; a longer one is none.
Name: TypeAlias = Annotated[str, Field(max_length=500)]
Names: TypeAlias = tuple[Name, ...]
Rank: TypeAlias = Annotated[int, Field(ge=1, le=MOST_RANK)]
Settings: TypeAlias = dict[str, Any]
#: Fields of a report's collection that hold a value a query.
PER_QUERY: Final = frozenset(
    {"queries", "types", "groups", "slices", "values", "trials", "judged_only", "filled"}
)


#: A record as ``--json`` prints it, and the page whose summary is the text; None = the record.
ToolAnswer: TypeAlias = tuple[object, Page | None]


@dataclass(frozen=True)
class Tool:
    """A method of :class:`Tools` as clients see it.

    Attributes:
        function: The method.
        schema: Name of the record's published schema; None = any object.
        is_light: Whether it reads no list: any number of these may run at once.
        writes: Whether it may write a file.
        needs_campaign: Whether it is there only where a campaign may be asked.
    """

    function: Callable[..., ToolAnswer]
    schema: str | None
    is_light: bool
    writes: bool
    needs_campaign: bool

    @property
    def name(self) -> str:
        """The name that a client calls."""
        return self.function.__name__

    @property
    def description(self) -> str:
        """When to use it."""
        return inspect.cleandoc(self.function.__doc__ or "").partition("\n\nArgs:")[0]

    @cached_property
    def arguments(self) -> type[StrictModel]:
        """Its arguments, each described."""
        hints = get_type_hints(self.function, include_extras=True)
        texts = read_attributes(self.function.__doc__ or "", "Args")
        _, *parameters = inspect.signature(self.function).parameters.values()
        fields: dict[str, Any] = {}
        for each in parameters:
            default = ... if each.default is inspect.Parameter.empty else each.default
            fields[each.name] = (hints[each.name], Field(default, description=texts[each.name]))
        return create_model(self.name, __base__=StrictModel, **fields)

    @cached_property
    def output_schema(self) -> dict[str, Any]:
        """The JSON Schema of its record."""
        if self.schema is None:
            return {"type": "object"}
        file = resources.files("fusion_bench") / "schemas" / f"{self.schema}.json"
        schema: dict[str, Any] = from_json(file.read_bytes())
        return schema


#: By name, in the order in which an agent needs them.
TOOLS: Final[dict[str, Tool]] = {}


def tool(
    schema: str | None = None,
    *,
    is_light: bool = False,
    writes: bool = False,
    needs_campaign: bool = False,
) -> Callable[[Callable[..., ToolAnswer]], Callable[..., ToolAnswer]]:
    """Add a method to :data:`TOOLS`; arguments as :class:`Tool` has them."""

    def register(function: Callable[..., ToolAnswer]) -> Callable[..., ToolAnswer]:
        TOOLS[function.__name__] = Tool(function, schema, is_light, writes, needs_campaign)
        return function

    return register


@dataclass(frozen=True)
class Tools:
    """The tools, for one call.

    Attributes:
        project: What the server serves.
        progress: Called as the work goes on; raises where the call was cancelled.
    """

    project: Project
    progress: Progress

    @property
    def referee(self) -> Referee | ServedCampaign:
        """Return the referee of the campaign; raises ConfigError if there is none."""
        if self.project.referee is None:
            raise ConfigError("campaign: this server was started without --campaign")
        return self.project.referee

    @tool(is_light=True)
    def list_datasets(self) -> ToolAnswer:
        """List the project's datasets with their lists and roles, and its experiments.

        Use it first: other tools take these names.
        """
        datasets = {}
        for file in dataset_config.list_datasets(Path("datasets")):
            if not is_inside(file):
                continue
            spec, _ = dataset_config.read_spec(file)
            datasets[file.parent.name] = {
                "description": spec.description,
                "runs": {run: sorted(roles) for run, roles in spec.run_roles.items()},
                "rerank": list(spec.rerank),
            }
        files = (file for suffix in YAML for file in Path("experiments").glob(f"*{suffix}"))
        return {"datasets": datasets, "experiments": sorted(map(Path.as_posix, files))}, None

    @tool(is_light=True)
    def list_methods(self, method: Name | None = None) -> ToolAnswer:
        """List fusion methods, blends and normalizers with parameters and defaults.

        Use it before you write a configuration.

        Args:
            method: Only this one. Default: all.

        Raises:
            UnknownNameError: There is none of that name.
        """
        kinds, aliases = method_table.list_methods(), method_table.list_aliases()
        if method is None:
            return {**kinds, "aliases": aliases}, None
        meant = aliases.get(method, {}).get("method", method)
        names = {entry["method"] for entries in kinds.values() for entry in entries}
        if meant not in names:
            raise UnknownNameError("method", method, names, listed_by="list_methods")
        return {k: [e for e in es if e["method"] == meant] for k, es in kinds.items()}, None

    @tool()
    def check_dataset(self, dataset: Name) -> ToolAnswer:
        """Check every file of a dataset, and say what is doubtful in it.

        Use it before the first evaluation, and after files of the dataset changed.

        Args:
            dataset: Its name, or the path of its folder or dataset.yaml.
        """
        path = self.project.find_dataset(dataset)
        self.progress("reading", 0, 3)
        loaded = load_dataset(path, cache=False, every_query=None)
        if loaded.spec.has_refined_lists:
            load_dataset(path, cache=False, refined=True, every_query=None).aligned([*loaded.runs])
        self.progress("looking for what is doubtful", 1, 3)
        notes = dataset_notices(loaded)
        self.progress("counting", 2, 3)
        facts = {**describe_dataset(loaded), "unjudged_share_in_top_10": unjudged_shares(loaded)}
        return {"file": path, **facts, "notes": notes}, None

    @tool("report")
    def evaluate(
        self,
        experiment: Name | None = None,
        candidate: Settings | None = None,
        overrides: Settings = EMPTY,
        systems: Names = (),
        query_type: Name | None = None,
        per_query: bool = False,
    ) -> ToolAnswer:
        """Compare the systems of an experiment: means, differences, intervals, p-values.

        Use it to see what a configuration does on the tuning queries. While a campaign is open, its
        held-out queries are left out. Without one these are all queries of the experiment, and a
        system that was chosen on them is not shown to be better on others.

        Args:
            experiment: YAML file, or the folder that holds it. Default: that of the server.
            candidate: One more system, as below "systems: NAME:" in an experiment.
            overrides: Changed keys, such as {"systems.rrf.fusion.k": 20}.
            systems: Only these, and the baseline. Default: all.
            query_type: Only queries of this type.
            per_query: Also return the values of each query, which are many.
        """
        opened = self.project.open_experiment(experiment, candidate=candidate, overrides=overrides)
        parsed, source, folders = opened
        parsed = select_systems(parsed, systems, None)
        report = run_experiment(
            *(parsed, source), folders=folders, query_type=query_type, progress=self.progress
        )
        report = report.model_copy(update={"lint": lint_datasets(parsed, source, folders)})
        record = report.model_dump(mode="json")
        if not per_query:
            record["collections"] = [_drop_query_values(each) for each in record["collections"]]
        return record, build_page(report)

    @tool("diagnosis")
    def diagnose(
        self,
        experiment: Name | None = None,
        candidate: Settings | None = None,
        systems: Names = (),
        top: Rank = 10,
    ) -> ToolAnswer:
        """Count which relevant documents each system loses, where, and list the worst failures.

        Use it to find out what a better configuration has to repair.

        Args:
            experiment: YAML file, or the folder that holds it. Default: that of the server.
            candidate: One more system, as below "systems: NAME:" in an experiment.
            systems: Only these, and the baseline. Default: all.
            top: Failures to list, for each system and kind.
        """
        parsed, source, folders = self.project.open_experiment(experiment, candidate=candidate)
        diagnosis = diagnose_experiment(
            *(parsed, source), folders=folders, systems=systems, top=top, progress=self.progress
        )
        return diagnosis, build_diagnosis_page(diagnosis)

    @tool()
    def explain(
        self,
        query: Name,
        document: Name | None = None,
        against: Name | None = None,
        experiment: Name | None = None,
        candidate: Settings | None = None,
        system: Name | None = None,
        top: Rank = 10,
    ) -> ToolAnswer:
        """Show every term of documents' scores for one query, and why one ranks above another.

        Use it on a query of which evaluate or diagnose says that it got worse.

        Args:
            query: Id of a judged query.
            document: Id of a document. Default: the top documents.
            against: Document to compare with. Default: the one ranked next above.
            experiment: YAML file, or the folder that holds it. Default: that of the server.
            candidate: One more system, as below "systems: NAME:" in an experiment.
            system: System to explain. Default: the gated system, or the baseline.
            top: Number of top documents.
        """
        parsed, source, folders = self.project.open_experiment(experiment, candidate=candidate)
        self.progress("ranking", 0, 1)
        explanation = explain_query(
            parsed,
            source,
            query,
            system=system,
            folders=folders,
            document=document,
            against=against,
        )
        records, page = explain_documents(explanation, document, against=against, top=top)
        return {"documents": records}, page

    @tool("lint", is_light=True)
    def lint(
        self,
        experiment: Name | None = None,
        candidate: Settings | None = None,
        overrides: Settings = EMPTY,
        engine: Name | None = None,
    ) -> ToolAnswer:
        """Find what a configuration does or cannot do, from its numbers alone; reads no list.

        Use it before evaluate: it costs nothing, and each finding has a witness.

        Args:
            experiment: YAML file, or the folder that holds it. Default: that of the server.
            candidate: One more system, as below "systems: NAME:" in an experiment.
            overrides: Changed keys, such as {"systems.rrf.fusion.k": 20}.
            engine: Find what this search engine cannot express, such as opensearch.
        """
        if engine is not None:
            find_engine(engine, where="engine")
        opened = self.project.open_experiment(experiment, candidate=candidate, overrides=overrides)
        report = make_lint_report(*opened[:2], read_fitting_facts(*opened), engine=engine)
        return report, build_lint_page(report)

    @tool("export", writes=True)
    def export(
        self,
        engine: Name,
        experiment: Name | None = None,
        candidate: Settings | None = None,
        system: Name | None = None,
        folder: Name | None = None,
    ) -> ToolAnswer:
        """Write a system as an engine's or library's configuration, and say what that loses.

        Use it once a system was shipped. The files are in the answer.

        Args:
            engine: Engine or library, such as elasticsearch or langchain.
            experiment: YAML file, or the folder that holds it. Default: that of the server.
            candidate: One more system, as below "systems: NAME:" in an experiment.
            system: System to write. Default: the candidate, or the only one.
            folder: Also write the files into this folder below the server's --out.
        """
        find_engine(engine, where="engine")
        place = None if folder is None else self.project.locate_output(folder)
        parsed, source, folders = self.project.open_experiment(experiment, candidate=candidate)
        name = CANDIDATE if system is None and candidate is not None else system
        options = ExportOptions(engine=engine, system=name)
        report = export_experiment(parsed, source, options, folders=folders, progress=self.progress)
        if place is not None:
            report.write(place, force=True)  # earlier outputs only: the command's --out is guarded
        return report, build_export_page(report)

    @tool()
    def power(
        self,
        report: Name | None = None,
        system: Name | None = None,
        sd: float | None = None,
        queries: int | None = None,
        groups: int | None = None,
        differences: tuple[float, ...] = DIFFERENCES,
        systems: int | None = None,
    ) -> ToolAnswer:
        """Plan how many queries a difference needs, and see what the queries at hand can show.

        Use it before you search for gains that these queries could never show.

        Args:
            report: Take the differences of this report.json.
            system: Compared system of the report. Default: the one with the highest mean.
            sd: In place of a report: standard deviation of the differences over queries.
            queries: Queries at hand, with sd.
            groups: Groups among these queries, with sd.
            differences: True differences.
            systems: Systems that are compared with the baseline. Default: the report's, or 1.
        """
        file = None if report is None else self.project.locate(report, "report", ".json")
        self.progress("planning", 0, 1)
        plan = power(
            file,
            system=system,
            sd=sd,
            queries=queries,
            groups=groups,
            differences=differences,
            systems=systems,
        )
        return plan, build_power_page(plan)

    @tool("gate")
    def gate(
        self,
        experiment: Name | None = None,
        baseline: Name | None = None,
    ) -> ToolAnswer:
        """Check an experiment's guarded system for regressions against its committed baseline.

        Use it before a change is proposed. It never updates the baseline: only people do.

        Args:
            experiment: YAML file, or the folder that holds it. Default: that of the server.
            baseline: File of the baseline. Default: reports/baselines/EXPERIMENT.json.

        Raises:
            ConfigError: The policy counts candidates in a file, which only the command writes.
        """
        parsed, source, folders = self.project.open_experiment(experiment)
        inputs = GateInputs(parsed, source, folders, self.progress)
        if inputs.policy.candidates is not None:
            raise ConfigError(
                f"{source.where(('gate', 'candidates'))}: each check is counted in a file, and "
                "this server writes none: run fusion-bench gate"
            )
        file = (
            baseline_path(source.path)
            if baseline is None
            else self.project.locate(baseline, "baseline", ".json")
        )
        verdict = run_gate(inputs, file)
        return verdict, build_gate_page(verdict)

    @tool("campaign-answer", writes=True, needs_campaign=True)
    def campaign_ask(
        self, candidate: Settings | None = None, changes: Settings = EMPTY, explain: bool = False
    ) -> ToolAnswer:
        """Ask the open campaign whether a candidate is better on queries that nobody sees.

        Use it for a candidate that evaluate shows to be better. Each new configuration costs one
        ask; the answer is ship, keep or closed. After ship it is the baseline to beat.

        Args:
            candidate: One system, as below "systems: NAME:". Default: the baseline.
            changes: Changed keys of it, such as {"fusion.k": 20}.
            explain: List the relevant documents that it loses on the tuning queries.
        """
        self.progress("asking", 0, 1)
        asked = read_candidate(candidate, changes)
        answer = self.referee.ask(asked, explain=explain)
        return answer, build_answer_page(answer)

    @tool("campaign-status", is_light=True, needs_campaign=True)
    def campaign_status(self) -> ToolAnswer:
        """Say how the open campaign stands: asks left, the baseline to beat, what holds.

        Use it before the first ask, and after a ship.
        """
        status = self.referee.read_status()
        return status, build_status_page(status)


def _drop_query_values(value: Any) -> Any:  # noqa: ANN401 - JSON
    """A collection without what has one value a query."""
    if isinstance(value, dict):
        return {
            key: type(each)()
            if key in PER_QUERY and isinstance(each, list | dict)
            else _drop_query_values(each)
            for key, each in value.items()
        }
    return [_drop_query_values(each) for each in value] if isinstance(value, list) else value
