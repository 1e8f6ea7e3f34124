"""Real matrices: every algorithm finds the structural rank that two independent codes found.

The matrices are looked for in the folder ``matrices`` of `GPUMATCH_DATA`.
"""

from __future__ import annotations

import functools
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

# In backend="reference" a thread a column ("mt") costs more than 16 threads in all ("ct"): the four
# runs on these take from ten seconds to two minutes, which the tests as a whole cannot spare.
TOO_LONG_FOR_MT = {
    "4elt",
    "copter2",
    "delaunay_n16",
    "ego-twitter-undirected",
    "luxembourg_osm",
    "soc-Slashdot0902",
    "teko_szdMat",
}


def _runs_on(name, run):
    is_mt = run.backend == "reference" and run.options["launch"] == "mt"
    return not (is_mt and name in TOO_LONG_FOR_MT)


EVERY_MATRIX = [
    param(run, name, name=f"-{name}") for name in RANKS for run in RUNS if _runs_on(name, run)
]


@functools.cache
def graph_of(name):
    folder = os.environ.get("GPUMATCH_DATA")
    if folder is None:
        pytest.skip("GPUMATCH_DATA is not set: no real matrices here")
    return gm.BipartiteGraph(mmread(Path(folder) / "matrices" / f"{name}.mtx.gz", spmatrix=False))


@pytest.mark.parametrize(("run", "name"), EVERY_MATRIX)
def test_every_algorithm_finds_the_known_structural_rank(run, name):
    graph = graph_of(name)
    m = gm.maximum_matching(graph, **run.arguments)
    assert gm.verify(graph, m).size == RANKS[name]
