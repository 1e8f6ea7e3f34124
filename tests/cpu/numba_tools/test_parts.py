"""What a kernel calls is compiled as a part of it, and by itself only for a call from Python."""

import gc
import re

import numpy as np
import pytest
from numba.core import event
from numba.core.cpu import CPUContext

from gpumatch.cpu.numba_tools import compiled, parts
from gpumatch.cpu.numba_tools.compiled import _nothing, fused, kernel


def half_of(number):
    if number % 2:
        raise ValueError("an odd number")
    return number // 2


def quarter_with(decorator):
    half = decorator(half_of)

    def quarter(number):
        return half(half(number))

    return half, kernel(quarter)


@pytest.mark.parametrize("decorator", [kernel, fused])
def test_a_part_is_compiled_by_itself_only_for_python(decorator):
    half, quarter = quarter_with(decorator)
    assert quarter(12) == 3
    assert half.signatures == []
    assert half(12) == 6
    assert len(half.signatures) == 1
    assert quarter(20) == 5


@pytest.mark.parametrize("plain", [False, True])
def test_errors_in_a_part_reach_python(monkeypatch, plain):
    """In a Numba without what parts depend on, too, which compiles as it always did."""
    if plain:
        monkeypatch.setattr(compiled, "_make_kernel", compiled._plain_kernel)
    half, quarter = quarter_with(kernel)
    with pytest.raises(ValueError, match="an odd number"):
        quarter(6)
    assert quarter(8) == 2
    assert bool(half.signatures) == plain
    assert half.targetoptions["nogil"] is half.targetoptions["nopython"] is True


class Listener(event.Listener):
    """Notes whether Python collects garbage while a function is compiled."""

    def __init__(self):
        self.collects = []

    def on_start(self, event):
        pass

    def on_end(self, event):
        self.collects.append(gc.isenabled())


@pytest.mark.parametrize("collects", [True, False])
def test_no_garbage_is_collected_while_a_kernel_is_compiled(collects):
    (gc.enable if collects else gc.disable)()
    try:
        with event.install_listener("numba:compile", Listener()) as listener:
            quarter_with(kernel)[1](4)
        after = gc.isenabled()
    finally:
        gc.enable()
    assert listener.collects == [False, collects]  # the part, and at last the kernel
    assert after == collects


def test_what_is_kept_is_loaded_without_what_compiles(monkeypatch):
    """That is imported and registered when Numba's context is refreshed, in a new process."""
    _nothing()
    monkeypatch.setattr(
        type(_nothing.targetctx), "refresh", lambda context: pytest.fail("refreshed")
    )
    kept = _nothing._cache.load_overload((), _nothing.targetctx)
    assert kept.entry_point() is None


def first_of(array):
    return array[0]


def test_a_compilation_looks_once_for_new_functions(monkeypatch):
    """Numba would at each use of an array."""
    refreshed, refresh = [], CPUContext.refresh
    monkeypatch.setattr(CPUContext, "refresh", lambda context: refreshed.append(refresh(context)))
    assert parts.Kernel(first_of, {})(np.array([4.0])) == 4.0
    assert len(refreshed) == 1


def two_greatest_of(array):
    """With loops, branches, a tuple, and variables that are last used in all of these."""
    most = two = array[0]
    for k in range(1, len(array)):
        if array[k] > most:
            most, two = array[k], most
        elif array[k] > two or k == 1:
            two = array[k]
    pair = most, two
    return pair[0], pair[1]


class Passes(event.Listener):
    """Notes the passes that a compilation takes."""

    def __init__(self):
        self.names = set()

    def on_start(self, event):
        self.names.add(event.data["name"].split()[0])

    def on_end(self, event):
        pass


def passes_and_code(flags):
    """The names of a compilation's passes, and its machine code without names of functions."""
    greatest = parts.Kernel(two_greatest_of, flags)
    with event.install_listener("numba:run_pass", Passes()) as listener:
        assert greatest(np.array([3.0, 1.0, 4.0, 1.0, 5.0])) == (5.0, 4.0)
    (code,) = greatest.inspect_asm().values()
    return listener.names, re.sub(r"_ZN\w+|\.const\S+|\S+py_func\S+", "name", code)


def test_what_borrows_its_arrays_skips_needless_passes_and_becomes_the_same_code(monkeypatch):
    needless = {one.name() for one in parts.NEEDLESS}
    passes, code = passes_and_code({"_nrt": False})
    monkeypatch.setattr(parts, "NEEDLESS", ())
    all_passes, same_code = passes_and_code({"_nrt": False})
    assert all_passes - passes == needless
    assert code == same_code


def test_what_may_make_arrays_takes_all_passes():
    passes, _ = passes_and_code({})
    assert passes >= {one.name() for one in parts.NEEDLESS}


@pytest.mark.parametrize("releases", [True, False])
def test_only_what_keeps_the_gil_has_an_optimised_wrapper(releases):
    half = parts.Kernel(half_of, {"nogil": releases, "_nrt": False})
    assert half(12) == 6
    (code,) = half.inspect_llvm().values()
    wrappers = re.findall(r"^define .*@_ZN7cpython.* (#\d+) ", code, re.M)
    attributes = re.findall(r"^attributes (#\d+) = \{(.*)\}", code, re.M)
    assert [group for group, names in attributes if "optnone" in names] == wrappers * releases
    assert len(wrappers) == 1 or not releases


def sum_of(array):
    total = 0.0
    for k in range(len(array)):
        total += array[k]  # one after the other, so this loop becomes no vectors
    return total


@pytest.mark.skipif(parts.passes is None, reason="the passes of this Numba are its own")
def test_loops_stay_rolled_up(monkeypatch):
    """Numba's own passes write such a loop out several times."""
    lengths = []
    for passes in (parts.passes, None):
        monkeypatch.setattr(parts, "passes", passes)
        total = parts.Kernel(sum_of, {"_nrt": False})
        assert total(np.array([3.0, 1.0, 4.0])) == 8.0
        (code,) = total.inspect_asm().values()
        lengths.append(len(code))
    assert lengths[0] < lengths[1]


@pytest.mark.parametrize("decorator", [kernel, fused])
def test_a_number_that_is_written_there_is_an_integer_as_others(decorator):
    """Inference takes a variable that begins as 0 for that number first."""
    half = decorator(half_of)

    def halves(count):
        total = 0
        for _ in range(count):
            total = half(total) + 2
        return total + half(6)

    assert kernel(halves)(2) == 6
    assert len(half._part.signatures) == 1
