"""Orders of a pool: which document to judge first.

Each order takes the documents of one query, those that are judged among them, and what is known of
these; it gives all of them in order. Queries come one after the other, so that a judge reads each
query once; :func:`order_queries` puts them in order.
"""

from __future__ import annotations

import hashlib
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias, get_args

from fusion_bench.judge.pool.pool import Pair, PooledDocument

OrderName: TypeAlias = Literal["pool", "system", "move-to-front", "uncertainty", "random"]
ORDER_NAMES: tuple[OrderName, ...] = get_args(OrderName)
#: Documents of one query, whether those that are judged are relevant, and a seed → the order.
Order: TypeAlias = Callable[
    [Sequence[PooledDocument], Mapping[Pair, bool], int], list[PooledDocument]
]


def order_by_best_rank(
    documents: Sequence[PooledDocument], _relevant: Mapping[Pair, bool], _seed: int
) -> list[PooledDocument]:
    """``pool``: the highest rank in any list first, then what most systems return."""
    return sorted(documents, key=lambda each: (each.best_rank, -each.systems, each.document))


def order_by_system(
    documents: Sequence[PooledDocument], _relevant: Mapping[Pair, bool], _seed: int
) -> list[PooledDocument]:
    """``system``: the list of the first system from its top, then what each next one adds."""

    def find_place(each: PooledDocument) -> tuple[int, int]:
        return next((s, rank) for s, rank in enumerate(each.ranks) if rank)

    return sorted(documents, key=find_place)


def move_to_front(
    documents: Sequence[PooledDocument], relevant: Mapping[Pair, bool], _seed: int
) -> list[PooledDocument]:
    """``move-to-front``: go on with the system whose last document was relevant.

    Every system has priority 0. The next document is the highest one left of the system with the
    highest priority, of equals the first. A relevant document sets that priority to 0, any other
    one lowers it by 1. A document that is not judged yet counts as not relevant: what follows it
    is computed again once its grade is known.

    Source: local move-to-front pooling of Cormack, Palmer and Clarke, SIGIR 1998.
    """
    systems = len(documents[0].ranks) if documents else 0
    lists = [_rank_list(documents, s) for s in range(systems)]
    priorities, order = [0] * systems, dict[Pair, PooledDocument]()
    while any(lists):
        s = max((s for s in range(systems) if lists[s]), key=lambda s: (priorities[s], -s))
        document = lists[s].pop(0)
        if document.pair in order:
            continue
        order[document.pair] = document
        priorities[s] = 0 if relevant.get(document.pair, False) else priorities[s] - 1
    return list(order.values())


def _rank_list(documents: Sequence[PooledDocument], system: int) -> list[PooledDocument]:
    """What one system returns, from its top."""
    returned = (each for each in documents if each.ranks[system])
    return sorted(returned, key=lambda each: each.ranks[system])


def disagreement(document: PooledDocument) -> float:
    """How differently the systems place a document: the variance of 1 / log2(1 + rank).

    The discount is 0 where a system does not return the document; the variance is that of the
    population of systems. For two systems it is a quarter of (w_1 − w_2)², w being the weight of
    the document's gain in each DCG. So the order is that of Carterette, Allan and Sitaraman, SIGIR
    2006: first the document whose gain could move the difference of the two most.
    """
    return statistics.pvariance(
        [1 / math.log2(1 + rank) if rank else 0.0 for rank in document.ranks]
    )


def order_by_uncertainty(
    documents: Sequence[PooledDocument], _relevant: Mapping[Pair, bool], _seed: int
) -> list[PooledDocument]:
    """``uncertainty``: the documents on which the systems disagree most; see ``disagreement``."""
    return sorted(documents, key=lambda each: (-disagreement(each), each.best_rank, each.document))


def order_at_random(
    documents: Sequence[PooledDocument], _relevant: Mapping[Pair, bool], seed: int
) -> list[PooledDocument]:
    """``random``: by a hash of seed, query and document, so that no rank shows."""
    return sorted(documents, key=lambda each: _draw(seed, *each.pair))


ORDERS: Mapping[OrderName, Order] = {
    "pool": order_by_best_rank,
    "system": order_by_system,
    "move-to-front": move_to_front,
    "uncertainty": order_by_uncertainty,
    "random": order_at_random,
}


def order_queries(queries: Iterable[str], order: OrderName, seed: int) -> list[str]:
    """The queries one after the other: at random where documents are, else as they come."""
    if order != "random":
        return list(queries)
    return sorted(queries, key=lambda query: _draw(seed, query))


def _draw(seed: int, *names: str) -> bytes:
    """The same for one more or one less document beside it."""
    text = "\0".join((str(seed), *names))
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()
