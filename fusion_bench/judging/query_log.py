"""A log of queries: how often each was asked, personal data in it, a sample by frequency.

Patterns find forms, not people: a name is not found, and a part number may look like a telephone
number. Somebody has to read what is published.

The log is cut into strata of equal traffic: its most frequent queries with a third of all searches
(head), those with the next third (torso), and the rest (tail). As many queries are drawn of each,
so that a mean over the sample weighs head, torso and tail as the traffic does.
"""

from __future__ import annotations

import csv
import hashlib
import io
import ipaddress
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np

from fusion_bench.data.query_groups import jaccard_index, normalize_text, propose_pairs
from fusion_bench.errors import ConfigError, DataError
from fusion_bench.io.json_objects import read_objects
from fusion_bench.io.outputs import write_output
from fusion_bench.io.raw_files import format_suffix, read_text
from fusion_bench.util.formatting import Columns, TableView, list_columns, pluralize
from fusion_bench.util.json_text import encode_json_lines

#: Digits of a telephone number, at least, and at most (ITU-T E.164).
PHONE_DIGITS: Final = (8, 15)
#: Digits of a card number, at least, and at most (ISO/IEC 7812-1).
CARD_DIGITS: Final = (13, 19)
#: Characters of an account number, at least, and at most (ISO 13616).
ACCOUNT_CHARACTERS: Final = (15, 34)
_EMAIL: Final = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_ADDRESS: Final = re.compile(
    r"(?<![\w.:])(?:(?:\d{1,3}\.){3}\d{1,3}|[\da-f]*:[\da-f:]*:[\da-f]*)(?![\w:]|\.\w)"
)
_CARD: Final = re.compile(r"(?<!\d)\d(?:[ -]?\d){12,}(?!\d)")
#: Without blanks, or in groups of four.
_IBAN: Final = re.compile(
    r"\b[a-z]{2}\d{2}(?:[a-z0-9]{11,30}|(?: [a-z0-9]{4}){2,7}(?: [a-z0-9]{1,4})?)\b", re.IGNORECASE
)
_PHONE: Final = re.compile(r"(?<![\w.])(?:\+|00|\(?0)\d?[\d()/. -]{6,}\d(?![\w.])")
#: As people write them in North America: area code, three digits, four digits.
_PHONE_BY_AREA: Final = re.compile(
    r"(?<![\w.-])(?:\(\d{3}\) ?|\d{3}[-.])\d{3}[-. ]\d{4}(?![\w-]|\.\w)"
)
_DATE: Final = re.compile(r"(?<!\d)\d{1,2}([./-])\d{1,2}\1\d{4}(?!\d)")
_SOCIAL_SECURITY: Final = re.compile(r"(?<!\d)(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?!\d)")
_WORDS: Final = (
    "key|token|password|passwd|pwd|secret|"
    "passwort|kennwort|mot de passe|contraseña|senha|wachtwoord"
)
_TOKEN: Final = re.compile(rf"(?:{_WORDS})\s*[:=]\s*\S{{6,}}", re.IGNORECASE)


def find_personal_data(text: str) -> tuple[str, ...]:
    """The kinds of personal data that a text seems to hold, sorted; empty = none."""
    return tuple(sorted(kind for kind, is_found in CHECKS.items() if is_found(text)))


def _has_card(text: str) -> bool:
    """A number of 13 to 19 digits with the check digit of Luhn's method (ISO/IEC 7812-1)."""
    return any(
        _passes_luhn(number)
        for match in _CARD.finditer(text)
        for number in _list_starts(match[0])
        if CARD_DIGITS[0] <= sum(map(str.isdigit, number)) <= CARD_DIGITS[1]
    )


def _list_starts(text: str) -> Iterator[str]:
    """The text, and what stands before each of its blanks: a number may be followed by others."""
    parts = text.split(" ")
    yield from (" ".join(parts[:count]) for count in range(len(parts), 0, -1))


def _passes_luhn(text: str) -> bool:
    digits = [int(character) for character in reversed(text) if character.isdigit()]
    doubled_digits = [sum(divmod(2 * digit, 10)) for digit in digits[1::2]]
    return len(set(digits)) > 1 and (sum(digits[::2]) + sum(doubled_digits)) % 10 == 0


def _has_iban(text: str) -> bool:
    """An account number whose check digits hold (ISO 13616: the rest modulo 97 is 1)."""
    least, most = ACCOUNT_CHARACTERS
    return any(
        _has_check_digits(number)
        for match in _IBAN.finditer(text)
        for number in _list_starts(match[0])
        if least <= len(number.replace(" ", "")) <= most
    )


def _has_check_digits(number: str) -> bool:
    characters = number.replace(" ", "")
    turned = characters[4:] + characters[:4]
    return int("".join(str(int(character, 36)) for character in turned)) % 97 == 1


def _has_ip_address(text: str) -> bool:
    for match in _ADDRESS.finditer(text.lower()):
        address = match[0]
        with suppress(ValueError):
            ipaddress.ip_address(address)
            # Programs write ``::`` alone and the like between names.
            if any(map(str.isdigit, address)) and len(address) > len("::1"):
                return True
    return False


def _has_phone_number(text: str) -> bool:
    least, most = PHONE_DIGITS
    text = _DATE.sub(" ", _IBAN.sub(" ", text))
    numbers = [*_PHONE.finditer(text), *_PHONE_BY_AREA.finditer(text)]
    counts = (sum(map(str.isdigit, match[0])) for match in numbers)
    return any(least <= count <= most for count in counts)


CHECKS: Final[dict[str, Callable[[str], bool]]] = {
    "email address": lambda text: _EMAIL.search(text) is not None,
    "card number": _has_card,
    "account number": _has_iban,
    "IP address": _has_ip_address,
    "telephone number": _has_phone_number,
    "social security number": lambda text: _SOCIAL_SECURITY.search(text) is not None,
    "password or key": lambda text: _TOKEN.search(text) is not None,
}


#: Names of the column or key with the text, and with how often it was asked.
TEXT_NAMES: Final = ("query", "text", "q", "search", "search_term", "searchTerm", "keywords")
COUNT_NAMES: Final = ("count", "frequency", "n", "hits", "searches")
#: A longer text is a pasted document, not a query.
MOST_CHARACTERS: Final = 1_000
#: Counts stay below: sums of them are exact as floats.
MOST_SEARCHES: Final = 10**12
DELIMITERS: Final = {".csv": ",", ".tsv": "\t"}


@dataclass(frozen=True)
class QueryLog:
    """The queries of a log.

    Attributes:
        queries: Each in its most frequent spelling, with how often it was asked: the most frequent
            first, equal ones by their text.
        too_long: Searches left out for their length.
        empty: Searches without a letter or digit.
    """

    queries: Mapping[str, int]
    too_long: int
    empty: int

    @property
    def searches(self) -> int:
        """All searches that count."""
        return sum(self.queries.values())


def read_query_log(path: Path, column: str | None = None) -> QueryLog:
    """Read a log: text with one query a line, JSON Lines, CSV or TSV.

    Spellings that differ only in case, blanks or punctuation are one query.

    Args:
        path: The file, gzip or not.
        column: The column or key of the text; by default ``query``, ``text`` and other usual names.

    Raises:
        DataError: It cannot be read, holds no query, or has no such column.
    """
    suffix = format_suffix(path)
    rows: list[tuple[str, int]] = []
    if suffix in {".jsonl", ".json", ".ndjson"}:
        rows += (_read_item(item, column, where) for where, item in read_objects(path))
    elif suffix in DELIMITERS:
        file = io.StringIO(read_text(path), newline="")
        table = csv.DictReader(file, delimiter=DELIMITERS[suffix])
        try:
            for cells in table:
                named = {key: value for key, value in cells.items() if isinstance(key, str)}
                rows.append(_read_item(named, column, f"{path}:{table.line_num}"))
        except csv.Error as error:
            raise DataError(f"{path}:{table.line_num}: {error}") from None
    else:
        rows += ((line, 1) for line in read_text(path).splitlines())
    spellings: dict[str, Counter[str]] = {}
    too_long = empty = 0
    for text, count in rows:
        key = normalize_text(text)
        if not key:
            empty += count
        elif len(text) > MOST_CHARACTERS:
            too_long += count
        else:
            spellings.setdefault(key, Counter())[" ".join(text.split())] += count
    if not spellings:
        raise DataError(f"{path}: no query: at least one line with a text is needed")
    queries = {
        min(counts, key=lambda text: (-counts[text], text)): counts.total()
        for counts in spellings.values()
    }
    return QueryLog(dict(_sort_by_frequency(queries)), too_long, empty)


def _sort_by_frequency(queries: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(queries.items(), key=lambda query: (-query[1], query[0]))


def _read_item(item: Mapping[str, Any], column: str | None, where: str) -> tuple[str, int]:
    names = TEXT_NAMES if column is None else (column,)
    text = next((item[name] for name in names if item.get(name) is not None), None)
    if isinstance(text, Mapping):  # a logged search: {"query": {"text": …}}
        text = text.get("text")
    if not isinstance(text, str):
        raise DataError(
            f"{where}: no text of a query under {', '.join(names)} (found: "
            f"{', '.join(item) or 'nothing'}): name its column with --column"
        )
    given = next((item[name] for name in COUNT_NAMES if item.get(name) not in (None, "")), 1)
    is_number = isinstance(given, str) and given.isascii() and given.isdigit()
    count = int(str(given)[:20]) if is_number else given
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count < MOST_SEARCHES:
        raise DataError(
            f"{where}: a count must be a whole number from 1, below {MOST_SEARCHES:,}; given "
            f"{given!r:.40}"
        )
    return text, count


#: Names of the strata, the most frequent queries first.
STRATA: Final = ("head", "torso", "tail")
#: Two queries whose shingles have at least this Jaccard index count as one.
SIMILAR: Final = 0.7
#: Queries that are looked at for each one that is drawn, so that duplicates can be replaced.
SPARE: Final = 4
#: Hexadecimal digits of an id: of a million queries, two have one id with probability .0004.
ID_DIGITS: Final = 14


@dataclass(frozen=True)
class SampledQuery:
    """A query of the sample.

    Attributes:
        id: From its normalized text, so that it stays when more is sampled.
        text: Its most frequent spelling.
        frequency: How often it was asked.
        stratum: ``head``, ``torso`` or ``tail``.
        personal: Kinds of personal data that it seems to hold.
    """

    id: str
    text: str
    frequency: int
    stratum: str
    personal: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class QuerySample(TableView):
    """A sample of a log.

    Attributes:
        queries: Stratum by stratum, the most frequent first.
        distinct: Queries of the log, by stratum.
        similar: Drawn queries that were replaced, as they resemble another one.
        personal: Drawn queries with personal data that were replaced; by kind.
        short: How many queries fewer than asked for; 0 where the log has enough.
    """

    queries: tuple[SampledQuery, ...]
    distinct: dict[str, int]
    similar: int = 0
    personal: dict[str, int] = field(default_factory=dict)
    short: int = 0

    def _summary(self) -> str:
        return f"QuerySample({pluralize(len(self.queries), 'query')})"

    def _table_columns(self, limit: int | None = None) -> Columns:
        """One row a query."""
        return list_columns(SampledQuery, self.queries[:limit])


def sample_queries(
    log: QueryLog,
    count: int,
    *,
    seed: int = 0,
    drop_personal: bool = False,
    keep_similar: bool = False,
) -> QuerySample:
    """Draw queries from each stratum of a log.

    Args:
        log: The log.
        count: Queries to draw, at least 1.
        seed: Of the draw.
        drop_personal: Whether a query with personal data is replaced, and not only flagged.
        keep_similar: Whether queries that resemble one another are drawn all the same.

    Raises:
        ConfigError: A count below 1.
    """
    if count < 1:
        raise ConfigError(f"a sample needs at least 1 query, not {count}")
    strata = cut_strata(log)
    generator = np.random.default_rng(seed)
    pools = {}
    for name, texts in strata.items():
        order = generator.permutation(len(texts))[: SPARE * count].tolist()
        pools[name] = [texts[i] for i in order]
    personal: dict[str, int] = {}
    for name, pool in pools.items() if drop_personal else ():
        kinds = {text: find_personal_data(text) for text in pool}
        for kind in chain.from_iterable(kinds.values()):
            personal[kind] = personal.get(kind, 0) + 1
        pools[name] = [text for text in pool if not kinds[text]]
    pools, similar = (pools, 0) if keep_similar else _drop_similar(pools)
    # Quotas are equal; what a small stratum lacks is drawn from the others, the tail first.
    sizes = {name: len(pool) for name, pool in pools.items()}
    quotas = dict.fromkeys(sizes, 0)
    open_names = list(reversed(sizes))
    left = count
    while left and (open_names := [name for name in open_names if quotas[name] < sizes[name]]):
        for name in open_names:
            if left:
                quotas[name] += 1
                left -= 1
    chosen = [
        SampledQuery(query_id(text), text, frequency, name, find_personal_data(text))
        for name, pool in pools.items()
        for text, frequency in _sort_by_frequency(
            {text: log.queries[text] for text in pool[: quotas[name]]}
        )
    ]
    distinct = {name: len(queries) for name, queries in strata.items()}
    return QuerySample(tuple(chosen), distinct, similar, personal, count - len(chosen))


def cut_strata(log: QueryLog) -> dict[str, list[str]]:
    """The queries of each stratum, the most frequent first.

    A query belongs to the stratum in which the middle of its own searches lies.
    """
    strata: dict[str, list[str]] = {name: [] for name in STRATA}
    before, searches = 0, log.searches
    for text, frequency in log.queries.items():
        middle = before + frequency / 2
        strata[STRATA[min(int(len(STRATA) * middle / searches), len(STRATA) - 1)]].append(text)
        before += frequency
    return strata


def write_sample(sample: QuerySample, path: Path) -> Path:
    """Write the sample as ``queries.jsonl``.

    Raises:
        FusionBenchError: The file cannot be written.
    """
    objects = []
    for query in sample.queries:
        flags = {"personal": ", ".join(query.personal)} if query.personal else {}
        facts: dict[str, Any] = {"stratum": query.stratum, "frequency": query.frequency}
        objects.append({"id": query.id, "text": query.text, **facts, **flags})
    return write_output(path, encode_json_lines(objects))


def query_id(text: str) -> str:
    """The id of a query: ``q-`` and a digest of its normalized text."""
    return f"q-{hashlib.sha256(normalize_text(text).encode()).hexdigest()[:ID_DIGITS]}"


def _drop_similar(
    pools: dict[str, list[str]],
) -> tuple[dict[str, list[str]], int]:
    """The pools without queries that resemble one before them, and how many these are."""
    queries = [(name, query) for name, pool in pools.items() for query in pool]
    texts = [normalize_text(query) for _, query in queries]
    earlier: dict[int, list[int]] = {}
    for first, second in propose_pairs(texts).tolist():
        if jaccard_index(texts[first], texts[second]) >= SIMILAR:
            earlier.setdefault(max(first, second), []).append(min(first, second))
    dropped: set[int] = set()
    for number in sorted(earlier):
        if any(other not in dropped for other in earlier[number]):
            dropped.add(number)
    kept: dict[str, list[str]] = {name: [] for name in pools}
    for number, (name, query) in enumerate(queries):
        if number not in dropped:
            kept[name].append(query)
    return kept, len(dropped)
