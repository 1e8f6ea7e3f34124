"""The tests' own names: readable, and the same whenever and wherever they are collected.

pytest-xdist refuses to run where its workers collect different tests: each has another hash seed.
The long test has another clock as well, and does not need two workers.
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
        with open(output, "w") as file:
            json.dump([item.nodeid for item in session.items], file)


sys.exit(pytest.main(["--collect-only", "-qq", "-n0", "-pno:cacheprovider"], plugins=[Write]))
"""


def collect(shift: float, output: Path) -> None:
    """Collect every test in a process of its own, whose clock is `shift` seconds ahead."""
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    environment.pop("PYTEST_ADDOPTS", None)
    command = [sys.executable, "-c", COLLECT, str(shift), str(output)]
    subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, check=True)


def is_readable(name: str) -> bool:
    """Whether pytest had nothing to escape but backslashes, as regular expressions have them."""
    return name.isprintable() and "\\" not in name.replace("\\\\", "")


def test_ids_can_be_read(every_test):
    ids = {parameters for _, parameters in every_test}
    assert [name for name in ids if not is_readable(name)] == []
    assert [name for name in ids if len(name) > LONGEST] == []
    assert [name for name, _ in every_test if len(name) > LONGEST_WITH_FILE] == []


@pytest.mark.long
def test_what_is_collected_here_is_collected_elsewhere(every_test, tmp_path):
    """The other process has another hash seed, and its clock is ahead."""
    collect(1.0, tmp_path / "later.json")
    elsewhere = json.loads((tmp_path / "later.json").read_text())
    assert len(elsewhere) > 1000
    assert {name for name, _ in every_test} - set(elsewhere) == set()
