"""Records of what runs did: counts of work and hashes of results, compared with committed ones.

A record is a JSON file: group -> problem -> field -> value, a line a problem. Counts are written
as they are, for a reader to see how far a change moves them. A hash tells only that something has
changed. Problems have integer costs, or floats that are multiples of a power of 2, so that no
machine rounds any of it.
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
    """Of a result's statistics, phases, the sum of each count in the trace, and a hash of it."""
    trace = [{name: _plain(value) for name, value in phase.items()} for phase in stats["trace"]]
    counts: Fields = {"phases": len(trace)}
    for phase in trace:
        for name, value in phase.items():
            if isinstance(value, int) and name != "matched":
                counts[name] = counts.get(name, 0) + value
    text = json.dumps(trace, sort_keys=True)
    return {**counts, "trace": hashlib.sha256(text.encode()).hexdigest()[:8]}


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


def _plain(value: Any) -> Any:
    """The value in Python's own types, floats to 12 digits."""
    value = value.item() if isinstance(value, np.generic) else value
    return f"{value:.12g}" if isinstance(value, float) else value


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
