"""Write the generated pages of the documentation, or check that they are up to date."""

import sys
from collections.abc import Callable
from pathlib import Path

import click
from fastapi import FastAPI

from segue import settings
from segue.cli.app import segue as cli
from segue.server import routes

ROOT = Path(__file__).parent.parent
NOTE = "<!-- Written by `make format`; do not edit. -->\n"


def cli_page() -> str:
    """Every command with its own `--help`."""
    parts = ["# Commands\n", NOTE]
    for name in sorted(cli.commands):
        context = click.Context(cli.commands[name], info_name=f"segue {name}", max_content_width=100)
        parts.append(f"## segue {name}\n\n```text\n{cli.commands[name].get_help(context)}\n```\n")
    return "\n".join(parts)


def api_page() -> str:
    """Every endpoint with one line."""
    app = FastAPI()
    app.include_router(routes.api)
    rows = [
        f"| `{method.upper()} {path}` | {operation.get('description', '')} |"
        for path, operations in sorted(app.openapi()["paths"].items())
        for method, operation in operations.items()
    ]
    return "\n".join(["# REST endpoints\n", NOTE, *INTRODUCTION, "| endpoint | what it does |", "|---|---|", *rows, ""])


INTRODUCTION = [
    "Every call carries `Authorization: Bearer <token>`; the token is in the data directory. Errors are",
    "`{code, message, hint}`: 401 without the token, 403 from a foreign page, 404 unknown, 409 wrong state, 422 bad",
    "input, 503 when the database cannot be written. The whole schema is at `/api/openapi.json`.",
    "",
]


PAGES: dict[str, Callable[[], str]] = {
    "docs/reference/settings.md": settings.describe,
    "docs/reference/cli.md": cli_page,
    "docs/reference/api.md": api_page,
}


def main() -> int:
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
