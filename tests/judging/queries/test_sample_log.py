"""Samples of a log: strata, duplicates, personal data."""

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusion_bench.cli import main
from fusion_bench.data.query_groups import jaccard_index, normalize_text
from fusion_bench.errors import DataError
from fusion_bench.judging.query_log import (
    SIMILAR,
    STRATA,
    QueryLog,
    cut_strata,
    find_personal_data,
    read_query_log,
    sample_queries,
)

Capture = pytest.CaptureFixture[str]


def make_log(counts: dict[str, int]) -> QueryLog:
    queries = dict(sorted(counts.items(), key=lambda each: (-each[1], each[0])))
    return QueryLog(queries, 0, 0)


def test_spellings_are_one_query(tmp_path: Path) -> None:
    """The most frequent spelling stands for all; blanks and lines without a letter do not count."""
    path = tmp_path / "log.txt"
    path.write_text("Cheap  flights\ncheap flights\ncheap flights\n\n???\nROME\n")
    log = read_query_log(path)
    assert [*log.queries.items()] == [("cheap flights", 3), ("ROME", 1)]
    assert (log.searches, log.empty) == (4, 2)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("log.csv", 'query,count\n"a, b",2\nc,1\n'),
        ("log.tsv", "text\tn\na, b\t2\nc\t1\n"),
        ("log.jsonl", '{"query": {"text": "a, b"}, "count": 2}\n{"text": "c"}\n'),
    ],
)
def test_formats_of_a_log(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert read_query_log(tmp_path / name).queries == {"a, b": 2, "c": 1}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("log.txt", "", "no query"),
        ("log.csv", "term,count\na,1\n", "log.csv:2:"),
        ("log.csv", "query,count\na,-1\n", "a count must"),
        ("log.csv", "query,count\na,1.5\n", "given '1.5'"),
        ("log.csv", f"query,count\na,{'9' * 400}\n", "log.csv:2: a count"),
        ("log.jsonl", f'{{"query": "a", "count": {"9" * 400}}}\n', "log.jsonl:1: a count"),
        ("log.jsonl", '{"query": 3}\n', "log.jsonl:1:"),
        ("log.jsonl", '{"query": "a", "count": true}\n', "given True"),
    ],
)
def test_broken_logs(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match="log") as caught:
        read_query_log(tmp_path / name)
    assert message in str(caught.value)


def test_strata_and_quotas_are_equal_where_there_are_enough() -> None:
    """One query has a third of 90 searches, three the next, thirty the last."""
    counts = (
        {"top": 30} | {f"middle {n}": 10 for n in range(3)} | {f"rare {n}": 1 for n in range(30)}
    )
    strata = cut_strata(make_log(counts))
    sizes = {name: len(queries) for name, queries in strata.items()}
    assert sizes == {"head": 1, "torso": 3, "tail": 30}
    letters = "abcdefghijklmnopqrstuvwxyz"
    texts = [f"{a}{b}{a} {b}{b}{a}{a}" for a in letters for b in letters[:8]]
    sample = sample_queries(make_log(dict.fromkeys(texts, 5)), 30)
    assert Counter(query.stratum for query in sample.queries) == dict.fromkeys(STRATA, 10)


WORDS = st.text(alphabet="abcdefgh ", min_size=3, max_size=12).filter(normalize_text)


@given(st.dictionaries(WORDS, st.integers(1, 50), min_size=1, max_size=30), st.integers(1, 20))
def test_a_sample(counts: dict[str, int], count: int) -> None:
    """Every query once, of its own stratum, none like another; as many as asked or as there are."""
    by_key = {normalize_text(text): text for text in counts}
    log = make_log({text: counts[text] for text in by_key.values()})
    sample = sample_queries(log, count, seed=1)
    strata = {text: name for name, texts in cut_strata(log).items() for text in texts}
    texts = [query.text for query in sample.queries]
    assert len(texts) == len(set(texts)) == count - sample.short
    assert all(strata[query.text] == query.stratum for query in sample.queries)
    assert all(dict(counts)[query.text] == query.frequency for query in sample.queries)
    similarities = (
        jaccard_index(normalize_text(a), normalize_text(b))
        for i, a in enumerate(texts)
        for b in texts[:i]
    )
    assert all(index < SIMILAR for index in similarities)
    assert sample == sample_queries(log, count, seed=1)
    if not sample.similar and sample.short:
        assert len(texts) == len(log.queries)
    everything = sample_queries(log, len(log.queries), keep_similar=True)
    assert (everything.similar, everything.short) == (0, 0)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("mail jo.doe+x@mail.example.org now", ("email address",)),
        ("card 4111 1111 1111 1111", ("card number",)),
        ("card 4111 1111 1111 1112", ()),
        ("0000 0000 0000 0000", ()),
        ("pay DE89 3704 0044 0532 0130 00", ("account number",)),
        ("pay DE89 3704 0044 0532 0130 01", ()),
        ("host 192.168.0.1 down", ("IP address",)),
        ("version 1.2.3.400", ()),
        ("call +49 170 1234567", ("telephone number",)),
        ("call (030) 1234-5678", ("telephone number",)),
        ("ssn 123-45-6789", ("social security number",)),
        ("password: hunter22", ("password or key",)),
        ("T1059.001 powershell 2024", ()),
        ("rfc 2616 section 10", ()),
        ("(415) 555-2671 customer", ("telephone number",)),
        ("call 415-555-2671.", ("telephone number",)),
        ("rules of 01.02.2024 12:30", ()),
        ("card 4111 1111 1111 1111 12 27", ("card number",)),
        ("de89370400440532013000 refund", ("account number",)),
        ("GB82 WEST 1234 5698 7654 32 MAIL", ("account number",)),
        ("AT61 1904 3002 3457 3201 bank", ("account number",)),
        ("GB83 WEST 1234 5698 7654 32", ()),
        ("hp15 laptop with long life", ()),
        ("ping 2001:db8::ff00:42:8329", ("IP address",)),
        ("std::vector a::b at 12:30:45", ()),
        ("Passwort: geheim123", ("password or key",)),
    ],
)
def test_personal_data(text: str, kinds: tuple[str, ...]) -> None:
    assert find_personal_data(text) == kinds


def test_personal_data_is_flagged_or_left_out(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "log.txt").write_text("write to a.b@c.org\nparis weather\nrome hotels\n")
    words = ["queries", "sample", str(tmp_path / "log.txt"), "--out", str(tmp_path / "q.jsonl")]
    assert main([*words, "--n", "3"]) == 0
    rows = [json.loads(line) for line in (tmp_path / "q.jsonl").read_text().splitlines()]
    assert {row["text"]: row.get("personal") for row in rows} == {
        "write to a.b@c.org": "email address",
        "paris weather": None,
        "rome hotels": None,
    }
    assert "--drop-personal" in capsys.readouterr().out
    assert main([*words, "--n", "3", "--drop-personal", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)["sample"]
    assert (record["personal"], record["short"]) == ({"email address": 1}, 1)
    assert "a.b@c.org" not in (tmp_path / "q.jsonl").read_text()


def test_strata_of_equal_frequencies_mean_nothing(tmp_path: Path, capsys: Capture) -> None:
    words = ["queries", "sample", str(tmp_path / "log.txt"), "--out", str(tmp_path / "q.jsonl")]
    note = "note: all queries were asked equally often, so head, torso and tail mean nothing"
    for text, is_uniform in (("paris\nrome\n", True), ("paris\nrome\nrome\n", False)):
        (tmp_path / "log.txt").write_text(text)
        assert main(words) == 0
        assert (note in capsys.readouterr().out) == is_uniform


def test_searches_that_do_not_count_are_named_and_the_log_is_not_overwritten(
    tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "log.txt").write_text(f"paris\n???\n{'x' * 1001}\n")
    words = ["queries", "sample", str(tmp_path / "log.txt"), "--out", str(tmp_path / "q.jsonl")]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "1 search without" in out
    assert "1 search of more" in out
    (tmp_path / "log.txt").write_text("a\n")
    log = str(tmp_path / "log.txt")
    assert main(["queries", "sample", log, "--out", log]) == 2
    assert (tmp_path / "log.txt").read_text() == "a\n"
    assert capsys.readouterr().err
