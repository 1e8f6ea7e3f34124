"""What the functions of `gpumatch.linalg` pass on to those that do their work."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from gpumatch.linalg import (
    btf,
    dmperm,
    maximum_product_matching,
    maxtrans,
    mc64,
    solve_btf,
    splu,
    sprank,
)

A = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]])


@pytest.mark.parametrize(
    ("call", "module", "name"),
    [
        (maxtrans, "transversal", "maximum_matching"),
        (sprank, "transversal", "maximum_matching"),
        (btf, "block_triangular", "maximum_matching"),
        (dmperm, "dulmage_mendelsohn", "maximum_matching"),
        (partial(mc64, job=1), "mc64", "maximum_matching"),
        *((partial(mc64, job=job), "mc64", "assign") for job in (2, 3, 4)),
        (partial(mc64, job=5), "mc64", "maximum_product_matching"),
        (splu, "lu", "maximum_product_matching"),
        (partial(solve_btf, b=np.ones(3)), "block_solve", "dmperm"),
        (partial(solve_btf, b=np.ones(3)), "block_solve", "splu"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_seed_threads_and_backend_reach_the_search(calls_of, call, module, name):
    calls = calls_of(f"gpumatch.linalg.{module}", name)
    call(A, seed=3, threads=2, backend="cpu")
    assert calls
    for options in calls:
        assert (options["seed"], options["threads"], options["backend"]) == (3, 2, "cpu")


@pytest.mark.parametrize(
    ("job", "matrix", "expected"),
    [
        (2, A, {"cardinality": "full", "objective": "bottleneck", "algorithm": "paths"}),
        (3, A, {"cardinality": "full", "objective": "bottleneck", "algorithm": "thresholds"}),
        (4, A, {"cardinality": "full", "objective": None}),
        (2, A[:, [0, 0, 0]] * [1, 0, 0], {"cardinality": "maximum", "algorithm": "thresholds"}),
    ],
    ids=["2", "3", "4", "2-deficient"],
)
def test_each_job_of_mc64_is_the_assignment_that_serves_it(calls_of, job, matrix, expected):
    calls = calls_of("gpumatch.linalg.mc64", "assign")
    mc64(matrix, job=job)
    (options,) = calls
    assert options["maximize"] is True
    assert {name: options.get(name) for name in expected} == expected


def test_the_first_job_of_mc64_takes_no_assignment(calls_of):
    calls = calls_of("gpumatch.linalg.mc64", "assign")
    mc64(A, job=1)
    assert not calls


def test_a_triangular_system_needs_no_factors(calls_of):
    calls = calls_of("gpumatch.linalg.block_solve", "splu")
    upper = np.triu(np.arange(1.0, 17.0).reshape(4, 4))
    assert np.allclose(solve_btf(upper, upper @ np.ones(4)), 1)
    assert not calls


@pytest.mark.parametrize("empty", [0, 1], ids=["full", "one row and column left"])
def test_the_common_factor_of_a_scaling_is_shared_by_rows_and_columns(empty):
    values = A * [[1e-3], [1e5], [1e2]] * [1e4, 1e-6, 1e7]
    scaled = maximum_product_matching(np.pad(values, (0, empty)))
    assert scaled.size == 3
    rows, cols = scaled.row_log_scale[:3], scaled.col_log_scale[:3]
    assert rows.min() + rows.max() == pytest.approx(cols.min() + cols.max())


@pytest.mark.parametrize("shape", [(3, 3), (3, 2), (2, 3)])
def test_a_scaling_says_what_has_found_it(shape):
    stats = maximum_product_matching(A[: shape[0], : shape[1]]).stats
    assert (stats["algorithm"], stats["backend"]) == ("engine", "cpu")


def test_superlu_gets_its_options(monkeypatch):
    given = []
    monkeypatch.setattr("scipy.sparse.linalg.splu", lambda _, **options: given.append(options))
    splu(A)
    splu(A, "MMD_ATA", 0.5, 3, 7, {"SymmetricMode": True, "Equil": True})
    assert given == [
        {
            **{"permc_spec": None, "diag_pivot_thresh": 0.01, "relax": None, "panel_size": None},
            "options": {"Equil": False},
        },
        {
            **{"permc_spec": "MMD_ATA", "diag_pivot_thresh": 0.5, "relax": 3, "panel_size": 7},
            "options": {"Equil": True, "SymmetricMode": True},
        },
    ]
