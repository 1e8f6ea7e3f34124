"""The emulator of kernels, where compilers have habits of their own."""

from __future__ import annotations

import dataclasses
import faulthandler
import multiprocessing
import signal

import numpy as np
import pytest

pytest.importorskip("cupy")

from gpumatch.cuda import surveys
from gpumatch.cuda.kernels import Source
from tests.cuda import emulator

pytestmark = pytest.mark.skipif(emulator.COMPILER is None, reason="there is no g++")


def test_threads_change_where_the_c_library_checks_jumps(monkeypatch):
    """Ubuntu's compiler asks for these checks by itself. They take another stack for a fault."""
    compiler, *options = emulator._COMMAND
    monkeypatch.setattr(emulator, "_COMMAND", (compiler, "-D_FORTIFY_SOURCE=2", *options))
    emulated = emulator.Emulator(surveys.SOURCE, {})
    emulator.lead_drivers_here(monkeypatch, {surveys.SOURCE: emulated}, surveys, block=64)
    indptr, indices = np.arange(101, dtype=np.int32), np.arange(100, dtype=np.int32)
    assert surveys.canonical_size(indptr, indices, (100, 100)) == 100
    assert emulated.seed > 0


def test_arrays_of_the_stand_in_for_cupy_do_not_mix_with_those_of_numpy(stand_in):
    there, here = stand_in.asarray(np.arange(6)), np.arange(6)
    for mixed in (
        lambda: there + here,
        lambda: here + there,
        lambda: stand_in.where(there > 2, there, here),
        lambda: stand_in.concatenate([there, here]),
        lambda: there.__setitem__(slice(None), here),
        lambda: np.asarray(there),
        lambda: np.add(here, 1, out=there),
    ):
        with pytest.raises(TypeError, match=r"do not mix|moved by `get`"):
            mixed()
    assert there.tolist() == here.tolist()
    assert isinstance(there.max(), stand_in.ndarray)  # of no dimensions
    assert isinstance(there[there > 2] * 2, stand_in.ndarray)
    assert np.array_equal(there.get(), here)


@dataclasses.dataclass(frozen=True)
class Text(Source):
    """A source whose text is given in place of its file."""

    def text(self):
        return self.file


WAITING = Text(
    """
    __global__ void count_together(int* numbers, int times) {
      for (int k = 0; k < times; ++k) {
        ++numbers[threadIdx.x];
        __syncthreads();
      }
    }
    __global__ void wait_for_nobody(int* number) {
      while (*static_cast<volatile int*>(number) != 0) {}
    }
    __global__ void part(int* number) {
      if (threadIdx.x != 0) __syncthreads();
      else while (*static_cast<volatile int*>(number) != 0) __nanosleep(1);
    }
    __global__ void try_for_ever(int* number) {
      while (atomicCAS(number, 0, 1) != 0) {}
    }
    constexpr int kMark = 1;
    inline int& shared_mark() {
      __shared__ int mark;
      return mark;
    }
    __global__ void read_and_mark(int* number) {
      *number = shared_mark();
      shared_mark() = kMark;
    }
    """,
    ("count_together", "wait_for_nobody", "part", "try_for_ever", "read_and_mark"),
)


@pytest.fixture(scope="module")
def waiting():
    return emulator.Emulator(WAITING, {})


def test_threads_that_go_on_are_not_taken_for_threads_that_wait(waiting):
    """However long they take: they write all the time."""
    waiting.patience = 5000
    numbers = np.zeros(64, np.int32)
    waiting.bound_to({})["count_together"]((1,), (64,), (numbers, np.int32(100)))
    assert (numbers == 100).all()


@pytest.mark.parametrize("kernel", ["wait_for_nobody", "part", "try_for_ever"])
def test_threads_that_wait_for_each_other_are_aborted(waiting, kernel):
    waiting.patience = 5000
    launch, number = waiting.bound_to({})[kernel], np.ones(1, np.int32)

    def wait_for_ever():
        faulthandler.disable()
        launch((1,), (64,), (number,))

    process = multiprocessing.get_context("fork").Process(target=wait_for_ever)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGABRT


def test_two_libraries_of_a_kernel_share_no_memory(waiting):
    """With other constants its variables may be larger."""
    for emulated in (waiting, emulator.Emulator(WAITING, {"kMark": 2})):
        number = np.zeros(1, np.int32)
        emulated.bound_to({})["read_and_mark"]((1,), (1,), (number,))
        assert number.tobytes() == bytes([emulator._GARBAGE]) * 4
