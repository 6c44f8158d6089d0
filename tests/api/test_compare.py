"""Comparisons in Python: verdicts, details."""

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import ir_measures
import pytest

import fusion_bench as fb
from fusion_bench.errors import FusionBenchError
from tests import tiny
from tests.api.cases import QRELS, RUNS, make_collection


def test_each_run_alone_by_default() -> None:
    found = fb.compare(QRELS, RUNS, measures="RR@10")
    assert (found.baseline, found.best) == ("bm25", "dense")
    assert found.to_dict()["systems"]["bm25"]["RR@10"] == 0.5
    row = found["dense"]
    assert row is not None
    assert (row.difference, row.wins, row.losses) == (0.5, 2, 0)
    assert found["bm25"] is None


def test_systems_in_every_form() -> None:
    systems = {
        "bm25": "bm25",
        "by name": "rrf",
        "by pair": ("rrf", {"k": 60}),
        "by builder": fb.rrf(60),
        "by system": fb.System("x", ["bm25", "dense"]),
        "by keys": {"runs": ["dense", "bm25"], "fusion": {"method": "rrf"}},
    }
    rows = fb.compare(QRELS, RUNS, systems, "nDCG@10").to_dict()["systems"]
    fused = [row["nDCG@10"] for name, row in rows.items() if name.startswith("by")]
    assert len(fused) == 5
    assert len(set(fused)) == 1


@pytest.mark.parametrize("systems", ["rrf", fb.rrf(10), ("rrf", {"k": 10}), ["rrf"]])
def test_one_system_needs_no_list(systems: object) -> None:
    assert len(fb.compare(QRELS, RUNS, systems).collection.ranked_systems) == 1


def test_builders_and_lists_of_values_name_themselves() -> None:
    found = fb.compare(QRELS, RUNS, [fb.rrf(10), fb.rrf(60), fb.weighted()])
    names = {row.name for row in found.collection.ranked_systems}
    assert names == {"rrf k=10", "rrf k=60", "weighted_score"}
    found = fb.compare(QRELS, RUNS, {"bm25": "bm25", "rrf": ("rrf", {"k": [10, 60]})})
    assert set(found.to_dict()["systems"]) == {"bm25", "rrf k=10", "rrf k=60"}


MEASURES: list[Any] = ["RR@10", ["RR@10"], ir_measures.RR @ 10, [ir_measures.RR @ 10]]


@pytest.mark.parametrize("measures", [*MEASURES, fb.parse_measure("RR@10")])
def test_measures_in_every_form(measures: object) -> None:
    assert fb.compare(QRELS, RUNS, "rrf", measures).collection.measures == ("RR@10",)


def test_results_as_data() -> None:
    qrels, runs = make_collection()
    found = fb.compare(qrels, runs, {"bm25": "bm25", "rrf": "rrf"}, ["nDCG@10", "R@10"])
    frame = found.to_pandas().set_index("system")
    assert set(frame.index) == {"bm25", "rrf"}
    assert str(frame["wins"].dtype) == "Int64"
    per_query = found.to_pandas(per_query=True)
    means = per_query.groupby("system")["R@10"].mean()
    assert means["rrf"] == pytest.approx(frame.loc["rrf", "R@10"])
    _, answer, *_ = lines = repr(found).splitlines()
    assert found.verdict.startswith(answer)
    assert len(lines) <= 3
    assert (".warnings" in repr(found)) == bool(found.warnings)
    table = found.to_latex(columns=["nDCG@10", "difference"], letters=True)
    assert "nDCG@10" in table
    assert "R@10" not in table
    assert len([line for line in table.splitlines() if line.endswith(r"\\")]) == 1 + len(frame)
    assert "R@10" in found.to_latex()
    assert found.report.to_dict()["format"] == "fusion-bench-report"


def test_slices_and_conditions_by_fields_of_the_queries() -> None:
    qrels, runs = make_collection()
    names = list(fb.compare(qrels, runs, "rrf").collection.queries)
    queries = {
        q: {"language": ("en", "ja")[i % 3 == 0], "level": i % 2} for i, q in enumerate(names)
    }
    systems, measures = {"bm25": "bm25", "rrf": "rrf"}, ["nDCG@10"]
    found = fb.compare(qrels, runs, systems, measures, queries=queries, slices=["language"])
    frame = found.to_pandas(per_query=True)
    assert "type" not in frame
    means = frame.groupby(["system", "language"])["nDCG@10"].mean()
    where = {"language": "ja"}
    japanese = fb.compare(qrels, runs, systems, measures, queries=queries, where=where)
    assert len(japanese.collection.queries) == sum(q["language"] == "ja" for q in queries.values())
    assert japanese.to_pandas().set_index("system")["nDCG@10"]["rrf"] == pytest.approx(
        means["rrf", "ja"]
    )
    with pytest.raises(FusionBenchError, match="queries 'x'"):
        fb.compare(qrels, runs, "rrf", queries=queries, where={"x": "ja"})


def test_a_notebook_cell_stays_small_and_escapes() -> None:
    found = fb.compare(QRELS, {"<b>": RUNS["bm25"], "dense": RUNS["dense"]})
    for thing in (found, found.report):
        assert len(repr(thing)) < 500
        assert len(str(thing)) < 500
        assert "&lt;b&gt;" in thing._repr_html_()
        assert "<b>" not in thing._repr_html_()


def test_the_verdict_names_what_speaks_against_it() -> None:
    judged = {f"q{i}": {"good": 1, "bad": 0} for i in range(30)}
    unjudged = {q: {"new": 3.0, "good": 2.0, "bad": 1.0} for q in judged}
    old = {q: {"good": 2.0, "bad": 1.0} for q in judged}
    found = fb.compare(judged, {"old": old, "new": unjudged}, measures="RR@10")
    assert any("unjudged in 1 system" in text and ": new." in text for text in found.warnings)
    assert set(found.warnings) == {text for text in found.warnings if text in found.verdict}
    assert len(repr(found).splitlines()) <= 3
    other = {q: {"bad": 2.0, "good": 1.0} for q in judged}
    lists = {"old": old, "other": other}
    tied = fb.compare(judged, lists, ["old", "rrf"], "RR@10", allow_suspect=True)
    assert "change RR@10" in tied.verdict
    same = {"old": old, "same": old}
    clean = fb.compare(judged, same, measures="RR@10", groups="declared")
    assert clean.warnings == ()


def test_one_source_has_no_rows_that_repeat_it() -> None:
    def references(systems: object, runs: object) -> list[str]:
        found = fb.compare(QRELS, runs, systems, measures="RR@10")
        return [row.name.split(" (")[0] for row in found.collection.reference_rows]

    one = {"bm25": RUNS["bm25"]}
    assert references("bm25", one) == ["perfect order"]
    assert references({"short": {"top_k": 1}}, one) == ["best source", "perfect order"]
    both = ["best source", "best source per query", "perfect order"]
    assert references(["bm25", "rrf"], RUNS) == both


def test_known_names_and_files_are_compared(tmp_path: Path) -> None:
    found = fb.compare(QRELS, RUNS, measures="RR@10")
    with pytest.raises(KeyError, match="mean 'bm25'") as caught:
        found["bm52"]
    assert isinstance(caught.value, fb.FusionBenchError)
    assert str(caught.value).startswith("unknown system")
    folder = tiny.make(tmp_path) / "datasets/tiny"
    found = fb.compare(str(folder / "qrels.txt"), [folder / "a.trec", str(folder / "b.trec")])
    assert {row.name for row in found.collection.ranked_systems} == {"a", "b"}


def test_a_dataset_by_name_path_or_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tiny.make(tmp_path)
    monkeypatch.chdir(root)
    means = []
    for given in ("tiny", "datasets/tiny", root / tiny.DATASET, fb.load_dataset("tiny")):
        found = fb.compare(given, systems={"b": "b", "rrf": "rrf"}, measures="RR@10")
        means.append(found.to_dict()["systems"]["rrf"]["RR@10"])
        assert found.collection.split == "test"
    assert len(set(means)) == 1
    alone = fb.compare("tiny", "a", measures="RR@10")
    assert [row.name for row in alone.collection.ranked_systems] == ["a"]
    blend = {"method": "linear", "reranker": "r", "missing": "below"}
    assert fb.compare("tiny", systems=fb.rrf(blend=blend)).best
    assert fb.compare("tiny", {"mine": "datasets/tiny/a.trec"}).best == "mine"


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((QRELS,), {}, "runs: needed"),
        (("nowhere",), {}, "unknown dataset 'nowhere'"),
        (("nowhere.txt", RUNS), {}, "nowhere.txt: no"),
        ((QRELS, RUNS, "rff"), {}, "'rff'; .*'rrf'"),
        ((QRELS, RUNS, "rrf", "nope@10"), {}, "unknown measure 'nope@10'"),
        ((QRELS, RUNS, [3]), {}, "give a method's name"),
        ((QRELS, RUNS, ["rrf", "rrf"]), {}, "named 'rrf'"),
        ((QRELS, RUNS), {"baseline": "bn25"}, "'bn25'; .*'bm25'"),
        ((QRELS, RUNS), {"alhpa": 0.1}, "'alhpa'; .*'alpha'"),
        ((QRELS, RUNS), {"queries": 3}, "queries: give a path"),
        ((QRELS, RUNS), {"queries": {"q1": {"typ": "x"}}}, "unknown field 'typ'"),
        (({}, RUNS), {}, "at least one"),
        (({"p": {"d": 1}}, RUNS), {}, "no query"),
        ((QRELS, {"a": {"q1": {"d": float("nan")}}}), {}, "'q1', document 'd': score nan"),
        (({"q1": {"d": 0.5}}, RUNS), {}, "'q1', document 'd': grade 0.5"),
        ((QRELS, RUNS, {}), {}, "at least one"),
        ((QRELS, RUNS, "rrf", []), {}, "measures"),
        ((QRELS, {"": RUNS["bm25"]}), {}, "a run needs a name"),
        ((QRELS, RUNS, {"rrf": ("rrf", {"k": [10, 60]})}), {"baseline": "rrf"}, "rrf k=60"),
    ],
)
def test_what_cannot_be_compared_says_why(
    arguments: tuple[Any, ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(FusionBenchError, match=message):
        fb.compare(*arguments, **options)


def test_options_go_with_the_names_of_a_dataset_s_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tiny.make(tmp_path))
    strict = fb.compare("tiny", ["a", "b"], "b", "RR(rel=2)@10")
    by_option = fb.compare("tiny", ["a", "b"], "b", "RR@10", binary_relevance=2)
    assert by_option.to_pandas().iloc[:, 1].tolist() == strict.to_pandas().iloc[:, 1].tolist()
    assert strict.to_pandas().iloc[0, 1] != fb.compare("tiny", "b").to_pandas()["RR@10"][0]
    blend = {"method": "linear", "reranker": "r", "missing": "below", "beta": 0.5}
    systems = {"s": fb.rrf(runs=["a", "b"], blend={**blend, "retrieval": "reciprocal_rank"})}
    given: dict[str, Any] = {"rerankers": ["r"], "measures": "RR@10"}
    with pytest.raises(FusionBenchError, match=r"score_spaces: r: .*0\.9"):
        fb.compare("tiny", None, systems, score_spaces={"r": "log_prob"}, **given)


def test_details_are_computed_once_for_known_names() -> None:
    found = fb.compare(QRELS, RUNS, ["bm25", "rrf"], "RR@10", detail=["rrf"])
    details = found.details()
    assert found.details() is details
    assert details.detailed == ("bm25", "rrf")
    assert details.relevant.to_pandas().columns.tolist()[-2:] == ["bm25 (system)", "rrf"]
    with pytest.raises(fb.FusionBenchError, match="unknown system 'rrff'"):
        fb.compare(QRELS, RUNS, ["bm25", "rrf"], "RR@10", detail=["rrff"])


def test_a_report_on_disk_has_no_details(tmp_path: Path) -> None:
    root = tiny.make(tmp_path)
    report = fb.run_experiment(root / tiny.EXPERIMENT, detail=["two"])
    path = root / "report.json"
    path.write_text(report.model_dump_json(), encoding="utf-8")
    pickled = pickle.loads(pickle.dumps(report))  # noqa: S301 - our own
    for other in (fb.read_report(path), pickled, copy.deepcopy(report)):
        assert other == report
        with pytest.raises(fb.FusionBenchError, match="has no details"):
            other.details()
    assert report.details().collection("tiny").detailed == ("one", "two")
    assert report.details() is report.details()


#: Packages of this one that a comparison in memory has no use for, and libraries.
UNUSED = {"cli", "engines", "explain", "gate", "importers", "live", "models", "report", "tune"}
HEAVY = {
    *("httpx", "ir_measures", "matplotlib", "numpy.ma", "optuna", "pandas", "pyarrow"),
    *("scipy.special", "scipy.stats", "yaml"),
}


@pytest.mark.slow
def test_a_first_comparison_loads_few_modules() -> None:
    code = (
        "import sys, fusion_bench as fb; qrels = {'q1': {'d1': 1}, 'q2': {'d2': 1}}\n"
        "runs = {'a': {'q1': {'d1': 2.0}, 'q2': {'d1': 2.0}}, 'b': {'q1': {'d2': 1.0}, 'q2': {}}}\n"
        "fb.compare(qrels, runs, measures=['nDCG@10', 'RR@10']); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    ours = [name.split(".")[1] for name in loaded if name.startswith("fusion_bench.")]
    assert len(ours) <= 136
    assert not UNUSED & {*ours}
    assert not HEAVY & {*loaded}


@pytest.mark.parametrize(("place", "name"), [(0, "bm25"), (1, "dense"), ("dense", "dense")])
def test_the_baseline_is_a_name_or_a_place(place: int | str, name: str) -> None:
    assert fb.compare(QRELS, RUNS, measures="RR@10", baseline=place).baseline == name


@pytest.mark.parametrize("place", [2, -1, True, 0.0, ["bm25"]])
def test_any_other_baseline_is_an_error_of_the_package(place: Any) -> None:  # noqa: ANN401
    with pytest.raises(FusionBenchError, match=r"baseline: .* 0 to 1, .*bm25"):
        fb.compare(QRELS, RUNS, baseline=place)


def test_measures_in_the_place_of_systems_are_named() -> None:
    """ranx has them third."""
    with pytest.raises(FusionBenchError, match=r"measures=\['map', 'recip_rank'\]"):
        fb.compare(QRELS, RUNS, ["map", "recip_rank"])
    with pytest.raises(FusionBenchError, match="fusion method 'rff'"):
        fb.compare(QRELS, RUNS, ["rff"])
    with pytest.raises(FusionBenchError, match=r"'metrics'; .*'measures'"):
        fb.compare(QRELS, RUNS, metrics=["map"])
    with pytest.raises(FusionBenchError, match=r"'metric'; .*'measure'"):
        fb.tune(QRELS, RUNS, metric="map")


def test_a_system_without_details_says_how_to_get_them() -> None:
    found = fb.compare(QRELS, RUNS, ["bm25", "dense", "rrf"], "RR@10")
    with pytest.raises(KeyError, match=r"'mine' .*detail=\['mine'\]"):
        found.details().top_documents("mine")


def test_words_of_ranx_and_pyterrier_work_or_lead_to_ours(tmp_path: Path) -> None:
    made: Any = fb.Run
    run = made(RUNS["bm25"], name="mine")
    assert (run.name, run.to_dict()) == ("mine", RUNS["bm25"])
    made = fb.Qrels
    assert made(QRELS).to_dict() == QRELS
    found: Any = fb.compare(QRELS, RUNS, measures="RR@10")
    assert found.to_dataframe().equals(found.to_pandas())
    assert found.to_dataframe(per_query=True).equals(found.to_pandas(per_query=True))
    assert found.save(tmp_path / "page.html").read_text("utf-8") == found.page().html
    fused: Any = fb.fuse(RUNS, "rrf")
    with pytest.raises(AttributeError, match=r"load_qrels\(path\)"):
        made.from_file("qrels.txt")
    with pytest.raises(AttributeError, match=r"to_trec\(path\)"):
        fused.save("run.txt")
    experiment: Any = fb.Experiment
    with pytest.raises(TypeError, match=r"compare\(qrels, runs, "):
        experiment([RUNS], QRELS, ["map"])
