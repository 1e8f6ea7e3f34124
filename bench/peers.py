"""Peers, the codes of others: each runs in its own process, which is ended if it takes too long.

A peer is a function of a matrix. It returns what is timed: a call without arguments that gives the
matching's size. Converting the matrix into the peer's own form is not timed.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
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
        return is_installed(self.name)

    def measure(self, problem: Any, limits: Limits) -> Result:
        return in_process(PEERS[self.name], problem.matrix, limits)


@dataclass(frozen=True)
class EclMm:
    """ECL-MM (Akathoott, Burtscher, IPDPS 2025), a program for square matrices.

    The environment variable ECL_MM names its executable. What counts is the time that it prints
    for its start and search. This does not include reading the graph and copying it to the device.
    """

    name: str = "ecl-mm"

    @property
    def installed(self) -> bool:
        return "ECL_MM" in os.environ

    def measure(self, problem: Any, limits: Limits) -> Result:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "graph.egr")
            _write_egr(problem.matrix, file)
            return repeat(lambda: self._sample(file, limits.cap), limits)

    def _sample(self, file: Path, cap: float) -> Sample:
        try:
            printed = subprocess.run(
                [os.environ["ECL_MM"], str(file)],
                env={**os.environ, "CUDA_MODULE_LOADING": "EAGER"},
                timeout=cap + _LOADING,
                check=True,
                capture_output=True,
                text=True,
            ).stdout
        except subprocess.TimeoutExpired as exc:
            raise Overrun from exc
        seconds = re.search(r"totalRunTime: ([\d.]+) s", printed)
        size = re.search(r"sizeof_finalMatching: (\d+)", printed)
        if seconds is None or size is None:
            raise RuntimeError(f"ECL-MM printed no result: {printed[-200:]}")
        return Sample(float(seconds[1]), int(size[1]))


def _write_egr(matrix: csr_array, file: Path) -> None:
    """ECL's binary CSR: rows, then columns as further vertices, each edge from both ends."""
    nrows, ncols = matrix.shape
    if nrows != ncols:
        raise ValueError(f"ECL-MM takes square matrices; this is {nrows} x {ncols}")
    turned = matrix.T.tocsr()
    nindex = np.concatenate([matrix.indptr, turned.indptr[1:] + matrix.nnz])
    head = np.array([nrows + ncols, 2 * matrix.nnz])
    with file.open("wb") as out:
        for part in (head, nindex, matrix.indices + nrows, turned.indices):
            part.astype(np.int32).tofile(out)


def timed(call: Callable[[], int]) -> Sample:
    """One run of a call that gives a matching's size, in wall-clock time."""
    begin = time.perf_counter()
    size = call()
    return Sample(time.perf_counter() - begin, size)


def self_timed(call: Callable[[], Sample]) -> Sample:
    """One run of a call that times itself."""
    return call()


def is_installed(module: str) -> bool:
    """True if Python finds the module of a peer."""
    return importlib.util.find_spec(module) is not None


def in_process(
    peer: Callable[[Any], Callable[[], Any]],
    problem: Any,
    limits: Limits,
    sample: Callable[[Callable[[], Any]], Sample] = timed,
) -> Result:
    """What `repeat` measures of a peer, in a process that does not outlive its cap.

    Parameters
    ----------
    peer : callable
        Gives for the problem the call that is timed.
    problem : object
        Sent to the process.
    sample : callable
        Times the peer's call once.

    Raises
    ------
    Overrun
        If the first run did not end within the cap.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    child = context.Process(
        target=_serve, args=(theirs, peer, problem, limits, sample), daemon=True
    )
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


def _serve(
    connection: Any,
    peer: Callable[..., Any],
    problem: Any,
    limits: Limits,
    sample: Callable[..., Sample],
) -> None:
    """The child: convert, say so, measure, send the result."""
    try:
        call = peer(problem)
        connection.send("ready")
        connection.send(repeat(lambda: sample(call), limits))
    except Exception as exc:
        connection.send(exc)
