"""The gate from end to end on real files: what passes, what blocks, what is refused."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fusion_bench._version import ENGINE
from fusion_bench.errors import ConfigError, FusionBenchError
from fusion_bench.experiment.system import System
from fusion_bench.gate import inputs
from fusion_bench.gate.baseline_files import read_baseline
from fusion_bench.gate.page import format_text
from fusion_bench.gate.run import run_gate
from fusion_bench.gate.update import write_baseline
from fusion_bench.io.provenance import ListMeta, meta_path
from fusion_bench.ranking.system_scores import Scores, evaluate_systems
from fusion_bench.stats.intervals import exact_mean
from fusion_bench.util.digests import digest_json
from tests.gate import cases
from tests.gate.cases import EXPERIMENT, gate_inputs, gate_verdict, renew_baseline
from tests.texts import names_in_order
from tests.tiny import edit


def swap(root: Path, runs: str) -> None:
    edit(root, EXPERIMENT, "live: {runs: [a]}", f"live: {runs}")


def rewrite(path: Path, **changed: object) -> None:
    """A baseline as another version or another configuration would have written it."""
    old = read_baseline(path)
    assert old is not None
    new = old.model_copy(update=changed)
    means = {
        record.collection: {name: exact_mean(row) for name, row in record.value_arrays().items()}
        for record in new.collections
    }
    changes = {"config_sha256": digest_json(new.config), "means": means}
    newest = new.history[-1].model_copy(update=changes)
    write_baseline(new.model_copy(update={"history": (*new.history[:-1], newest)}), path)


# ── verdicts


def test_nothing_changed_passes(root: Path) -> None:
    renew_baseline(root)
    result = gate_verdict(root)
    assert result.exit_code == 0
    assert [(c.slice, c.measure) for c in result.checks] == [
        (None, "RR@10"),
        ("local", "RR@10"),
        (None, "nDCG@10"),
        ("local", "nDCG@10"),
    ]
    assert {c.status for c in result.checks} == {"unchanged"}
    assert all(c.changed == 0 and c.p == 1 for c in result.checks)
    assert (result.baseline_reason, result.baseline_system, result.config_changes) == (
        "first",
        "live",
        {},
    )


def test_a_worse_configuration_regresses(root: Path) -> None:
    renew_baseline(root)
    swap(root, "{runs: [b]}")
    result = gate_verdict(root)
    assert result.exit_code == 1
    whole = result.checks[0]
    # b has the document at places 1, 2, 3 and 4 in turn
    expected = float(np.mean([1 / (1 + q % 4) for q in range(cases.QUERIES)]))
    assert whole.baseline_mean == 1
    assert whole.candidate_mean == pytest.approx(expected, abs=1e-12)
    assert whole.changed == whole.losses == 45
    assert whole.groups == 30
    assert {c.status for c in result.checks} == {"regressed"}
    assert result.config_changes == {"runs": (["a"], ["b"])}


def noisy(root: Path) -> None:
    """Twelve queries change, six for the worse, by a lot: nobody can tell."""
    place = {q: 1 + (q % 4 if q >= 12 else (q % 2) * 3) for q in range(cases.QUERIES)}
    other = {q: 1 + (q % 4 if q >= 12 else (1 - q % 2) * 3) for q in range(cases.QUERIES)}
    for name, places in (("a", place), ("b", other)):
        (root / f"datasets/mine/{name}.trec").write_text(cases.run_lines(places, name))
    edit(root, EXPERIMENT, "  slices: [local]\n", "")
    lines = [f'{{"id": "q{q}"}}' for q in range(cases.QUERIES)]
    (root / "datasets/mine/queries.jsonl").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(("policy", "code"), [("block", 3), ("warn", 0)])
def test_the_policy_says_what_inconclusive_does(root: Path, policy: str, code: int) -> None:
    noisy(root)
    edit(root, EXPERIMENT, "  system: live\n", f"  system: live\n  inconclusive: {policy}\n")
    renew_baseline(root)
    swap(root, "{runs: [b]}")
    result = gate_verdict(root)
    assert {c.status for c in result.checks} == {"inconclusive"}
    assert result.exit_code == code
    for check in result.checks:
        assert check.min_detectable_drop is not None
        assert check.min_detectable_drop > check.max_drop


def test_an_empty_slice_is_never_a_pass(root: Path) -> None:
    edit(root, EXPERIMENT, "[local]\n", "[relationship]\n  inconclusive: warn\n")
    renew_baseline(root)
    result = gate_verdict(root)
    assert result.exit_code == 2
    empty = result.checks[1]
    assert empty.status == "inconclusive"
    assert "has no query" in str(empty.error)
    assert "2 errors" in result.headline


def test_a_value_that_is_no_number_is_never_a_pass(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(root, EXPERIMENT, "  system: live\n", "  system: live\n  inconclusive: warn\n")
    renew_baseline(root)
    swap(root, "{runs: [b]}")

    def broken(systems: Sequence[System], *given: object, **options: object) -> list[Scores]:
        [scores] = evaluate_systems(systems, *given, **options)  # type: ignore[arg-type]
        repeats = np.array(scores.repeats)
        if systems[0].runs == ("b",):
            repeats[:, 0, 7] = np.nan
        return [replace(scores, repeats=repeats)]

    monkeypatch.setattr(inputs, "evaluate_systems", broken)
    result = gate_verdict(root)
    faults = [c.error for c in result.checks if c.error is not None]
    assert [fault.split(" values")[0] for fault in faults] == ["1 of 60", "1 of 30"]
    assert result.exit_code == 1  # the other measure is a regression all the same
    with pytest.raises(FusionBenchError, match=r"RR@10 .*finite"):
        renew_baseline(root)


# ── guards and golden queries


def test_guards_count_the_queries_that_lose(root: Path) -> None:
    guards = (
        "[{measure: RR@10, max_loss: 0.7, max_share: 0.2}, "
        "{measure: RR@10, max_loss: 0.7, max_share: 0.3}]"
    )
    edit(root, EXPERIMENT, "  slices: [local]\n", f"  guards: {guards}\n")
    edit(root, EXPERIMENT, "{max_drop: 0.01}\n    nDCG", "{max_drop: 0.9}\n    nDCG")
    edit(root, EXPERIMENT, "nDCG@10: {max_drop: 0.01}", "nDCG@10: {max_drop: 0.9}")
    renew_baseline(root)
    swap(root, "{runs: [b]}")
    result = gate_verdict(root)
    assert {c.status for c in result.checks} == {"pass"}
    assert [(g.violations, g.share, g.holds) for g in result.guards] == [
        (15, 0.25, False),
        (15, 0.25, True),
    ]
    assert result.exit_code == 1


def test_golden_queries_keep_their_document(root: Path) -> None:
    golden = "[{query: q1, document: d1, top: 1}, {query: q3, document: n9, top: 3}]"
    edit(root, EXPERIMENT, "  slices: [local]\n", f"  golden: {golden}\n")
    renew_baseline(root)
    result = gate_verdict(root)
    assert [(g.rank, g.holds) for g in result.golden] == [(1, True), (None, False)]
    assert result.exit_code == 1


@pytest.mark.parametrize(("top", "code"), [(1, 1), (2, 0)])
def test_a_golden_query_holds_at_its_last_rank_and_breaks_at_the_next(
    root: Path, top: int, code: int
) -> None:
    edit(root, EXPERIMENT, "live: {runs: [a]}", "live: {runs: [b]}")  # d1 is second there
    golden = f"  golden: [{{query: q1, document: d1, top: {top}}}]\n"
    edit(root, EXPERIMENT, "  slices: [local]\n", golden)
    renew_baseline(root)
    result = gate_verdict(root)
    assert [(g.rank, g.holds) for g in result.golden] == [(2, code == 0)]
    assert result.exit_code == code


@pytest.mark.parametrize("policy", ["block", "warn"])
def test_a_golden_query_that_is_not_there_is_never_a_pass(root: Path, policy: str) -> None:
    golden = f"[{{query: q99, document: d1}}]\n  inconclusive: {policy}"
    edit(root, EXPERIMENT, "  slices: [local]\n", f"  golden: {golden}\n")
    renew_baseline(root)
    result = gate_verdict(root)
    assert "no such query" in str(result.golden[0].error)
    assert result.exit_code == 2


def test_a_golden_query_of_an_unknown_dataset_is_an_error(root: Path) -> None:
    golden = "[{query: q1, document: d1, dataset: yours}]"
    edit(root, EXPERIMENT, "  slices: [local]\n", f"  golden: {golden}\n")
    renew_baseline(root)
    with pytest.raises(ConfigError, match=r"golden\.0\.dataset: .*'yours'"):
        gate_verdict(root)


# ── refusals: each with its reason and both values


def refusal(root: Path) -> str:
    result = gate_verdict(root)
    assert result.exit_code == 2
    assert result.checks == ()
    return "; ".join(result.refusals)


QRELS, RUN = "datasets/mine/qrels.txt", "datasets/mine/a.trec"
JUDGED = (QRELS, "q7 0 d7 1\n", "q7 0 d7 1\nq7 0 d8 1\n")
RESCORED = (RUN, "q7 Q0 n0 2 0.8 a", "q7 Q0 n0 2 0.81 a")
MEASURES = "measures: [RR@10]\n"
#: Edits of a file each, and what the refusal names: the parts of each reason.
INCOMPARABLE: dict[str, tuple[list[tuple[str, str, str]], list[tuple[str, ...]]]] = {
    "judgments": ([JUDGED], [("mine: ", "contents of qrels")]),
    "judgments and lists": ([JUDGED, RESCORED], [("mine: ", "contents of qrels")]),
    "split": (
        [("datasets/mine/queries.jsonl", '"q1",', '"q1", "split": "test",')],
        [
            ("split changed", "None", "'test'"),
            ("59 missing ('q0', 'q10',", "56 more), 0 new"),
            ("of queries.split",),
        ],
    ),
    "queries": (
        [(QRELS, "q7 0 d7 1\n", "new 0 d7 1\n")],
        [("1 missing ('q7'), 1 new ('new')",), ("digests alone",)],
    ),
    "query type": (
        [(EXPERIMENT, MEASURES, f"{MEASURES}query_type: local\n")],
        [("query_type", "None", "'local'")],
    ),
    "tie rule": (
        [(EXPERIMENT, MEASURES, f"{MEASURES}ties: first_seen\n")],
        [("tie rule", "'trec'", "'first_seen'")],
    ),
    "binary relevance": (
        [("datasets/mine/dataset.yaml", "name: mine\n", "name: mine\nbinary_relevance: 2\n")],
        [("binary_relevance", "baseline 1", "candidate 2"), ("of RR(rel=2)@10",)],
    ),
}


@pytest.mark.parametrize(("edits", "says"), INCOMPARABLE.values(), ids=INCOMPARABLE)
def test_what_cannot_be_compared_is_refused_with_both_values(
    root: Path, edits: list[tuple[str, str, str]], says: list[tuple[str, ...]]
) -> None:
    renew_baseline(root)
    for each in edits:
        edit(root, *each)
    found = refusal(root)
    for parts in says:
        assert names_in_order(found, *parts)


# ── changed lists: compared with the stored values, or refused


def refuse_lists(root: Path) -> None:
    edit(root, EXPERIMENT, "  system: live\n", "  system: live\n  lists: refuse\n")


def list_changes(root: Path) -> list[tuple[str, str]]:
    """What changed in the lists, where the policy compares them."""
    result = gate_verdict(root)
    assert result.refusals == ()
    return [(change.part, change.change) for change in result.list_changes]


@pytest.mark.parametrize(
    ("change", "kind", "says"),
    [
        (RESCORED, "contents", ("contents of runs/a",)),
        (
            ("datasets/mine/dataset.yaml", "a.trec, roles: [keyword]", "a.trec, roles: [graph]"),
            "roles",
            ("roles of runs/a", "['keyword']", "['graph']"),
        ),
    ],
    ids=["contents", "roles"],
)
def test_a_changed_list_is_compared_or_refused(
    root: Path, change: tuple[str, str, str], kind: str, says: tuple[str, ...]
) -> None:
    renew_baseline(root)
    edit(root, *change)
    assert list_changes(root) == [("runs/a", kind)]
    refuse_lists(root)
    assert names_in_order(refusal(root), *says)


def test_a_rebuilt_index_is_compared_with_the_stored_values(root: Path) -> None:
    renew_baseline(root)
    before = gate_verdict(root)
    assert before.changed_parts == "nothing changed"
    run = root / "datasets/mine/a.trec"
    run.write_text((root / "datasets/mine/b.trec").read_text())
    result = gate_verdict(root)
    assert result.exit_code == 1
    assert {check.status for check in result.checks} == {"regressed"}
    assert result.changed_parts == "lists changed"
    assert result.headline.endswith("; lists changed")
    whole = result.checks[0]
    assert (whole.baseline_mean, whole.changed) == (1, 45)
    swap(root, "{runs: [a, b]}")
    both = gate_verdict(root)
    assert both.changed_parts.startswith("lists and configuration")
    assert both.checks[0].baseline_mean == 1
    lost = result.regressions[0]
    assert not lost.has_old_ranks
    assert (lost.documents[0].rank_before, lost.documents[0].rank_after) == (None, 4)
    assert lost.documents[0].cause == ""


def test_a_rebuilt_index_that_is_no_worse_passes(root: Path) -> None:
    swap(root, "{runs: [b]}")
    renew_baseline(root)
    run = root / "datasets/mine/b.trec"
    run.write_text((root / "datasets/mine/a.trec").read_text())
    result = gate_verdict(root)
    assert (result.exit_code, result.changed_parts) == (3, "lists changed")
    assert names_in_order(result.headline, "(mine: runs/b changed)", "blocked")
    assert "--base COMMIT" in format_text(result)
    edit(root, EXPERIMENT, "  system: live\n", "  system: live\n  unreproduced: accept\n")
    assert "accepted under: unreproduced" in refusal(root)


def test_only_the_collection_with_new_lists_is_not_reproduced(root: Path) -> None:
    second_dataset(root)
    path = renew_baseline(root)
    edit(root, "datasets/yours/a.trec", "q7 Q0 n0 1 0.9 b", "q7 Q0 n0 1 0.91 b")
    assert list_changes(root) == [("runs/a", "contents")]
    old = read_baseline(path)
    assert old is not None
    mine, yours = old.collections
    values = {**mine.values, "RR@10": (0.5, *mine.values["RR@10"][1:])}
    rewrite(path, collections=(mine.model_copy(update={"values": values}), yours))
    assert names_in_order(refusal(root), "mine: ", "not reproduce RR@10")


def test_other_contents_of_a_list_that_the_baseline_does_not_read_are_fine(root: Path) -> None:
    renew_baseline(root)
    edit(root, "datasets/mine/b.trec", "q7 Q0 n0 1 0.9 b", "q7 Q0 n0 1 0.91 b")
    swap(root, "{runs: [a, b]}")
    assert gate_verdict(root).refusals == ()


def test_a_list_that_is_gone(root: Path) -> None:
    renew_baseline(root)
    swap(root, "{runs: [b]}")
    edit(root, EXPERIMENT, "plain: {runs: [a, b]}", "plain: {runs: [b]}")
    edit(root, "datasets/mine/dataset.yaml", "  a: {path: a.trec, roles: [keyword]}\n", "")
    assert list_changes(root) == [("runs/a", "missing")]
    assert gate_verdict(root).exit_code == 1
    refuse_lists(root)
    assert names_in_order(refusal(root), "runs/a", "is missing")


def test_another_measure_and_another_definition(root: Path) -> None:
    path = renew_baseline(root)
    edit(root, EXPERIMENT, "    RR@10:", "    AP@10: {max_drop: 0.01}\n    RR@10:")
    assert names_in_order(refusal(root), "AP@10", "RR@10, nDCG@10)")
    edit(root, EXPERIMENT, "    AP@10: {max_drop: 0.01}\n", "")
    old = read_baseline(path)
    assert old is not None
    other = old.collections[0].definitions["nDCG@10"] | {"dcg": "exp-log2"}
    arm = old.collections[0]
    definitions = {**arm.definitions, "nDCG@10": other}
    rewrite(path, collections=(arm.model_copy(update={"definitions": definitions}),))
    assert names_in_order(refusal(root), "nDCG@10.dcg", "'exp-log2'", "'log2'")


def test_another_engine(root: Path) -> None:
    rewrite(renew_baseline(root), engine=0)
    assert names_in_order(refusal(root), "engine version", "0", str(ENGINE))


def test_values_that_the_engine_does_not_reproduce(root: Path) -> None:
    path = renew_baseline(root)
    old = read_baseline(path)
    assert old is not None
    values = list(old.collections[0].values["RR@10"])
    values[old.collections[0].queries.index("q3")] -= 1e-9
    kept = {**old.collections[0].values, "RR@10": tuple(values)}
    rewrite(path, collections=(old.collections[0].model_copy(update={"values": kept}),))
    found = refusal(root)
    assert "reproduce RR@10 of 1" in found
    assert "query 'q3'" in found


def test_collections_that_come_and_go(root: Path) -> None:
    path = renew_baseline(root)
    old = read_baseline(path)
    assert old is not None
    renamed = (old.collections[0].model_copy(update={"collection": "yours"}),)
    rewrite(
        path, collections=renamed, anchor=old.anchor.model_copy(update={"collections": renamed})
    )
    found = refusal(root)
    assert names_in_order(found, "yours: in", "not in")
    assert names_in_order(found, "mine: ", "no such collection")


def reranked(root: Path, missing: str = "error") -> None:
    swap(root, f"{{runs: [a], blend: {{method: replace, reranker: r, missing: {missing}}}}}")


def degrade(root: Path) -> None:
    """Say that a fallback scored one query of the rerank list."""
    path = root / "datasets/mine/r.trec"
    meta = ListMeta(
        list_sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        created="2026-01-01T00:00:00Z",
        dataset="mine",
        system="a",
        depth=10,
        score_space="unit",
        asked="one/model",
        providers={"two/model": ("q1",)},
        degraded={"q1": "one/model timed out"},
    )
    meta_path(path).write_text(meta.model_dump_json(), encoding="utf-8")


def test_degraded_rerank_scores(root: Path) -> None:
    reranked(root)
    renew_baseline(root)
    degrade(root)
    reason = "mine: rerank list 'r' is degraded: 1 query without the scores of one/model"
    assert reason in refusal(root)
    assert "'q1': one/model" in refusal(root)
    with pytest.raises(FusionBenchError, match="mine: rerank list 'r'"):
        renew_baseline(root)
    edit(root, EXPERIMENT, "gate:\n", "gate:\n  degraded: accept\n")
    renew_baseline(root, "accepted")
    assert gate_verdict(root).exit_code == 0


def test_an_arm_that_never_ran(root: Path) -> None:
    """The rerank list answers a judged query, but none of those that are evaluated."""
    renew_baseline(root)
    path = root / "datasets/mine/r.trec"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:5]))
    queries = root / "datasets/mine/queries.jsonl"
    queries.write_text(queries.read_text().replace('"q0", "type": "global"', '"q0"'))
    edit(root, EXPERIMENT, "measures: [RR@10]\n", "measures: [RR@10]\nquery_type: local\n")
    reranked(root, missing="below")
    assert "'r' has no result" in refusal(root)


def test_an_experiment_without_a_gate(root: Path) -> None:
    path = root / EXPERIMENT
    path.write_text(path.read_text().split("gate:")[0])
    with pytest.raises(ConfigError, match=r"no 'gate' key"):
        gate_verdict(root)


# ── what is wrong with the experiment


def test_several_systems_and_none_named(root: Path) -> None:
    edit(root, EXPERIMENT, "  system: live\n", "")
    edit(root, EXPERIMENT, "  live: {runs: [a]}\n", "  live: {runs: [a]}\n  more: {runs: [b]}\n")
    with pytest.raises(ConfigError, match=r"\(plain, live, more\)"):
        gate_verdict(root)


def test_an_unknown_measure_says_where(root: Path) -> None:
    edit(root, EXPERIMENT, "    RR@10:", "    Hits@10:")
    with pytest.raises(ConfigError, match=r"mine\.yaml:\d+: .*Hits@10"):
        renew_baseline(root)


def test_a_configuration_that_no_longer_fits_is_refused(root: Path) -> None:
    rewrite(renew_baseline(root), config={"runs": ["a"], "colour": "red"})
    with pytest.raises(ConfigError, match=r"json: config: .*'colour'"):
        gate_verdict(root)


# ── the configuration


def test_the_switch_is_part_of_the_configuration(root: Path) -> None:
    swap(root, "{runs: [a, b], fusion: {method: rrf_v2}}")
    path = renew_baseline(root)
    inputs = gate_inputs(root)
    result = run_gate(replace(inputs, experiment=inputs.experiment.without_v2()), path)
    assert result.config_changes["fusion.method"] == ("rrf_v2", "rrf")


# ── several collections


def second_dataset(root: Path) -> None:
    """The same files under another name, and another run in the place of `a`."""
    folder = root / "datasets/yours"
    folder.mkdir()
    for path in (root / "datasets/mine").iterdir():
        text = path.read_text().replace("name: mine", "name: yours")
        (folder / path.name).write_text(text)
    (folder / "a.trec").write_text((root / "datasets/mine/b.trec").read_text())
    edit(root, EXPERIMENT, "dataset: mine", "datasets: [mine, yours]")


def test_every_collection_is_checked_and_named(root: Path) -> None:
    second_dataset(root)
    renew_baseline(root)
    swap(root, "{runs: [b]}")
    result = gate_verdict(root)
    assert {c.collection: c.status for c in result.checks} == {
        "mine": "regressed",
        "yours": "unchanged",
    }
    assert len(result.checks) == 8
    assert {lost.collection for lost in result.regressions} == {"mine"}


def test_a_golden_query_of_several_datasets_names_its_own(root: Path) -> None:
    second_dataset(root)
    golden = "[{query: q1, document: d1, top: 1}, {query: q1, document: d1, dataset: yours}]"
    edit(root, EXPERIMENT, "  slices: [local]\n", f"  golden: {golden}\n")
    renew_baseline(root)
    result = gate_verdict(root)
    assert result.golden[0].error is not None
    assert "golden query's 'dataset'" in result.golden[0].error
    assert (result.golden[1].collection, result.golden[1].rank) == ("yours", 2)
    assert result.exit_code == 2


def test_every_reranker_of_a_system_by_query_type_is_held_on_to(root: Path) -> None:
    lists = "  r: {path: r.trec, score_space: unit}\n"
    edit(root, "datasets/mine/dataset.yaml", lists, lists + lists.replace("r:", "r2:", 1))
    choice = "{by_query_type: {local: r2, hybrid: r}}"
    swap(root, f"{{runs: [a, b], blend: {{method: linear, beta: 0.5, reranker: {choice}}}}}")
    found = read_baseline(renew_baseline(root))
    assert found is not None
    assert {"rerank/r", "rerank/r2"} <= set(found.collections[0].digests)
    assert gate_verdict(root).exit_code == 0
    other = (root / "datasets/mine/r.trec").read_text().replace(" 5 0.45 ", " 5 0.4 ")
    (root / "datasets/mine/other.trec").write_text(other)
    edit(root, "datasets/mine/dataset.yaml", "r2: {path: r.trec", "r2: {path: other.trec")
    assert list_changes(root) == [("rerank/r2", "contents")]
    refuse_lists(root)
    assert "contents of rerank/r2" in refusal(root)
