"""Transport problems on the device, and what is found for them back on the host."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from gpumatch.cpu.transport import dense as host_dense
from gpumatch.cpu.transport import engine as host
from tests.cpu.transport.problems import check, check_violator

ARRAYS = "supply", "demand", "costs", "forbidden", "indptr", "indices", "data", "row_limit"


def short_launches(rounds):
    """The defaults of a tuning whose launches have so many rounds of bids."""
    from gpumatch.cuda.transport.sparse.auction import Tuning

    return tuple(Tuning()._replace(a_launch=rounds))


def take_small_cores(monkeypatch):
    """Have the host take cores of small problems."""
    from gpumatch.cuda.transport import all_pairs, dense

    monkeypatch.setattr(dense, "WHOLE", 0)
    monkeypatch.setattr(all_pairs, "ON_HOST", 0)
    tuning = host_dense.Tuning(
        whole=0, features=2, row_arcs=2, col_arcs=1, more_arcs=2, loose=0, spread=9
    )  # fmt: skip
    monkeypatch.setattr(host_dense, "DEFAULT", tuning)


def on_device(cp, task):
    """The same task with arrays of the device, whose last steps are the host's."""
    arrays = {
        name: None if getattr(task, name) is None else cp.asarray(getattr(task, name))
        for name in ARRAYS
    }
    initial = None if task.initial is None else tuple(map(cp.asarray, task.initial))
    return dataclasses.replace(task, **arrays, initial=initial, fallback=host.solve)


def on_host(solution):
    """The same solution with arrays of the host; all of them were on the device."""
    names = ["rows", "cols", "flow", "row_dual", "col_dual"]
    if solution.infeasible_rows is not None:
        names.append("infeasible_rows")
    arrays = {name: getattr(solution, name).get() for name in names}
    assert all(array.dtype == np.int64 for array in (arrays["rows"], arrays["flow"]))
    return dataclasses.replace(solution, **arrays)


def proved(cp, solve, task):
    """The solution on the device, which proves itself, and its cost; None if it is infeasible."""
    solution = on_host(solve(on_device(cp, task)))
    found = check(task, solution, 0 if task.is_integer else 1e-9)
    if solution.infeasible_rows is not None:
        assert not solution.is_optimal
        check_violator(task, solution.infeasible_rows)
    else:
        assert solution.is_optimal
    return solution, found


def confirm(cp, solve, task, best):
    """The solution on the device, which proves itself and costs `best`; None means infeasible."""
    solution, found = proved(cp, solve, task)
    assert (found is None) == (best is None)
    assert best is None or math.isclose(found, best, rel_tol=1e-9, abs_tol=1e-7)
    return solution
