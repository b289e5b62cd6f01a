"""`segue`, and `python -m segue`."""

import os
import sys


def main() -> None:
    """Run the command line and return its exit code."""
    if os.name == "nt":
        sys.exit("segue: Segue runs on Linux and macOS; on Windows, run it inside WSL.")
    arguments = sys.argv[1:]
    if arguments in (["status"], ["status", "--json"]):
        # The one command that is asked all the time: it must not wait for the libraries of the others.
        from segue.cli.status import status

        try:
            sys.exit(status(as_json="--json" in arguments))
        except BrokenPipeError:
            # Nobody reads any more; what is left in the buffer must not be tried again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)
    from segue.cli.app import segue

    segue(prog_name="segue")


if __name__ == "__main__":
    main()
