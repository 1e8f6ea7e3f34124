"""Look for costs that hurt: a random search over generators and their parameters.

    python -m bench adversary --minutes 30 --out adversary.json
    python -m bench adversary --minutes 30 --dense --size 1000

The score of sparse costs is how many times more entries the default reads than another way:
shortest augmenting paths from the columns' least costs. Neither depends on the machine, so a search
with the same seed looks at the same problems, and only stops earlier on a slower one. Dense costs
are read in ways that do not compare, so their score is a ratio of processor times: the default's to
the best of SciPy and our own shortest augmenting paths.

Half of the problems are new; the others differ from one of the worst so far in one parameter.
"""

from __future__ import annotations

import inspect
import json
import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array

import gpumatch as gm
from graphs import adversarial

__all__ = ["KEPT", "Problem", "Score", "draw", "score", "search"]

KEPT = 20
"""The worst problems that are kept."""
FEW = 8
"""Readings of all entries that any way may take: fewer by the other way count as so many."""
SHORT = 2.0
"""Milliseconds that any way may take on dense costs."""
RIVAL = "shortest-augmenting-path"
CHANGES = {
    "none": lambda values: values,
    "squared": lambda values: np.square(values.astype(np.float64)),
    "few values": lambda values: np.ceil(8 * values / values.max()),
    "many values": lambda values: np.ceil(200 * values / values.max()),
    "integers": lambda values: np.rint(values * (1e6 / values.max())).astype(np.int64),
    "negated": lambda values: values.max() - values,
}
SHARES = (None, 0.1, 0.3, 0.7)
"""The quantile of the costs that is the limit of a problem of any cardinality; None: no limit."""
KEPT_ROWS = (1.0, 1.0, 0.9, 0.5)
"""The share of the rows that a problem has: of fewer rows, all can still be matched."""


class Problem(NamedTuple):
    """A family of `graphs.adversarial` with its parameters, and what is changed of its costs.

    Attributes
    ----------
    family : str
    parameters : dict
        What `graphs.adversarial.make` takes.
    change : str
        A key of `CHANGES`.
    share : float or None
        One of `SHARES`.
    rows : float
        One of `KEPT_ROWS`.
    """

    family: str
    parameters: dict[str, float]
    change: str = "none"
    share: float | None = None
    rows: float = 1.0

    @property
    def is_dense(self) -> bool:
        """True if all pairs have a cost."""
        return self.family in adversarial.DENSE

    def costs(self) -> Any:
        """Make the costs: a CSR array, or an array of all costs."""
        matrix = adversarial.make(self.family, seed=1, **self.parameters)
        matrix = matrix[: math.ceil(self.rows * matrix.shape[0])]
        if self.is_dense:
            return CHANGES[self.change](matrix)
        values = CHANGES[self.change](matrix.data)
        return csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape)


class Score(NamedTuple):
    """How often the default and the other way read all entries, or how many milliseconds they take.

    `least` is what any way may take.
    """

    ours: float
    other: float
    least: float = FEW

    @property
    def ratio(self) -> float:
        return self.ours / max(self.other, self.least)


def draw(
    rng: np.random.Generator, size: int, like: Problem | None = None, is_dense: bool = False
) -> Problem:
    """Draw a problem of at most `size` rows, or one that differs from another in one parameter."""
    families: dict[str, Any] = adversarial.DENSE if is_dense else adversarial.SPARSE
    family = like.family if like else rng.choice(sorted(families)).item()
    size_name, *names = inspect.signature(families[family]).parameters.items()
    defaults = {
        name: parameter.default for name, parameter in names if name not in ("ncols", "seed")
    }
    drawn: dict[str, float] = {size_name[0]: int(size * 2.0 ** rng.uniform(-3, 0))}
    drawn |= {name: _near(rng, name, default) for name, default in defaults.items()}
    change, share = rng.choice(list(CHANGES)).item(), SHARES[rng.integers(len(SHARES))]
    new = Problem(family, drawn, change, share, KEPT_ROWS[rng.integers(len(KEPT_ROWS))])
    if like is None:
        return new
    changed = rng.choice([*drawn, "change", "share", "rows"]).item()
    if changed in drawn:
        return like._replace(parameters={**like.parameters, changed: drawn[changed]})
    return like._replace(**{changed: getattr(new, changed)})


def _near(rng: np.random.Generator, name: str, default: float) -> float:
    """A number within a factor of four of the default, of its kind; a share stays below 1.

    A default of 0 is a special case: it is drawn as often as a number near 1.
    """
    if default == 0:
        return float(rng.integers(2) * 4.0 ** rng.uniform(-1, 1))
    number = default * 4.0 ** rng.uniform(-1, 1)
    if name == "share":
        return min(number, 0.95)
    return max(1, round(number)) if isinstance(default, int) else number


def score(problem: Problem, seconds: float) -> Score:
    """Solve a problem in both ways; the other one may take so many seconds."""
    costs = problem.costs()
    wish: dict[str, Any] = {"threads": 1, "backend": "cpu"}
    if problem.share is not None:
        values = costs if problem.is_dense else costs.data
        limit = np.quantile(values, problem.share).astype(values.dtype).item()
        wish |= {"cardinality": "any", "cost_limit": limit}
    ways: list[Callable[[], Any]] = [
        partial(gm.assign, costs, **wish),
        partial(gm.assign, costs, algorithm=RIVAL, time_limit=seconds, **wish),
    ]
    if not problem.is_dense:
        found = [way() for way in ways]
        readings = [
            sum(phase.get("scans", 0) for phase in a.stats["trace"]) / costs.nnz for a in found
        ]
        return Score(readings[0], readings[1] if found[1].proven else math.inf)
    if problem.share is None:
        ways.append(partial(linear_sum_assignment, costs))
    ours, *others = (_milliseconds(way) for way in ways)
    return Score(ours, min(others), SHORT)


def _milliseconds(solve: Callable[[], Any]) -> float:
    """The least processor time of three calls, or of two that take long; the first may compile."""
    taken: list[float] = []
    while len(taken) < 2 or (len(taken) < 3 and sum(taken) < 300):
        begin = time.process_time()
        solve()
        taken.append(1e3 * (time.process_time() - begin))
    return min(taken)


def search(
    minutes: float, seed: int, size: int, is_dense: bool = False, seconds: float = 10.0
) -> Iterator[tuple[Problem, Score]]:
    """Yield problems with their scores, until the time is over."""
    rng, worst = np.random.default_rng(seed), list[tuple[Problem, Score]]()
    deadline, seen = time.monotonic() + 60 * minutes, set[str]()
    while time.monotonic() < deadline:
        like = worst[rng.integers(len(worst))][0] if worst and rng.random() < 0.5 else None
        problem = draw(rng, size, like, is_dense)
        if repr(problem) in seen:
            continue
        seen.add(repr(problem))
        found = problem, score(problem, seconds)
        worst = sorted([*worst, found], key=lambda one: -one[1].ratio)[:KEPT]
        yield found


def main(minutes: float, seed: int, size: int, is_dense: bool, out: Path | None) -> None:
    """Search, print the worst problems, and write them."""
    found = sorted(search(minutes, seed, size, is_dense), key=lambda one: -one[1].ratio)
    worst = [
        {**problem._asdict(), **score._asdict(), "ratio": score.ratio}
        for problem, score in found[:KEPT]
    ]
    for one in worst:
        told = ", ".join(f"{name} {value:g}" for name, value in one["parameters"].items())
        print(f"{one['ratio']:6.2f} = {one['ours']:.1f} / {one['other']:.1f}  {one['family']} "
              f"({told}), {one['change']}, limit {one['share']}, rows {one['rows']}")  # fmt: skip
    print(f"{len(found)} problems")
    if out:
        out.write_text(json.dumps({"problems": len(found), "worst": worst}, indent=1) + "\n")
