"""What is asked of arrays, on the host and on a device."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from gpumatch.dispatch.by_device import count_matched
from gpumatch.numeric.arrays import any_true, array_of, as_array, first_true, from_dlpack
from tests.cuda.pools import fresh_pool

HOMES = [pytest.param("numpy", id="host"), pytest.param("cupy", id="device", marks=pytest.mark.gpu)]
EVERY_HOME = pytest.mark.parametrize("home", HOMES)


@pytest.mark.parametrize("places", [[], [0], [4_999], [1, 77, 2_500]])
@pytest.mark.parametrize("length", [5_000, 70_000])
@EVERY_HOME
def test_marks_are_found(home, length, places):
    xp = pytest.importorskip(home)
    marks = xp.zeros(length, bool)
    marks[xp.asarray(places, np.int64)] = True
    assert any_true(marks) is bool(places)
    assert first_true(marks) == (places[0] if places else None)


@EVERY_HOME
def test_no_array_is_too_short(home):
    xp = pytest.importorskip(home)
    assert any_true(xp.zeros(0, bool)) is False
    assert first_true(xp.zeros(0, bool)) is None
    assert count_matched(xp.zeros(0, np.int32)) == 0


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64])
@EVERY_HOME
def test_marks_of_unmatched_vertices_do_not_count(home, dtype):
    xp = pytest.importorskip(home)
    assert count_matched(xp.asarray([3, -1, 0, -2, 7], dtype)) == 3


@EVERY_HOME
def test_what_lies_apart_is_counted(home):
    xp = pytest.importorskip(home)
    assert count_matched(xp.arange(-50_000, 50_000)[::-4]) == 12_500


@pytest.mark.gpu
def test_counting_on_a_device_takes_no_memory_to_speak_of():
    cp = pytest.importorskip("cupy")
    with fresh_pool() as pool:
        mates = cp.arange(-1_000_000, 1_000_000, dtype=np.int32)
        count_matched(mates)
        pool.free_all_blocks()
        pool.set_limit(size=pool.total_bytes() + 2**16)
        assert count_matched(mates) == 1_000_000


class OnDevice:
    """An array of a device, as far as its protocols tell, and what a library makes of it."""

    __cuda_array_interface__: dict[str, int] = {}  # noqa: RUF012

    def __dlpack__(self, **_):
        raise AssertionError("NumPy reads no device")

    def __dlpack_device__(self):
        return 2, 0


def test_arrays_of_a_device_go_by_way_of_cupy(monkeypatch):
    taken = SimpleNamespace(asarray=id, asnumpy=repr, from_dlpack=hash)
    monkeypatch.setitem(sys.modules, "cupy", taken)
    array = OnDevice()
    assert as_array(array, "it") == id(array)
    assert array_of(np, array) == repr(array)
    assert array_of(taken, array) == id(array)
    for kind, by_cupy in ((2, True), (13, True), (1, False)):
        array.__class__.__dlpack_device__ = lambda self, kind=kind: (kind, 0)
        if by_cupy:
            assert from_dlpack(array) == hash(array)
        else:
            with pytest.raises(AssertionError, match="NumPy"):
                from_dlpack(array)


class OfBothProtocols:
    def __array__(self, dtype=None, copy=None):
        return np.arange(3)

    def __dlpack__(self, **_):
        raise AssertionError("such an array may be read only")


def test_what_gives_an_array_of_numpy_is_asked_for_it():
    assert as_array(OfBothProtocols(), "it").tolist() == [0, 1, 2]
