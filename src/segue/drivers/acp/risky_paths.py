"""Paths that need more care than an ordinary edit: files outside the worktree, and files that name commands."""

from pathlib import Path, PurePath

from segue.workspace.files import real_path

RUNS = frozenset(
    {
        *(".git", ".githooks", ".husky", ".github", ".envrc", "segue.toml"),
        *(".claude", ".mcp.json", ".amp", ".codex", ".gemini", ".opencode", "opencode.json", "opencode.jsonc"),
        *(".augment", ".copilot", ".agents", ".cursor", ".vscode", ".idea", ".devcontainer", ".devcontainer.json"),
    }
)
"""Names of files in which git, agents, editors and Segue find commands to run, at any depth."""


def ordinary(path: str, directory: Path) -> bool:
    """Return True if this is a file of the worktree from which no command is run, wherever links lead."""
    # A home directory or an address is no file below this directory.
    if path.startswith(("~", "file:")):
        return False
    try:
        root, found = real_path(directory), real_path(directory / path)
        inside = found.relative_to(root)
        led_to = [real_path(root / name) for name in RUNS]
    except (OSError, ValueError):
        # A link without an end, or nothing that could be a path, and what lies outside.
        return False
    # The worktree itself may lie below a directory of such a name.
    named = {*inside.parts, *({*PurePath(path).parts} - {*root.parts, *directory.parts})}
    # Some file systems do not tell small from capital.
    runs = not RUNS.isdisjoint(name.casefold() for name in named) or any(map(found.is_relative_to, led_to))
    return bool(inside.parts) and not runs
