"""`segue doctor`: checks of this machine, with hints for what is missing."""

import json
import subprocess
import sys
from typing import Any

from segue import client
from segue.model.errors import NotRunning, SegueError

PATIENCE = 60.0


def examine() -> list[dict[str, Any]]:
    """Return every check, as {name, ok, detail, hint}; a separate process runs those that need the server's code."""
    return [*_server_side(), _server()]


def _server_side() -> list[dict[str, Any]]:
    """Return the checks that a process with the server's code makes, or one failed check if it cannot run."""
    command = [sys.executable, "-P", "-m", "segue.server.machine_checks"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
        return json.loads(done.stdout)
    except subprocess.CalledProcessError as error:
        words = (error.stderr or "").strip().splitlines()[-1:]
        detail = words[0] if words else f"exit code {error.returncode}"
    except subprocess.TimeoutExpired:
        detail = f"it gave no answer within {PATIENCE:g} seconds"
    except ValueError:
        detail = "it gave an answer that is not JSON"
    return [check("installation", False, f"The server's code does not run: {detail}", "Install Segue again.")]


def _server() -> dict[str, Any]:
    """Return the check of the running server; a server that is not running is no problem."""
    try:
        client.call("GET", "/api/status")
        server = client.find()
    except NotRunning as error:
        return check("server", True, f"{error.message} `segue run` starts it by itself.")
    except SegueError as error:
        return check("server", False, error.message, error.hint)
    return check("server", True, f"pid {server.pid}, {server.url}, version {server.version}")


def check(name: str, ok: bool, detail: str, hint: str = "") -> dict[str, Any]:
    """Return one check as the command prints it."""
    return {"name": name, "ok": ok, "detail": detail, "hint": hint}
