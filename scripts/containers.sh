#!/usr/bin/env bash
# Plays the tests of containers with the engine of this machine, Docker or Podman, in place of the stand-in for one.
# It gives the engine an image that is all but empty (segue-test), and needs no network.
set -euo pipefail
cd "$(dirname "$0")/.."
make --quiet .venv/.dev
address=${1:-$(.venv/bin/python -c 'import os; from segue.workspace.containers import engine_address as a; print(a("", os.environ))')}
echo "With the engine at $address"
SEGUE_TEST_ENGINE="$address" exec .venv/bin/python -m pytest tests/containers tests/drivers/test_conformance.py -k "containers or container"
