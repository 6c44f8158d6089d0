"""The tables and the page of the trial: what each rule shipped, promised and kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.studies.choice_rules.picture import Bar, draw_rules
from benchmarks.studies.choice_rules.results import Outcome, PairResult, WorldResult
from benchmarks.studies.choice_rules.run import NULL, OURS, PLANTED, POOL, UNSEEN
from benchmarks.studies.simulations.promise import Promise
from benchmarks.table import (
    format_rows,
    keep_columns,
    read_rows,
    replace_between_marks,
    write_csv,
)

DOCS: Final = Path(__file__).parents[3] / "docs" / "studies"
PAGE, PICTURE = DOCS / "choice-rules.md", DOCS / "choice-rules.png"
CAPTION: Final = "Share of nulls that each rule ships, and share of possible gains that it keeps"
#: What ``ship`` may be wrong about.
LIMIT: Final = 0.025
#: Rule → its number in the page, and what it is called there.
ROWS: Final = {
    "best mean": "1 best mean of the grid",
    "best mean, ranx's grid": "1 ranx 0.3.21, its grid, last of ties",
    "best mean, OpenSearch's 66": "1 OpenSearch to 3.6, its 66",
    "best mean, OpenSearch's 82": "1 OpenSearch from 3.7, its 82",
    "best trial": "2 Optuna's best trial (RelyLoop)",
    "best trial above its interval": "2 the same, above its interval",
    "other half": "3 winner of one half, above on the other",
    "other half and bootstrap": "3 the same, and bootstrap (Qdrant)",
    "bootstrap": "4 bootstrap interval in sample",
    "t interval": "5 t interval in sample",
    OURS: "6 fusion-bench tune",
}


@dataclass(frozen=True)
class Tally:
    """What a rule made of all worlds of a kind.

    Attributes:
        worlds: How many there are.
        ships: In how many the default was to be replaced.
        claimed: Mean gain claimed by what ships; NaN = nothing does.
        truth: Mean true gain of what ships.
        harmful: How many of what ships are truly worse than the default.
        kept: Sum of the true gains of what is in use afterwards ÷ sum of the greatest ones.
    """

    worlds: int
    ships: int
    claimed: float
    truth: float
    harmful: int
    kept: float

    @property
    def share(self) -> Promise:
        """Of worlds in which the rule ships, against what ours promises."""
        return Promise("nulls", "ships", self.ships, self.worlds, LIMIT, "at most")


def tally(results: Sequence[PairResult], kind: str, rule: str) -> Tally | None:
    """Over all worlds of a kind; None where there is none."""
    pairs = [pair for each in results for pair in each.outcomes(kind, rule)]
    if not pairs:
        return None
    shipped = [outcome for _, outcome in pairs if outcome.ships]
    return Tally(
        worlds=len(pairs),
        ships=len(shipped),
        claimed=_mean([each.claimed for each in shipped]),
        truth=_mean([each.truth for each in shipped]),
        harmful=sum(each.truth < 0 for each in shipped),
        kept=_share_kept(pairs),
    )


def _mean(numbers: Sequence[float]) -> float:
    return float(np.mean(numbers)) if numbers else float("nan")


def _share_kept(pairs: Sequence[tuple[WorldResult, Outcome]]) -> float:
    kept = sum(outcome.truth for _, outcome in pairs if outcome.ships)
    possible = sum(world.best for world, _ in pairs)
    return kept / possible if possible > 0 else float("nan")


def _percent(share: float) -> str:
    return "–" if np.isnan(share) else f"{100 * share:.1f}"


def _gain(gain: float) -> str:
    return "–" if np.isnan(gain) else f"{gain:+.4f}"


def _format_share(share: Promise) -> str:
    low, high = share.interval
    return f"{_percent(share.share)} [{_percent(low)}, {_percent(high)}]"


def format_nulls(results: Sequence[PairResult]) -> str:
    """What ships where nothing is better, and what it promises."""
    lines = [
        "| rule | nulls | ships, % | claimed − true | over the pool, % | claimed − true |",
        "|:--|--:|--:|--:|--:|--:|",
    ]
    for rule, title in ROWS.items():
        cells = [title]
        for kind in (NULL, POOL):
            found = tally(results, kind, rule)
            if found is None:
                cells += ["–"] * (3 if kind == NULL else 2)
                continue
            cells += [f"{found.worlds:,}"] if kind == NULL else []
            cells += [_format_share(found.share), _gain(found.claimed - found.truth)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def format_gains(results: Sequence[PairResult]) -> str:
    """What is found where something is better, what was promised, and what is kept."""
    kinds = (*PLANTED, UNSEEN)
    heads = " | ".join(f"{kind}: ships, % | claimed | true | kept, %" for kind in kinds)
    lines = [f"| rule | {heads} |", f"|:--|{'--:|' * 4 * len(kinds)}"]
    for rule, title in ROWS.items():
        cells = [title]
        for kind in kinds:
            found = tally(results, kind, rule)
            if found is None:
                cells += ["–"] * 4
                continue
            cells += [_percent(found.ships / found.worlds), _gain(found.claimed)]
            cells += [_gain(found.truth), _percent(found.kept)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def format_collections(results: Sequence[PairResult]) -> str:
    """Per cent of the nulls of each collection in which each rule ships."""
    names = [title.split(" ", 1) for title in ROWS.values()]
    heads = " | ".join(" ".join(name) for name in names)
    lines = [
        f"| collection | lists | queries | groups | nulls | {heads} | ours, 95 % | holds |",
        f"|:--|:--|--:|--:|--:|{'--:|' * len(ROWS)}--:|:--|",
    ]
    for each in results:
        cells = [each.name, ", ".join(each.lists), f"{each.queries:,}", f"{each.groups:,}"]
        found = [tally([each], NULL, rule) for rule in ROWS]
        known = [one for one in found if one is not None]
        if not known:
            continue
        cells += [f"{known[-1].worlds:,}", *(_percent(one.share.share) for one in known)]
        low, high = known[-1].share.interval
        holds = "yes" if known[-1].share.holds else "**no**"
        cells += [f"[{_percent(low)}, {_percent(high)}]", holds]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def format_unseen(results: Sequence[PairResult]) -> str:
    """Real gains on queries that no rule saw, by collection: what was in use afterwards."""
    lines = [
        f"| collection | seen | greatest | {' | '.join(ROWS.values())} |",
        f"|:--|--:|--:|{'--:|' * len(ROWS)}",
    ]
    for each in results:
        worlds = [world for world in each.worlds if world.kind == UNSEEN]
        if not worlds:
            continue
        cells = [each.name, f"{each.queries // 2:,}", _gain(_mean([w.best for w in worlds]))]
        for rule in ROWS:
            used = [o.truth if o.ships else 0.0 for _, o in each.outcomes(UNSEEN, rule)]
            harmful = [o for _, o in each.outcomes(UNSEEN, rule) if o.ships and o.truth < 0]
            cells.append(f"{_gain(_mean(used))} ({len(harmful)})")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


_SHOWN: Final = (ROWS["best mean"], ROWS["t interval"], ROWS[OURS])
#: Wide tables, of which the page has these columns and a CSV has all.
COLUMNS: Final = {
    "collections": ("collection", "queries", "groups", *_SHOWN, "ours, 95 %", "holds"),
    "unseen": ("collection", "seen", "greatest", *_SHOWN),
}
TABLES: Final = {
    "nulls": format_nulls,
    "gains": format_gains,
    "collections": format_collections,
    "unseen": format_unseen,
}


def format_tables(results: Sequence[PairResult]) -> str:
    """All tables."""
    return "\n\n".join(table(results) for table in TABLES.values())


def list_bars(results: Sequence[PairResult]) -> list[Bar]:
    """The rows of the picture."""
    bars = []
    for rule, title in ROWS.items():
        nulls = tally(results, NULL, rule)
        if nulls is None:
            continue
        ends = (nulls.share.share, *nulls.share.interval)
        low, share, high = sorted(100 * each for each in ends)
        found = {kind: tally(results, kind, rule) for kind in (*PLANTED, UNSEEN)}
        kept = {kind: 100 * each.kept for kind, each in found.items() if each is not None}
        promise = nulls.claimed - nulls.truth
        bars.append(Bar(title, (share, low, high), promise, bool(nulls.share.holds), kept))
    return bars


def write_page(results: Sequence[PairResult], page: Path = PAGE, picture: Path = PICTURE) -> None:
    """Renew the tables of the page, and the picture."""
    for name, table in TABLES.items():
        text = table(results)
        if name in COLUMNS:
            rows = read_rows(text)
            kept = format_rows(keep_columns(rows, COLUMNS[name]))
            text = f"{kept}\n\n{write_csv(page, name, rows)}"
        replace_between_marks(page, f"\n{text}\n\n", name)
    replace_between_marks(page, f"\n![{CAPTION}]({picture.name})\n\n", "picture")
    draw_rules(list_bars(results), 100 * LIMIT).savefig(picture, dpi=110)
