"""``python -m docs.website``: build the site into ``docs/_build/html``; a warning is an error."""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx.cmd.build import build_main

from docs.website.check_html import check_html
from docs.website.page import ROOT
from docs.website.source_folder import write_source

BUILD = ROOT / "docs/_build"
#: Sphinx's settings stand here.
SETTINGS = Path(__file__).parent / "sphinx_settings"


def main() -> int:
    """Write the source folder, run Sphinx and check what it wrote; the exit code."""
    source, html = BUILD / "source", BUILD / "html"
    write_source(source)
    arguments = ["-q", "-E", "-W", "--keep-going", "-c", str(SETTINGS), "-d", str(BUILD / "cache")]
    code = build_main([*arguments, "-b", "html", str(source), str(html)])
    if code != 0:
        return code
    problems = check_html(html)
    print(*problems, sep="\n", end="\n" if problems else "")
    print(f"The site is built: {html / 'index.html'}")
    return 2 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
