"""The one timing loop, and the file that keeps what it measured.

A *contender* is an algorithm or a peer; it takes one `Sample` a call. A contender's result on a
graph is one of

    {"seconds": [...], "size": int, "levels": [...]}   after a warm-up, as many as the limits allow;
                                                       with more, as each suite tells
    {"failed": why, "at_least": seconds}               over its cap, here or on an easier graph
    {"failed": why, ...}                               broken, or wrong by the others' size, or by
                                                       their "objective", if results have one

The results are in a file that is written again after each of them. So a run that is cut off goes on
where it was:

    {"suite": name, "settings": {...}, "runs": [{machine, versions, source hash, ...}, ...],
     "graphs": {name: {family, rows, ..., "results": {contender: {..., "run": index}}}}}
"""

from __future__ import annotations

import json
import math
import os
import re
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from bench.instances import Folder, Instance

Result = dict[str, Any]
LONG = 6.0
"""Seconds of a run from which on it is not repeated if the budget is spent."""
ROUNDING = 1e-9  # by which objectives of floating costs may differ


class Overrun(Exception):
    """A contender that did not end within its cap."""


@dataclass(frozen=True)
class Sample:
    """One timed run: what counts as its seconds, the matching's size, BFS levels by phase.

    What else a suite keeps is in ``more``, JSON under its own names. "objective" is compared among
    contenders, as the size is.
    """

    seconds: float
    size: int
    levels: tuple[int, ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Limits:
    """How often and how long a contender runs on one graph.

    Attributes
    ----------
    repeats : int
        Runs that count, after the warm-up.
    budget : float
        Seconds after which no further run is begun, but for one after a short warm-up.
    cap : float
        Seconds after which a run is given up.
    """

    repeats: int = 5
    budget: float = 2.0
    cap: float = 20.0


class Contender(Protocol):
    """Anything that can be measured on a problem."""

    @property
    def name(self) -> str: ...

    def measure(self, problem: Any, limits: Limits) -> Result: ...


def repeat(sample: Callable[[], Sample], limits: Limits) -> Result:
    """Sample a contender; the first run warms up, and counts only if it is the only one.

    It is the only one if none is to be repeated, or if it has taken long and spent the budget.
    Seconds alone may be what was compiled or loaded in it.
    """
    end = time.perf_counter() + limits.budget
    samples = [sample()]
    least = 1 if samples[0].seconds >= LONG else 2
    while len(samples) <= limits.repeats and (len(samples) < least or time.perf_counter() < end):
        samples.append(sample())
    last = samples[-1]
    return {
        "seconds": [taken.seconds for taken in samples[1:] or samples],
        "size": last.size,
        "levels": list(last.levels),
        **last.more,
    }


def attempt(contender: Contender, problem: Any, limits: Limits) -> Result:
    """Measure a contender; a failure is a result too, and does not end the run."""
    try:
        return contender.measure(problem, limits)
    except Overrun:
        return _over(limits.cap)
    except Exception as exc:
        return {"failed": f"{type(exc).__name__}: {exc}"}


def warm_up(
    contenders: Sequence[Contender],
    problem: Callable[[Instance, Any], Any],
    instances: Sequence[Instance],
    folder: Folder,
) -> dict[str, float]:
    """Seconds of each contender's first calls, on small problems: compiling and loading, mostly."""
    given = [(instance, problem(instance, folder.load(instance))) for instance in instances]
    seconds = {}
    for contender in contenders:
        begin = time.perf_counter()
        for instance, small in given:
            if instance.takes(contender.name):
                attempt(contender, small, Limits(repeats=0, cap=600.0))
        seconds[contender.name] = time.perf_counter() - begin
    return seconds


def _agree(one: float, other: float) -> bool:
    """True if two numbers are the same, up to rounding if they are not integers."""
    if isinstance(one, int) and isinstance(other, int):
        return one == other
    return math.isclose(one, other, rel_tol=ROUNDING)


def is_broken(result: Result) -> bool:
    """True if a contender failed in another way than by being slow."""
    return "failed" in result and "at_least" not in result


def _over(cap: float, graph: str = "this graph") -> Result:
    return {"failed": f"over {cap:g} s on {graph}", "at_least": cap}


class Store:
    """A suite's results in a JSON file.

    Parameters
    ----------
    path : path
        Read when it exists; the suite's name and settings must then agree.
    suite : str
    settings : mapping
        Results are comparable only if they agree in these.
    run : mapping
        The machine and versions of what is measured from now on.
    """

    def __init__(
        self, path: str | Path, suite: str, settings: Mapping[str, Any], run: Mapping[str, Any]
    ) -> None:
        self._path = Path(path)
        fresh: dict[str, Any] = {
            "suite": suite,
            "settings": dict(settings),
            "runs": [],
            "graphs": {},
        }
        self.data = read(self._path) if self._path.exists() else fresh
        for key in ("suite", "settings"):
            if self.data[key] != fresh[key]:
                raise ValueError(
                    f"{path} holds {key} {self.data[key]}, not {fresh[key]}: choose another file"
                )
        self.data["runs"].append(dict(run))

    def missing(self, graph: str, contenders: Iterable[Contender]) -> list[Contender]:
        """The contenders that have no result on this graph yet, or a broken one."""
        results = self.data["graphs"].get(graph, {"results": {}})["results"]
        known = {name for name, result in results.items() if not is_broken(result)}
        return [contender for contender in contenders if contender.name not in known]

    def describe(self, graph: str, facts: Mapping[str, Any]) -> None:
        """Keep what is known of a graph itself."""
        self.data["graphs"].setdefault(graph, {"results": {}}).update(facts)

    def add(self, graph: str, contender: str, result: Result) -> None:
        """Keep a result, marked wrong when another contender found another size or objective."""
        results = self.data["graphs"][graph]["results"]
        others = [other for other in results.values() if "failed" not in other]
        for key in ("size", "objective"):
            found = {other[key] for other in others if key in other}
            if key in result and not all(_agree(result[key], value) for value in found):
                result = {**result, "failed": f"{key} {result[key]}, others {sorted(found)}"}
        results[contender] = {**result, "run": len(self.data["runs"]) - 1}
        self._write()

    def overran(self, graph: str, contender: str) -> str | None:
        """A graph of the family, no larger than this one, that took the contender too long."""
        this = self.data["graphs"][graph]
        for name, other in self.data["graphs"].items():
            easier = other["family"] == this["family"] and other["entries"] <= this["entries"]
            if easier and "at_least" in other["results"].get(contender, {}):
                return name
        return None

    def _write(self) -> None:
        """Replace the file at once, so that it is whole whenever it is read or this is cut off."""
        text = json.dumps(self.data, indent=1)
        text = re.sub(r"\[[-+.,\de\s]*\]", lambda numbers: " ".join(numbers[0].split()), text)
        scratch = self._path.with_name(self._path.name + ".part")
        scratch.write_text(text + "\n")
        os.replace(scratch, self._path)


def read(path: str | Path) -> dict[str, Any]:
    """The results in a file."""
    return json.loads(Path(path).read_text())


# -- a suite -------------------------------------------------------------------------------------


def _say(line: str) -> None:
    print(line, flush=True)


def run(
    store: Store,
    instances: Sequence[Instance],
    contenders: Sequence[Contender],
    limits: Limits,
    *,
    folder: Folder,
    problem: Callable[[Instance, Any], Any],
    deadline: float = math.inf,
    say: Callable[[str], None] = _say,
) -> bool:
    """Measure every contender on every graph that the store lacks.

    Parameters
    ----------
    folder : Folder
        Where graphs are kept; they are made a batch at a time.
    problem : callable
        Makes of a graph what contenders take, an object with ``facts``: family, rows, entries, ...
    deadline : float
        `time.monotonic` value after which nothing new is begun.

    Returns
    -------
    bool
        Whether all is measured; False when the deadline came first.
    """
    pending = [graph for graph in instances if store.missing(graph.name, _taken(graph, contenders))]
    for first in range(0, len(pending), folder.processes):
        batch = pending[first : first + folder.processes]
        if time.monotonic() < deadline:
            folder.prepare(batch)
        for instance in batch:
            if time.monotonic() >= deadline:
                return False
            given = problem(instance, folder.load(instance))
            store.describe(instance.name, given.facts)
            say(f"{instance.name}: {given.facts['rows']} rows, {given.facts['entries']} entries")
            for contender in store.missing(instance.name, _taken(instance, contenders)):
                if time.monotonic() >= deadline:
                    return False
                result = _result(store, instance.name, contender, given, limits)
                store.add(instance.name, contender.name, result)
                say(f"  {contender.name:24} {summary(result)}")
    return True


def _taken(instance: Instance, contenders: Iterable[Contender]) -> list[Contender]:
    return [contender for contender in contenders if instance.takes(contender.name)]


def _result(store: Store, graph: str, contender: Contender, problem: Any, limits: Limits) -> Result:
    """Measure, unless a graph that should be easier took the contender too long already."""
    easier = store.overran(graph, contender.name)
    if easier is not None:
        return _over(limits.cap, easier)
    return attempt(contender, problem, limits)


def summary(result: Result) -> str:
    """A result in a few words."""
    if "failed" in result:
        return result["failed"]
    return f"{statistics.median(result['seconds']):.4g} s, size {result['size']}"
