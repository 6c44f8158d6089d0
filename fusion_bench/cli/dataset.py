"""List, show, check and make datasets.

Examples:
    fusion-bench dataset list
    fusion-bench dataset show attack
    fusion-bench dataset check datasets/mine/dataset.yaml
    fusion-bench dataset unjudged experiments/mine.yaml > to-judge.tsv
    fusion-bench dataset add beir:downloads/scifact --out datasets/scifact
    fusion-bench dataset new datasets/mine bm25=a.trec dense=b.jsonl --qrels judged.csv
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

import fusion_bench.cli.application.commands as base
from fusion_bench.cli.application import file_options
from fusion_bench.cli.application.console import (
    echo,
    echo_written,
    print_json,
    print_result,
    print_tables,
)
from fusion_bench.cli.application.exit_codes import ExitCode
from fusion_bench.cli.application.progress import progress_bar
from fusion_bench.config.options import (
    Amount,
    Argument,
    Changes,
    Depth,
    File,
    Folder,
    Name,
    Names,
    Option,
)
from fusion_bench.errors import UnknownNameError
from fusion_bench.experiment import DEFAULT_MEASURES
from fusion_bench.util.files import require_folder, resolve_path
from fusion_bench.util.formatting import escape_control_chars, pluralize

if TYPE_CHECKING:
    from pydantic import BaseModel

    from fusion_bench.importers.new_dataset import NewDataset
    from fusion_bench.io.dataset_config import DatasetSpec
    from fusion_bench.report.page import Table


command = base.command_group(__doc__)


class AddOptions(base.JsonOptions):
    """Options of ``dataset add``.

    Attributes:
        collection: Place of the collection: ir_datasets:ID, beir:FOLDER or mteb:FOLDER.
        out: The folder to write.
        splits: Only this split; repeatable. Default: all.
        name: The dataset's name. Default: the collection's.
        any_counts: Accept counts that differ from the stated ones.
        download: Let ir_datasets download what its cache lacks.
    """

    collection: Annotated[str, Argument("COLLECTION")]
    out: Folder
    splits: Annotated[Names, Option("--split")] = ()
    name: Name | None = None
    any_counts: bool = False
    download: bool = False


@base.add_command(command, name="add")
def add_command(options: AddOptions) -> None:
    """Make a dataset of a published test collection: queries, judgments and documents.

    Reads a folder, or the cache of ir_datasets, and uses no network without --download. Compares
    the numbers of queries, judgments and documents with those that the collection's makers state.

    Examples:
        fusion-bench dataset add beir:downloads/nfcorpus --out datasets/nfcorpus --split test
        fusion-bench dataset add ir_datasets:beir/nfcorpus/test --out datasets/nfcorpus
        fusion-bench dataset add mteb:~/.cache/huggingface/hub/datasets--mteb--scifact
            --out datasets/scifact
    """
    from fusion_bench.importers.public_collections import add_dataset

    with progress_bar() as progress:
        added = options.call(add_dataset, options.collection, options.out, progress=progress)
    if options.json:
        print_json(added)
        return
    counts = ", ".join(
        f"{count:,} {what.replace('_', ' ')}" for what, count in added.counts.items()
    )
    echo(f"{added.name}: {counts}")
    echo(f"license: {added.license or 'not stated'}")
    equal = [each for each in added.compared if each not in added.differing]
    comparison = {"as stated": equal, "not as stated": added.differing}
    listed = [f"{status}: {', '.join(names)}" for status, names in comparison.items() if names]
    echo(f"counts: {'; '.join(listed) or 'none is stated'}")
    for note in added.notes:
        echo(f"note: {note}")
    echo_written(added.files)
    echo(f"Next: fusion-bench retrieve bm25 --dataset {quote(str(added.files[0]))}")


class NewOptions(file_options.ListOptions, file_options.FileOptions, base.JsonOptions):
    """Options of ``dataset new``.

    Attributes:
        folder: The folder to write.
        lists: A ranked list and its name; two or more.
        qrels: Judgments file. Default: none yet.
        documents: JSON Lines: id, title, text.
        check: Check what the files hold.
    """

    folder: Annotated[Path, Argument("DIR")]
    lists: Annotated[Sequence[str], Argument("NAME=FILE")] = ()
    documents: File | None = None
    check: bool = True


@base.add_command(command, name="new")
def new_command(options: NewOptions) -> None:
    """Make a checked dataset of your own files, and an experiment on it.

    Asks on a terminal for the files that are not named. Checks what the lists cover, duplicates,
    ids that no document has, leaks between splits, and how large a difference the queries can show.
    Without judgments, 'fusion-bench judge DIR' makes them.

    Examples:
        fusion-bench dataset new datasets/mine
        fusion-bench dataset new datasets/mine bm25=a.trec dense=b.jsonl --qrels judged.csv
        fusion-bench dataset new datasets/mine bm25=a.trec dense=b.jsonl --qrels judged.csv
            --queries queries.jsonl --documents documents.jsonl
    """
    from fusion_bench.evaluation.starter import StarterInput, check_free
    from fusion_bench.importers.new_dataset import COMMAND, make_new_dataset

    check_free(options.folder, COMMAND.option)
    if not options.lists or (options.qrels is None and _is_terminal()):
        if not _is_terminal():
            raise typer.BadParameter(
                "two lists, NAME=FILE NAME=FILE: needed where nobody can be asked for it"
            )
        named = list(options.lists)
        if not named:
            echo("Ranked lists, one at a time: NAME=FILE; an empty line ends them.", err=True)
            while answer := _ask_file("List", takes_name=True):
                named.append(answer)
        options = replace(
            options,
            lists=tuple(named),
            qrels=options.qrels or _ask_path("Judgments, qrels (empty: none yet)"),
            queries=options.queries or _ask_path("Queries, JSON Lines (empty: none)"),
            documents=options.documents or _ask_path("Documents, JSON Lines (empty: none)"),
        )
    runs = file_options.parse_named_files(options.lists, "NAME=FILE")
    rerankers = file_options.parse_rerank_files(options.rerank)
    given = options.call(
        StarterInput,
        runs=runs,
        rerankers=rerankers,
        measures=DEFAULT_MEASURES,
        roles=options.parse_roles(),
        settings=options.state_files([*runs, *rerankers]),
    )
    with progress_bar() as progress:
        made = make_new_dataset(given, options.folder, progress, check=options.check)
    if options.json:
        print_json(made)
    else:
        _print_dataset(made)


def _ask_path(what: str) -> Path | None:
    answer = _ask_file(what)
    return Path(answer) if answer else None


def _ask_file(what: str, *, takes_name: bool = False) -> str:
    """Ask until a file exists, or nothing is answered; a typing error costs no other answer."""
    while answer := str(typer.prompt(what, default="", show_default=False, err=True)).strip():
        file = answer.partition("=")[2] if takes_name and "=" in answer else answer
        if Path(answer).exists() or Path(file).exists():
            break
        echo(f"{file}: no such file", err=True)
    return answer


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _print_dataset(made: NewDataset) -> None:
    echo(f"Dataset {made.name}")
    width = max((len(each.status) for each in made.findings), default=0)
    if not made.findings:
        echo(f"  not checked: fusion-bench dataset check {quote(str(made.files[0]))}")
    for each in made.findings:
        echo(f"  {each.status:<{width}}  {each.check}: {each.text}")
        if each.advice:
            echo(f"  {'':<{width}}  → {each.advice}")
    for note in made.notes:
        echo(f"note: {note}")
    echo_written(made.files)
    experiment = quote(str(made.files[1]))
    if made.is_judged:
        echo(f"Next: fusion-bench eval {experiment}")
        return
    folder = quote(str(made.files[0].parent))
    echo("No judgments yet: systems cannot be compared. judge makes some, here of grades 0 to 3.")
    echo(f"Next: fusion-bench judge {folder} --max-grade 3, then fusion-bench eval {experiment}")


@base.add_command(command, name="list")
def list_command(options: base.DatasetOptions) -> None:
    """List the datasets that commands find by name.

    Examples:
        fusion-bench dataset list --json
    """
    from fusion_bench.io.dataset_config import list_datasets, read_spec

    specs: dict[str, DatasetSpec] = {}
    folders = base.folders_for(options.datasets)
    for folder in folders:
        for path in list_datasets(folder):
            specs.setdefault(path.parent.name, read_spec(path)[0])
    if options.json:
        print_json(specs)
    elif not specs:
        looked = ", ".join(map(str, folders))
        echo(f"no dataset in {looked}: name the folder with --datasets")
    else:
        print_tables(build_dataset_table(specs))


def build_dataset_table(specs: Mapping[str, DatasetSpec]) -> Table:
    """A row a dataset: its lists and its description."""
    from fusion_bench.report.page import make_record_table

    records = [
        {
            "dataset": name,
            "runs": len(spec.runs),
            "rerank lists": len(spec.rerank),
            "description": spec.description,
        }
        for name, spec in specs.items()
    ]
    return make_record_table("Datasets", records)


class ShowOptions(base.DatasetOptions):
    """Options of ``dataset show``.

    Attributes:
        name: A dataset's name, its folder or its dataset.yaml.
    """

    name: Annotated[str, Argument("NAME")]


@base.add_command(command, name="show")
def show_command(options: ShowOptions) -> None:
    """Show a dataset: queries, judgments, lists and their roles.

    Examples:
        fusion-bench dataset show attack
    """
    from fusion_bench.checks.dataset_facts import describe_dataset
    from fusion_bench.io.dataset import load_dataset

    facts = describe_dataset(load_dataset(options.find(options.name), every_query=None))
    if options.json:
        print_json(facts)
        return
    for line in _list_facts(facts):
        echo(line)
    for table in build_list_tables(facts):
        echo("")
        print_tables(table)


class CheckOptions(ShowOptions, base.PageOptions):
    """Options of ``dataset check``.

    Attributes:
        write_groups: Write the groups of near-duplicate queries, for 'groups' in the dataset.yaml.
    """

    write_groups: File | None = None


@base.add_command(command, name="check")
def check_command(options: CheckOptions) -> None:
    """Check every file of a dataset; exit code 2 at the first error.

    Prints what is worth knowing of it in brief; 'dataset show' prints every fact.

    Examples:
        fusion-bench dataset check datasets/mine/dataset.yaml
        fusion-bench dataset check mine --write-groups datasets/mine/groups.jsonl
    """
    from fusion_bench.checks.dataset_facts import dataset_notices, describe_dataset, unjudged_shares
    from fusion_bench.io.dataset import load_dataset
    from fusion_bench.report.page import Finding, NextStep, Page, Section

    path = options.find(options.name)
    dataset = load_dataset(path, cache=False, every_query=None)
    if dataset.spec.has_refined_lists:
        load_dataset(path, cache=False, refined=True, every_query=None).aligned([*dataset.runs])
    messages = dataset_notices(dataset)
    facts = describe_dataset(dataset) | {"unjudged_share_in_top_10": unjudged_shares(dataset)}
    if options.write_groups is not None:
        from fusion_bench.checks.query_warnings import write_found_groups

        own = resolve_path(path.parent / (dataset.spec.group_file or ""))
        is_owned = resolve_path(options.write_groups) == own
        facts["groups_written"] = write_found_groups(
            dataset, options.write_groups, is_owned=is_owned
        )
    record: dict[str, Any] = {"file": path, **facts, "notes": messages}
    counts = {"judged query": record["judged_queries"], "run": len(record["runs"])}
    counts |= {"rerank list": len(record["rerank_lists"]), "note": len(record["notes"])}
    if "groups_written" in record:
        counts["written group"] = record["groups_written"]["groups"]
    listed = ", ".join(pluralize(count, noun) for noun, count in counts.items())
    warnings = tuple(Finding(text, "warning") for text in record["notes"])
    section = Section(
        summary="; ".join(_list_facts(record)),
        findings=warnings,
        parts=tuple(build_list_tables(record)),
    )
    step = NextStep(f"fusion-bench dataset show {quote(options.name)}", "every fact, and all lists")
    headline = Finding(
        f"{record['file']}: no errors: {listed}.", "warning" if warnings else "better"
    )
    page = Page(f"Dataset {record['name']}", (section,), headline, next_steps=(step,))
    print_result(record, page, options, about=path)


class UnjudgedOptions(base.ExperimentOptions):
    """Options of ``dataset unjudged``.

    Attributes:
        systems: System, beside the baseline; repeatable. Default: all.
        dataset: One of several datasets. Default: each of them.
        depth: The greatest rank that counts.
    """

    systems: base.Systems = ()
    dataset: Name | None = None
    depth: Depth = 10


@base.add_command(command, name="unjudged")
def unjudged_command(options: UnjudgedOptions) -> None:
    """List the unjudged documents that an experiment's systems return, the highest ranks first.

    Judge them to decide more comparisons. Prints tab-separated values: dataset, query, document,
    best rank, and the systems that return it within the depth.

    Examples:
        fusion-bench dataset unjudged experiments/mine.yaml > to-judge.tsv
        fusion-bench dataset unjudged experiments/mine.yaml --system rrf --depth 5 --json
    """
    from fusion_bench.evaluation.diagnosis import list_unjudged_documents

    documents = options.run(list_unjudged_documents)
    if options.json:
        print_json({"depth": options.depth, "documents": documents})
        return
    typer.echo("dataset\tquery\tdocument\tbest_rank\tsystems")
    for row in documents:
        typer.echo("\t".join(map(escape_control_chars, row.cells)))


def _list_facts(facts: Mapping[str, object]) -> Iterator[str]:
    from fusion_bench.report.page import format_cell

    for key, value in facts.items():
        if not isinstance(value, list):
            yield f"{key.replace('_', ' ')}: {format_cell(value)}"


def build_list_tables(facts: Mapping[str, object]) -> Iterator[Table]:
    """A table of the runs, and one of the rerank lists."""
    from fusion_bench.report.page import make_record_table

    for key, value in facts.items():
        if isinstance(value, list) and value and key != "notes":
            yield make_record_table(key.replace("_", " "), value)


class ClassifyOptions(base.JsonOptions):
    """Options of ``dataset classify``.

    Attributes:
        queries: JSON Lines with id and text.
        out: The same lines with predicted_type and predicted_confidence.
        method: Words and patterns, or a language model behind a chat endpoint.
        change: Set a key of the endpoint, such as model=NAME, base_url=http://…,
            price.per_million_tokens=1; repeatable.
        records: Also write QueryClassification records, one a line.
        store: SQLite file that keeps the model's answers.
        max_cost: Stop before the price exceeds this.
    """

    queries: Annotated[Path, Argument("QUERIES")]
    out: File
    method: Literal["rules", "chat"] = "rules"
    change: Changes = ()
    records: File | None = None
    store: File = Path("reports/classify/answers.sqlite")
    max_cost: Amount | None = None


@base.add_command(command, ExitCode.DEGRADED, name="classify")
def classify_command(options: ClassifyOptions) -> None:
    """Predict the type of each query: local, global, relationship or hybrid.

    API keys come from environment variables. A stored answer of the model is not paid for twice.
    A query that cannot be classified is hybrid; it is named, and the exit code is 4.

    Examples:
        fusion-bench dataset classify queries.jsonl --out predicted.jsonl
        fusion-bench dataset classify queries.jsonl --out predicted.jsonl --method chat
            --set model=NAME
    """
    from fusion_bench.models.query_types import RuleClassifier, classify_file

    if options.method == "rules":
        base.refuse(options, "does not go with --method rules", "change", "max_cost")
        predictions = options.call(classify_file, options.queries, RuleClassifier())
        ledger = None
    else:
        from fusion_bench.models.answer_stores import ScoreStore
        from fusion_bench.models.chat_classifier import ChatClassifier, make_client

        client = make_client(options.change, is_limited=options.max_cost is not None)
        with closing(ScoreStore(options.store)) as opened, progress_bar() as show:
            on_progress = base.show_price(show, "classifying")
            classifier = options.call(ChatClassifier, client, opened, on_progress=on_progress)
            predictions = options.call(classify_file, options.queries, classifier)
            ledger = classifier.ledger
    if options.json:
        print_json({"predictions": predictions, "ledger": ledger})
    else:
        from fusion_bench.report.page import make_record_table

        rows = [
            {"predicted type": name, "queries": count} for name, count in predictions.types.items()
        ]
        tables = [make_record_table("Predicted types", rows)]
        if predictions.confusion:
            crossed = [{"given type": name, **row} for name, row in predictions.confusion.items()]
            tables.append(make_record_table("Given and predicted types", crossed))
        print_tables(*tables)
        if predictions.agreement is not None:
            echo(f"predicted as given: {predictions.agreement:.1%} of the queries with a type")
        if ledger is not None:
            echo(f"{ledger['calls']:,} calls in all runs, {ledger['retries']:,} retries")
        if predictions.failures:
            name, reason = next(iter(predictions.failures.items()))
            count = f"{len(predictions.failures):,} queries without an answer"
            echo(f"warning: {count} are hybrid (for example {name!r}: {reason})")
        echo_written(predictions.files)
    if predictions.failures:
        raise typer.Exit(ExitCode.DEGRADED)


#: Record → its model, or what builds its schema.
RECORDS: Final = {
    "report": "fusion_bench.evaluation.report_file:Report",
    "tuning": "fusion_bench.report.tuning_records:TuningReport",
    "gate": "fusion_bench.gate.result:GateVerdict",
    "baseline": "fusion_bench.gate.baseline:Baseline",
    "diagnosis": "fusion_bench.evaluation.diagnosis:Diagnosis",
    "threshold": "fusion_bench.evaluation.thresholds:ThresholdReport",
    "lint": "fusion_bench.checks.lint:LintReport",
    "export": "fusion_bench.evaluation.export_records:ExportReport",
    "campaign-status": "fusion_bench.campaign.records:CampaignStatus",
    "campaign-answer": "fusion_bench.campaign.records:CampaignAnswer",
    "campaign-report": "fusion_bench.campaign.records:CampaignReport",
    "search": "fusion_bench.schema.search_records:build_search_schema",
}


class SchemaOptions(base.JsonOptions):
    """Options of ``dataset schema``; with ``--json`` errors are JSON, too.

    Attributes:
        out: Write NAME.json of every record into this folder.
    """

    name: Annotated[str, Argument("NAME", help=f"{', '.join(RECORDS)}.")] | None = None
    out: Folder | None = None


@base.add_command(command, name="schema")
def schema_command(options: SchemaOptions) -> None:
    """Print the JSON Schema of a stored record, or of the search records that applications log.

    The installed package has the same files in fusion_bench/schemas.

    Examples:
        fusion-bench dataset schema report
        fusion-bench dataset schema --out schemas
    """
    from fusion_bench.io.outputs import write_outputs

    name = options.name
    if options.out is not None:
        base.refuse(options, "does not go with --out", "name")
        folder = require_folder(options.out)
        schemas = {f"{record}.json": render_schema(record).encode() for record in RECORDS}
        echo_written(write_outputs(folder, schemas))
    elif name is None:
        raise typer.BadParameter(f"name one of {', '.join(RECORDS)}", param_hint="NAME")
    elif name not in RECORDS:
        raise UnknownNameError("record", name, RECORDS)
    else:
        typer.echo(render_schema(name), nl=False)


def render_schema(record: str) -> str:
    """The JSON Schema of a record, as the text of its file."""
    from importlib import import_module
    from json import dumps

    from fusion_bench.config.json_records import build_schema

    module, _, name = RECORDS[record].partition(":")
    source: type[BaseModel] | Callable[[], dict[str, Any]] = getattr(import_module(module), name)
    schema = build_schema(source) if isinstance(source, type) else source()
    return f"{dumps(schema, indent=1, ensure_ascii=False)}\n"
