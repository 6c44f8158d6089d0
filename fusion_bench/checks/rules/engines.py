"""What the search engine that shall run a system cannot express."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations, pairwise

from fusion_bench.checks import lint_rule
from fusion_bench.experiment.dialect import Dialect, Translation, dialects
from fusion_bench.experiment.system import System
from fusion_bench.methods.fuse import Trainable

#: Lists that are tried until the engine's order differs.
TRIALS = 40
#: Scores closer than this, as a share of the greater one, count as equal.
CLOSE = 1e-6


@lint_rule.register_rule("engine-cannot-express")
def check_engine_cannot_express(subject: lint_rule.Subject) -> Iterator[lint_rule.Problem]:
    """The engine does something else than the system.

    The fidelity of the translation, unless it is exact, with its reasons.
    """
    if subject.engine is None or len(subject.sources) < 2:
        return
    if explain_untranslated(subject.system) is not None:
        return
    dialect = dialects.find_plugin(subject.engine)
    roles = {name: subject.roles_of(name) for name in subject.system.runs}
    translation = dialect.translate(subject.system, roles)
    if translation.fidelity == "exact":
        return
    reasons = "; ".join(translation.reasons)
    yield lint_rule.Problem(
        f"{dialect.title} {DEGREES[translation.fidelity]}: {reasons}",
        ("fusion",),
        lambda: _build_witness(subject, dialect, translation),
        severity="note" if translation.fidelity == "rank-equivalent" else None,
    )


def explain_untranslated(system: System) -> str | None:
    """Why a system is not looked at for an engine; None = it is.

    Only what fuses lists in one step and without learning can be shown on a witness.
    """
    if system.stages:
        return "fuses in stages"
    if len(system.runs) < 2:
        return "reads one list"
    return "has a trained fusion" if isinstance(system.fusion, Trainable) else None


DEGREES = {
    "rank-equivalent": "gives the same order with other scores",
    "approximate": "does this only approximately",
    "unsupported": "cannot do this",
}


def _build_witness(
    subject: lint_rule.Subject, dialect: type[Dialect], translation: Translation
) -> lint_rule.Witness:
    """Lists that the engine orders otherwise; if none are met, what the system does with some."""
    system = lint_rule.without_blend(subject.system)
    chance = random.Random(0)  # noqa: S311 - lists to try, the same in every run
    for _ in range(TRIALS if translation.system is not None else 0):
        lists = _draw_lists(subject, chance)
        other = translation.system
        if other is None:
            break
        expected = _run(subject, system, lists)
        engine_order = _run(subject, lint_rule.without_blend(other), lists)
        for first, second in combinations(expected.ranks, 2):
            if _is_above(expected, first, second) and _is_above(engine_order, second, first):
                scores = f"{engine_order.scores[second]:.4f} and {engine_order.scores[first]:.4f}"
                claim = f"{dialect.title} ranks {second} above {first}: it scores them {scores}"
                return _witness(subject, system, lists, claim, (first, second))
    lists = _draw_lists(subject, random.Random(0))  # noqa: S311 - as above
    best = next(iter(_run(subject, system, lists).ranks))
    claim = (
        f"the fusion ranks {best} first; {dialect.title} orders none of {TRIALS} queries otherwise"
    )
    if translation.system is None:
        claim = f"the fusion ranks {best} first; {dialect.title} has no such fusion"
    return _witness(subject, system, lists, claim, (best,))


def _witness(
    subject: lint_rule.Subject,
    system: System,
    lists: dict[str, lint_rule.RankedList],
    claim: str,
    documents: tuple[str, ...],
) -> lint_rule.Witness:
    scores = _run(subject, system, lists).scores
    return subject.make_witness(
        claim,
        lists,
        above=tuple(pairwise(documents)),
        scores={document: scores[document] for document in documents},
        system=system,
    )


def _draw_lists(
    subject: lint_rule.Subject, chance: random.Random
) -> dict[str, lint_rule.RankedList]:
    """Two to four of five documents a source, with scores that fall."""
    lists: dict[str, lint_rule.RankedList] = {}
    for name in subject.sources:
        documents = chance.sample([f"d{n}" for n in range(1, 6)], chance.randint(2, 4))
        scores = sorted((chance.uniform(0.05, 0.95) for _ in documents), reverse=True)
        lists[name] = {
            document: (rank, round(score, 3))
            for rank, (document, score) in enumerate(zip(documents, scores, strict=True), 1)
        }
    return lists


def _run(
    subject: lint_rule.Subject, system: System, lists: dict[str, lint_rule.RankedList]
) -> lint_rule.Outcome:
    return lint_rule.reproduce(lint_rule.Witness(system, "", lists, dataset=subject.dataset))[0]


def _is_above(outcome: lint_rule.Outcome, first: str, second: str) -> bool:
    """Whether the first document scores more, by more than rounding."""
    scores = outcome.scores
    if first not in scores or second not in scores:
        return False
    lead = scores[first] - scores[second]
    return lead > CLOSE * max(abs(scores[first]), abs(scores[second]))
