"""Draw a terminal's text as an SVG: `segue demo | python scripts/picture.py docs/demo.svg`."""

import re
import sys
from pathlib import Path
from xml.sax.saxutils import escape

LINE, WIDE, MARGIN = 18, 7.85, 22
COLOURS = [
    (re.compile(r"^\s*✓"), "#7ee787"),
    (re.compile(r"^\s*[↯!✗]|kill -9|SIGKILL"), "#ff7b72"),
    (re.compile(r"^\s*\$ "), "#79c0ff"),
    (re.compile(r"^\S.*[.:]$|^\s*\d+\. "), "#f0f6fc"),
]


def colour(line: str) -> str:
    return next((shade for pattern, shade in COLOURS if pattern.search(line)), "#b1bac4")


def draw(text: str) -> str:
    """Return the SVG of a text."""
    lines = re.sub(r"\x1b\[[0-9;]*m", "", text).rstrip().splitlines()
    width = MARGIN * 2 + WIDE * max(map(len, lines))
    height = MARGIN * 2 + LINE * len(lines)
    rows = [
        f'<text x="{MARGIN}" y="{MARGIN + LINE * n + 13}" fill="{colour(line)}" xml:space="preserve">'
        f"{escape(line)}</text>"
        for n, line in enumerate(lines)
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
            'font-family="ui-monospace, \'DejaVu Sans Mono\', Menlo, Consolas, monospace" font-size="13">',
            f'<rect width="{width:.0f}" height="{height:.0f}" rx="10" fill="#0d1117"/>',
            *rows,
            "</svg>",
            "",
        ]
    )


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(draw(sys.stdin.read()))
