"""Look for sparse costs that hurt: a random search over generators and their parameters.

    python -m bench adversary --minutes 30 --out adversary.json

The score of a problem is how many times more entries the default reads than another way: shortest
augmenting paths from the columns' least costs. Neither depends on the machine, so a search with the
same seed looks at the same problems, and only stops earlier on a slower one. Half of the problems
are new; the others differ from one of the worst so far in one parameter.
"""

from __future__ import annotations

import inspect
import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

import gpumatch as gm
from graphs import adversarial

__all__ = ["KEPT", "Problem", "Score", "draw", "score", "search"]

KEPT = 20
"""The worst problems that are kept."""
FEW = 8
"""Readings of all entries that any way may take: fewer by the other way count as so many."""
RIVAL = "shortest-augmenting-path"
CHANGES = {
    "none": lambda values: values,
    "squared": lambda values: np.square(values.astype(np.float64)),
    "few values": lambda values: np.ceil(8 * values / values.max()),
    "integers": lambda values: np.rint(values * (1e6 / values.max())).astype(np.int64),
}
SHARES = (None, 0.1, 0.3, 0.7)
"""The quantile of the costs that is the limit of a problem of any cardinality; None: no limit."""


class Problem(NamedTuple):
    """A family of `graphs.adversarial` with its parameters, a change of its costs, and a limit."""

    family: str
    parameters: dict[str, float]
    change: str
    share: float | None

    def costs(self) -> csr_array:
        """Make the costs."""
        matrix = adversarial.make(self.family, seed=1, **self.parameters)
        values = CHANGES[self.change](matrix.data)
        return csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape)


class Score(NamedTuple):
    """How many times the default and the other way read all entries."""

    ours: float
    other: float

    @property
    def ratio(self) -> float:
        return self.ours / max(self.other, FEW)


def draw(rng: np.random.Generator, size: int, like: Problem | None = None) -> Problem:
    """Draw a problem of at most `size` rows, or one that differs from another in one parameter."""
    family = like.family if like else rng.choice(sorted(adversarial.SPARSE)).item()
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(adversarial.SPARSE[family]).parameters.items()
        if name not in ("n", "seed")
    }
    drawn: dict[str, float] = {"n": int(size * 2.0 ** rng.uniform(-3, 0))}
    drawn |= {name: _near(rng, name, default) for name, default in defaults.items()}
    new = Problem(family, drawn, rng.choice(list(CHANGES)).item(), SHARES[rng.integers(4)])
    if like is None:
        return new
    changed = rng.choice([*drawn, "change", "share"]).item()
    if changed in drawn:
        return like._replace(parameters={**like.parameters, changed: drawn[changed]})
    return like._replace(**{changed: getattr(new, changed)})


def _near(rng: np.random.Generator, name: str, default: float) -> float:
    """A number within a factor of four of the default, of its kind; a share stays below 1."""
    number = default * 4.0 ** rng.uniform(-1, 1)
    if name == "share":
        return min(number, 0.95)
    return max(1, round(number)) if isinstance(default, int) else number


def score(problem: Problem, seconds: float) -> Score:
    """Solve a problem in both ways; the other one may take so many seconds."""
    matrix = problem.costs()
    wish: dict[str, Any] = {"threads": 1, "backend": "cpu"}
    if problem.share is not None:
        limit = np.quantile(matrix.data, problem.share).astype(matrix.dtype).item()
        wish |= {"cardinality": "any", "cost_limit": limit}
    found = (
        gm.assign(matrix, **wish),
        gm.assign(matrix, algorithm=RIVAL, time_limit=seconds, **wish),
    )
    ours, other = (
        sum(phase.get("scans", 0) for phase in a.stats["trace"]) / matrix.nnz for a in found
    )
    return Score(ours, other if found[1].proven else math.inf)


def search(
    minutes: float, seed: int, size: int, seconds: float = 10.0
) -> Iterator[tuple[Problem, Score]]:
    """Yield problems with their scores, until the time is over."""
    rng, worst = np.random.default_rng(seed), list[tuple[Problem, Score]]()
    deadline = time.monotonic() + 60 * minutes
    while time.monotonic() < deadline:
        like = worst[rng.integers(len(worst))][0] if worst and rng.random() < 0.5 else None
        problem = draw(rng, size, like)
        found = problem, score(problem, seconds)
        worst = sorted([*worst, found], key=lambda one: -one[1].ratio)[:KEPT]
        yield found


def main(minutes: float, seed: int, size: int, out: Path | None) -> None:
    """Search, print the worst problems, and write them."""
    found = sorted(search(minutes, seed, size), key=lambda one: -one[1].ratio)
    worst = [
        {**problem._asdict(), **score._asdict(), "ratio": score.ratio}
        for problem, score in found[:KEPT]
    ]
    for one in worst:
        told = ", ".join(f"{name} {value:g}" for name, value in one["parameters"].items())
        print(f"{one['ratio']:6.2f} = {one['ours']:.1f} / {one['other']:.1f}  {one['family']} "
              f"({told}), {one['change']}, limit {one['share']}")  # fmt: skip
    print(f"{len(found)} problems")
    if out:
        out.write_text(json.dumps({"problems": len(found), "worst": worst}, indent=1) + "\n")
