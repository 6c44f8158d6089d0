"""Say what the words of a report mean."""

from __future__ import annotations

from typing import Annotated

import fusion_bench.cli.application.commands as base
from fusion_bench.cli.application.console import echo, print_json
from fusion_bench.config.options import Argument


class GlossaryOptions(base.JsonOptions):
    """Options of ``glossary``.

    Attributes:
        term: A word of a report, such as nDCG@10 or "best group". Default: all of them.
    """

    term: Annotated[str, Argument("TERM")] | None = None


@base.single_command()
def command(options: GlossaryOptions) -> None:
    """Say what the words of a report mean.

    Examples:
        fusion-bench glossary
        fusion-bench glossary nDCG@10
        fusion-bench glossary "held out"
    """
    from fusion_bench.report.glossary import TERMS, find_terms

    terms = TERMS if options.term is None else find_terms(options.term)
    if options.json:
        print_json({term.name: term.meaning for term in terms})
        return
    for i, term in enumerate(terms):
        if i:
            echo("")
        echo(term.name)
        echo(f"  {term.meaning}")
