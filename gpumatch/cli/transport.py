"""``gpumatch transport``: a cheapest flow from supplies to demands, with its certificate."""

from __future__ import annotations

import argparse
import contextlib
import math
import re
from typing import TYPE_CHECKING, Any

from gpumatch.cli import running
from gpumatch.cli.assign import number

if TYPE_CHECKING:
    from gpumatch.results.transport import Transport


def add_to(commands: Any) -> None:
    text = "ship supplies to demands at least total cost"
    description = "Ship what rows have to where columns take it, at least total cost."
    transport = commands.add_parser(
        "transport", help=text, description=description, allow_abbrev=False
    )
    add = transport.add_argument
    text = "what a unit costs: .npy, .csv, or sparse (.mtx, .npz, a list of edges, ...), or -"
    running.add_source(transport, text)
    text = "what each row has: a number, or a file with one for each row (.npy, .csv, .txt)"
    add("--supply", required=True, metavar="MASS", help=text)
    text = "what each column takes, in the same way"
    add("--demand", required=True, metavar="MASS", help=text)
    add("--maximize", action="store_true", help="look for the greatest total")
    add("--cardinality", default="full", help="full, maximum or any (default: full)")
    text = "leave out pairs that cost more (with --maximize: that gain less)"
    add("--cost-limit", type=number, metavar="COST", help=text)
    text = "the most that a pair carries: a number, or a file with one for each pair"
    add("--pair-capacity", metavar="MASS", help=text)
    add("--algorithm", default="auto", help="a name of `gpumatch algorithms` (default: auto)")
    add("--backend", default="auto", help="auto, cpu or cuda")
    add("--threads", type=int, help="CPU threads (default: all)")
    add("--seed", type=int, default=0, help="fixes free choices (default: 0)")
    text = "write the flow: a matrix (.npy, .mtx), pairs (.csv), or all arrays (.npz)"
    add("--output", metavar="FILE", type=running.output, help=text)
    add("--pairs", action="store_true", help="print each pair with flow, too")
    running.add_forms(transport)
    add("--progress", action="store_true", help="show a progress bar on stderr")
    add("--time-limit", type=float, metavar="SECONDS", help="stop with the best so far")
    running.add_proof(transport)
    transport.set_defaults(command=_transport)


_ARGUMENTS = (
    *("maximize", "cardinality", "cost_limit", "algorithm", "backend", "threads", "seed"),
    *("progress", "time_limit"),
)


def _transport(options: argparse.Namespace) -> int:
    import gpumatch
    from gpumatch.running.control import Control

    files = running.file_of(options.source), options.supply, options.demand, options.pair_capacity
    for source in files:
        running.refuse_to_overwrite(source, options.output)
        running.refuse_to_overwrite(source, options.proof)
    clock = Control()
    with clock.part("read"):
        costs = running.costs_of(options)
        supply, demand = masses(options.supply), masses(options.demand)
        given = {"supply": supply, "demand": demand}
        if options.pair_capacity is not None:
            given["pair_capacity"] = capacities(options.pair_capacity, costs.shape)
    how = {name: getattr(options, name) for name in _ARGUMENTS}
    flow = gpumatch.transport(costs, **given, **how)
    _write(options.output, flow)
    certificate = None
    if flow.proven:
        with clock.part("certificate"):
            proof = gpumatch.verify(costs, flow, **given)
        certificate = {"size": proof.size, "bound": proof.bound, "edges": proof.edges}
    running.save_proof(costs, flow, options)
    report = _report(options, costs.nnz, flow, certificate, running.seconds_of(flow.stats, clock))
    running.tell(report, _lines(report), options)
    return running.code_of(flow.proven)


def masses(text: str) -> Any:
    """A number, or the numbers in a file: integers if all of them are written so."""
    import numpy as np

    with contextlib.suppress(argparse.ArgumentTypeError):
        return number(text)
    given = _numbers_in(text)
    is_nan = np.flatnonzero(given != given)
    if is_nan.size:
        raise ValueError(f"{text}: NaN at number {is_nan[0]}")
    return given


def _numbers_in(path: str) -> Any:
    """All numbers in a file, as an array of one dimension."""
    import numpy as np

    if path.lower().endswith(".npy"):
        return np.load(path, allow_pickle=False).ravel()
    with open(path, encoding="utf-8") as file:
        words = re.split(r"[\s,;]+", file.read().strip())
    try:
        return np.array([number(word) for word in words if word])
    except argparse.ArgumentTypeError as exc:
        raise ValueError(f"{path} must hold numbers only: {exc}") from None


def capacities(text: str, shape: tuple[int, int]) -> Any:
    """A number, or the numbers in a file: a matrix of this shape, if there are as many."""
    given = masses(text)
    is_matrix = getattr(given, "size", 1) == math.prod(shape) and getattr(given, "ndim", 0)
    return given.reshape(shape) if is_matrix else given


def _write(path: str | None, flow: Transport) -> None:
    """Write the flow in the form that the ending of the file names."""
    import numpy as np

    if path is None:
        return
    kind = path.lower().rpartition(".")[2]
    if kind == "npy":
        np.save(path, flow.to_matrix().toarray())
    elif kind == "mtx":
        from scipy.io import mmwrite

        mmwrite(path, flow.to_matrix())
    elif kind == "csv":
        rows, cols, units = (part.tolist() for part in flow)
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"{row},{col},{unit!r}\n" for row, col, unit in zip(rows, cols, units))
    else:
        names = ("row_ind", "col_ind", "flow", "row_dual", "col_dual", "objective")
        np.savez(path, shape=flow.shape, **{name: getattr(flow, name) for name in names})


def _report(
    options: argparse.Namespace,
    entries: int,
    flow: Transport,
    certificate: dict[str, float] | None,
    seconds: dict[str, float],
) -> dict[str, Any]:
    """What ``--json`` prints."""
    rows, columns = flow.shape
    pairs = None
    if options.pairs:
        parts = (*flow, flow.pair_costs)
        pairs = [list(pair) for pair in zip(*(part.tolist() for part in parts))]
    return {
        "source": options.source,
        "rows": rows,
        "columns": columns,
        "entries": entries,
        "maximize": flow.maximize,
        "cardinality": flow.cardinality,
        "cost_limit": options.cost_limit,
        "size": flow.size,
        "total": flow.total,
        "objective": flow.objective,
        "gap": flow.gap if math.isfinite(flow.gap) else None,
        "proven": flow.proven,
        "certificate": certificate,
        "algorithm": flow.stats["algorithm"],
        "backend": flow.stats["backend"],
        "phases": flow.stats["phases"],
        "seconds": seconds,
        "output": options.output,
        "pairs": pairs,
    }


def _lines(report: dict[str, Any]) -> dict[str, Any]:
    proven, gap = report["proven"], report["gap"]
    proof = "dual prices of total {bound}, checked on {edges} pairs"
    return {
        "source": report["source"],
        "costs": "{rows} rows, {columns} columns, {entries} entries".format_map(report),
        "flow": "{total} on {size} pairs, ".format_map(report)
        + ("optimal" if proven else "not proven optimal"),
        "objective": report["objective"],
        "gap": "unknown" if gap is None else gap,
        "algorithm": "{algorithm} on {backend}".format_map(report),
        "certificate": proof.format_map(report["certificate"]) if proven else "none",
    }
