"""Write Sphinx's source folder: the repository's pages, the pages made from the code, pictures."""

from __future__ import annotations

import shutil
from collections.abc import Container, Iterable
from itertools import chain
from pathlib import Path

from docs.website.engine_pages import ORIGIN as ENGINES
from docs.website.engine_pages import build_engine_pages, engine_paths
from docs.website.gallery import build_gallery, draw_pictures, list_own_pictures
from docs.website.links import FILES, Links
from docs.website.lint_pages import ORIGIN as LINT
from docs.website.lint_pages import build_lint_pages, lint_paths
from docs.website.method_pages import build_method_pages
from docs.website.page import ROOT, Page, list_pages
from docs.website.sections import slugs_to_pages

#: Pages outside ``docs``, by path in the repository.
OUTSIDE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "datasets/attack/README.md": "datasets/attack.md",
    "datasets/referee/README.md": "datasets/referee.md",
    "datasets/referee/guidelines.md": "datasets/referee-guidelines.md",
}
#: The front page takes the README's place.
REPLACED = frozenset({"README.md"})


def write_source(folder: Path) -> list[str]:
    """Write the folder anew.

    Returns:
        ``page: target`` of each link that leads to no file of the repository. Where there are any,
        the folder is incomplete.
    """
    shutil.rmtree(folder, ignore_errors=True)
    methods = [*build_method_pages()]
    pictures = [picture for _, picture in methods if picture is not None]
    own = list_own_pictures(pictures)
    made = [page for page, _ in methods] + [build_gallery(own)]
    split = {ENGINES: [*build_engine_pages()], LINT: [*build_lint_pages()]}
    links = Links(_list_places([*made, *chain(*split.values())]), _list_anchors())
    for origin, pages in split.items():
        made += [Page(page.path, links.rewrite(page.text, origin, page.path)) for page in pages]
    _write_pages([*_read_pages(links, {page.path for page in made}), *made], folder)
    if links.broken:
        return links.broken
    for file in links.files:
        target = folder / FILES / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, target)
    draw_pictures([*pictures, *own], folder)
    return []


def _write_pages(pages: Iterable[Page], folder: Path) -> None:
    for page in pages:
        target = folder / page.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page.text, encoding="utf-8")


def _list_places(made: Iterable[Page]) -> dict[str, str]:
    """Path in the repository → path in the source folder; a made page counts as one of docs."""
    docs = ROOT / "docs"
    own = (path.relative_to(docs).as_posix() for path in list_pages())
    return OUTSIDE | {f"docs/{path}": path for path in (*own, *(page.path for page in made))}


def _list_anchors() -> dict[str, str]:
    """Sections that have a page of their own here."""
    engines, rules = slugs_to_pages(engine_paths()), lint_paths()
    return {
        **{f"{ENGINES}#{slug}": path for slug, path in engines.items()},
        **{f"{LINT}#{name}": path for name, path in rules.items()},
    }


def _read_pages(links: Links, made: Container[str]) -> list[Page]:
    """The repository's own pages with the site's links; not those that are made."""
    return [
        Page(place, links.rewrite((ROOT / file).read_text(encoding="utf-8"), file, place))
        for file, place in links.pages.items()
        if place not in made and file not in REPLACED
    ]
