"""``gpumatch assign``: a cheapest assignment for a matrix of costs, with its certificate."""

from __future__ import annotations

import argparse
import contextlib
import functools
import math
from typing import TYPE_CHECKING, Any

from gpumatch.cli import distributed, running
from gpumatch.dispatch.registry import option_names

if TYPE_CHECKING:
    from gpumatch.running.control import Control


def add_to(commands: Any) -> None:
    text = "assign rows to columns at least total cost"
    description = "Assign rows to columns at least total cost, or at the least largest cost."
    assign = commands.add_parser("assign", help=text, description=description, allow_abbrev=False)
    add = assign.add_argument
    text = (
        "costs: .npy, .csv, or sparse (.mtx, .npz, a list of edges, a SuiteSparse matrix, ...), "
        "which forbids what is not stored; or -"
    )
    running.add_source(assign, text, is_needed=False)
    add_points(assign)
    text = "what is to be least: sum, or bottleneck: the largest cost of a pair (default: sum)"
    add("--objective", default="sum", help=text)
    add("--maximize", action="store_true", help="look for the greatest total, or least cost")
    add("--cardinality", default="full", help="full, maximum or any (default: full)")
    text = "leave out a pair that costs more (with --maximize: that gains less)"
    add("--cost-limit", type=number, metavar="COST", help=text)
    running.add_own_options(assign, "assignment")
    running.add_run_options(assign, "an assignment")
    running.add_proof(assign)
    distributed.add_to(assign)
    assign.set_defaults(command=_assign)


def add_points(command: argparse.ArgumentParser) -> None:
    """The options that name points in place of costs."""
    add = command.add_argument
    text = "instead of costs: files with the points of rows and columns (.npy, .csv)"
    add("--points", nargs=2, metavar=("X", "Y"), help=text)
    text = "sqeuclidean (default), euclidean, cityblock, chebyshev or cosine: what a pair costs"
    add("--metric", help=text)


_WISHES = ("objective", "maximize", "cardinality", "cost_limit")


def number(text: str) -> float:
    """An int if it is written as one, because integers are exact."""
    with contextlib.suppress(ValueError):
        return int(text)
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None


def _assign(options: argparse.Namespace) -> int:
    import gpumatch
    from gpumatch.costs import as_costs
    from gpumatch.running.control import Control

    _check_source(options)
    for source in options.points or [running.file_of(options.source)]:
        running.refuse_to_overwrite(source, options.output)
        running.refuse_to_overwrite(source, options.proof)
    if options.points:
        options.source = " ".join(options.points)
    clock = Control()
    wish = {name: getattr(options, name) for name in _WISHES}
    if options.distributed:
        del wish["objective"]
        return _assign_on_ranks(options, wish, clock)
    with clock.part("read"):
        costs = as_costs(read_points(options)) if options.points else running.costs_of(options)
    solve = functools.partial(gpumatch.assign, costs)
    assignment = running.run(
        solve, options, costs.shape, wish, option_names("assignment"), costs.labels
    )
    certificate = running.certificate(costs, assignment, clock)
    running.save_proof(costs, assignment, options)
    return _tell(options, (costs.shape, costs.nnz), assignment, certificate, clock)


def _check_source(options: argparse.Namespace) -> None:
    """Check that there is either a source of costs or points, and that a proof can be written."""
    if options.proof is not None and options.distributed:
        raise ValueError("--distributed writes no proof")
    if options.proof is not None and options.objective not in _CERTIFICATES:
        raise ValueError(f"--proof is not for the objective {options.objective!r}")
    check_points(options)


def check_points(options: argparse.Namespace) -> None:
    """Check that there is either a source of costs, or points, and no option of the other."""
    if options.points:
        if options.source is not None:
            raise ValueError(f"--points takes the place of costs, but there is {options.source}")
        running.refuse_how(options, "--points")
    elif options.source is None:
        raise ValueError("there are no costs: name their file, or pass --points X Y")
    elif options.metric is not None:
        raise ValueError("--metric is for --points only")


def read_points(options: argparse.Namespace, rows: Any = None) -> Any:
    """The costs of the points in two files; `rows` gives the slice of this rank of so many."""
    import numpy as np

    from gpumatch import io
    from gpumatch.costs import PointCosts

    sides = [io.read_costs(path) for path in options.points]
    for path, side in zip(options.points, sides):
        if not isinstance(side, np.ndarray):
            raise ValueError(f"{path} holds no array of points and coordinates")
    X, Y = sides
    with contextlib.ExitStack() as naming:
        for path, side in zip(options.points, sides):
            naming.enter_context(running.naming_nan(path, side))
        return PointCosts(
            X if rows is None else X[rows(len(X))], Y, options.metric or "sqeuclidean"
        )


def _assign_on_ranks(options: argparse.Namespace, wish: dict[str, Any], clock: Control) -> int:
    import numpy as np

    from gpumatch.distributed import assign

    def load() -> Any:
        if options.source.lower().endswith(".npy"):
            return np.load(options.source, mmap_mode="r", allow_pickle=False)
        return running.read_costs(options)

    with clock.part("read"):
        block, shape, entries = distributed.read(
            options,
            option_names("assignment"),
            load,
            functools.partial(read_points, options) if options.points else None,
        )
    how = {"algorithm": options.algorithm, **distributed.how(options)}
    solve = functools.partial(assign, block, **how, **wish)
    try:
        assignment, certificate, proven = distributed.run(solve, block, options, clock)
    except ValueError as error:
        if options.points or "NaN" not in str(error) or distributed.is_silent():
            raise
        with running.naming_nan(options.source, load()):
            raise
    if assignment is not None:
        return _tell(options, (shape, entries), assignment, certificate, clock)
    return running.code_of(proven)


def _tell(
    options: argparse.Namespace,
    size: tuple[tuple[int, int], int],
    assignment: Any,
    certificate: dict[str, float] | None,
    clock: Control,
) -> int:
    """Print the report; the exit code."""
    report = _report(options, *size, assignment, certificate, clock)
    running.tell(report, _lines(report, options.objective), options)
    return running.code_of(assignment.proven)


def _report(
    options: argparse.Namespace,
    shape: tuple[int, int],
    entries: int,
    assignment: Any,
    certificate: dict[str, float] | None,
    clock: Control,
) -> dict[str, Any]:
    """What ``--json`` prints."""
    rows, columns = shape
    stats = assignment.stats
    gap = getattr(assignment, "gap", math.inf)
    return {
        "source": options.source,
        "rows": rows,
        "columns": columns,
        "entries": entries,
        "maximize": assignment.maximize,
        "cardinality": assignment.cardinality,
        "cost_limit": options.cost_limit,
        "size": assignment.size,
        "objective": assignment.objective,
        "gap": gap if math.isfinite(gap) else None,
        "rows_left": rows - assignment.size,
        "columns_left": columns - assignment.size,
        "proven": assignment.proven,
        "certificate": certificate,
        "algorithm": stats["algorithm"],
        "backend": stats["backend"],
        "phases": stats["phases"],
        "levels": stats["levels"],
        "seconds": running.seconds_of(stats, clock),
        "output": options.output,
        "pairs": running.pairs(assignment, options),
    }


_CERTIFICATES = {
    "sum": "dual prices of total {bound}, checked on {edges} pairs",
    "bottleneck": "a cover of {bound} vertices of all better pairs, checked on {edges} pairs",
}


def _lines(report: dict[str, Any], objective: str) -> dict[str, Any]:
    proven, gap = report["proven"], report["gap"]
    gaps = {"gap": "unknown" if gap is None else gap} if objective == "sum" else {}
    return {
        "source": report["source"],
        "costs": "{rows} rows, {columns} columns, {entries} entries".format_map(report),
        "assignment": f"{report['size']} pairs, {'optimal' if proven else 'not proven optimal'}",
        "objective" if objective == "sum" else objective: report["objective"],
        **gaps,
        "left": "{rows_left} rows, {columns_left} columns".format_map(report),
        "algorithm": "{algorithm} on {backend}".format_map(report),
        "certificate": _CERTIFICATES[objective].format_map(report["certificate"])
        if proven
        else "none",
    }
