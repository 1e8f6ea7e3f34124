"""Records of what runs did: sizes, totals and counts of work, compared with committed ones.

A record is a JSON file: group -> problem -> field -> value, a line a problem. Counts are written
as they are, for a reader to see how far a change moves them. Of what has no total, such as a
permutation, there is a hash, which tells only that something has changed. Which of several optima
is found is not recorded, because it may change. Problems have integer costs, or floats that are
multiples of a power of 2, so that no machine rounds any of it.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from tests.cpu.assignment.tuned import tuned

FOLDER = Path(__file__).parent
RENEW = "python -m tests.recorded"

READ = "scans", "edges"
"""Counts of a phase that are recorded: rows or columns scanned, and edges read."""

Fields = dict[str, Any]
Group = Callable[[], dict[str, Fields]]
"""Runs its problems, and returns the fields of each."""


def hash_of(*arrays: Any) -> str:
    """Eight digits for the values of the arrays, whatever their types; floats to 12 digits."""
    digest = hashlib.sha256()
    for array in arrays:
        values = np.asarray(array)
        if values.dtype.kind == "f":
            text = " ".join(f"{value + 0.0:.12g}" for value in values.ravel().tolist())
        else:
            text = " ".join(str(int(value)) for value in values.ravel().tolist())
        digest.update(f"{values.shape} {text};".encode())
    return digest.hexdigest()[:8]


def work_of(stats: Mapping[str, Any]) -> Fields:
    """Of a result's statistics: phases, and the sums of what the phases have read."""
    trace = stats["trace"]
    read = {
        name: sum(int(phase.get(name, 0)) for phase in trace)
        for name in READ
        if any(name in phase for phase in trace)
    }
    return {"phases": len(trace), **read}


def added(members: Iterable[Fields]) -> Fields:
    """The sum of each field, where there is one."""
    sums: Fields = {}
    for fields in members:
        for name, value in fields.items():
            sums[name] = sums.get(name, 0) + value
    return sums


@contextlib.contextmanager
def in_small_steps(names: Iterable[str], budget: int) -> Iterator[None]:
    """Within, searches of these modules of `gpumatch.cpu` return to Python after so much work.

    All are imported first: one that were imported later would keep another's small budget.
    """
    modules = [importlib.import_module(f"gpumatch.cpu.{name}") for name in names]
    with contextlib.ExitStack() as patched:
        for module in modules:
            if hasattr(module, "DEFAULT"):
                patched.enter_context(tuned(module, budget=budget))
                continue
            name = "BUDGET" if hasattr(module, "BUDGET") else "_BUDGET"
            patched.enter_context(mock.patch.object(module, name, budget))
        yield


def path_of(name: str) -> Path:
    return FOLDER / f"{name}.json"


def read(name: str) -> dict[str, dict[str, Fields]]:
    return json.loads(path_of(name).read_text())


def write(name: str, record: Mapping[str, Mapping[str, Fields]]) -> None:
    """Write it with sorted keys, a line a problem."""
    groups = []
    for group, problems in sorted(record.items()):
        lines = [
            f"  {json.dumps(problem)}: {json.dumps(fields, sort_keys=True)}"
            for problem, fields in sorted(problems.items())
        ]
        groups.append(f" {json.dumps(group)}: {{\n" + ",\n".join(lines) + "\n }")
    path_of(name).write_text("{\n" + ",\n".join(groups) + "\n}\n")


def differences(recorded: Mapping[str, Fields], found: Mapping[str, Fields]) -> list[str]:
    """A line for each problem and field that differs."""
    lines = []
    for problem in sorted({*recorded, *found}):
        before, now = recorded.get(problem, {}), found.get(problem, {})
        for field in sorted({*before, *now}):
            if before.get(field) != now.get(field):
                was, became = before.get(field, "nothing"), now.get(field, "nothing")
                lines.append(f"{problem}: {field} was {was}, is {became}")
    return lines
