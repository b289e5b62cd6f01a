"""Write the generated pages of the documentation, or check that they are up to date."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
from fastapi import FastAPI

from segue.cli.app import segue as cli
from segue.protocol import retries
from segue.resume import failures
from segue.server.app import ROUTERS
from segue.settings import page as settings_page

ROOT = Path(__file__).parent.parent
NOTE = "<!-- Written by `make format`; do not edit. -->\n"


def cli_page() -> str:
    """Write the page of commands, each with its `--help`."""
    return "\n".join(["# Commands\n", NOTE, *_help(cli, "segue")])


def _help(group: click.Group, path: str) -> Iterator[str]:
    for name, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            yield from _help(command, f"{path} {name}")
        else:
            context = click.Context(command, info_name=f"{path} {name}", max_content_width=100)
            yield f"## {path} {name}\n\n```text\n{command.get_help(context)}\n```\n"


def api_page() -> str:
    """Write the page of endpoints, one line each."""
    app = FastAPI()
    for router in ROUTERS:
        app.include_router(router)
    rows = [
        f"| `{method.upper()} {path}` | {operation.get('description', '')} |"
        for path, operations in sorted(app.openapi()["paths"].items())
        for method, operation in operations.items()
    ]
    return "\n".join(["# REST endpoints\n", NOTE, *INTRODUCTION, "| endpoint | what it does |", "|---|---|", *rows, ""])


def failures_page() -> str:
    """Replace the tables of the page between their marks."""
    page = (ROOT / FAILURES).read_text()
    for source, table in TABLES.items():
        begin = BEGIN.format(source)
        before, _, rest = page.partition(begin)
        page = f"{before}{begin}\n\n{table()}\n\n{END}{rest.partition(END)[2]}"
    return page


FAILURES = "docs/reference/failures.md"
BEGIN = "<!-- The table is written by `make format`, from {}; do not edit. -->"
TABLES: dict[str, Callable[[], str]] = {
    "resume/failures.py": failures.describe,
    "protocol/retries.py": retries.describe,
}
END = "<!-- End of the table. -->"

INTRODUCTION = [
    "Every call carries `Authorization: Bearer <token>`; the token is in the data directory. Errors are",
    "`{code, message, hint}`: 401 without the token, 403 from a foreign page, 404 unknown, 409 wrong state, 422 bad",
    "input, 503 when the database cannot be written. The whole schema is at `/api/openapi.json`.",
    "",
]


PAGES: dict[str, Callable[[], str]] = {
    "docs/reference/settings.md": settings_page.describe,
    "docs/reference/cli.md": cli_page,
    "docs/reference/api.md": api_page,
    FAILURES: failures_page,
}


def main() -> int:
    """Write the pages, or with --check report those out of date."""
    check = "--check" in sys.argv
    stale: list[str] = []
    for name, write in PAGES.items():
        path, text = ROOT / name, write().rstrip() + "\n"
        if path.exists() and path.read_text() == text:
            continue
        stale.append(name)
        if not check:
            path.write_text(text)
    if check and stale:
        sys.stderr.write(f"Out of date: {', '.join(stale)}. Run: make format\n")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
