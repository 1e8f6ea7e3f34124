"""Stopping a run by time, callback, exception or Ctrl-C, and watching it."""

from __future__ import annotations

import contextlib
import pickle
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array

import gpumatch as gm
import gpumatch.assignment
import gpumatch.matching
import graphs
from gpumatch.certificates import check_matching
from gpumatch.dispatch import registry
from gpumatch.problems import small_problems
from gpumatch.running import control
from gpumatch.running.control import Control, Progress
from gpumatch.running.interrupts import InterruptsHeld
from tests.cases import EVERY_START

# No perfect matching: stopping early is never mistaken for a proof.
ROWS, MAXIMUM = 90, 87
GRAPH = graphs.make("hexa", ROWS, seed=3)


def assert_is_a_matching(graph, m):
    """A valid matching of `graph`, maximum or not."""
    check_matching(gm.BipartiteGraph(graph), m.row_to_col, m.col_to_row)
    assert m.size == (m.row_to_col >= 0).sum() <= MAXIMUM


def finish(m, run):
    """What is left after `m`, which `initial=` must accept."""
    whole = gm.maximum_matching(GRAPH, initial=m, **run.arguments)
    assert gm.verify(GRAPH, whole).size == MAXIMUM


def ticks_of(run, init):
    """What a callback is told in a whole run."""
    told = []
    gm.maximum_matching(GRAPH, init=init, threads=1, callback=told.append, **run.arguments)
    return told


def some_ticks(run, init):
    """(number, progress) of a run's first ticks, one in the middle, and the last."""
    told = ticks_of(run, init)
    numbers = {0, 1, len(told) // 2, len(told) - 1}
    if run.backend == "cuda":
        numbers = {0}  # how many more there are varies from run to run
    return [(number, told[number]) for number in sorted(numbers) if number < len(told)]


class OnCall:
    """A callback that does `action` from its call `number` (from 0) on, and counts its calls."""

    def __init__(self, number, action):
        self.number, self.action, self.calls = number, action, 0

    def __call__(self, progress):
        self.calls += 1
        return self.action() if self.calls > self.number else None


class Stop(Exception):
    pass


def raise_stop():
    raise Stop("here")


def raise_ctrl_c():
    raise KeyboardInterrupt


def say_stop():
    return True


# -- every algorithm, every start, every tick ------------------------------------------------------


@pytest.mark.parametrize(("run", "init"), EVERY_START)
def test_a_callback_is_told_how_far_the_run_is(run, init):
    told = ticks_of(run, init)
    assert told
    assert all(isinstance(progress, Progress) for progress in told)
    for field in Progress._fields:
        values = [getattr(progress, field) for progress in told]
        assert values == sorted(values)
    assert told[0].matched == told[0].phase == 0
    assert told[-1].matched <= MAXIMUM


def test_the_first_tick_is_told_of_the_matching_to_begin_from():
    whole = gm.maximum_matching(GRAPH)
    part = np.where(np.arange(ROWS) < 40, whole.row_to_col, -1)
    size = int((part >= 0).sum())
    told = []
    gm.maximum_matching(GRAPH, initial=part, callback=told.append)
    assert told[0].matched == size > 30


@pytest.mark.parametrize(("run", "init"), EVERY_START)
def test_no_time_leaves_what_there_was(run, init):
    m = gm.maximum_matching(GRAPH, init=init, time_limit=0, **run.arguments)
    assert_is_a_matching(GRAPH, m)
    assert not m.proven
    assert m.size < MAXIMUM
    part = gm.maximum_matching(GRAPH, init=init, time_limit=0, initial=m, **run.arguments)
    assert part.size >= m.size
    finish(m, run)


@pytest.mark.parametrize(("run", "init"), EVERY_START)
def test_a_callback_stops_the_run_at_any_tick(run, init):
    for number, _ in some_ticks(run, init):
        callback = OnCall(number, say_stop)
        m = gm.maximum_matching(GRAPH, init=init, threads=1, callback=callback, **run.arguments)
        assert callback.calls == number + 1
        assert_is_a_matching(GRAPH, m)
        assert not m.proven
        finish(m, run)


@pytest.mark.parametrize(("run", "init"), EVERY_START)
def test_an_exception_of_the_callback_comes_out(run, init):
    for number, _ in some_ticks(run, init):
        callback = OnCall(number, raise_stop)
        with pytest.raises(Stop, match="here"):
            gm.maximum_matching(GRAPH, init=init, threads=1, callback=callback, **run.arguments)
    finish(None, run)  # nothing is left behind that would hang or spoil the next run


@pytest.mark.parametrize(("run", "init"), EVERY_START)
def test_ctrl_c_carries_the_best_so_far(run, init):
    for number, progress in some_ticks(run, init):
        callback = OnCall(number, raise_ctrl_c)
        with pytest.raises(KeyboardInterrupt) as caught:
            gm.maximum_matching(GRAPH, init=init, threads=1, callback=callback, **run.arguments)
        m = caught.value.result
        assert_is_a_matching(GRAPH, m)
        assert m.size >= progress.matched
        assert not m.proven
        assert {"algorithm", "start_size", "phases", "seconds"} <= m.stats.keys()
        finish(m, run)
        assert pickle.loads(pickle.dumps(m)).size == m.size


@pytest.mark.parametrize(
    ("half_done", "left"),
    [
        (([0, 1, -2, 1], [0, 3, 2]), ([0, -1, -1, 1], [0, 3, -1])),
        (([-1, 0, 0, -3], [2, 0, 0]), ([-1, -1, 0, -1], [2, -1, -1])),
    ],
)
def test_ctrl_c_in_the_middle_of_an_augmentation_leaves_a_matching(half_done, left, monkeypatch):
    """Whatever half-done state the arrays are in, the result is valid."""

    def broken_off(task):
        task.row_to_col[:], task.col_to_row[:] = half_done
        raise KeyboardInterrupt

    monkeypatch.setitem(registry.STARTS, "none", {"cpu": registry.Home("start")})
    monkeypatch.setattr(
        registry, "load", lambda name: registry.no_start if name == "start" else broken_off
    )
    with pytest.raises(KeyboardInterrupt) as caught:
        gm.maximum_matching(np.ones((4, 3)), init="none")
    m = caught.value.result
    assert (m.row_to_col.tolist(), m.col_to_row.tolist()) == left


@pytest.mark.parametrize("solve", [gm.maximum_matching, gm.assign])
def test_ctrl_c_before_there_is_a_result(solve, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    for module in (gpumatch.matching, gpumatch.assignment):
        monkeypatch.setattr(module, "Control", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        solve(csr_array(np.ones((4, 3))), time_limit=60)  # else one call would solve it
    assert caught.value.result is None


SWALLOWS = """
import signal
try:
    signal.raise_signal(signal.SIGINT)
except BaseException:
    pass
"""
TURNS = """
import signal
def generate():
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        raise StopIteration
    yield 1
list(generate())
"""


@pytest.mark.parametrize("code", [SWALLOWS, TURNS], ids=["swallows", "turns"])
@pytest.mark.parametrize("solve", [gm.maximum_matching, gm.assign])
def test_ctrl_c_in_an_import_that_does_not_bear_it(solve, code, tmp_path, monkeypatch):
    """As in some of what Numba imports."""
    (tmp_path / "imports_much.py").write_text(code + "def run(task): return True")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "imports_much", raising=False)
    monkeypatch.setattr(registry.Home, "run_with", lambda *_: registry.load("imports_much:run"))
    monkeypatch.setattr(small_problems, "ONE_OF_A_BATCH", "imports_much:run")
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            solve(np.ones((4, 3)), backend="cpu")
    finally:
        signal.signal(signal.SIGINT, handler)
    assert caught.value.result is None


def test_interrupts_are_held_as_long_as_the_block_and_by_the_main_thread_alone():
    came = []
    before = signal.signal(signal.SIGINT, lambda number, frame: came.append((number, frame.f_code)))
    told = signal.SIGINT, sys._getframe().f_code  # where Ctrl-C came
    own = signal.getsignal(signal.SIGINT)
    try:
        with InterruptsHeld():
            signal.raise_signal(signal.SIGINT)
            assert not came
        assert came == [told]
        assert signal.getsignal(signal.SIGINT) is own
        with ThreadPoolExecutor(1) as pool:
            pool.submit(InterruptsHeld().__enter__).result()
        assert signal.getsignal(signal.SIGINT) is own
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with InterruptsHeld():
            signal.raise_signal(signal.SIGINT)
        assert came == [told]
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("error", [KeyboardInterrupt, StopIteration])
def test_a_part_leaves_what_is_raised_as_it_is(error):
    parts = control.Control()
    with pytest.raises(error), parts.part("import"):
        raise error
    assert parts.seconds["import"] >= 0


SIGINT = """
import signal, threading, gpumatch, graphs
signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs begin with it ignored
try:
    gpumatch.maximum_matching(
        graphs.make("uniform", 3000, 3),
        algorithm="p-dbfs",
        threads=4,
        callback=lambda progress: signal.raise_signal(signal.SIGINT),
    )
except KeyboardInterrupt as exc:
    print(exc.result, threading.active_count())
"""


def test_a_signal_ends_the_run_with_its_result_and_no_thread_left():
    done = subprocess.run([sys.executable, "-c", SIGINT], capture_output=True, text=True)
    assert re.fullmatch(r"Matching\(size \d+, not proven maximum, p-dbfs\) 1\n", done.stdout)
    assert done.stderr == ""


# -- progress bar ----------------------------------------------------------------------------------


def test_the_bar_goes_to_stderr_and_ends_at_the_final_size(capsys):
    gm.maximum_matching(GRAPH, algorithm="hk", init="none", progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "matched" in err
    assert f"{MAXIMUM:.1f}/{ROWS:.1f}" in err
    assert "phase=" in err
    assert err.endswith("\n")  # closed


def test_no_bar_unless_asked_for(capsys):
    gm.maximum_matching(GRAPH)
    assert capsys.readouterr() == ("", "")


class Bar:
    """A stand-in for tqdm that remembers what it was told."""

    def __init__(self, total):
        self.total, self.n, self.closed = total, 0, False
        self.phases = []

    def update(self, step):
        assert not self.closed
        self.n += step

    def set_postfix(self, *, phase, refresh, compiling=None):
        assert not self.closed
        assert refresh is False  # `update` does that
        self.phases.append(phase)

    def close(self):
        self.closed = True


@pytest.fixture
def bars(monkeypatch):
    """All bars made."""
    made = []

    def tqdm(*, total, **words):
        assert words == {"unit": "row", "unit_scale": True, "desc": "matched"}
        made.append(Bar(total))
        return made[-1]

    monkeypatch.setattr("tqdm.auto.tqdm", tqdm)
    return made


@pytest.mark.parametrize(("run", "init"), EVERY_START)
def test_the_bar_shows_the_final_size(run, init, bars):
    m = gm.maximum_matching(GRAPH, init=init, progress=True, **run.arguments)
    (bar,) = bars
    assert (bar.n, bar.total, bar.closed) == (MAXIMUM, ROWS, True)
    assert bar.phases[0] == 0
    assert bar.phases == sorted(bar.phases)
    assert bar.phases[-1] == m.stats["phases"]


@pytest.mark.parametrize("graph", [np.ones((7, 4)), np.ones((4, 7))], ids=["tall", "wide"])
def test_a_full_bar_is_the_smaller_side(graph, bars):
    gm.maximum_matching(graph, progress=True)
    (bar,) = bars
    assert (bar.n, bar.total) == (4, 4)


@pytest.mark.parametrize("objective", ["sum", "bottleneck"])
@pytest.mark.parametrize("shape", [(7, 4), (4, 7)], ids=["tall", "wide"])
def test_so_is_that_of_an_assignment(shape, objective, bars):
    costs = np.arange(28.0).reshape(shape)
    gm.assign(costs, objective=objective, progress=True)
    (bar,) = bars
    assert (bar.n, bar.total, bar.closed) == (4, 4, True)


@pytest.mark.parametrize("algorithm", ["auto", "auction"])
def test_so_is_that_of_a_batch(algorithm, bars):
    """By compiled calls, and one by one; an infeasible problem ends it, too."""
    batch = [np.arange(28.0).reshape(7, 4), np.arange(6.0).reshape(2, 3)]
    gm.assign(batch, algorithm=algorithm, progress=True)
    assert (bars[0].n, bars[0].total, bars[0].closed) == (6, 6, True)
    with pytest.raises(ValueError, match="problem 2"):
        gm.assign([*batch, np.full((2, 2), np.inf)], algorithm=algorithm, progress=True)
    assert bars[1].closed


@pytest.mark.parametrize("action", [raise_stop, raise_ctrl_c, say_stop])
def test_the_bar_is_closed_however_the_run_ends(action, bars):
    with contextlib.suppress(Stop, KeyboardInterrupt):
        gm.maximum_matching(GRAPH, progress=True, callback=OnCall(0, action))
    assert [bar.closed for bar in bars] == [True]


@pytest.mark.parametrize("algorithm", ["auto", "auction"])
@pytest.mark.parametrize("action", [raise_stop, raise_ctrl_c, say_stop])
def test_so_is_that_of_a_batch_with_no_pairs_yet(action, algorithm, bars):
    batch = [np.ones((3, 3))] * 4
    with contextlib.suppress(Stop, KeyboardInterrupt):
        gm.assign(batch, algorithm=algorithm, progress=True, callback=OnCall(0, action))
    (bar,) = bars
    assert (bar.n, bar.total, bar.closed) == (0, 12, True)


# -- Control itself --------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch):
    """A clock that moves when told to."""
    now = [100.0]
    monkeypatch.setattr(control.time, "perf_counter", lambda: now[0])
    return now


def test_the_time_limit_counts_from_the_beginning(clock):
    limited = Control(time_limit=2.5)
    assert not limited.tick(0)
    clock[0] += 2.4
    assert not limited.tick(1)
    clock[0] += 0.1
    assert limited.tick(1)
    assert limited.stopped


@pytest.mark.parametrize("limit", [0, np.float32(0), np.int64(0), False])
def test_any_real_number_is_a_time_limit(limit):
    assert Control(time_limit=limit).tick(0)


def test_no_limit_never_stops(clock):
    free = Control()
    clock[0] += 1e9
    assert not free.tick(0)


def test_a_callback_that_once_said_stop_is_obeyed_for_good():
    answers = iter([None, 0, "yes", False])
    asked = Control(callback=lambda progress: next(answers))
    assert [asked.tick(n) for n in range(4)] == [False, False, True, True]


def test_progress_counts_phases_and_seconds(clock):
    told = []
    watched = Control(callback=told.append)
    watched.tick(3)
    watched.phase(levels=4, found=2, matched=5)
    clock[0] += 1.5
    watched.tick(5)
    assert told == [(3, 0, 0.0, 0.0), (5, 1, 1.5, 0.0)]
    assert told[1].phase == 1


def test_statistics_add_up_parts_and_phases(clock):
    counted = Control()
    for seconds in (1.0, 2.0):
        with contextlib.suppress(Stop), counted.part("search"):
            clock[0] += seconds
            raise_stop()
    counted.phase(levels=4, found=2, matched=5, launches=7)
    counted.phase(found=0, matched=5)
    assert counted.statistics() == {
        "phases": 2,
        "levels": 4,
        "seconds": {"compilation": 0.0, "search": 3.0},
        "trace": [
            {"levels": 4, "found": 2, "matched": 5, "launches": 7},
            {"levels": 0, "found": 0, "matched": 5},
        ],
    }


def test_what_is_compiled_in_a_part_of_a_part_counts_once(clock, monkeypatch):
    compiled = [0.0]
    monkeypatch.setattr(control.compile_time, "spent", lambda: compiled[0])
    timed = Control()
    with timed.part("search"):
        clock[0] += 1
        with timed.part("trees"):
            clock[0], compiled[0] = clock[0] + 5, compiled[0] + 2
        clock[0], compiled[0] = clock[0] + 1, compiled[0] + 0.5
    with timed.part("costs"):
        clock[0], compiled[0] = clock[0] + 4, compiled[0] + 1
    assert timed.seconds == {"compilation": 3.5, "search": 4.5, "trees": 3.0, "costs": 3.0}


@pytest.mark.parametrize(("seconds", "shown"), [(0.049, None), (0.051, "0.1s")])
def test_the_bar_says_how_long_was_compiled_if_it_was_long(seconds, shown, monkeypatch):
    compiled = [7.0]
    monkeypatch.setattr(control.compile_time, "spent", lambda: compiled[0])
    shows, told = Control(progress=True), []
    bar = SimpleNamespace(n=0, update=id, set_postfix=lambda **words: told.append(words))
    monkeypatch.setattr("tqdm.auto.tqdm", lambda **_: bar)
    compiled[0] += seconds
    shows.tick(0)
    assert [words.get("compiling") for words in told] == [shown]


@pytest.mark.parametrize("as_stored", [np.asarray, csr_array])
def test_pairs_to_begin_from_are_kept_on_tall_costs(as_stored):
    initial = [-1, 2, -1, 0, 1]
    a = gm.assign(as_stored(np.ones((5, 3))), initial=initial, time_limit=0)
    assert a.row_to_col.tolist() == initial
