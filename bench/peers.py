"""Other people's codes, each in a process of its own that can be ended when it takes too long.

A peer is a function of a matrix that returns what is timed: a call without arguments that gives
the matching's size. Converting the matrix into the peer's own form is not timed.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scipy.sparse import csr_array

from bench.harness import Limits, Overrun, Result, Sample, repeat

_LOADING = 300.0  # seconds a peer has to start and convert the matrix


def scipy(matrix: csr_array) -> Callable[[], int]:
    """`scipy.sparse.csgraph.maximum_bipartite_matching`, from no matching."""
    from scipy.sparse.csgraph import maximum_bipartite_matching

    return lambda: int((maximum_bipartite_matching(matrix) >= 0).sum())


def igraph(matrix: csr_array) -> Callable[[], int]:
    """igraph's push-relabel matching, on a graph that is built already."""
    import igraph
    import numpy as np

    nrows, ncols = matrix.shape
    entries = matrix.tocoo()
    edges = np.column_stack([entries.row, entries.col + nrows])
    graph = igraph.Graph(nrows + ncols, edges)
    types = [False] * nrows + [True] * ncols
    return lambda: len(graph.maximum_bipartite_matching(types))


PEERS = {"scipy": scipy, "igraph": igraph}


@dataclass(frozen=True)
class Peer:
    """A peer by its name in `PEERS`; the problem is an object with ``matrix``."""

    name: str

    @property
    def installed(self) -> bool:
        return importlib.util.find_spec(self.name) is not None

    def measure(self, problem: Any, limits: Limits) -> Result:
        return in_process(PEERS[self.name], problem.matrix, limits)


def in_process(peer: Callable[[Any], Callable[[], int]], matrix: Any, limits: Limits) -> Result:
    """What `repeat` measures of a peer, in a process that does not outlive its cap.

    Raises
    ------
    Overrun
        If the first run did not end within the cap.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    child = context.Process(target=_serve, args=(theirs, peer, matrix, limits), daemon=True)
    child.start()
    theirs.close()
    try:
        _expect(ours, _LOADING)
        return _expect(ours, limits.cap)
    finally:
        child.kill()
        child.join()


def _expect(connection: Any, seconds: float) -> Any:
    """The child's next message; its exceptions are raised here."""
    if not connection.poll(seconds):
        raise Overrun
    try:
        message = connection.recv()
    except EOFError:
        raise RuntimeError("the peer's process died") from None
    if isinstance(message, Exception):
        raise message
    return message


def _serve(connection: Any, peer: Callable[..., Any], matrix: Any, limits: Limits) -> None:
    """The child: convert, say so, measure, send the result."""
    try:
        call = peer(matrix)
        connection.send("ready")
        connection.send(repeat(lambda: timed(call), limits))
    except Exception as exc:
        connection.send(exc)


def timed(call: Callable[[], int]) -> Sample:
    """One run of a call that gives a matching's size, by the clock on the wall."""
    begin = time.perf_counter()
    size = call()
    return Sample(time.perf_counter() - begin, size)
