"""The timing loop and the store: warm-up, limits, failures, caps, resuming, atomic files."""

from __future__ import annotations

import json
import os
import statistics
import time
from types import SimpleNamespace

import pytest

from bench import harness
from bench.harness import LONG, Limits, Sample, Store, attempt, repeat, summary
from bench.instances import Folder, generated, small
from tests.bench.contenders import Scripted, slow

SMALL = generated("grid-4", "grid", 4)
MIDDLE = generated("grid-5", "grid", 5)
LARGE = generated("grid-6", "grid", 6)
OTHER = generated("chain-9", "chain", 9)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "results.json"


@pytest.fixture
def measure(tmp_path, out):
    """Runs contenders on graphs into the store of this test; gives whether all is done."""

    def run(instances, contenders, **options):
        return harness.run(
            Store(out, "test", {"cap": 1}, {"machine": "abacus"}),
            instances,
            contenders,
            Limits(repeats=2, cap=1.0),
            folder=Folder(tmp_path / "graphs", processes=1),
            problem=lambda instance, matrix: SimpleNamespace(
                name=instance.name, facts=instance.facts(matrix)
            ),
            say=lambda line: None,
            **options,
        )

    return run


def results(out, graph):
    return harness.read(out)["graphs"][graph]["results"]


# -- the timing loop -------------------------------------------------------------------------------


def scripted_samples(*seconds):
    script = iter(seconds)
    return lambda: Sample(next(script), 7, (2, 3))


def test_the_first_run_warms_up():
    result = repeat(scripted_samples(9.0, 1.0, 3.0, 2.0), Limits(repeats=3))
    assert result == {"seconds": [1.0, 3.0, 2.0], "size": 7, "levels": [2, 3]}
    assert statistics.median(result["seconds"]) == 2.0
    assert summary(result) == "2 s, size 7"


def test_a_run_past_the_budget_is_not_repeated_and_counts():
    assert repeat(scripted_samples(9.0), Limits(repeats=5, budget=0.0))["seconds"] == [9.0]


def test_a_short_warm_up_is_repeated_once_whatever_the_budget():
    limits = Limits(repeats=5, budget=0.0)
    assert repeat(scripted_samples(LONG / 2, 1.0), limits)["seconds"] == [1.0]
    assert repeat(scripted_samples(LONG, 1.0), limits)["seconds"] == [LONG]


def test_no_repeats_still_gives_a_time():
    assert repeat(scripted_samples(9.0), Limits(repeats=0))["seconds"] == [9.0]


def test_an_overrun_is_a_result_with_a_bound():
    result = attempt(slow("snail"), None, Limits(cap=4.0))
    assert result == {"failed": "over 4 s on this graph", "at_least": 4.0}
    assert summary(result) == "over 4 s on this graph"


def test_an_exception_is_a_result_without_a_bound():
    result = attempt(Scripted("broken", [MemoryError("no room")]), None, Limits())
    assert result == {"failed": "MemoryError: no room"}


def test_ctrl_c_is_no_result():
    with pytest.raises(KeyboardInterrupt):
        attempt(Scripted("cut", [KeyboardInterrupt()]), None, Limits())


# -- the suite's loop ------------------------------------------------------------------------------


def test_every_contender_runs_on_every_graph(measure, out):
    first, second = Scripted("first", [1.0]), Scripted("second", [2.0])
    assert measure([SMALL, OTHER], [first, second])
    assert [p.name for p in first.ran] == ["grid-4"] * 3 + ["chain-9"] * 3
    assert results(out, "chain-9")["second"] == {
        "seconds": [2.0, 2.0],
        "size": 7,
        "levels": [],
        "run": 0,
    }
    facts = harness.read(out)["graphs"]["grid-4"]
    assert (facts["family"], facts["rows"], facts["entries"]) == ("grid", 16, 48)


def test_a_cut_run_goes_on_where_it_was(measure, out):
    cut = Scripted("cut", [1.0, 1.0, 1.0, KeyboardInterrupt()])
    with pytest.raises(KeyboardInterrupt):
        measure([SMALL, MIDDLE], [cut])
    assert list(results(out, "grid-4")) == ["cut"]

    again = Scripted("cut", [5.0])
    assert measure([SMALL, MIDDLE], [again])
    assert {problem.name for problem in again.ran} == {"grid-5"}
    assert results(out, "grid-4")["cut"]["seconds"] == [1.0, 1.0]
    assert results(out, "grid-4")["cut"]["run"] == 0
    assert results(out, "grid-5")["cut"]["run"] == 1
    assert len(harness.read(out)["runs"]) == 2


def test_a_finished_suite_runs_nothing(measure):
    contender = Scripted("once", [1.0])
    assert measure([SMALL], [contender])
    runs = len(contender.ran)
    assert measure([SMALL], [contender])
    assert len(contender.ran) == runs


def test_a_new_contender_joins_finished_graphs(measure, out):
    old, new = Scripted("old", [1.0]), Scripted("new", [1.0])
    measure([SMALL], [old])
    runs = len(old.ran)
    measure([SMALL], [old, new])
    assert len(old.ran) == runs
    assert set(results(out, "grid-4")) == {"old", "new"}


def test_a_passed_deadline_begins_nothing(measure, out):
    contender = Scripted("late", [1.0])
    assert not measure([SMALL], [contender], deadline=time.monotonic())
    assert contender.ran == []
    assert not out.exists()


def test_the_deadline_counts_between_contenders(measure, out, monkeypatch):
    now = iter([0.0, 0.0, 0.0, 10.0])  # batch, graph, first contender, second contender
    clock = SimpleNamespace(monotonic=lambda: next(now), perf_counter=time.perf_counter)
    monkeypatch.setattr(harness, "time", clock)
    first, second = Scripted("first", [1.0]), Scripted("second", [1.0])
    assert not measure([SMALL], [first, second], deadline=5.0)
    assert set(results(out, "grid-4")) == {"first"}


def test_past_its_cap_a_contender_skips_larger_graphs_of_the_family(measure, out):
    snail, hare = slow("snail"), Scripted("hare", [1.0])
    measure([MIDDLE, SMALL, LARGE, OTHER], [snail, hare])
    assert {problem.name for problem in snail.ran} == {"grid-5", "grid-4", "chain-9"}
    assert results(out, "grid-6")["snail"] == {
        "failed": "over 1 s on grid-5",
        "at_least": 1.0,
        "run": 0,
    }
    assert "seconds" in results(out, "grid-6")["hare"]


def test_past_its_cap_a_contender_is_tried_on_other_families(measure):
    snail = slow("snail")
    longer = generated("chain-99", "chain", 99)
    measure([SMALL, longer], [snail])
    assert [problem.name for problem in snail.ran] == ["grid-4", "chain-99"]


def test_past_its_cap_a_contender_skips_graphs_as_large(measure):
    snail = slow("snail")
    measure([SMALL, generated("grid-4-again", "grid", 4)], [snail])
    assert {problem.name for problem in snail.ran} == {"grid-4"}


def test_a_broken_contender_is_tried_on_larger_graphs(measure):
    broken = Scripted("broken", [ValueError("a bug")])
    measure([SMALL, LARGE], [broken])
    assert {problem.name for problem in broken.ran} == {"grid-4", "grid-6"}


def test_a_broken_result_is_measured_again(measure, out):
    measure([SMALL], [Scripted("mended", [ValueError("a bug")]), slow("snail")])
    mended, snail = Scripted("mended", [1.0]), slow("snail")
    measure([SMALL], [mended, snail])
    assert results(out, "grid-4")["mended"]["seconds"] == [1.0, 1.0]
    assert snail.ran == []


def test_another_size_is_marked_wrong(measure, out):
    measure([SMALL], [Scripted("right", [1.0]), Scripted("wrong", [1.0], size=6)])
    assert "failed" not in results(out, "grid-4")["right"]
    assert results(out, "grid-4")["wrong"]["failed"] == "size 6, others [7]"


def test_objectives_may_differ_by_rounding_unless_both_are_integers(measure, out):
    found = {"int": 10**12, "float": 10.0**12 + 1, "other int": 10**12 + 1, "far": 1.1e12}
    contenders = [Scripted(name, [1.0], more={"objective": found[name]}) for name in found]
    measure([SMALL], contenders)
    kept = results(out, "grid-4")
    assert [name for name in found if "failed" in kept[name]] == ["other int", "far"]


# -- the store -------------------------------------------------------------------------------------


def test_results_of_other_settings_are_not_mixed(out, measure):
    measure([SMALL], [Scripted("any", [1.0])])
    with pytest.raises(ValueError, match="settings"):
        Store(out, "test", {"cap": 2}, {})
    with pytest.raises(ValueError, match="suite"):
        Store(out, "other", {"cap": 1}, {})


def test_a_write_cut_off_leaves_the_old_file(out, measure, monkeypatch):
    measure([SMALL], [Scripted("any", [1.0])])
    before = out.read_text()

    def cut(*_):
        raise OSError("cut off")

    monkeypatch.setattr(os, "replace", cut)
    with pytest.raises(OSError, match="cut off"):
        measure([MIDDLE], [Scripted("any", [1.0])])
    assert out.read_text() == before


def test_lists_of_numbers_stand_on_one_line(out):
    store = Store(out, "test", {}, {})
    store.describe("g", {"family": "f", "entries": 1})
    store.add("g", "any", {"seconds": [1.5e-07, 2.0], "size": 7, "levels": [1, 2, 3]})
    assert "[ 1, 2, 3 ]" in out.read_text()
    assert json.loads(out.read_text())["graphs"]["g"]["results"]["any"]["seconds"] == [1.5e-07, 2.0]


def test_warm_up_times_every_contender_once_a_graph(tmp_path):
    contender = Scripted("warm", [1.0])
    problem, folder = lambda instance, matrix: matrix.shape, Folder(tmp_path, processes=1)
    seconds = harness.warm_up([contender], problem, small(quick=True), folder)
    assert contender.ran == [(64, 64), (64, 64)]
    assert set(seconds) == {"warm"}
