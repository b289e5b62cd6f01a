"""Folders for blind readers of resume contexts: each holds one context and its questions, and nothing else.

    blind_readers.py write --exam exam-dev.json --out READERS --key KEY.json NAME=DIR [NAME=DIR …]
    blind_readers.py collect --key KEY.json --readers READERS

`DIR` is what the exam's own `contexts` command wrote for one system (`DIR/contexts/<session>.txt`). A reader sees one
folder with a name that says nothing, and writes `answers.json` (`[{"id": …, "answer": …}]`) into it. `collect` puts
the answers back where the exam expects them: `DIR/answers.json`, one for each system. Readers and markers never see
KEY.json.
"""

import argparse
import hashlib
import json
import sys
from pathlib import Path
from typing import Any


def write(given: argparse.Namespace) -> None:
    """Write a folder for each session and system."""
    sessions: list[dict[str, Any]] = json.loads(given.exam.read_text())
    key: dict[str, dict[str, str]] = {}
    for name, _, folder in (system.partition("=") for system in given.systems):
        for session in sessions:
            context = (Path(folder) / "contexts" / f"{session['session']}.txt").read_text()
            label = hashlib.sha256(f"{given.seed} {name} {session['session']}".encode()).hexdigest()[:12]
            target = given.out / label
            target.mkdir(parents=True, exist_ok=True)
            questions = [{"id": each["id"], "question": each["question"]} for each in session["questions"]]
            (target / "context.txt").write_text(context)
            (target / "questions.json").write_text(json.dumps(questions, indent=1))
            key[label] = {"system": folder, "session": session["session"]}
    given.key.write_text(json.dumps(key, indent=1))
    sys.stdout.write(f"{len(key)} folders in {given.out}" + "\n")


def collect(given: argparse.Namespace) -> None:
    """Gather the readers' answers for each system."""
    answers: dict[str, list[dict[str, str]]] = {}
    missing: list[str] = []
    for label, place in json.loads(given.key.read_text()).items():
        file = given.readers / label / "answers.json"
        if not file.is_file():
            missing.append(label)
            continue
        for each in json.loads(file.read_text()):
            answer = {"session": place["session"], "id": each["id"], "answer": each["answer"]}
            answers.setdefault(place["system"], []).append(answer)
    for folder, found in answers.items():
        (Path(folder) / "answers.json").write_text(json.dumps(found, indent=1))
        sys.stdout.write(f"{len(found)} answers in {folder}" + "\n")
    sys.stdout.write(f"without answers: {' '.join(missing) or 'none'}" + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    verb = verbs.add_parser("write")
    verb.add_argument("--exam", type=Path, required=True)
    verb.add_argument("--out", type=Path, required=True)
    verb.add_argument("--key", type=Path, required=True)
    verb.add_argument("--seed", default="1")
    verb.add_argument("systems", nargs="+", metavar="NAME=DIR")
    verb.set_defaults(do=write)
    verb = verbs.add_parser("collect")
    verb.add_argument("--key", type=Path, required=True)
    verb.add_argument("--readers", type=Path, required=True)
    verb.set_defaults(do=collect)
    given = parser.parse_args()
    given.do(given)


if __name__ == "__main__":
    main()
