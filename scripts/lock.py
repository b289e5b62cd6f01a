"""Write requirements/*.txt: every version with its hashes, for every platform, and no index by name."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
# Its wheels contain a program of 360 MB that no test needs; its source archive does not.
SMALL = ("--no-binary", "claude-agent-sdk", "--emit-build-options")
FILES = {"run.txt": [], "dev.txt": ["--extra", "dev", *SMALL]}


def main() -> None:
    """Write requirements/run.txt and requirements/dev.txt."""
    for name, options in FILES.items():
        subprocess.run(
            [
                *(sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal", "--generate-hashes"),
                *("--python-version", "3.11", "--no-header", "--no-emit-index-url", "--no-emit-find-links"),
                *("pyproject.toml", "requirements/build.in", *options, "--output-file", f"requirements/{name}"),
            ],
            cwd=ROOT,
            check=True,
            stdout=subprocess.DEVNULL,
        )


if __name__ == "__main__":
    main()
