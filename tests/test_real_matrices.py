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
from gpumatch.dispatch import registry
from tests.cases import RUNS, Run, param
from tests.pairwise import pairwise

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


LONGEST = "ego-twitter-undirected"
QUICK_FOR_REFERENCE = {"rajat01"}


def _takes_seconds(name: str, run: Run, init: str) -> bool:
    if run.backend == "reference":
        return name not in QUICK_FOR_REFERENCE
    return run.backend == "cpu" and name == LONGEST and init == "none"


def _can_be_spared(name: str, run: Run, init: str) -> bool:
    is_reference = run.backend == "reference"
    is_mt = is_reference and run.options["launch"] == "mt"
    return (is_mt and name in TOO_LONG_FOR_MT) or (is_reference and init == "none")


def _factors(param) -> dict[str, str]:
    run, init, name = param.values
    home = f"{run.algorithm}-{run.backend}"
    return {"home": home, "start": init, "matrix": name, **run.options}


SAMPLE = pairwise(
    [
        param(
            run,
            init,
            name,
            name=f"-{init}-{name}",
            long=_takes_seconds(name, run, init),
        )
        for name in RANKS
        for run in RUNS
        for init in registry.starts(run.backend)
        if not _can_be_spared(name, run, init)
    ],
    _factors,
)


@functools.cache
def graph_of(name):
    folder = os.environ.get("GPUMATCH_DATA")
    if folder is None:
        pytest.skip("GPUMATCH_DATA is not set: no real matrices here")
    return gm.BipartiteGraph(mmread(Path(folder) / "matrices" / f"{name}.mtx.gz", spmatrix=False))


@pytest.mark.parametrize(("run", "init", "name"), SAMPLE)
def test_every_algorithm_finds_the_known_structural_rank(run, init, name):
    graph = graph_of(name)
    m = gm.maximum_matching(graph, init=init, **run.arguments)
    assert gm.verify(graph, m).size == RANKS[name]
