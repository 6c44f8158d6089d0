"""Every tool over both transports: what it answers, what it refuses, what it leaves alone."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.serving.mcp.served import SECRET, Served, read_text
from tests.shipped_schemas import check_record, shipped_text

CANDIDATE = {"runs": ["a", "b"], "fusion": {"method": "rrf", "k": 5}}
#: Tool → arguments with which it succeeds, and its published schema.
CALLS: dict[str, tuple[dict[str, Any], str | None]] = {
    "list_datasets": ({}, None),
    "list_methods": ({}, None),
    "check_dataset": ({"dataset": "mine"}, None),
    "evaluate": ({"candidate": CANDIDATE}, "report"),
    "diagnose": ({"top": 2}, "diagnosis"),
    "explain": ({"query": "q1", "document": "d1", "candidate": CANDIDATE}, None),
    "lint": ({"overrides": {"systems.plain.fusion.k": 20}}, "lint"),
    "export": ({"engine": "elasticsearch", "candidate": CANDIDATE}, "export"),
    "power": ({"sd": 0.2, "differences": [0.02]}, None),
    "gate": ({}, "gate"),
}


def test_every_tool_says_when_to_use_it_and_what_it_takes(served: Served) -> None:
    tools = served.portal.call(served.client.list_tools).tools
    assert [tool.name for tool in tools] == [*CALLS]
    for tool in tools:
        assert "Use it" in (tool.description or "")
        Draft202012Validator.check_schema(tool.input_schema)
        assert tool.input_schema["additionalProperties"] is False
        assert all(each["description"] for each in tool.input_schema["properties"].values())
        schema = CALLS[tool.name][1]
        expected = {"type": "object"} if schema is None else json.loads(shipped_text(schema))
        assert tool.output_schema == expected
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is (tool.name != "export")


@pytest.mark.parametrize("tool", CALLS)
def test_a_tool_answers_with_its_record(tool: str, served: Served) -> None:
    arguments, schema = CALLS[tool]
    record = served.find(tool, **arguments)
    if schema is not None:
        check_record(schema, json.dumps(record))


def test_evaluate_leaves_out_the_values_of_queries_unless_they_are_asked_for(
    served: Served,
) -> None:
    [brief] = served.find("evaluate")["collections"]
    [whole] = served.find("evaluate", per_query=True)["collections"]
    for row, full in zip(brief["systems"], whole["systems"], strict=True):
        measure, values = row["measures"]["RR@10"], full["measures"]["RR@10"]["values"]
        assert measure["values"] == []
        assert measure["mean"] == pytest.approx(sum(values) / 60)
    assert brief["queries"] == []
    assert len(whole["queries"]) == 60
    assert brief["comparisons"] == whole["comparisons"]


def test_a_candidate_stands_beside_the_systems_of_the_experiment(served: Served) -> None:
    [found] = served.find("evaluate", candidate=CANDIDATE)["collections"]
    systems = {row["name"]: row["config"] for row in found["systems"]}
    assert systems["candidate"]["fusion"]["k"] == 5
    assert {"plain", "live"} < systems.keys()
    [chosen] = served.find("evaluate", candidate=CANDIDATE, systems=["candidate"])["collections"]
    assert {row["name"] for row in chosen["systems"] if row["kind"] == "system"} == {
        *("plain", "candidate")
    }
    changed = served.find("evaluate", overrides={"systems.plain.fusion.k": 5})
    rows = {row["name"]: row for row in changed["collections"][0]["systems"]}
    assert rows["plain"]["config"]["fusion"]["k"] == 5
    text = read_text(served.call("evaluate"))
    assert text.startswith("# mine")
    assert len(text.splitlines()) <= 40


#: Tool, arguments that it refuses, and what its answer names.
REFUSED: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("evaluate", {"experimen": "x"}, ("evaluate.experimen", "experiment")),
    ("evaluate", {"per_query": "yes"}, ("evaluate.per_query",)),
    ("evaluate", {"experiment": "experiments/other.yaml"}, ("no such file",)),
    ("evaluate", {"experiment": "datasets/mine/qrels.txt"}, (".yaml",)),
    ("evaluate", {"candidate": {"runs": ["nope"]}}, ("candidate", "nope")),
    ("evaluate", {"candidate": {"runs": ["a"], "fusion": {"method": "rff"}}}, ("'rff'", "'rrf'")),
    ("evaluate", {"candidate": {"runs": ["a"], "fusion": "os.path:join"}}, ("os.path:join",)),
    ("evaluate", {"overrides": {"systems.plain.fusion.method": "a.b:c"}}, ("import code",)),
    ("evaluate", {"overrides": {"systems.plain.fusion.k=1 #": 1}}, ("overrides",)),
    ("evaluate", {"overrides": {"dataset": "other"}}, ("overrides", "'dataset'")),
    ("evaluate", {"overrides": {"measures.0": "RR@5"}}, ("overrides", "'measures.0'")),
    ("check_dataset", {}, ("check_dataset.dataset", "required")),
    ("check_dataset", {"dataset": "other"}, ("'other'", "mine")),
    ("diagnose", {"top": 0}, ("diagnose.top",)),
    ("diagnose", {"systems": ["other"]}, ("'other'", "plain")),
    ("explain", {"query": "q1", "document": "d99"}, ("'d99'",)),
    ("lint", {"engine": "none"}, ("'none'",)),
    ("export", {"engine": "none", "system": "plain"}, ("'none'",)),
    ("list_methods", {"method": "rff"}, ("'rff'",)),
    ("power", {}, ("report", "sd")),
    ("power", {"report": "experiments/mine.yaml"}, (".json",)),
    ("gate", {"baseline": "reports/other.txt"}, (".json",)),
]


@pytest.mark.parametrize(("tool", "arguments", "named"), REFUSED)
def test_a_bad_argument_is_named(
    tool: str, arguments: dict[str, Any], named: tuple[str, ...], served: Served
) -> None:
    text = served.refuse(tool, **arguments)
    assert [word for word in named if word not in text] == []
    assert_discreet(text, served)


def test_an_unknown_tool_is_an_error_of_the_protocol(served: Served) -> None:
    from mcp.shared.exceptions import MCPError

    with pytest.raises(MCPError, match="list_datasets"):
        served.call("eval")


#: Paths that lead out of a project, or are none.
PATHS = [
    "../../etc/passwd",
    "/etc/passwd",
    "datasets/../../x.yaml",
    "experiments/mine.yaml\n",
    "experiments/\x00.yaml",
    "<script>alert(1)</script>.yaml",
    "\x1b[31mred.yaml",
    "~/secret.yaml",
    "",
    "x" * 400,
    "a/" * 200 + "b.yaml",
    "x" * 100_000,
    "outside.yaml",
    "experiments/outside.yaml",
    "linked",
]
#: Ids that no query has.
IDS = [
    "../../etc/passwd",
    "<b>q1</b>",
    "q1\nq2",
    "q1\x00",
    "☃" * 400,
    "q" * 100_000,
    "",
    "-q",
    "{}",
]
#: Tool and argument that names a file or a folder, with the arguments beside it.
PATH_ARGUMENTS: dict[tuple[str, str], dict[str, Any]] = {
    ("check_dataset", "dataset"): {},
    ("evaluate", "experiment"): {},
    ("lint", "experiment"): {},
    ("power", "report"): {},
    ("gate", "baseline"): {},
}


@pytest.fixture(scope="session")
def outside(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder outside the project, with links from within to what is there."""
    place = tmp_path_factory.mktemp("outside")
    text = (folder / "experiments" / "mine.yaml").read_text(encoding="utf-8")
    (place / "other.yaml").write_text(text, encoding="utf-8")
    dataset = (folder / "datasets" / "mine" / "dataset.yaml").read_text(encoding="utf-8")
    (place / "dataset.yaml").write_text(dataset, encoding="utf-8")
    (folder / "experiments" / "outside.yaml").symlink_to(place / "other.yaml")
    (folder / "datasets" / "linked").symlink_to(place, target_is_directory=True)
    (folder / "experiments" / "elsewhere.yaml").write_text(
        text.replace("dataset: mine", "dataset: linked"), encoding="utf-8"
    )
    return place


@pytest.mark.parametrize("path", PATHS, ids=range(len(PATHS)))
@pytest.mark.parametrize("argument", PATH_ARGUMENTS, ids=" ".join)
def test_a_path_that_leads_out_of_the_project_is_refused(
    argument: tuple[str, str], path: str, served: Served, outside: Path
) -> None:
    tool, name = argument
    text = served.refuse(tool, **{name: path}, **PATH_ARGUMENTS[argument])
    assert str(outside) not in text
    assert "root:" not in text
    assert_discreet(text, served)


def test_a_dataset_outside_is_neither_listed_nor_read(served: Served, outside: Path) -> None:
    assert outside.is_dir()
    assert [*served.find("list_datasets")["datasets"]] == ["mine"]
    assert "'linked'" in served.refuse("evaluate", experiment="experiments/elsewhere.yaml")


@pytest.mark.parametrize("query", IDS, ids=range(len(IDS)))
def test_a_hostile_id_is_an_id_that_no_query_has(query: str, served: Served) -> None:
    assert_discreet(served.refuse("explain", query=query), served)
    candidate = {"runs": [query], "fusion": {"method": query}}
    assert_discreet(served.refuse("lint", candidate=candidate), served)


def assert_discreet(text: str, served: Served) -> None:
    """One short line without control characters, a path of the system, or a secret."""
    assert len(text) < 2_100
    assert text.isprintable()
    assert str(served.folder) not in text
    assert "site-packages" not in text
    assert [secret for secret in SECRET.values() if secret in text] == []


def test_no_tool_writes_a_file(served: Served) -> None:
    before = list_files(served.folder)
    for tool, (arguments, _) in CALLS.items():
        result = served.call(tool, arguments)
        text = f"{read_text(result)}{json.dumps(result.structured_content)}"
        assert str(served.folder) not in text
        assert [secret for secret in SECRET.values() if secret in text] == []
    assert list_files(served.folder) == before


def test_export_writes_below_its_folder_alone(served: Served) -> None:
    shutil.rmtree(served.folder / "exported", ignore_errors=True)
    before = list_files(served.folder)
    arguments = {"engine": "elasticsearch", "candidate": CANDIDATE}
    files = served.find("export", folder="es/one", **arguments)["files"]
    assert served.find("export", folder="es/one", **arguments)["files"] == files
    written = {path.relative_to(served.folder) for path in served.folder.rglob("search.json")}
    assert written == {Path("exported/es/one/search.json")}
    new = list_files(served.folder).keys() - before.keys()
    assert all(path.is_relative_to("exported") for path in new)
    for folder in ("../es", "/tmp/es", "es/../../x", ""):  # noqa: S108 - must not be written
        assert "folder" in served.refuse("export", folder=folder, **arguments)
    (served.folder / "exported" / "own").mkdir()
    (served.folder / "exported" / "own" / "search.json").write_text("{}", encoding="utf-8")
    assert "search.json" in served.refuse("export", folder="own", **arguments)


def list_files(folder: Path) -> dict[Path, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder): path.read_bytes() for path in files}
