"""Arrays of other libraries are read at every door that takes arrays, as NumPy's are.

They come by DLPack (as those of numba-cuda, warp and cuda.core do; here from the CPU, by an object
that has nothing else), by the array interface, by a library that has only what the Array API
standard asks for, as pandas frames of nullable types, and as polars frames.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

import gpumatch as gm
from gpumatch.interop import lap, pot


class Exported:
    """The memory of an array, with DLPack alone."""

    def __init__(self, array):
        self._array = np.ascontiguousarray(array)

    def __dlpack__(self, **how):
        return self._array.__dlpack__(**how)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


class Shown:
    """The memory of an array, with the array interface alone."""

    def __init__(self, array):
        self._array = array
        self.__array_interface__ = array.__array_interface__


def nullable(array):
    pandas = pytest.importorskip("pandas")
    kind = {"b": "boolean", "i": "Int64", "f": "Float64"}[array.dtype.kind]
    return (pandas.DataFrame if array.ndim == 2 else pandas.Series)(array).astype(kind)


def polars_frame(array):
    polars = pytest.importorskip("polars")
    return polars.DataFrame(array) if array.ndim == 2 else polars.Series(array)


def strict(array):
    return pytest.importorskip("array_api_strict").asarray(array)


CONTAINERS = {
    "DLPack": Exported,
    "array interface": Shown,
    "Array API": strict,
    "pandas": nullable,
    "polars": polars_frame,
}

C = np.array([[4.0, 1, 3], [2, 0, 5], [3, 2, 2]])
WHOLE = C.astype(np.int64)
SYMMETRIC = C + C.T
OFFSETS, COLUMNS = np.array([0, 1, 2, 3]), np.array([1, 0, 2])
EDGES = np.array([[0, 1], [1, 2], [2, 3]])
ONES, LIMITS = np.ones(3), np.array([2.0, 5, 5])
POINTS = gm.PointCosts


@functools.cache
def assigned():
    return gm.assign(C)


@functools.cache
def matched():
    return gm.maximum_matching(C)


DOORS = {
    "assign": lambda read: gm.assign(read(C)),
    "assign, int": lambda read: gm.assign(read(WHOLE)),
    "assign, bool": lambda read: gm.assign(read(C > 2), maximize=True),
    "assign, batch": lambda read: gm.assign([read(C), read(WHOLE)]),
    "assign, limits": lambda read: gm.assign(C, cost_limit=read(LIMITS)),
    "assign, initial": lambda read: gm.assign(C, initial=read(COLUMNS)),
    "assign, stored": lambda read: gm.assign((read(OFFSETS), read(COLUMNS), read(ONES), (3, 3))),
    "assign, bottleneck": lambda read: gm.assign(read(C), objective="bottleneck"),
    "assign, lexicographic": lambda read: gm.assign(read(C), objective="lexicographic"),
    "assign, points": lambda read: gm.assign(POINTS(read(C), read(C + 1), row_offset=read(ONES))),
    "maximum_matching": lambda read: gm.maximum_matching(read(C)),
    "maximum_matching, bool": lambda read: gm.maximum_matching(read(C > 2)),
    "maximum_matching, initial": lambda read: gm.maximum_matching(C, initial=read(COLUMNS)),
    "maximum_matching, stored": lambda read: gm.maximum_matching(
        (read(OFFSETS), read(COLUMNS), (3, 3))
    ),
    "maximum_matching, capacities": lambda read: gm.maximum_matching(
        C, row_capacity=read(COLUMNS + 1), col_capacity=read(COLUMNS + 1)
    ),
    "transport": lambda read: gm.transport(read(C), read(COLUMNS + 1), read(COLUMNS + 1)),
    "transport, capacities": lambda read: gm.transport(C, 1, 1, pair_capacity=read(WHOLE)),
    "k_best": lambda read: gm.k_best(read(C), 3),
    "alternatives": lambda read: gm.alternatives(read(C), assigned()).edges(),
    "possible_edges": lambda read: gm.possible_edges(read(C), matched()).edges(),
    "forced_edges": lambda read: gm.forced_edges(read(C), matched()).edges(),
    "Session": lambda read: gm.Session(read(C)).solve(),
    "GraphSession": lambda read: gm.GraphSession(read(C)).solve(),
    "general.maximum_matching": lambda read: gm.general.maximum_matching(read(SYMMETRIC)),
    "general.maximum_matching, edges": lambda read: gm.general.maximum_matching((read(EDGES), 4)),
    "general.maximum_weight_matching": lambda read: gm.general.maximum_weight_matching(
        (read(EDGES), read(ONES))
    ),
    "verify": lambda read: gm.verify(read(C), assigned()),
    "optimize": lambda read: gm.optimize.linear_sum_assignment(read(C)),
    "optimize, limits": lambda read: gm.optimize.linear_sum_assignment(C, cost_limit=read(LIMITS)),
    "optimize, batch": lambda read: gm.optimize.linear_sum_assignment_batch([read(C), read(C)]),
    "lap": lambda read: lap.lapjv(read(C)),
    "pot": lambda read: pot.emd(read(ONES / 3), read(ONES / 3), read(C)),
    "pot, cost": lambda read: pot.emd2(read(ONES / 3), read(ONES / 3), read(C)),
    "linalg.dmperm": lambda read: gm.linalg.dmperm(read(C)),
    "linalg.btf": lambda read: gm.linalg.btf(read(C)),
    "linalg.mc64": lambda read: gm.linalg.mc64(read(C)),
    "linalg.maximum_product_matching": lambda read: gm.linalg.maximum_product_matching(read(C)),
    "linalg.splu": lambda read: gm.linalg.splu(read(C)).solve(read(ONES)),
    "linalg.solve_btf": lambda read: gm.linalg.solve_btf(read(C), read(ONES)),
}

FACTS = ("objective", "size", "row_to_col", "col_to_row", "flow", "mate", "bound")


def facts(result):
    """What a result says, as lists and numbers."""
    if isinstance(result, (tuple, list)):
        return [facts(part) for part in result]
    known = {name: getattr(result, name) for name in FACTS if hasattr(result, name)}
    return {name: np.asarray(fact).tolist() for name, fact in known.items()} or (
        np.asarray(result).tolist()
    )


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("door", DOORS)
def test_it_is_read_as_numpys_arrays_are(door, container):
    call = DOORS[door]
    expected = facts(call(lambda array: array))
    assert facts(call(CONTAINERS[container])) == expected


@pytest.mark.parametrize("kind", ["Int64", "Float64", "boolean"])
@pytest.mark.parametrize(
    "door", ["assign", "maximum_matching", "transport", "k_best", "pot", "lap"]
)
def test_a_missing_value_is_refused(door, kind):
    pandas = pytest.importorskip("pandas")

    def with_a_gap(array):
        if array.ndim == 1:
            return array
        frame = pandas.DataFrame(array != 0 if kind == "boolean" else array).astype(kind)
        frame.iloc[1, 2] = pandas.NA
        return frame

    with pytest.raises(ValueError, match=r"a value is missing \(NA\), first at \[1, 2\]"):
        DOORS[door](with_a_gap)


class ExportedOnDevice(Exported):
    def __init__(self, array):
        import cupy

        self._array = cupy.asarray(array)


class ShownOnDevice:
    def __init__(self, array):
        import cupy

        self._array = cupy.asarray(array)

    @property
    def __cuda_array_interface__(self):
        return self._array.__cuda_array_interface__


@pytest.mark.gpu
@pytest.mark.parametrize("container", [ExportedOnDevice, ShownOnDevice])
@pytest.mark.parametrize(
    "door",
    [
        *("assign", "assign, int", "assign, batch", "assign, limits", "assign, initial"),
        *("assign, stored", "assign, bottleneck", "maximum_matching", "maximum_matching, stored"),
        *("transport", "verify", "linalg.dmperm", "linalg.btf"),
    ],
)
def test_arrays_of_a_device_are_read(door, container):
    """As those of numba-cuda and warp, which have the one protocol or both."""
    import cupy

    expected = on_host(DOORS[door](lambda array: cupy.asarray(array)))
    assert on_host(DOORS[door](container)) == expected


def on_host(result):
    """The numbers of a result that do not depend on the order of a device's threads."""
    if isinstance(result, tuple):
        return [len(part) for part in result]
    numbers = [getattr(result, name, None) for name in ("objective", "size", "bound")]
    return [np.asarray(each.get() if hasattr(each, "get") else each).tolist() for each in numbers]
