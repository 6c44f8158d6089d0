"""Keep one comment on a pull request up to date; needs nothing but Python.

The comment begins with a marker that GitHub does not show. The next run finds it by this marker and
its author, and replaces it. The token comes from ``GITHUB_TOKEN`` and is never printed.
"""

from __future__ import annotations

import argparse
import hashlib
import http.client
import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

#: GitHub's limit is 65,536 characters.
MAX_LENGTH = 60_000
PAGE_SIZE = 100
TIMEOUT_SECONDS = 30


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follow no redirect: it would carry the token to another host."""

    def redirect_request(self, *_args: Any, **_options: Any) -> None:  # noqa: ANN401
        """Refuse; the redirect then ends as an HTTP error."""
        return


class Api:
    """The comments of one pull request.

    Args:
        environment: ``GITHUB_REPOSITORY``, ``GITHUB_EVENT_PATH`` and ``GITHUB_TOKEN``;
            ``GITHUB_API_URL`` by default is GitHub's.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._token = environment["GITHUB_TOKEN"]
        event = json.loads(Path(environment["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
        self._number = int(event["pull_request"]["number"])
        url = check_url(environment.get("GITHUB_API_URL", "https://api.github.com"))
        self._base = f"{url}/repos/{environment['GITHUB_REPOSITORY']}/issues"
        self._opener = urllib.request.build_opener(NoRedirects)

    def list_comments(self) -> Iterator[dict[str, Any]]:
        """Every comment, the oldest first."""
        for page in count(1):
            path = f"/{self._number}/comments?per_page={PAGE_SIZE}&page={page}"
            comments = self._call("GET", path)
            yield from comments
            if len(comments) < PAGE_SIZE:
                return

    def create_comment(self, body: str) -> None:
        """Post a comment."""
        self._call("POST", f"/{self._number}/comments", {"body": body})

    def replace_comment(self, comment: int, body: str) -> None:
        """Replace the text of a comment."""
        self._call("PATCH", f"/comments/{comment}", {"body": body})

    def _call(self, method: str, path: str, data: object = None) -> Any:  # noqa: ANN401 - JSON
        request = urllib.request.Request(  # noqa: S310 - the constructor checks the scheme
            f"{self._base}{path}",
            method=method,
            data=None if data is None else json.dumps(data).encode(),
            headers={
                "Authorization": f"Bearer {self._token}",
                "Accept": "application/vnd.github+json",
                "Content-Type": "application/json",
                "User-Agent": "fusion-bench-gate",
            },
        )
        with self._opener.open(request, timeout=TIMEOUT_SECONDS) as response:
            return json.load(response)


def check_url(url: str) -> str:
    """The address of an API, to which the token may go.

    Raises:
        ValueError: It is neither https nor of this machine, or has a user, a query or a fragment;
            it is not quoted, as a user may have a password.
    """
    parts = urllib.parse.urlsplit(url)
    is_local = parts.scheme == "http" and parts.hostname in {"127.0.0.1", "localhost"}
    if parts.scheme != "https" and not is_local:
        raise ValueError("GITHUB_API_URL: an https address is needed")
    if "@" in parts.netloc or "?" in url or "#" in url or "\\" in url or not url.isprintable():
        raise ValueError("GITHUB_API_URL: it reads https://HOST/PATH, without a user or a query")
    return url.rstrip("/")


def make_marker(key: str) -> str:
    """A line that GitHub does not show; a digest, because a key could end an HTML comment."""
    return f"<!-- fusion-bench gate {hashlib.sha256(key.encode()).hexdigest()[:16]} -->"


def make_body(page: str, key: str, environment: Mapping[str, str]) -> str:
    """The text of the comment: marker, page, and links to the whole page and to the log."""
    if len(page) > MAX_LENGTH:
        page = f"{page[:MAX_LENGTH]}\n\n… The log has the rest.\n"
    names = ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID")
    server, repository, run = (environment.get(name) for name in names)
    links = [f"[Log of this run]({server}/{repository}/actions/runs/{run})"] if run else []
    artifact = environment.get("PAGE_URL", "")
    if artifact.startswith("https://"):
        links.insert(0, f"[Page and record, as an archive]({artifact})")
    line = f"\n{' · '.join(links)}\n" if links else ""
    return f"{make_marker(key)}\n{page.rstrip()}\n{line}"


def post_comment(api: Api, body: str, *, author: str) -> str:
    """Replace this author's comment with the same marker, or post a new one.

    Returns:
        What was done: ``created``, ``replaced`` or ``unchanged``.
    """
    marker = body.splitlines()[0]
    for comment in api.list_comments():
        text, user = comment.get("body") or "", comment.get("user") or {}
        if text.startswith(marker) and user.get("login") == author:
            if text.replace("\r\n", "\n").strip() == body.strip():
                return "unchanged"
            api.replace_comment(int(comment["id"]), body)
            return "replaced"
    api.create_comment(body)
    return "created"


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Post a page; a comment that cannot be posted is a warning, and fails no job.

    Returns:
        0, or 2 where the environment is not that of a pull request's job.
    """
    parser = argparse.ArgumentParser(description="Keep one comment on a pull request up to date.")
    parser.add_argument("page", type=Path, help="Markdown file to post")
    parser.add_argument("--key", required=True, help="what the comment is about")
    parser.add_argument("--author", default="github-actions[bot]", help="owner of the token")
    given = parser.parse_args(arguments)
    try:
        api = Api(environment)
        body = make_body(given.page.read_text(encoding="utf-8"), given.key, environment)
    except (KeyError, OSError, TypeError, ValueError) as error:
        print(f"::error::no comment posted: {type(error).__name__}: {error}")  # noqa: T201
        return 2
    try:
        done = post_comment(api, body, author=given.author)
    except urllib.error.HTTPError as error:
        print(f"::warning::no comment posted: HTTP {error.code}; {explain(error.code)}")  # noqa: T201
        return 0
    except (OSError, ValueError, http.client.HTTPException) as error:  # a text may hold the token
        print(f"::warning::no comment posted: {type(error).__name__}")  # noqa: T201
        return 0
    print(f"comment {done}")  # noqa: T201
    return 0


def explain(status: int) -> str:
    """What to do about a status."""
    if status in {401, 403, 404}:
        return "the token needs 'pull-requests: write', which a fork's pull request does not get"
    return "the job goes on"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
