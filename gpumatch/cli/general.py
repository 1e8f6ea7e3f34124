"""``gpumatch match --general``: a matching of an undirected graph, with its certificate."""

from __future__ import annotations

import argparse
import functools
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from gpumatch.cli import running
from gpumatch.dispatch.registry import option_names

if TYPE_CHECKING:
    from gpumatch.running.control import Control

_ONLY_WEIGHTS = {"cardinality": None, "minimize": False}
"""The options that are for weights only, and what they are by default."""


def add_to(command: argparse.ArgumentParser) -> None:
    """The options of graphs that need not be bipartite."""
    add = command.add_argument
    text = "match the vertices of the undirected graph whose adjacency matrix this is"
    add("--general", action="store_true", help=text)
    text = "with --general: the best total of the entries' values (algorithm suitor: near it)"
    add("--weights", action="store_true", help=text)
    add("--cardinality", help="with --weights: any (default), maximum or perfect")
    add("--minimize", action="store_true", help="with --weights: the smallest total")
    text = "with --general: both (default), upper or lower: the entries that are edges"
    add("--triangle", help=text)
    running.add_own_options(command, "general-weights")


def refuse(options: argparse.Namespace) -> None:
    """Raise ValueError for an option of graphs where the two sides are matched."""
    for name in ("weights", "triangle", *_ONLY_WEIGHTS, *option_names("general-weights")):
        if getattr(options, name) not in (None, False):
            raise ValueError(f"{running.option_of(name)} is for --general")


def match(options: argparse.Namespace, clock: Control) -> int:
    """Match, write and tell; the exit code."""
    import gpumatch

    _check(options)
    with clock.part("read"):
        matrix = running.read_matrix(options)
        graph, labels = graph_of(matrix)
    how: dict[str, Any] = {"triangle": options.triangle or "both"}
    if options.weights:
        how |= {"cardinality": options.cardinality or "any", "maximize": not options.minimize}
        solve = functools.partial(_without_initial, gpumatch.general.maximum_weight_matching, graph)
    else:
        solve = functools.partial(gpumatch.general.maximum_matching, graph)
    own = option_names("general-weights") if options.weights else ()
    naming = running.naming_nan(options.source, matrix) if options.weights else nullcontext()
    with naming:
        result = running.run(solve, options, graph.shape, how, own, (labels, labels))
    report = _report(options, graph, result, _certificate(options, graph, result, clock), clock)
    running.save_proof(graph, result, options, triangle=options.triangle or "both")
    if labels is not None and report["pairs"]:
        report["pairs"] = [[labels[u], labels[v]] for u, v in report["pairs"]]
    running.tell(report, _lines(report), options)
    return running.code_of(result.proven)


def _without_initial(solve: Any, graph: Any, *, initial: Any, **wish: Any) -> Any:
    return solve(graph, **wish)


def _check(options: argparse.Namespace) -> None:
    if options.distributed:
        raise ValueError("--distributed is not for --general")
    if options.proof is not None and options.algorithm == "suitor":
        raise ValueError("--proof is not for suitor, which proves a bound only")
    if options.init != "auto":
        raise ValueError("--init is not for --general")
    if options.weights and options.initial:
        raise ValueError("--initial is not for --weights")
    if not options.weights:
        for name in (*_ONLY_WEIGHTS, *option_names("general-weights")):
            if getattr(options, name) not in (None, False):
                raise ValueError(f"{running.option_of(name)} is for --weights")


def graph_of(matrix: Any) -> tuple[Any, list[Any] | None]:
    """A square matrix, and the labels of its vertices if the file has labels.

    The rows and the columns of a list of edges are vertices alike.
    """
    import numpy as np
    from scipy.sparse import coo_array

    from gpumatch.interop.sparse import labels_of

    row_labels, col_labels = labels_of(matrix)
    if row_labels is None or col_labels is None:
        n = max(matrix.shape)
        if matrix.shape != (n, n):
            matrix = matrix.copy()
            matrix.resize(n, n)
        return matrix, None
    labels = list(dict.fromkeys([*row_labels, *col_labels]))
    number = {label: k for k, label in enumerate(labels)}
    rows = np.array([number[label] for label in row_labels])
    cols = np.array([number[label] for label in col_labels])
    entries = matrix.tocoo()
    ends = rows[entries.row], cols[entries.col]
    return coo_array((entries.data, ends), shape=(len(labels),) * 2), labels


def _certificate(
    options: argparse.Namespace, graph: Any, result: Any, clock: Control
) -> dict[str, float] | None:
    """What the certificate says; None if a run was stopped before anything was proven."""
    import gpumatch

    if not (result.proven or getattr(result, "vertex_dual", None) is not None):
        return None
    how: dict[str, Any] = {}
    if not options.weights:
        how["triangle"] = options.triangle or "both"
    elif not result.proven and options.algorithm != "suitor":
        how["optimal"] = False  # then the certificate has a bound
    with clock.part("certificate"):
        if options.weights and options.triangle:
            graph = gpumatch.general.Graph(*_weighted(graph, options))
        proof = gpumatch.verify(graph, result, **how)
    return {"size": proof.size, "bound": proof.bound, "edges": proof.edges}


def _weighted(graph: Any, options: argparse.Namespace) -> Any:
    from gpumatch.general.graph import weighted_of

    return weighted_of(graph, triangle=options.triangle, maximize=not options.minimize)


def _report(
    options: argparse.Namespace,
    graph: Any,
    result: Any,
    certificate: dict[str, float] | None,
    clock: Control,
) -> dict[str, Any]:
    """What ``--json`` prints."""
    stats = result.stats
    weighed = {}
    if options.weights:
        weighed = {
            "maximize": result.maximize,
            "cardinality": result.cardinality,
            "objective": result.objective,
            "gap": None if result.gap == float("inf") else result.gap,
        }
    return {
        "source": options.source,
        "vertices": graph.shape[0],
        "entries": graph.nnz,
        "size": result.size,
        "vertices_left": graph.shape[0] - 2 * result.size,
        **weighed,
        "proven": result.proven,
        "certificate": certificate,
        **{key: stats[key] for key in ("algorithm", "backend", "phases")},
        "seconds": running.seconds_of(stats, clock),
        "output": options.output,
        "pairs": running.pairs(result, options),
    }


def _lines(report: dict[str, Any]) -> dict[str, Any]:
    proven, certificate = report["proven"], report["certificate"]
    lines = {
        "source": report["source"],
        "graph": "{vertices} vertices, {entries} entries".format_map(report),
        "matching": "{size} edges, {vertices_left} vertices left".format_map(report),
    }
    if "objective" in report:
        gap = "not known" if report["gap"] is None else f"at most {report['gap']}"
        lines["total weight"] = f"{report['objective']}, the gap is {0 if proven else gap}"
    else:
        lines["proof"] = "maximum" if proven else "not proven maximum"
    return {
        **lines,
        "algorithm": "{algorithm} on {backend}".format_map(report),
        "certificate": "none"
        if certificate is None
        else "a bound of {bound}, checked on {edges} edges".format_map(certificate),
    }
