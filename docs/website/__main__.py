"""``python -m docs.website``: build the site into ``docs/_build/html``; a warning is an error."""

from __future__ import annotations

import shutil
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
    """Write the source folder, run Sphinx and check what it wrote; 0 = no problem."""
    source, html = BUILD / "source", BUILD / "html"
    shutil.rmtree(html, ignore_errors=True)  # a page that is gone must not be checked
    if broken := write_source(source):
        print("Links that lead to no file:", *broken, sep="\n  ", file=sys.stderr)
        return 2
    arguments = ["-q", "-E", "-W", "--keep-going", "-c", str(SETTINGS), "-d", str(BUILD / "cache")]
    if code := build_main([*arguments, "-b", "html", str(source), str(html)]):
        return code
    if problems := check_html(html):
        print("Problems of the built pages:", *problems, sep="\n  ", file=sys.stderr)
        return 2
    print(f"The site is built: {html / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
