"""Sparse input of any form: what is refused before a kernel reads it, and sums of repeats."""

from __future__ import annotations

import importlib
import math
import threading
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import gpumatch as gm
from gpumatch.dispatch.registry import SMALL_MATCHING, SMALL_SPARSE, load
from gpumatch.interop.compressed import compressed_of
from gpumatch.linalg import entries

FORMS = ["tuple", "csr_array", "csr_matrix", "csc_array", "csc_matrix", "bsr_array"]
ON_DEVICE = pytest.param("cupy", id="device", marks=[pytest.mark.gpu, pytest.mark.emulated])

MALFORMED = {
    "offset far outside": ([0, 10**8, 5], [0, 1, 0, 1, 0], "indptr must not decrease"),
    "offset past the end": ([0, 6, 5], [0, 1, 0, 1, 0], "indptr must not decrease"),
    "offsets fall": ([0, 4, 2, 5], [0, 1, 0, 1, 0], r"indptr must have n\w+ \+ 1 = 3 entries"),
    "negative offset": ([0, -5, 2], [0, 1], "indptr must not decrease"),
    "first offset": ([1, 2, 2], [0, 1], r"indptr\[0\] must be 0; got 1"),
    "too few offsets": ([0, 2], [0, 1], r"indptr must have n\w+ \+ 1 = 3 entries; got 2"),
    "no offsets": ([], [0, 1], r"indptr must have n\w+ \+ 1 = 3 entries; got 0"),
    "last offset": ([0, 2, 4], [0, 1], r"indptr\[-1\] is 4, but there are only 2 indices"),
    "index too large": ([0, 2, 4], [0, 1, 0, 10**8], "indices: 100000000 lies outside"),
    "index negative": ([0, 2, 4], [0, 1, -7, 1], "indices: -7 lies outside"),
    "too few values": ([0, 2, 4], [0, 1, 0, 1], "data must have 4 (entries|blocks); got 3"),
}


def malformed(form, case, dtype=np.int32):
    """A 2 x 2 matrix that SciPy has not checked."""
    indptr, indices, _ = MALFORMED[case]
    offsets, vertices = np.array(indptr, dtype), np.array(indices, dtype)
    values = np.ones(3 if case == "too few values" else len(indices))
    if form == "tuple":
        return offsets, vertices, values, (2, 2)
    matrix = getattr(sp, form)((2, 2), **({"blocksize": (1, 1)} if form == "bsr_array" else {}))
    matrix.indptr, matrix.indices = offsets, vertices
    matrix.data = values[:, None, None] if form == "bsr_array" else values
    return matrix


@pytest.mark.parametrize("case", MALFORMED)
@pytest.mark.parametrize("form", FORMS)
def test_malformed_arrays_are_refused_before_a_kernel_reads_them(form, case):
    for dtype in (np.int32, np.int64):
        with pytest.raises(ValueError, match=MALFORMED[case][2]):
            compressed_of(malformed(form, case, dtype)).values()


def others():
    plain = sp.csr_array(([1.0, 2, 3, 4], [0, 1, 0, 1], [0, 2, 4]), shape=(2, 2))
    coo = [plain.tocoo() for _ in range(4)]
    coo[0].coords = np.array([0, 10**8, 1, 1], np.int32), coo[0].col
    coo[1].coords = coo[1].row, np.array([0, -9, 1, 1], np.int32)
    coo[2].coords = np.array([0, 1], np.int32), coo[2].col
    coo[3].data = np.ones(3)
    dia = [sp.dia_array(([[1.0, 2], [3, 4]], [0, 1]), shape=(2, 2)) for _ in range(2)]
    dia[0].data, dia[1].data = np.ones((1, 2)), np.ones(2)
    lil = [plain.tolil() for _ in range(3)]
    lil[0].rows[0], lil[1].rows[0], lil[2].rows[0] = [0, 10**8], [0, 1, 1, 1], [0]
    dok = plain.todok()
    dok._dict[10**8, 1] = 3.0
    return {
        "COO row": (coo[0], "rows: 100000000 lies outside"),
        "COO column": (coo[1], "cols: -9 lies outside"),
        "COO lengths": (coo[2], "rows and cols must have one length; got 2 and 4"),
        "COO data": (coo[3], "data must have 4 entries; got 3"),
        "DIA rows": (dia[0], "data must have a row for each of 2 offsets"),
        "DIA dimensions": (dia[1], "data must have a row for each of 2 offsets"),
        "LIL index": (lil[0], "indices: 100000000 lies outside"),
        "LIL long": (lil[1], "row 0 has 4 columns and 2 values"),
        "LIL short": (lil[2], "row 0 has 1 columns and 2 values"),
        "DOK index": (dok, "100000000"),
    }


@pytest.mark.parametrize("case", others())
def test_other_malformed_formats_are_refused(case):
    matrix, message = others()[case]
    with pytest.raises(ValueError, match=message):
        compressed_of(matrix).values()


RIGHT = np.ones(2)
DOORS = {
    "assign": gm.assign,
    "assign any": lambda A: gm.assign(A, cardinality="any"),
    "row limits": lambda A: gm.assign(A, cost_limit=[1.0, 2.0]),
    "bottleneck": lambda A: gm.assign(A, objective="bottleneck"),
    "batch": lambda A: gm.assign([A, A]),
    "maximum_matching": gm.maximum_matching,
    "BipartiteGraph": gm.BipartiteGraph,
    "batch of graphs": lambda A: gm.BipartiteGraph.batch([A, A]),
    "verify a matching": lambda A: gm.verify(A, gm.maximum_matching(np.eye(2))),
    "verify an assignment": lambda A: gm.verify(A, gm.assign(np.eye(2))),
    "splu": gm.linalg.splu,
    "solve_btf": lambda A: gm.linalg.solve_btf(A, RIGHT),
    "maximum_product_matching": gm.linalg.maximum_product_matching,
    **{f"mc64 {job}": lambda A, job=job: gm.linalg.mc64(A, job) for job in range(1, 6)},
    **{name: getattr(gm.linalg, name) for name in ("dmperm", "btf", "maxtrans", "strongcomp")},
    "distributed.assign": gm.distributed.assign,
    "distributed.maximum_matching": gm.distributed.maximum_matching,
    "min_weight": gm.csgraph.min_weight_full_bipartite_matching,
    "maximum_bipartite_matching": gm.csgraph.maximum_bipartite_matching,
    "structural_rank": gm.csgraph.structural_rank,
}


SPARSE_ONLY = "batch", "min_weight", "maximum_bipartite_matching", "structural_rank"
WAYS = [
    (door, form)
    for door in DOORS
    for form in ("tuple", "csr", "csc", "coo")
    if form != "tuple" or door not in SPARSE_ONLY
]


def load_unless_small(name):
    """What the registry loads, but for calls that solve small sparse problems: they give up."""
    if name in (SMALL_SPARSE, SMALL_MATCHING):
        return lambda *_, **__: None
    return load(name)


class AskedError(Exception):
    """The conversion was asked."""


@pytest.mark.parametrize(("door", "form"), WAYS)
def test_every_door_goes_by_the_one_conversion(door, form, monkeypatch):
    """The arrays are right, so that a door that goes by another way fails here without a crash.

    The compiled calls for small problems, which look at each index, leave it to the general way.
    """

    def refuse(*_, **__):
        raise AskedError

    matrix = sp.csr_array(([1.0, 2, 3, 4], [0, 1, 0, 1], [0, 2, 4]), shape=(2, 2))
    source = matrix if form == "tuple" else matrix.asformat(form)
    if form != "coo":  # in int32, a small product has a check of its own
        source.indptr, source.indices = (
            part.astype(np.int64) for part in (source.indptr, source.indices)
        )
    if form == "tuple":
        source = source.indptr, source.indices, source.data, source.shape
    name = "gpumatch.interop.compressed." + ("edges_of" if form == "coo" else "_compressed")
    monkeypatch.setattr(name, refuse)
    for module in ("gpumatch.csgraph", "gpumatch.problems.small_problems"):
        monkeypatch.setattr(f"{module}.load", load_unless_small)
    with pytest.raises(AskedError):
        DOORS[door](source)


@pytest.mark.parametrize("case", MALFORMED)
def test_a_small_product_refuses_malformed_arrays(case):
    """Its kernels are not asked before `small_entries` has shown that these are arrays of CSR."""
    source = malformed("tuple", case)
    with pytest.raises(ValueError, match=MALFORMED[case][2]):
        gm.linalg.maximum_product_matching(source)


@pytest.mark.parametrize("kind", ["CSR", "CSC", "COO"])
def test_malformed_tensors_are_refused(kind):
    """torch makes them without a look, and its own conversions crash."""
    torch = pytest.importorskip("torch")
    offsets, vertices, values = (
        torch.tensor([0, 10**8, 2]), torch.tensor([0, 1]), torch.ones(2)
    )  # fmt: skip
    far = torch.tensor([0, 10**8])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "in beta state"
        if kind == "COO":
            pairs = [torch.stack([far, vertices]), torch.stack([vertices, -far])]
            tensors = [torch.sparse_coo_tensor(pair, values, (2, 2)) for pair in pairs]
        else:
            make = getattr(torch, f"sparse_{kind.lower()}_tensor")
            right = torch.tensor([0, 1, 2])
            tensors = [
                make(offsets, vertices, values, (2, 2)), make(right, far, values, (2, 2)),
                make(right, -far, values, (2, 2)),
            ]  # fmt: skip
    for tensor in tensors:
        for door in (gm.assign, gm.maximum_matching):
            with pytest.raises(ValueError, match=r"lies outside|do not decrease|must not decrease"):
                door(tensor)


# -- repeated entries ------------------------------------------------------------------------------

REPEATED = {
    "uint8": [100, 100, 100, 60],
    "int8": [100, 100, 100, 60],
    "int16": [20_000, 20_000, 20_000, 30_000],
    "int32": [2**30, 2**30, 2**30, 2**31 - 1],
    "int64": [2**53, 1, 1, 2**53 + 1],
    "uint64": [2**53, 1, 1, 2**53 + 1],
    "bool": [1, 1, 1, 1],
    "float16": [60_000, 60_000, 60_000, 60_000],
    "float32": [3e38, 3e38, 3e38, 3e38],
    "float64": [1e300, 1e300, 1e300, 1e300],
}
HELD_BY_TORCH = {*REPEATED} - {"uint64"}


def repeated(form, dtype):
    """A row with three entries in column 0, whose sum is more than the one in column 1."""
    data = np.array(REPEATED[dtype]).astype(dtype)
    rows, cols = np.zeros(4, np.int32), np.array([0, 0, 0, 1], np.int32)
    if form == "COO":
        made = sp.coo_array((np.ones(4, np.int8), (rows, cols)), shape=(1, 2))
        made.data = data  # else SciPy would not take float16
        return made
    if form == "CSR":
        return np.array([0, 4]), cols, data, (1, 2)
    if form == "CSC":
        made = sp.csc_array((np.ones(4, np.int8), rows, np.array([0, 3, 4])), shape=(1, 2))
        made.data = data
        return made
    torch = pytest.importorskip("torch")
    return torch.sparse_coo_tensor(np.array([rows, cols]), torch.from_numpy(data), (1, 2))


@pytest.mark.parametrize(
    ("form", "dtype"),
    [
        (form, dtype)
        for form in ("COO", "CSR", "CSC", "torch")
        for dtype in REPEATED
        if form != "torch" or dtype in HELD_BY_TORCH
    ],
)
def test_repeated_entries_are_summed_without_wrapping(form, dtype):
    source = repeated(form, dtype)
    values = np.array(REPEATED[dtype]).astype(dtype).tolist()
    total = sum(values[:3]) if np.dtype(dtype).kind in "biu" else math.fsum(values[:3])
    costs = gm.costs.as_costs(source)
    assert costs.weights.tolist() == [total, values[3]]
    a = gm.assign(source, maximize=True)
    assert (a.objective, np.asarray(a.col_ind).tolist()) == (total, [0])
    assert gm.verify(source, a).objective == total
    if form == "torch":
        return
    assert entries.entries_of(source).data.tolist() == [total, values[3]]
    assert gm.linalg.mc64(source, 4).col_perm.tolist()[0] == 0
    if form == "COO" and dtype != "float16":
        found = gm.csgraph.min_weight_full_bipartite_matching(source, maximize=True)
        assert found[1].tolist() == [0]
        assert gm.distributed.assign(source, maximize=True).objective == total


@pytest.mark.parametrize("home", ["numpy", ON_DEVICE])
@pytest.mark.parametrize("dtype", ["bool", "float32", "float64", "complex64"])
def test_repeated_entries_of_any_home(home, dtype):
    """cupyx, too, would add them up in their own type."""
    xp = pytest.importorskip(home)
    sparse = importlib.import_module("cupyx.scipy.sparse" if home == "cupy" else "scipy.sparse")
    rows, cols = (xp.asarray(part, np.int32) for part in ([1, 0, 1, 1, 0], [0, 1, 0, 1, 1]))
    data = xp.asarray([1, 1, 1, 1, 0] if dtype == "bool" else [3e38, 1, 3e38, 2, 0], dtype)
    matrix = sparse.coo_matrix((data, (rows, cols)), shape=(2, 2))
    indptr, indices, values = compressed_of(matrix).canonical()
    assert (indptr.tolist(), indices.tolist()) == ([0, 1, 3], [1, 0, 1])
    double = 2 * data[0].item() if dtype != "bool" else 2
    assert values.tolist() == [1, double, data[3].item()]
    assert matrix.data.tolist() == data.tolist()


@pytest.mark.parametrize("form", ["COO", "tuple"])
@pytest.mark.parametrize("dtype", ["int64", "uint64", "float64", "complex128"])
def test_sums_that_do_not_fit_are_refused(dtype, form):
    least = 2**62 // 2 if np.dtype(dtype).kind in "iu" else 1e308
    data = np.full(2, least).astype(dtype)
    source = np.array([0, 2]), np.zeros(2, int), data, (1, 1)
    if form == "COO":
        source = sp.coo_array((data, (np.zeros(2, int), np.zeros(2, int))), shape=(1, 1))
    with pytest.raises(ValueError, match=r"repeated entries (must )?add up to"):
        compressed_of(source).canonical()


def test_infinities_may_be_repeated():
    for pair, total in (((math.inf, math.inf), math.inf), ((math.inf, 1.0), math.inf)):
        source = sp.coo_array((pair, ([0, 0], [0, 0])), shape=(1, 1))
        assert compressed_of(source).canonical()[2].tolist() == [total]


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "lil", "dok", "tuple"])
@pytest.mark.parametrize("dtype", ["int8", "float32", "float64", "complex64"])
def test_values_stay_with_their_entries(form, dtype):
    rng = np.random.default_rng(3)
    dense = (rng.integers(1, 50, (30, 20)) * (rng.random((30, 20)) < 0.2)).astype(dtype)
    matrix = sp.csr_array(dense)
    if form == "tuple":  # each row backwards
        order = np.lexsort((-matrix.indices, np.repeat(np.arange(30), np.diff(matrix.indptr))))
        source = matrix.indptr, matrix.indices[order], matrix.data[order], matrix.shape
    else:
        source = matrix.asformat(form)
    indptr, indices, values = compressed_of(source).canonical()
    assert values.dtype == dtype
    assert np.array_equal(sp.csr_array((values, indices, indptr), matrix.shape).toarray(), dense)


# -- the caller's arrays ---------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["tuple", "csr", "csc", "coo"])
@pytest.mark.parametrize("count", [30, 2**19])
def test_what_kernels_index_by_is_nobody_elses(form, count):
    """So another thread may write anything into the caller's arrays after the check."""
    indptr, vertices = np.arange(count + 1, dtype=np.int32), np.arange(count, dtype=np.int32)
    values, shape = np.ones(count), (count, count)
    source = {
        "tuple": (indptr, vertices, values, shape),
        "csr": sp.csr_array((values, vertices, indptr), shape=shape),
        "csc": sp.csc_array((values, vertices, indptr), shape=shape),
        "coo": sp.coo_array((values, (vertices, vertices)), shape=shape),
    }[form]
    graph, costs = gm.BipartiteGraph(source), gm.costs.as_costs(source)
    matrices = [(e.indptr, e.indices) for e in (entries.entries_of(source),)]
    for arrays in (graph._either(), costs.entries()[:2], *matrices):
        for array in arrays:
            assert not np.shares_memory(array, indptr)
            assert not np.shares_memory(array, vertices)


def test_arrays_that_another_thread_changes_meanwhile():
    """Any answer, or a refusal, but nothing out of bounds."""
    rng = np.random.default_rng(5)
    matrix = sp.random_array((400, 400), density=0.02, rng=rng, format="csr") + sp.eye_array(400)
    matrix = sp.csr_array(matrix)
    right = matrix.indptr.copy(), matrix.indices.copy(), matrix.data.copy()
    ended = threading.Event()

    def change():
        while not ended.is_set():
            matrix.indices[rng.integers(right[2].size, size=5)] = 10**8
            matrix.indptr[rng.integers(401)] = -(10**8)
            matrix.data[rng.integers(right[2].size, size=5)] = rng.choice(
                [math.nan, math.inf, -1e308]
            )
            matrix.indptr[:], matrix.indices[:], matrix.data[:] = right
            ended.wait(0.001)

    thread = threading.Thread(target=change)
    thread.start()
    doors = gm.assign, gm.maximum_matching, gm.linalg.maximum_product_matching
    try:
        for turn in range(60):
            try:
                parts = matrix.indptr, matrix.indices, matrix.data, matrix.shape
                mates = doors[turn % 3](parts).row_to_col
            except (ValueError, ArithmeticError):
                continue
            assert -1 <= mates.min() <= mates.max() < 400
    finally:
        ended.set()
        thread.join()
