"""Batches of transport problems: each is solved by itself, and threads take one problem each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from gpumatch.costs import CostBatch, as_costs
from gpumatch.costs.capacities import PairCapacities
from gpumatch.dispatch.backends import check_algorithm, check_backend
from gpumatch.numeric.arrays import has_length
from gpumatch.problems import capacities, small_transports, transport
from gpumatch.problems.flows import InfeasibleMassesError
from gpumatch.problems.masses import Bounds, Masses, masses_of
from gpumatch.problems.request import Request
from gpumatch.problems.small_transports import SmallResults
from gpumatch.results.transport import BatchTransport, Transport
from gpumatch.running.control import Control, InterruptsStop, Progress, attach_result

__all__ = ["solve"]

BEAT = 0.05
"""The seconds between two ticks while threads solve problems."""


def solve(
    problems: CostBatch, supply: Any, demand: Any, capacity: Any, request: Request
) -> BatchTransport:
    """The flows of all problems. `capacity` is that of pairs, or None.

    Raises
    ------
    InfeasibleMassesError, TypeError, ValueError
        The error of the first problem that has one, if errors are raised.
    """
    check_algorithm("transport", request.algorithm)
    if request.backend != "auto":
        check_backend(request.backend)
    masses = _Masses(problems, supply, demand)
    batch, control = _Batch(problems, masses, capacity, request), request.control
    try:
        batch.run()
    except KeyboardInterrupt as exc:
        attach_result(exc, batch.result())
        raise
    finally:
        if control.shows_bar:
            control.close(batch.shipped)
    return batch.result()


class _Masses:
    """The supplies and demands of all problems. `masses[k]` are those of problem k."""

    def __init__(self, problems: CostBatch, supply: Any, demand: Any) -> None:
        self._problems = problems
        self.given = supply, demand
        for side, (name, mass) in enumerate((("supply", supply), ("demand", demand))):
            if isinstance(mass, tuple):
                for part, one in enumerate(mass):
                    self._check(f"{name}[{part}]", one, side)
            else:
                self._check(name, mass, side)

    def _check(self, name: str, mass: Any, side: int) -> None:
        """Check that there is a mass for each problem, if there is not one for all."""
        count, width = len(self._problems), self._problems.shape[side]
        if _is_list(mass):
            if len(mass) != count:
                raise ValueError(f"{name} must have {count} parts, one a problem; got {len(mass)}")
            return
        shape: Any = getattr(mass, "shape", ())
        if len(shape) == 2 and not (shape[0] == count and shape[1] in (1, width)):
            raise ValueError(
                f"{name} of a batch must have the shape {(count, width)}; got {tuple(shape)}"
            )

    def __getitem__(self, k: int) -> tuple[Any, Any]:
        supply, demand = (self._of(mass, side, k) for side, mass in enumerate(self.given))
        return supply, demand

    def _of(self, mass: Any, side: int, k: int) -> Any:
        if isinstance(mass, tuple):
            return tuple(self._of(part, side, k) for part in mass)
        if _is_list(mass):
            return mass[k]
        shape: Any = getattr(mass, "shape", ())
        if len(shape) != 2:
            return mass
        return mass[k, 0] if shape[1] == 1 else mass[k, : int(self._problems.sizes[k, side])]


def _is_list(mass: Any) -> bool:
    """True if this is a list of masses, one a problem, and not a list of numbers."""
    return isinstance(mass, list) and bool(mass) and has_length(mass[0])


class _Batch:
    """A batch in work: its problems, and what has been found so far."""

    def __init__(
        self, problems: CostBatch, masses: _Masses, capacity: Any, request: Request
    ) -> None:
        self.problems, self.masses, self.request = problems, masses, request
        self.capacity = capacity
        if _is_list(capacity) and len(capacity) != len(problems):
            raise ValueError(f"pair_capacity must have {len(problems)} parts; got {len(capacity)}")
        wanted, shape = (len(problems), *problems.shape), getattr(capacity, "shape", ())
        if len(shape) == 3 and tuple(shape) != wanted:
            raise ValueError(
                f"pair_capacity of a batch must have the shape {wanted}; got {tuple(shape)}"
            )
        self._small: SmallResults | None = None
        self.is_solved = np.zeros(len(problems), bool)  # by the kernels for small problems
        self.found: dict[int, Transport] = {}
        self.errors: dict[int, Exception] = {}
        self.is_stopped = False
        self._units = np.zeros(len(problems), np.int64)

    @property
    def shipped(self) -> int:
        """The units shipped so far."""
        return int(self._units.sum())

    def run(self) -> None:
        """Solve the problems, by several threads if the caller allows them."""
        control, count = self.request.control, len(self.problems)
        if control.tick(0):
            return
        self._solve_small()
        left = (~self.is_solved).nonzero()[0].tolist()
        if control.stopped or not left:
            return
        numbers = iter(left)
        # Kernels of a device fill it by themselves, and threads of the host would only take turns.
        is_on_device = self.request.backend == "cuda" or self.problems.xp is not np
        if self.request.threads == 1 or count < 2 or is_on_device:
            self._solve(numbers, 1, lambda: control.tick(self.shipped))
        else:
            self._solve_in_threads(numbers, min(self.request.threads, count))
        if self.errors and self.request.on_error == "raise":
            raise self.errors[min(self.errors)] from None

    def _solve_small(self) -> None:
        """Solve the small dense problems by compiled calls for many of them each."""
        request = self.request
        is_plain = request.algorithm in ("auto", "engine") and request.backend in ("auto", "cpu")
        if not is_plain or self.capacity is not None:
            return
        with InterruptsStop(request.control) as stop:
            small = small_transports.solve(self.problems, *self.masses.given, request)
        if small is not None:
            self._small, self.is_solved = small, small.is_solved
            self._units[self.is_solved] = small.units_of(self.is_solved)
        stop.bring(None)

    def _solve_in_threads(self, numbers: Iterator[int], threads: int) -> None:
        """Solve problems by threads, while this one reports what they do."""
        control = self.request.control
        each = max(self.request.threads // len(self.problems), 1)
        with ThreadPoolExecutor(threads) as pool:
            jobs = [
                pool.submit(self._solve, numbers, each, lambda: self.is_stopped)
                for _ in range(threads)
            ]
            try:
                while wait(jobs, BEAT).not_done:
                    if control.tick(self.shipped):
                        self.is_stopped = True
            finally:
                self.is_stopped = True
        for job in jobs:
            job.result()

    def _solve(self, numbers: Iterator[int], threads: int, must_stop: Callable[[], bool]) -> None:
        """Solve problems of these numbers, until one has an error that is to be raised."""
        raises = self.request.on_error == "raise"
        for k in numbers:
            if must_stop() or (raises and self.errors):
                return
            try:
                self._solve_one(k, threads, must_stop)
            except (ValueError, TypeError) as exc:
                if exc is self.request.control.callers_error:
                    raise
                self.errors[k] = _named(exc, k)
            except KeyboardInterrupt as exc:
                best = getattr(exc, "result", None)
                if best is not None:
                    self.found[k] = best
                raise

    def _solve_one(self, k: int, threads: int, must_stop: Callable[[], bool]) -> None:
        def tell(progress: Progress) -> bool:
            self._units[k] = progress.matched
            return must_stop()

        request = self.request._replace(sizes=None, threads=threads, control=Control(callback=tell))
        costs, capacity = self.problems[k], self._capacity_of(k)
        if capacity is None:
            self.found[k] = transport.solve(costs, *self.masses[k], request)
        else:
            self.found[k] = capacities.solve(costs, *self.masses[k], capacity, request)
        self._units[k] = int(self.found[k].flow_units.sum())

    def _capacity_of(self, k: int) -> Any:
        """The capacity of pairs of problem k."""
        capacity = self.capacity
        if _is_list(capacity):
            return capacity[k]
        if getattr(capacity, "ndim", 0) == 3:
            nrows, ncols = self.problems.sizes[k].tolist()
            return capacity[k, :nrows, :ncols]
        return capacity

    def result(self) -> BatchTransport:
        """The result so far. A problem that is not solved has an empty flow."""
        request = self.request
        stats = {"algorithm": "engine", "backend": "cpu"}
        for one in list(self.found.values())[:1]:
            stats = {name: one.stats[name] for name in stats}
        small, arrays = self._small, None
        results: SmallResults | list[Transport]
        if small is not None and self.is_solved.all():
            results, arrays = small, small.arrays()
        else:
            results = [self._result_of(k) for k in range(len(self.problems))]
        return BatchTransport(
            results,
            arrays=arrays,
            shape=self.problems.shape,
            sizes=self.problems.sizes,
            errors=self.errors,
            maximize=request.maximize,
            cardinality=request.cardinality,
            cost_limit=request.cost_limit,
            stats={**stats, **request.control.statistics()},
        )

    def _result_of(self, k: int) -> Transport:
        if self._small is not None and self.is_solved[k]:
            return self._small[k]
        return self.found.get(k) or self._nothing(k)

    def _nothing(self, k: int) -> Transport:
        """An empty flow of a problem, which proves nothing."""
        shape = tuple(self.problems.sizes[k].tolist())
        is_integer, xp, units, given = True, self.problems.xp, None, self._capacity_of(k)
        try:
            costs = as_costs(self.problems[k])
            is_integer = costs.is_integer
            masses = masses_of(*self.masses[k], (shape[0], shape[1]))
            if given is not None:
                bounds = PairCapacities(given, self.problems[k], costs.to_host())
                masses, units = capacities.in_units(bounds, masses)
        except (ValueError, TypeError):
            rows, cols = (np.zeros(length, np.int64) for length in shape)
            masses = Masses(Bounds(rows, rows), Bounds(cols, cols), 1, np.dtype(np.int64))
        number = np.int64 if is_integer else np.float64
        request, none = self.request, xp.zeros(0, np.int64)
        return Transport(
            none,
            none,
            none,
            *(xp.zeros(length, number) for length in shape),
            row_bounds=tuple(map(xp.asarray, masses.rows)),
            col_bounds=tuple(map(xp.asarray, masses.cols)),
            pair_capacity=units,
            unit=masses.unit,
            dtype=masses.dtype,
            pair_costs=xp.zeros(0, number),
            objective=0 if is_integer and masses.are_whole else 0.0,
            gap=np.inf,
            proven=False,
            maximize=request.maximize,
            cardinality=request.cardinality,
            cost_limit=request.cost_limit,
        )


def _named(error: Exception, k: int) -> Exception:
    """The error with the number of its problem."""
    if isinstance(error, InfeasibleMassesError):
        return error.of_problem(k)
    return type(error)(f"problem {k}: {error}")
