"""Real matrices: every algorithm finds the structural rank that two independent codes found.

The matrices are looked for in the folder ``matrices`` of `GPUMATCH_DATA`.
"""

from __future__ import annotations

import functools
import itertools
import os
from pathlib import Path

import pytest
from scipy.io import mmread

import gpumatch as gm
from tests.cases import RUNS, param

RANKS = {
    "4elt": 15606,
    "as-22july06": 6601,
    "bayer10": 13436,
    "ca-AstroPh-cc1": 17586,
    "cage10": 11397,
    "cit-HepTh": 21776,
    "copter2": 55476,
    "delaunay_n16": 65536,
    "ego-twitter-undirected": 74112,
    "hpo-gene-term": 5089,
    "lp-air04": 823,
    "lp-fast0507": 506,
    "luxembourg_osm": 113563,
    "p2p-Gnutella31": 16359,
    "rajat01": 6833,
    "soc-Slashdot0902": 78431,
    "teko_szdMat": 12675,
}

# backend="reference" is slow: all its algorithms run on the small matrices, one of them in turn on
# the others, and none on those on which each takes minutes.
SMALL = {"as-22july06", "lp-air04", "rajat01"}
TOO_LARGE = {"copter2", "ego-twitter-undirected"}
REFERENCE = [run for run in RUNS if run.backend == "reference" and run.options["launch"] == "ct"]
IN_TURN = dict(zip(RANKS, itertools.cycle(REFERENCE)))


def _runs_on(name, run):
    if run.backend != "reference":
        return True
    return run in REFERENCE if name in SMALL else name not in TOO_LARGE and run == IN_TURN[name]


EVERY_MATRIX = [
    param(run, name, name=f"-{name}") for name in RANKS for run in RUNS if _runs_on(name, run)
]


@functools.cache
def graph_of(name):
    folder = os.environ.get("GPUMATCH_DATA")
    if folder is None:
        pytest.skip("GPUMATCH_DATA is not set: no real matrices here")
    return gm.BipartiteGraph(mmread(Path(folder) / "matrices" / f"{name}.mtx.gz"))


@pytest.mark.parametrize(("run", "name"), EVERY_MATRIX)
def test_every_algorithm_finds_the_known_structural_rank(run, name):
    graph = graph_of(name)
    m = gm.maximum_matching(graph, **run.arguments)
    assert gm.verify(graph, m).size == RANKS[name]
