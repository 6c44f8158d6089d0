"""Names of measures, and what other tools call them."""

import contextlib
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_bench.errors import ConfigError, UnknownNameError
from fusion_bench.measures import BinaryMeasure, Measure, measure_classes, parse_measure
from fusion_bench.measures.aliases import (
    ALIASES,
    display_measure,
    list_renamed,
    resolve_alias,
    suggest_measures,
)
from fusion_bench.measures.binary_relevance import (
    AveragePrecision,
    Judged,
    Precision,
    Recall,
    ReciprocalRank,
    Success,
)
from fusion_bench.measures.external_measures import parse_with_ir_measures
from fusion_bench.measures.ndcg import NDCG
from fusion_bench.measures.user_models import ExpectedReciprocalRank, RankBiasedPrecision
from tests.measures.cases import COMMON, all_measures


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nDCG@10", NDCG(cutoff=10)),
        ("nDCG", NDCG()),
        (
            "nDCG(dcg='exp-log2')@10",
            NDCG(cutoff=10, dcg="exp-log2"),
        ),
        (
            "nDCG(judged_only=True)@10",
            NDCG(cutoff=10, judged_only=True),
        ),
        ("RR@10", ReciprocalRank(cutoff=10)),
        ("RR(rel=2)@10", ReciprocalRank(cutoff=10, rel=2)),
        ("R@100", Recall(cutoff=100)),
        ("AP", AveragePrecision()),
        ("AP(rel=2)", AveragePrecision(rel=2)),
        ("P@5", Precision(cutoff=5)),
        ("Success@1", Success(cutoff=1)),
        ("Judged@10", Judged(cutoff=10)),
        ("ERR@20", ExpectedReciprocalRank(cutoff=20)),
        ("RBP(p=0.95,rel=1)", RankBiasedPrecision(p=0.95, rel=1)),
    ],
)
def test_reads_a_name(text: str, expected: Measure) -> None:
    assert parse_measure(text) == expected
    assert str(expected) == expected.name == text


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (" RR( judged_only = True , rel = 2 ) @ 10 ", "RR(rel=2,judged_only=True)@10"),
        ("nDCG(dcg='log2')@10", "nDCG@10"),
        ('nDCG(dcg="exp-log2",judged_only=False)@3', "nDCG(dcg='exp-log2')@3"),
        ("RR(rel=1)", "RR"),
        ("RR()", "RR"),
        ("AP(cutoff=100)", "AP@100"),
        ("NDCG@10", "nDCG@10"),
        ("MRR@10", "RR@10"),
        ("Recall@10", "R@10"),
        ("MAP", "AP"),
        ("Precision@1", "P@1"),
    ],
)
def test_every_spelling_has_one_name(text: str, name: str) -> None:
    assert parse_measure(text).name == name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("RR@10", "RR(rel=2)@10"),
        ("AP", "AP(rel=2)"),
        ("P@5", "P(rel=2)@5"),
        ("R@5", "R(rel=2)@5"),
        ("Success@5", "Success(rel=2)@5"),
        ("RR(rel=3)@10", "RR(rel=3)@10"),
        ("RR(rel=1)@10", "RR(rel=1)@10"),  # shortened, it would be read as rel=2
        ("nDCG@10", "nDCG@10"),
        ("Judged@10", "Judged@10"),
        ("Bpref", "Bpref(rel=2)"),
        ("Rprec(rel=1)", "Rprec(rel=1)"),
        ("RBP", "RBP"),  # without a rel its gains are grades
        ("NumRet", "NumRet"),  # with a rel it would be another measure
    ],
)
def test_binary_relevance_shows_in_the_names_of_binary_measures(text: str, name: str) -> None:
    found = parse_measure(text, binary_relevance=2)
    assert found.name == name
    assert parse_measure(name, binary_relevance=2) == found


@pytest.mark.parametrize("name", COMMON)
def test_agrees_with_ir_measures_on_the_name(name: str) -> None:
    measure = parse_measure(name)
    if "max_grade" in name:
        return  # ours alone
    assert str(parse_with_ir_measures(name)) == measure.name
    if measure.method not in {"Judged", "ERR", "RBP"}:
        judged = measure.with_judged_only().name
        assert str(parse_with_ir_measures(judged)) == judged


def test_names_of_all_measures_differ_and_read_back() -> None:
    measures = all_measures()
    assert len({measure.name for measure in measures}) == len(measures)
    for measure in measures:
        assert parse_measure(measure.name) == measure
    variant = parse_measure("RR(rel=1)@10", binary_relevance=2).with_judged_only()
    assert variant.name == "RR(rel=1,judged_only=True)@10"
    binary = {m.method for m in all_measures() if isinstance(m, BinaryMeasure)}
    assert binary == {"RR", "R", "AP", "P", "Success"}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("nDCG@10", "nDCG(judged_only=True)@10"),
        ("RR(rel=2)@10", "RR(rel=2,judged_only=True)@10"),
        ("AP", "AP(judged_only=True)"),
        ("Judged@10", "Judged(judged_only=True)@10"),
        ("Bpref", "Bpref(judged_only=True)"),
        ("IPrec@0.1", "IPrec(judged_only=True)@0.1"),
        ("Rprec(rel=2)", "Rprec(rel=2,judged_only=True)"),
    ],
)
def test_judged_only_variant(text: str, name: str) -> None:
    variant = parse_measure(text).with_judged_only()
    assert variant.judged_only
    assert variant.name == name
    assert variant.with_judged_only() == variant
    assert parse_measure(name) == variant


@pytest.mark.parametrize(
    "text", ["Bpref", "infAP", "nDCG(gains={0: 0, 1: 3})@10", "SetF(beta=2.0)"]
)
def test_other_names_go_to_ir_measures(text: str) -> None:
    assert parse_measure(text).method == "ir_measures"
    assert parse_measure(text).name == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nDCG@0", "cutoff: input should be "),
        ("nDCG@-1", "cutoff: input should be "),
        ("nDCG@2.5", "cutoff: input should be "),
        ("nDCG@True", "cutoff: input should be "),
        ("nDCG@ten", "'ten' is neither"),
        ("RR(cutoff=1)@3", "cutoff is given twice"),
        ("R", "such as R@10"),
        ("P(rel=2)", "such as P@10"),
        ("Success", "such as Success@10"),
        ("RR(rel=2.0)", "rel: input should be "),
        ("RR(rel=True)", "rel: input should be "),
        ("P(rel=0)@5", "rel: input should be "),
        ("RR(judged_only=1)", "judged_only: input should be "),
        ("nDCG(dcg='ln')", "or 'exp-log2', given 'ln'"),
        ("nDCG(rel=2)@9", "(known: cutoff, dcg, judged_only)"),
        ("Judged(rel=2)@9", "option 'rel' (known: cutoff, judged_only"),
        ("RBP(p=1)", "p: input should be "),
        ("ERR(max_grade=0)", "max_grade: input should be "),
        ("RR(2)@10", "(rel=2); given: (2)"),
        ("RR(rel)(2)@10", "(rel=2); given: (rel)(2)"),
        ("RR(rel=)@10", "'rel=' is not a"),
        ("RR(rel=two)@10", "'two' is neither"),
    ],
)
def test_says_what_is_wrong_with_a_measure_of_ours(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_measure(text, where="a.yaml: measures")
    assert str(error.value).startswith(f"a.yaml: measures: cannot use measure {text!r}: ")
    assert message in str(error.value)


@pytest.mark.parametrize(
    "text", ["", "foo@3", "x y z", "RR(rel=2", "Rprec(colour='red')", "Rprec(rel='a')", "Bpref@"]
)
def test_says_what_it_knows_of_an_unknown_name(text: str) -> None:
    with pytest.raises(UnknownNameError) as error:
        parse_measure(text, where="a.yaml")
    assert str(error.value).startswith(f"a.yaml: unknown measure {text!r}")
    assert "nDCG@10, or any " in str(error.value)


@pytest.mark.parametrize("grade", [0, -1, True])
def test_binary_relevance_starts_at_one(grade: int) -> None:
    with pytest.raises(ConfigError, match=r"^binary_relevance.*1,"):
        parse_measure("RR", binary_relevance=grade)


@given(st.text(max_size=12))
def test_any_text_is_a_measure_or_a_clear_error(text: str) -> None:
    for candidate in (text, f"RR({text})@10", f"nDCG@{text}"):
        with contextlib.suppress(ConfigError):  # anything else would be a traceback for a user
            assert parse_measure(candidate).name


def test_names_of_the_engine_never_import_ir_measures() -> None:
    code = (
        "import sys\n"
        "from fusion_bench.measures import parse_measure\n"
        "parse_measure('nDCG@10')\n"
        "sys.exit('ir_measures' in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_bad_numbers_are_refused_and_unknown_names_without_a_suggestion() -> None:
    with pytest.raises(ConfigError, match="is not finite"):
        parse_measure("nDCG(gains={1: 1e400})@10")
    with pytest.raises(UnknownNameError) as caught:
        parse_measure("Rprec(colour='red')")
    assert "mean 'Rprec(" not in str(caught.value)
    assert suggest_measures("xyz@3") == suggest_measures("@3") == []


# ── aliases


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("mrr@10", "RR@10"),
        ("MRR@10", "RR@10"),
        ("mrr(rel=2)@10", "RR(rel=2)@10"),
        ("rr", "RR"),
        ("recip_rank", "RR"),
        ("recip_rank_10", "RR@10"),
        ("ndcg@10", "nDCG@10"),
        ("NDCG", "nDCG"),
        ("ndcg_cut_10", "nDCG@10"),
        ("ndcg_cut.10", "nDCG@10"),
        ("ndcg_burges@10", "nDCG(dcg='exp-log2')@10"),
        ("ndcg_burges(judged_only=True)@10", "nDCG(dcg='exp-log2',judged_only=True)@10"),
        ("recall@50", "R@50"),
        ("recall_50", "R@50"),
        ("Recall@50", "R@50"),
        ("hit@1", "Success@1"),
        ("hit_rate@5", "Success@5"),
        ("success_1", "Success@1"),
        ("map", "AP"),
        ("MAP", "AP"),
        ("map@100", "AP@100"),
        ("map_cut_100", "AP@100"),
        ("P_5", "P@5"),
        ("p@5", "P@5"),
        ("precision@5", "P@5"),
        ("judged@10", "Judged@10"),
        ("bpref", "Bpref"),
        ("err@20", "ERR@20"),
        ("rbp(p=0.5)", "RBP(p=0.5)"),
        ("r-precision", "Rprec"),
        ("iprec_at_recall_0.1", "IPrec@0.1"),
    ],
)
def test_an_alias_becomes_the_canonical_name(text: str, name: str) -> None:
    assert resolve_alias(text) == name
    assert parse_measure(text) == parse_measure(name)
    assert parse_measure(text).name == name


@pytest.mark.parametrize(
    "text", ["", "nDCG@10", "RR(rel=2)@10", "AP", "Bpref", "foo@3", "mrr_10@5", "R-prec", "p:q@5"]
)
def test_any_other_text_stays(text: str) -> None:
    assert resolve_alias(text) == text


def test_aliases_take_no_name_of_a_measure_and_are_listed_once() -> None:
    names = {name.lower() for name in measure_classes.load_built_in()}
    assert not names & ALIASES.keys()
    texts = ["mrr@10", "nDCG@10", "mrr@10", "P_5"]
    assert list_renamed(texts) == ("mrr@10 → RR@10", "P_5 → P@5")


@pytest.mark.parametrize("text", ["recall", "hit", "p"])
def test_an_alias_keeps_the_rules_of_its_measure(text: str) -> None:
    with pytest.raises(ConfigError, match=f"cannot use measure '{text}': .* needs a cutoff"):
        parse_measure(text)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("RR@10", "MRR@10"),
        ("RR(rel=2)@10", "MRR(rel=2)@10"),
        ("AP", "MAP"),
        ("nDCG@10", "nDCG@10"),
        ("Rprec", "Rprec"),
    ],
)
def test_people_read_the_common_name(name: str, shown: str) -> None:
    assert display_measure(name) == shown


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("ndgc@10", "nDCG@10"),
        ("NDGC@10", "nDCG@10"),
        ("ndcg10", "nDCG@10"),
        ("mrrr@10", "RR@10"),
        ("ndgc(rel=2)@5", "nDCG(rel=2)@5"),
        ("hitrate5", "Success@5"),
        ("MAPP", "AP"),
    ],
)
def test_a_misspelled_measure_suggests_the_canonical_name(text: str, first: str) -> None:
    assert suggest_measures(text)[0] == first
    with pytest.raises(UnknownNameError, match="did you mean " + re.escape(repr(first))):
        parse_measure(text)
