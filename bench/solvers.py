"""What is measured on cost matrices: the library's algorithms, and the codes of others.

A sample is one matrix. The matrices of a stack are solved in turn, each once, and the first one
before that, because its first run warms up. What counts is the whole call, from a matrix that is
where the code wants it to the assignment. A result also holds:

    objective       what the pairs cost, of all matrices of a stack together if all were solved: for
                    exact codes, whose objectives must agree
    reached         the same for a code that stops before the optimum
    gap             of these, by how much they may miss it, by their own duals
    rounds          of an auction, of all matrices together
    parts           seconds by part, of the library's algorithms: medians, as those of the whole
    found, updates  assignments found, and updates of the duals, in each phase of the last sample
    certificate     seconds that `gpumatch.verify` took to accept the last answer, if asked to
"""

from __future__ import annotations

import itertools
import math
import os
import re
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import gpumatch as gm
from bench.costs import Matrices, stack
from bench.harness import Limits, Overrun, Result, Sample, repeat
from bench.peers import in_process, is_installed, self_timed
from gpumatch.dispatch.registry import BackendName

_LOADING = 60.0  # seconds a program has to start and read the costs
_EPSILON = 1e-6  # slack below which RAFT takes an edge for tight


class Sums:
    """Numbers of a stack's matrices under one name, added up once there is one of each."""

    def __init__(self, count: int, name: str = "objective") -> None:
        self._of, self._name = dict.fromkeys(range(count)), name

    def add(self, number: int, value: float) -> dict[str, float]:
        self._of[number] = value
        known = [value for value in self._of.values() if value is not None]
        if len(known) < len(self._of):
            return {}
        whole = all(isinstance(value, int) for value in known)
        return {self._name: sum(known) if whole else math.fsum(known)}


def once_each(limits: Limits, count: int) -> Limits:
    """The limits for a stack of so many matrices: none counts more often than the others."""
    return limits if count == 1 else replace(limits, repeats=min(limits.repeats, count))


# -- the library's -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Assign:
    """One of the library's algorithms."""

    name: str
    algorithm: str
    backend: BackendName
    threads: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)
    is_exact: bool = True
    is_verified: bool = False

    def measure(self, problem: Matrices, limits: Limits) -> Result:
        matrices = problem.on(self.backend)
        names = ("objective",) if self.is_exact else ("reached", "gap")
        sums = {name: Sums(len(matrices), name) for name in (*names, "rounds")}
        parts: list[dict[str, float]] = []
        last: list[Any] = []

        def sample(number: int) -> Sample:
            begin = time.perf_counter()
            a = gm.assign(
                matrices[number],
                maximize=problem.maximize,
                algorithm=self.algorithm,
                backend=self.backend,
                threads=self.threads,
                time_limit=limits.cap,
                **self.options,
            )
            seconds = time.perf_counter() - begin
            if seconds >= limits.cap or (self.is_exact and not a.proven):
                raise Overrun
            last[:] = number, a
            parts.append(a.stats["seconds"])
            return Sample(seconds, a.size, more=_more(a, number, sums))

        turn = itertools.cycle(range(len(matrices)))
        result = repeat(lambda: sample(next(turn)), once_each(limits, len(matrices)))
        result["parts"] = {
            name: statistics.median(taken.get(name, 0.0) for taken in parts[1:] or parts)
            for name in parts[-1]
        }
        if self.is_verified:
            number, a = last
            begin = time.perf_counter()
            gm.verify(matrices[number], a)
            result["certificate"] = time.perf_counter() - begin
        return result


def _more(a: gm.Assignment, number: int, sums: Mapping[str, Sums]) -> dict[str, Any]:
    """What is kept of the answer for a matrix of the stack."""
    trace = a.stats["trace"]
    of = {"objective": a.objective, "reached": a.objective, "gap": a.gap}
    if any("rounds" in phase for phase in trace):
        of["rounds"] = sum(phase.get("rounds", 0) for phase in trace)
    more: dict[str, Any] = {}
    for name in sums.keys() & of.keys():
        more |= sums[name].add(number, of[name])
    for key in ("found", "updates"):
        more[key] = [phase.get(key, 0) for phase in trace]
    return more


# -- peers ---------------------------------------------------------------------------------------


def scipy(file: Path, maximize: bool) -> list[Callable[[], np.ndarray]]:
    """`scipy.optimize.linear_sum_assignment`."""
    from scipy.optimize import linear_sum_assignment

    def call(costs: np.ndarray) -> Callable[[], np.ndarray]:
        return lambda: linear_sum_assignment(costs, maximize)[1]

    return [call(costs) for costs in stack(np.load(file))]


def lapx(file: Path, maximize: bool) -> list[Callable[[], np.ndarray]]:
    """`lap.lapjvs`, a Jonker-Volgenant solver; integers are given to it as float32."""
    import lap

    def call(costs: np.ndarray) -> Callable[[], np.ndarray]:
        real = costs.astype(np.float32) if costs.dtype.kind == "i" else costs
        given = -real if maximize else real
        single = given.dtype == np.float32
        return lambda: lap.lapjvs(given, return_cost=False, prefer_float32=single)[1]

    return [call(costs) for costs in stack(np.load(file))]


def pot(file: Path, maximize: bool) -> list[Callable[[], np.ndarray]]:
    """POT's `ot.emd`, a network simplex, between uniform weights."""
    import ot

    def call(costs: np.ndarray) -> Callable[[], np.ndarray]:
        given = -costs.astype(float) if maximize else costs.astype(float)
        weights = np.full(len(given), 1 / len(given))
        return lambda: ot.emd(weights, weights, given, numItermax=10**9).argmax(axis=1)

    return [call(costs) for costs in stack(np.load(file))]


PEERS = {"scipy": scipy, "lapx": lapx}
CODES = {**PEERS, "pot": pot}  # for transport: a peer where it is asked for by name
_MODULES = {"scipy": "scipy", "lapx": "lap", "pot": "ot"}


@dataclass(frozen=True)
class SolverPeer:
    """A peer by its name in `CODES`."""

    name: str

    @property
    def installed(self) -> bool:
        return is_installed(_MODULES[self.name])

    def measure(self, problem: Matrices, limits: Limits) -> Result:
        given = self.name, problem.file, problem.maximize
        return in_process(_calls, given, once_each(limits, len(problem.on("cpu"))), self_timed)


def _calls(given: tuple[str, Path, bool]) -> Callable[[], Sample]:
    """In the peer's process: a call that solves the next matrix, and times itself."""
    name, file, maximize = given
    calls = CODES[name](file, maximize)
    matrices = stack(np.load(file, mmap_mode="r"))
    sums = Sums(len(calls))
    turn = itertools.cycle(range(len(calls)))

    def call() -> Sample:
        number = next(turn)
        begin = time.perf_counter()
        cols = calls[number]()
        seconds = time.perf_counter() - begin
        return Sample(seconds, len(cols), more=sums.add(number, _cost(matrices[number], cols)))

    return call


def _cost(matrix: np.ndarray, cols: np.ndarray) -> float:
    """What it costs to give row i column ``cols[i]``."""
    paid = matrix[np.arange(len(cols)), cols].tolist()
    return sum(paid) if matrix.dtype.kind == "i" else math.fsum(paid)


@dataclass(frozen=True)
class Raft:
    """RAFT's `LinearAssignmentProblem`: the alternating tree variant, ported by its authors.

    The environment variable RAFT_LAP names a program, called with FILE.npy REPEATS SECONDS EPSILON
    SIGN. It copies the costs, times SIGN, to the device, solves them once and REPEATS times again,
    but none after SECONDS, and prints "seconds S objective O" after each.
    docs/reproduction/date2016.md says how to get it.
    """

    name: str = "raft"

    @property
    def installed(self) -> bool:
        return "RAFT_LAP" in os.environ

    def measure(self, problem: Matrices, limits: Limits) -> Result:
        number = int if problem.facts["dtype"] == "int32" else float
        command = [
            os.environ["RAFT_LAP"],
            str(problem.file),
            str(limits.repeats),
            str(limits.budget),
            str(_EPSILON),
            "-1" if problem.maximize else "1",
        ]
        printed = _output(command, _LOADING + limits.budget + limits.cap)
        samples = [
            Sample(float(seconds), problem.facts["rows"], more={"objective": number(objective)})
            for seconds, objective in re.findall(r"seconds (\S+) objective (\S+)\n", printed)
        ]
        if not samples or samples[0].seconds > limits.cap:
            raise Overrun
        script = iter(samples)
        return repeat(lambda: next(script), Limits(len(samples) - 1, math.inf))


def _output(command: list[str], seconds: float) -> str:
    """What a program prints until it ends, or until it is ended after that time.

    Raises
    ------
    RuntimeError
        If it fails.
    """
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        timer = threading.Timer(seconds, process.kill)
        timer.start()
        printed, errors = process.communicate()
        is_late = not timer.is_alive()
        timer.cancel()
    if process.returncode and not is_late:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}: {errors[-200:]}")
    return printed


def peers(*, on_device: bool) -> list[Any]:
    """The peers that are installed."""
    known: list[Any] = [*([Raft()] if on_device else []), *map(SolverPeer, PEERS)]
    return [peer for peer in known if peer.installed]
