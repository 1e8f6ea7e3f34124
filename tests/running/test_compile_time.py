"""What compiles is a part of its own in the seconds of a call."""

from __future__ import annotations

import gc
import threading
import time

import numpy as np
import pytest
from numba import njit

import gpumatch as gm
from gpumatch.cpu.numba_tools import compiled
from gpumatch.running import compile_time
from gpumatch.running.control import Control

LONG = 0.02


def compile_something():
    with compile_time.compiling():
        time.sleep(LONG)


def test_compiling_inside_of_compiling_counts_once():
    before, began = compile_time.spent(), time.perf_counter()
    with compile_time.compiling():
        compile_something()
        within = compile_time.spent() - before
    assert LONG <= within <= compile_time.spent() - before <= time.perf_counter() - began


def test_what_numba_compiles_counts_until_it_is_compiled():
    before = compile_time.spent()
    njit(_plus_one)(1)
    spent = compile_time.spent()
    assert spent > before
    time.sleep(LONG)
    assert compile_time.spent() == spent
    assert gc.isenabled()


def test_what_a_program_has_frozen_stays_frozen_while_numba_compiles():
    gc.freeze()
    frozen = gc.get_freeze_count()
    njit(_plus_one)(1)
    still = gc.get_freeze_count()
    gc.unfreeze()
    assert still > frozen // 2 > 0  # a few have gone


def _plus_one(number):
    return number + 1


def test_what_collects_no_garbage_does_not_after_numba_has_compiled_either():
    gc.disable()
    try:
        njit(_plus_one)(1)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_functions_that_are_compiled_within_others_count_as_parts_of_them():
    listener, before = compiled._Compilation(), compile_time.spent()
    listener.on_start(None)
    listener.on_start(None)
    listener.on_end(None)
    assert not gc.isenabled()
    time.sleep(LONG)
    listener.on_end(None)
    assert gc.isenabled()
    spent = compile_time.spent()
    assert spent - before >= LONG
    time.sleep(LONG)
    assert compile_time.spent() == spent


def test_garbage_that_compilations_leave_is_looked_for_when_there_is_much(monkeypatch):
    """Each leaves 6 objects, and more than 10 are many."""
    listener, left, seen = compiled._Compilation(), [], []
    monkeypatch.setattr(compiled, "_GARBAGE", 10)
    monkeypatch.setattr(gc, "get_count", lambda: (6, 0, 0))
    monkeypatch.setattr(gc, "get_freeze_count", lambda: 0)
    monkeypatch.setattr(gc, "freeze", lambda: left.append(1))
    monkeypatch.setattr(gc, "unfreeze", lambda: None)
    for _ in range(6):
        listener.on_start(None)
        listener.on_end(None)
        seen.append(len(left))
    assert seen == [1, 1, 2, 2, 3, 3]


def test_threads_that_compile_together_count_once():
    before, began = compile_time.spent(), time.perf_counter()
    threads = [threading.Thread(target=compile_something) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert LONG <= compile_time.spent() - before <= time.perf_counter() - began


def test_a_failed_compilation_ends():
    with pytest.raises(ZeroDivisionError), compile_time.compiling():
        _ = 1 / 0
    before = compile_time.spent()
    time.sleep(LONG)
    assert compile_time.spent() == before


def test_parts_leave_it_out_and_count_it_once():
    control = Control()
    with control.part("search"):
        compile_something()
        with control.part("inner"):
            compile_something()
    assert control.seconds["compilation"] >= 2 * LONG
    assert 0 <= control.seconds["inner"] < LONG
    assert 0 <= control.seconds["search"] < LONG


def test_a_callback_hears_of_it():
    told = []
    control = Control(callback=told.append)
    control.tick(0)
    compile_something()
    control.tick(1)
    assert told[0].compiling == 0.0
    assert told[1].seconds >= told[1].compiling >= LONG


def test_the_bar_shows_it(capsys):
    control = Control(progress=True)
    control.total = 2
    control.tick(1)
    assert "compiling" not in capsys.readouterr().err
    with compile_time.compiling():
        time.sleep(0.06)
    control.close(2)
    assert "compiling=0.1s" in capsys.readouterr().err


def test_what_numba_compiles_is_counted():
    assert compiled.kernel  # its import begins to listen
    before = compile_time.spent()
    njit(lambda x: x + 1)(1)
    assert compile_time.spent() > before


@pytest.mark.parametrize("threads", [1, 2])
def test_every_result_tells_of_it(threads):
    big = np.random.default_rng(0).random((300, 300))
    for result in (
        gm.assign(np.eye(3)),
        gm.assign(big, threads=threads),
        gm.assign(np.stack([np.eye(3)] * 2)),
        gm.assign(np.eye(3), objective="bottleneck"),
        gm.maximum_matching(np.eye(3), threads=threads),
    ):
        assert 0 <= result.stats["seconds"]["compilation"] < 60
