"""Options of what engines are used for: a pull, an export."""

from __future__ import annotations

from typing import Annotated

from fusion_bench.config.options import Depth, File, Folder, Name, Names, Option, Options


class PullOptions(Options):
    """Options of ``pull``.

    Attributes:
        out: The dataset's folder.
        depth: Most documents per query and list.
        texts: Also write the texts of the documents that are returned: documents.jsonl.
        all_texts: Write the texts of all documents of the index, where the engine lists them.
        vectors: Vectors of the queries: .npz with query_ids and query, or JSON Lines.
        name: The dataset's name. Default: the folder's.
        skip_failed: Leave out a query of which a list fails for good, and exit with 4. The same
            command asks it again later.
        start_over: Forget the answers of an unfinished pull; replace the lists of a finished one.
    """

    out: Folder
    depth: Depth = 100
    texts: bool = False
    all_texts: bool = False
    vectors: File | None = None
    name: Name | None = None
    skip_failed: bool = False
    start_over: Annotated[bool, Option("--replace")] = False


class ExportOptions(Options):
    """Options of ``export``.

    Attributes:
        engine: Engine or library, such as elasticsearch or langchain; docs/reference/engines.md
            lists them.
        system: System of the experiment. Default: the only one, or the tuned one.
        dataset: Take roles from this dataset, and replay on it. Default: the experiment's.
        query_type: Write the numbers of this query type.
        intent: Write the numbers of this intent.
        vector: List that is a vector search, if it has no role; repeatable.
        replay: Replay what is written on the dataset. Default: where it is approximate.
    """

    engine: Annotated[str, Option("--to", metavar="ENGINE")]
    system: Name | None = None
    dataset: Name | None = None
    query_type: Name | None = None
    intent: Name | None = None
    vector: Names = ()
    replay: bool | None = None
