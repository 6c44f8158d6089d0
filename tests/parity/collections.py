"""The real collections of the parity tests, aligned once a session."""

from functools import cache

from fusion_bench.data.aligned_runs import AlignedRuns
from fusion_bench.data.alignment import align
from fusion_bench.data.qrels import Qrels
from fusion_bench.data.read_options import ReadOptions
from fusion_bench.data.run import Run
from fusion_bench.io.load_records import load_qrels, load_run
from tests.parity.data import parity_data

#: Collection → two runs of it that are worth fusing.
PAIRS = {
    "trec-dl-2019": ("splade", "tas-b"),
    "codec": ("bm25-rm3", "ance"),
    "jqara": ("bm25", "bge-m3+dense"),
    "trec-covid-round2": ("covidex.t5", "covidex.sim"),
    "nfcorpus": ("bm25", "minilm"),
}
COLLECTIONS = tuple(PAIRS)
#: Collections whose judgments are complete: an unlisted document is not relevant.
COMPLETE = frozenset({"jqara"})


@cache
def qrels_of(collection: str) -> Qrels:
    name = "qrels/test.trec" if collection == "nfcorpus" else "qrels.txt"
    return load_qrels(parity_data(collection) / name)


@cache
def runs_of(collection: str) -> tuple[Run, ...]:
    """The pair; CODEC's bm25-rm3 lists a few documents twice."""
    folder = parity_data(collection) / "runs"
    read_options = ReadOptions(on_duplicate="best_rank")
    return tuple(
        load_run(folder / f"{name}.trec.gz", name=name, read_options=read_options)
        for name in PAIRS[collection]
    )


@cache
def aligned(collection: str) -> AlignedRuns:
    """As the judgments list them: ir_measures knows no complete ones."""
    return align(qrels_of(collection), runs_of(collection))
