"""The commands of the README work, and the links between pages resolve."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from segue.model.work_settings import WorkSettings
from segue.settings.fields import Settings
from segue.settings.page import sentences

ROOT = Path(__file__).parent.parent


def test_the_readmes_ten_lines_work() -> None:
    (script,) = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-e", "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "✓ Workflow paused" in done.stdout or "completed" in done.stdout
    assert "✓ Workflow resumed" in done.stdout


PAGES = [*sorted(ROOT.glob("docs/**/*.md")), ROOT / "README.md", ROOT / "CHANGELOG.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_relative_links_lead_to_files_and_headings(page: Path) -> None:
    missing = [link for link in links(page) if not resolves(page, link)]
    assert missing == []


def links(page: Path) -> list[str]:
    """Return the relative links of a page, without those in code."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)
    return [target for target in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in target]


def resolves(page: Path, link: str) -> bool:
    name, _, heading = link.partition("#")
    file = page.parent / name if name else page
    return file.exists() and (not heading or heading in anchors(file))


def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_a_link_to_a_missing_heading_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A plan, a review and a fixer\n[a](#a-plan-a-review-and-a-fixer) [b](#gone) [c](page.md) [d](gone.md)"
    )
    assert [link for link in links(page) if not resolves(page, link)] == ["#gone", "gone.md"]


def test_every_documented_variable_is_read_by_the_code() -> None:
    documented = {name for page in PAGES for name in re.findall(r"SEGUE_[A-Z_]+[A-Z]", page.read_text())}
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
    code = "".join(path.read_text() for path in files if path.name != "page.py")
    settings = {f"SEGUE_{name.upper()}" for name in (*sentences(Settings), *sentences(WorkSettings))}
    # The code composes these of a prefix and a key.
    composed = {"SEGUE_CAPACITY_PAUSE", "SEGUE_REHEARSAL_DIARY"}
    assert {name for name in documented - settings if name not in code} == composed
