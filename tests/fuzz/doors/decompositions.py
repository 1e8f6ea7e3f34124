"""`dmperm`, `btf`, `strongcomp`, `maxtrans`: permutations to block triangular form."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.sparse.csgraph import connected_components

import gpumatch as gm
from tests.fuzz import containers, oracles
from tests.fuzz.containers import on_host
from tests.fuzz.doors.matching import pattern
from tests.fuzz.judgement import require, verified
from tests.fuzz.problems import Problem
from tests.fuzz.trials import Trial


def decompositions(trial: Trial) -> None:
    problem = pattern(trial)
    A = containers.pattern_form(trial, problem.rows, problem.cols, problem.shape)
    trial.note(A=A)
    backend = {"backend": "cuda"} if trial.backend == "cuda" else {}
    d = gm.linalg.dmperm(A, **backend)
    verified(A, d)
    size = oracles.rank(problem)
    require(int(d.rr[3]) == size, f"the parts show a rank of {int(d.rr[3])}, but it is {size}")
    if problem.shape[0] != problem.shape[1]:
        return
    form = gm.linalg.btf(A, **backend)
    verified(A, form)
    if size == problem.shape[0]:
        _check_same_blocks(form, d)
    _check_components(trial, problem, A)


def _check_same_blocks(form: gm.linalg.BlockTriangularForm, d: gm.linalg.DulmageMendelsohn) -> None:
    """Of a matrix of full rank both give the same blocks, in some order."""

    def blocks(p: object, r: object) -> set[frozenset[int]]:
        order, bounds = on_host(p).tolist(), on_host(r).tolist()
        return {frozenset(order[a:b]) for a, b in itertools.pairwise(bounds)}

    require(blocks(form.p, form.r) == blocks(d.p, d.r), "btf and dmperm differ in their blocks")


def _check_components(trial: Trial, problem: Problem, A: object) -> None:
    """`strongcomp` finds the components that SciPy finds."""
    p, r = (on_host(part) for part in gm.linalg.strongcomp(A))
    labels = connected_components(problem.csr(), connection="strong")[1]
    require(r.size - 1 == np.unique(labels).size, "strongcomp has other components than SciPy")
    for begin, end in itertools.pairwise(r):
        require(np.unique(labels[p[begin:end]]).size <= 1, "a block is no strong component")
    place = np.empty(p.size, np.int64)
    place[p] = np.repeat(np.arange(r.size - 1), np.diff(r))
    require((place[problem.rows] <= place[problem.cols]).all(), "an entry is below the blocks")
