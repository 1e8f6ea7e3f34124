"""Arrays that are more than arrays: masked ones are refused at every door, data frames are read."""

from __future__ import annotations

import numpy as np
import pytest

import gpumatch as gm
from gpumatch.costs import CostBatch
from gpumatch.numeric.arrays import as_array

MASKED = np.ma.masked_array(np.eye(3) + 1, mask=np.eye(3, dtype=bool))
VERTICES = np.ma.masked_array([0, 1, 2], mask=[True, False, False])
CSR = np.array([0, 1, 2, 3]), np.array([0, 1, 2]), np.ones(3)


def system(A):
    return gm.linalg.solve_btf(A, np.ones(3))


DOORS = {
    "assign": gm.assign,
    "maximise": lambda A: gm.assign(A, maximize=True, cardinality="any"),
    "bottleneck": lambda A: gm.assign(A, objective="bottleneck"),
    "with row limits": lambda A: gm.assign(A, cost_limit=[1.0, 2.0, 3.0]),
    "batch": lambda A: gm.assign([A, A]),
    "batch of masked rows": lambda A: gm.assign([[*A], [*A]]),
    "array of problems": lambda A: gm.assign(np.ma.stack([A, A])),
    "CostBatch": lambda A: CostBatch([A]),
    "masked rows": lambda A: gm.assign([*A]),
    "maximum_matching": gm.maximum_matching,
    "BipartiteGraph": gm.BipartiteGraph,
    "verify a matching": lambda A: gm.verify(A, gm.maximum_matching(np.eye(3))),
    "verify an assignment": lambda A: gm.verify(A, gm.assign(np.eye(3))),
    **{f"mc64 {job}": lambda A, job=job: gm.linalg.mc64(A, job) for job in range(1, 6)},
    "splu": gm.linalg.splu,
    "solve_btf": system,
    "dmperm": gm.linalg.dmperm,
    "maximum_product_matching": gm.linalg.maximum_product_matching,
    "linear_sum_assignment": gm.optimize.linear_sum_assignment,
    "linear_sum_assignment of rows": lambda A: gm.optimize.linear_sum_assignment([*A]),
    "distributed.assign": gm.distributed.assign,
    "distributed.maximum_matching": gm.distributed.maximum_matching,
}


@pytest.mark.parametrize("door", DOORS)
def test_masks_are_refused_at_every_door(door):
    with pytest.raises(TypeError, match=r"(costs|graph|A|cost_matrix|problem 0).*masked array"):
        DOORS[door](MASKED)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("initial", lambda: gm.assign(np.eye(3), initial=VERTICES)),
        ("initial", lambda: gm.maximum_matching(np.eye(3), initial=VERTICES)),
        ("cost_limit", lambda: gm.assign(np.eye(3), cost_limit=VERTICES)),
        ("sizes", lambda: gm.assign(np.ones((3, 4, 5)), sizes=(VERTICES, 5))),
        ("indptr", lambda: gm.maximum_matching((np.ma.arange(4), *CSR[1:], (3, 3)))),
        ("indices", lambda: gm.maximum_matching((CSR[0], VERTICES, CSR[2], (3, 3)))),
        ("data", lambda: gm.assign((*CSR[:2], VERTICES, (3, 3)))),
        ("data", lambda: gm.linalg.mc64((*CSR[:2], VERTICES, (3, 3)))),
        ("rows", lambda: gm.BipartiteGraph.from_edges(VERTICES, CSR[1])),
        ("cols", lambda: gm.BipartiteGraph.from_edges(CSR[1], VERTICES)),
    ],
)
def test_masks_of_other_arguments_are_refused(name, call):
    with pytest.raises(TypeError, match=f"{name}: got a masked array"):
        call()


# -- data frames -----------------------------------------------------------------------------------


class Kind:
    """A nullable type of pandas: it knows the type of NumPy that it stands for."""

    def __init__(self, name):
        self.numpy_dtype = np.dtype(name)

    def __str__(self):
        return f"nullable {self.numpy_dtype}"


class Frame:
    """As much of pandas' DataFrame as is asked for; None is a missing value."""

    def __init__(self, rows, *kinds):
        self.rows, self.dtypes = rows, list(kinds)
        self.shape, self.ndim = (len(rows), len(kinds)), 2

    def __array__(self, dtype=None, copy=None):
        return np.array(self.rows, object).astype(dtype or object)

    def isna(self):
        return np.array([[part is None for part in row] for row in self.rows])

    def to_numpy(self, dtype=None):
        return self.__array__(dtype)


def by_stand_in(rows, *kinds):
    return Frame(rows, *(Kind(k.lower().replace("boolean", "bool")) for k in kinds))


def by_pandas(rows, *kinds):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows, columns=[f"c{k}" for k in range(len(kinds))], dtype=object)
    return frame.astype(dict(zip(frame.columns, kinds)))


@pytest.fixture(params=[by_stand_in, by_pandas], ids=["stand-in", "pandas"])
def frame(request):
    return request.param


NUMBERS = [[4, 1, 3], [2, 0, 5], [3, 2, 2]]


KINDS = {
    "int64": ["Int64"] * 3,
    "float64": ["Float64"] * 3,
    "float32": ["Float32"] * 3,
    "float64 of both": ["Int64", "Float64", "Int64"],
    "int64 of both": ["boolean", "Int64", "boolean"],
}
SMALL_KINDS = {"int8": ["Int8"] * 3, "int16": ["UInt8", "Int8", "Int8"], "bool": ["boolean"] * 3}


def rows_of(kinds):
    return [[bool(v) if k == "boolean" else v for v, k in zip(row, kinds)] for row in NUMBERS]


@pytest.mark.parametrize("name", [*KINDS, *SMALL_KINDS])
def test_nullable_frames_are_read_in_the_type_of_their_columns(frame, name):
    kinds, expected = {**KINDS, **SMALL_KINDS}[name], name.split()[0]
    rows = rows_of(kinds)
    array = as_array(frame(rows, *kinds), "it")
    assert (array.dtype, array.tolist()) == (expected, np.array(rows, expected).tolist())


@pytest.mark.parametrize(
    "kinds",
    [
        *(pytest.param(kinds, id=name) for name, kinds in KINDS.items()),
        # each dtype has kernels of its own
        *(pytest.param(k, id=name, marks=pytest.mark.long) for name, k in SMALL_KINDS.items()),
    ],
)
def test_nullable_frames_are_solved_as_arrays(frame, kinds):
    source = frame(rows_of(kinds), *kinds)
    array = as_array(source, "it")
    a = gm.assign(source)
    assert a.objective == gm.assign(array).objective
    assert isinstance(a.objective, int) is (array.dtype.kind in "biu")
    assert gm.verify(source, a).objective == a.objective
    assert gm.maximum_matching(source).size == gm.maximum_matching(array).size
    assert array[gm.optimize.linear_sum_assignment(source)].sum() == a.objective
    batch = gm.assign([source, array, source])
    assert batch.objective.tolist() == [a.objective] * 3


def test_integers_of_a_frame_are_exact(frame):
    large = [[2**53 + 1, 2**53], [2**53, 2**53 + 1]]
    assert gm.assign(frame(large, "Int64", "Int64"), maximize=True).objective == 2**54 + 2


@pytest.mark.parametrize("kind", ["Int64", "Float64", "boolean"])
def test_missing_values_are_refused(frame, kind):
    rows = [[True, True], [True, None]] if kind == "boolean" else [[1, 2], [3, None]]
    source = frame(rows, kind, kind)
    for door in (gm.assign, gm.maximum_matching, gm.linalg.mc64, lambda f: gm.assign([f, f])):
        with pytest.raises(ValueError, match=r"a value is missing \(NA\), first at \[1, 1\]"):
            door(source)


def test_columns_that_no_integer_type_holds_are_refused(frame):
    with pytest.raises(TypeError, match=r"the costs: no integer type holds columns of .*[iI]nt64"):
        gm.assign(frame([[1, 2], [3, 4]], "Int64", "UInt64"))


def test_columns_of_objects_are_refused():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(TypeError, match="must be real numbers; got dtype object"):
        gm.assign(pandas.DataFrame({"a": ["x", "y"], "b": [1, 2]}))


def test_plain_frames_and_limits_of_a_column():
    pandas = pytest.importorskip("pandas")
    plain = pandas.DataFrame(NUMBERS)
    assert gm.assign([plain, plain]).objective.tolist() == [5, 5]
    limits = pandas.Series([5, 5, 5], dtype="Int64")
    assert gm.assign(plain, cost_limit=limits).objective == 5
    assert gm.assign(plain, initial=pandas.Series([1, 0, 2], dtype="Int32")).objective == 5
