"""Large arrays get the memory of those that are gone, and none that is in use."""

import threading

import numpy as np
import pytest

from gpumatch.running import kept_memory
from gpumatch.running.kept_memory import LEAST, kept_empty, kept_full

SIZE = 3 * LEAST // 8


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    monkeypatch.setattr(kept_memory, "_kept", {})


def address(array):
    return array.ctypes.data


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [(0, np.int32), (5, np.float64), (SIZE, np.int64), ((3, SIZE), np.int32), ((2, 0), bool)],
)
def test_shape_and_type(shape, dtype):
    like, one = np.empty(shape, dtype), kept_empty(shape, dtype)
    assert (one.shape, one.dtype) == (like.shape, like.dtype)
    assert one.flags.carray
    assert (kept_full(shape, 1, dtype) == 1).all()


def test_memory_is_used_again_when_the_last_view_is_gone():
    one = kept_empty(SIZE, np.float64)
    place, view = address(one), one[5:].reshape(-1, 1)
    del one
    other = kept_empty(SIZE, np.float64)
    assert address(other) != place
    del view
    again = kept_empty(SIZE - 9, np.int64)
    assert address(again) == place
    assert address(kept_empty(SIZE, np.float64)) not in (place, address(other))


def test_small_arrays_and_other_sizes_get_their_own():
    one = kept_empty(SIZE, np.float64)
    place = address(one)
    del one
    assert address(kept_empty(2 * SIZE, np.float64)) != place
    small = kept_empty(8, np.float64)
    del small
    assert [piece.nbytes >= 8 * SIZE for piece in kept_memory._kept.values()] == [True, True]


def test_a_much_larger_piece_is_left_for_others():
    large = kept_empty(30 * SIZE, np.float64)
    place = address(large)
    del large
    small = kept_empty(SIZE, np.float64)
    assert address(small) != place
    assert address(kept_empty(30 * SIZE, np.float64)) == place


def test_little_of_a_piece_is_not_used():
    for size in range(LEAST, 40 * LEAST, LEAST // 3 + 1):
        one = kept_empty(size, np.uint8)
        del one
        piece = [*kept_memory._kept.values()][-1]
        assert size <= piece.size <= size * 9 // 8


def test_the_oldest_goes_when_too_much_is_kept(monkeypatch):
    monkeypatch.setattr(kept_memory, "MOST", 5 * LEAST)
    sizes = [LEAST, 2 * LEAST, 3 * LEAST]
    arrays = [kept_empty(size, np.uint8) for size in sizes]
    for _ in sizes:
        del arrays[0]
    assert [piece.size for piece in kept_memory._kept.values()] == sizes[1:]
    large = kept_empty(6 * LEAST, np.uint8)
    del large
    assert not kept_memory._kept


def test_threads_never_share_a_piece():
    wrong = []

    def work(number):
        for _ in range(300):
            own = kept_full(LEAST // 8 + 1, number, np.int64)
            other = kept_full(LEAST // 8 + 1, -number, np.int64)
            if own[0] != number or own[-1] != number or other[-1] != -number:
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert sum(piece.size for piece in kept_memory._kept.values()) <= kept_memory.MOST
