"""The tests' own names: readable, and the same whenever and wherever they are collected.

pytest-xdist refuses to run where its workers collect different tests.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LONGEST = 120
"""Characters of the id of a test's parameters."""
LONGEST_WITH_FILE = 180
COLLECT = """
import json, sys, time
import pytest

shift, output = float(sys.argv[1]), sys.argv[2]
true_time, true_time_ns = time.time, time.time_ns
time.time = lambda: true_time() + shift
time.time_ns = lambda: true_time_ns() + int(shift * 1e9)


class Write:
    @staticmethod
    def pytest_collection_finish(session):
        ids = [[item.nodeid, item.callspec.id if hasattr(item, "callspec") else ""]
               for item in session.items]
        with open(output, "w") as file:
            json.dump(ids, file)


sys.exit(pytest.main(["--collect-only", "-qq", "-n0", "-pno:cacheprovider"], plugins=[Write]))
"""


def collect(shift: float, output: Path) -> None:
    """Collect every test in a process of its own, whose clock is `shift` seconds ahead."""
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    environment.pop("PYTEST_ADDOPTS", None)
    command = [sys.executable, "-c", COLLECT, str(shift), str(output)]
    subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=True)


@pytest.fixture(scope="module")
def collected(tmp_path_factory) -> list[list[str]]:
    """(test, id of its parameters) of a process with another hash seed, and a clock ahead."""
    output = tmp_path_factory.mktemp("collection") / "later.json"
    collect(1.0, output)
    return json.loads(output.read_text())


def is_readable(name: str) -> bool:
    """Whether pytest had nothing to escape but backslashes, as regular expressions have them."""
    return name.isprintable() and "\\" not in name.replace("\\\\", "")


def test_ids_can_be_read(collected):
    ids = {parameters for _, parameters in collected}
    assert len(ids) > 1000
    assert [name for name in ids if not is_readable(name)] == []
    assert [name for name in ids if len(name) > LONGEST] == []
    assert [name for name, _ in collected if len(name) > LONGEST_WITH_FILE] == []


def test_what_runs_here_is_collected_elsewhere(collected, request):
    """This session's own tests, which are all in a plain run, have another hash seed and clock."""
    here = {item.nodeid for item in request.session.items}
    assert here - {name for name, _ in collected} == set()
