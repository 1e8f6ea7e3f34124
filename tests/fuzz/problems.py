"""An assignment problem with its options, held as a list of its allowed pairs."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

import numpy as np
from scipy import sparse

from tests.fuzz import containers, sizes, values
from tests.fuzz.trials import Trial

FORBIDDEN = (0.0, 0.0, 0.0, 0.02, 0.3, 0.7, 0.95)


@dataclasses.dataclass(frozen=True)
class Problem:
    """Allowed pairs, sorted by row and column, and what is asked for.

    `limit` is None, a number, or an array with a number for each row.
    """

    shape: tuple[int, int]
    rows: np.ndarray
    cols: np.ndarray
    values: np.ndarray
    maximize: bool = False
    cardinality: str = "full"
    limit: Any = None

    @property
    def is_complete(self) -> bool:
        return self.rows.size == math.prod(self.shape)

    @property
    def is_integer(self) -> bool:
        return self.values.dtype.kind in "biu"

    @property
    def is_exact(self) -> bool:
        """Whether everything is an integer; limits of "maximum" only forbid pairs."""
        if self.cardinality == "maximum":
            return self.is_integer
        limits = self.given_limits
        if limits.dtype.kind == "f":
            limits = limits[np.isfinite(limits)]
        return self.is_integer and (limits.dtype.kind != "f" or bool((limits % 1 == 0).all()))

    @property
    def given_limits(self) -> np.ndarray:
        """The limit or the limits as they are given; 0 where there is none."""
        return np.asarray(0 if self.limit is None else self.limit)

    @property
    def has_limit(self) -> bool:
        """Whether some limit is finite; inf is no limit."""
        return self.limit is not None and bool(np.isfinite(self.given_limits.astype(float)).any())

    @property
    def is_free(self) -> bool:
        """Whether a vertex may stay unmatched although it has an allowed pair."""
        return self.cardinality == "any" or (self.has_limit and self.cardinality == "full")

    @property
    def options(self) -> dict[str, Any]:
        """Those of `gpumatch.assign`, as far as they are not its defaults."""
        found: dict[str, Any] = {}
        if self.maximize:
            found["maximize"] = True
        if self.cardinality != "full":
            found["cardinality"] = self.cardinality
        if self.limit is not None:
            found["cost_limit"] = self.limit
        return found

    @functools.cached_property
    def costs(self) -> np.ndarray:
        """The values to be minimised, as int64 or float64."""
        kind = np.int64 if self.is_exact else np.float64
        return self.values.astype(kind) * (-1 if self.maximize else 1)

    @functools.cached_property
    def limits(self) -> np.ndarray:
        """A limit for each row, to be minimised; 0 where there is none.

        "maximum" asks `within` instead.
        """
        kind = np.int64 if self.is_exact else np.float64
        limits = self.given_limits if self.has_limit else np.zeros((), np.int64)
        if limits.dtype.kind == "f" and kind == np.int64:
            limits = np.where(np.isfinite(limits), limits, 2.0**62)
        signed = limits.astype(kind) * (-1 if self.maximize else 1)
        return np.broadcast_to(signed, self.shape[:1])

    def within(self) -> Problem:
        """The pairs that a limit of "maximum" leaves."""
        if not self.has_limit:
            return self
        limits = np.broadcast_to(np.asarray(self.limit), self.shape[:1])[self.rows]
        if self.is_integer and limits.dtype.kind == "f":
            limits = limits.astype(object)
        kept = (self.values >= limits) if self.maximize else (self.values <= limits)
        return self.of_pairs(kept.astype(bool))

    def of_pairs(self, kept: np.ndarray) -> Problem:
        return dataclasses.replace(
            self, rows=self.rows[kept], cols=self.cols[kept], values=self.values[kept]
        )

    def matrix(self) -> np.ndarray:
        """The dense matrix; infinities forbid, which integers have not."""
        if self.is_complete:
            return self.values.reshape(self.shape)
        far = -math.inf if self.maximize else math.inf
        full = np.full(self.shape, far, self.values.dtype if not self.is_integer else np.float64)
        full[self.rows, self.cols] = self.values
        return full

    def csr(self) -> sparse.csr_array:
        """The stored pairs, zeros included."""
        indptr = np.zeros(self.shape[0] + 1, np.int64)
        np.cumsum(np.bincount(self.rows, minlength=self.shape[0]), out=indptr[1:])
        return sparse.csr_array((self.costs, self.cols, indptr), shape=self.shape)

    def places(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """Where these pairs stand in the list; -1 for a pair that is not allowed."""
        width = max(1, self.shape[1])
        keys = self.rows.astype(np.int64) * width + self.cols
        wanted = np.asarray(rows, np.int64) * width + cols
        places = np.searchsorted(keys, wanted)
        found = places < keys.size
        found[found] = keys[places[found]] == wanted[found]
        return np.where(found, places, -1)

    def net(self, rows: np.ndarray, cols: np.ndarray) -> Any:
        """The sum of c - L over pairs, to be minimised, rounded at most once."""
        paid = self.costs[self.places(rows, cols)]
        base = self.limits[rows] if self.is_free else np.zeros(0, paid.dtype)
        return total([*paid.tolist(), *(-base).tolist()], self.is_exact)

    def allowance(self, *pairs: tuple[np.ndarray, np.ndarray], dual: float = 0.0) -> float:
        """What rounding may take from an optimum: 0 for integers.

        It depends on the costs of the pairs in use, and on duals only as far as any optimal
        assignment of such costs can need them.
        """
        if self.is_exact:
            return 0
        used = [abs(self.costs[self.places(*pair)]).max(initial=0) for pair in pairs]
        used += [abs(self.limits[np.isfinite(self.limits)]).max(initial=0)]
        n, most = max(1, min(self.shape)), float(max(used))
        scale = max(most, min(dual, 4 * (n + 1) * most))
        return 32 * 2.0**-52 * n * scale + 5e-324


def total(numbers: list[Any], is_exact: bool) -> Any:
    if is_exact:
        return sum(map(int, numbers))
    return math.fsum(numbers)


# -- drawing ---------------------------------------------------------------------------------------


def dense_problem(
    trial: Trial, most: int = 2**21 + 2**15, dtype: Any = None, *, plain: bool = False
) -> Problem:
    """A dense problem; with `plain`, a full one without limits."""
    shape = sizes.dense_shape(trial, most)
    dtype = np.dtype(dtype) if dtype is not None else values.drawn_dtype(trial)
    rows, cols = (part.ravel() for part in np.indices(shape))
    kept = np.ones(rows.size, bool)
    if dtype.kind == "f" and trial.chance(0.5):
        kept = _allowed(trial, rows, cols, shape)
    trial.sized(rows.size)
    found = values.drawn(trial, rows, cols, shape, dtype)
    return _asked(trial, Problem(shape, rows[kept], cols[kept], found[kept]), plain)


def sparse_problem(trial: Trial, most: int = 2**20 + 2**12, *, plain: bool = False) -> Problem:
    nrows, ncols, entries = sizes.sparse_shape(trial, most)
    cells = nrows * ncols
    if cells <= 4 * entries or cells <= 2**16:
        keys = trial.rng.permutation(cells)[:entries]
    else:
        keys = trial.rng.integers(0, cells, entries)
    if trial.chance(0.7) and entries >= max(nrows, ncols):  # a full assignment exists
        k, both = np.arange(max(nrows, ncols)), max(1, min(nrows, ncols))
        ends = trial.rng.permutation(nrows)[k % max(1, nrows)], k % max(1, ncols)
        planted = ends[0][:both].astype(np.int64) * ncols + ends[1][:both]
        keys = np.concatenate([keys[: max(0, entries - planted.size)], planted])
    keys = np.unique(keys.astype(np.int64))
    rows, cols = keys // max(1, ncols), keys % max(1, ncols)
    trial.sized(keys.size)
    dtype = values.drawn_dtype(trial)
    if dtype == np.float16:
        dtype = np.dtype(np.float64)
    found = values.drawn(trial, rows, cols, (nrows, ncols), dtype)
    return _asked(trial, Problem((nrows, ncols), rows, cols, found), plain)


def _allowed(trial: Trial, rows: Any, cols: Any, shape: tuple[int, int]) -> np.ndarray:
    """Which pairs of a matrix are not forbidden: one, some, or those of some rows and columns."""
    kind = trial.pick(("one", "share", "planted", "lines"), (3, 4, 4, 1))
    trial.note(forbidden=kind)
    kept = np.ones(rows.size, bool)
    if not rows.size:
        return kept
    if kind == "one":
        kept[trial.pick((0, rows.size - 1, trial.integer(0, rows.size - 1)))] = False
    elif kind == "lines":
        kept &= ~(trial.rng.random(shape[0]) < 0.1)[rows]
        kept &= ~(trial.rng.random(shape[1]) < 0.1)[cols]
    else:
        kept &= trial.rng.random(rows.size) >= trial.pick(FORBIDDEN)
        if kind == "planted":  # a full assignment exists
            least = min(shape)
            ends = trial.rng.permutation(shape[0])[:least], trial.rng.permutation(shape[1])[:least]
            kept[ends[0] * shape[1] + ends[1]] = True
    return kept


def _asked(trial: Trial, problem: Problem, plain: bool) -> Problem:
    maximize = trial.chance(0.4)
    cardinality = "full" if plain else trial.pick(("full", "maximum", "any"), (5, 3, 2))
    limit = None
    if not plain and trial.chance(0.45):
        limit = _limit(trial, problem, maximize, cardinality)
    trial.note(shape=problem.shape, maximize=maximize, cardinality=cardinality, cost_limit=limit)
    return dataclasses.replace(problem, maximize=maximize, cardinality=cardinality, limit=limit)


def _limit(trial: Trial, problem: Problem, maximize: bool, cardinality: str) -> Any:
    """A limit among the costs, between or beyond them, for all or for each row."""
    found = problem.values
    if found.size == 0:
        return trial.pick((0, 1.5, None))
    if found.dtype.kind == "b":
        found = found.astype(np.int64)
    sample = found[trial.rng.integers(0, found.size, max(1, problem.shape[0]))]
    kind = trial.pick(("cost", "zero", "fraction", "far", "array", "inf"), (4, 1, 1, 1, 4, 0.5))
    if kind == "cost":
        one = sample[0]
        return one.item() if trial.chance(0.7) else one
    if kind == "zero":
        return 0
    if kind == "fraction":
        return float(sample[0]) / 2 + 0.25 if abs(float(sample[0])) < 2**50 else 0.5
    if kind == "far":
        return int(trial.pick((-1000, 1000)))
    none = -math.inf if maximize else math.inf
    if kind == "inf":
        return none
    if sample.size != problem.shape[0]:
        return None
    if trial.chance(0.3):
        return sample  # of the dtype of the costs
    if sample.dtype.kind != "f":
        return sample.astype(np.int64)
    limits = sample.astype(np.float64)
    if cardinality == "maximum" and trial.chance(0.5):
        limits[trial.rng.random(limits.size) < 0.3] = none
    return limits


def given(trial: Trial, problem: Problem, *, as_sparse: bool) -> Any:
    """The problem's costs in some container."""
    if as_sparse:
        return containers.sparse_form(
            trial, problem.rows, problem.cols, problem.values, problem.shape
        )
    return containers.dense(trial, problem.matrix())
