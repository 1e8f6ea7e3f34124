"""Where tests run: those marked `gpu` need a device, and leave a record of their run.

Those marked `emulated` as well run without one, on the emulator of its kernels.

Kernels that Numba compiles are kept in a folder of their sources.
"""

from __future__ import annotations

import functools
import gc
import importlib.util
import os
import shutil
import sys
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import settings

from gpumatch.dispatch.devices import why_no_cuda
from tests import entry_points
from tests.gpu_record import GpuRecord
from tests.numba_cache import use_folder

use_folder()
entry_points.show()  # before any test imports networkx, which looks for them then
settings.register_profile("gpumatch", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("gpumatch")
gc.set_threshold(10_000)  # with 700, Python looks for garbage a tenth of the time

COLLECTED = pytest.StashKey[list[tuple[str, str]]]()
LONGEST_TEXT, LONGEST_WITH_LINES = 60, 40
"""Characters of a text that names a test, and of one that has lines or rare letters."""

reason_for_no_gpu = functools.cache(why_no_cuda)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # with pytest-xdist, one record for all workers
        if reason_for_no_gpu() is None:
            config.pluginmanager.register(GpuRecord())
    else:
        _share_gpus(config.workerinput["workerid"])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the names of all tests, before some are deselected."""
    config.stash[COLLECTED] = [
        (item.nodeid, item.callspec.id if hasattr(item, "callspec") else "") for item in items
    ]


@pytest.fixture(scope="session")
def every_test(request) -> list[tuple[str, str]]:
    """(test, id of its parameters) of all that this process has collected."""
    return request.config.stash[COLLECTED]


def _share_gpus(worker: str) -> None:
    """Give each worker of pytest-xdist one of the GPUs, in turn."""
    gpus = len(list(Path("/dev").glob("nvidia[0-9]*")))
    if gpus > 1:
        number = int(worker.removeprefix("gw"))
        os.environ.setdefault("CUDA_VISIBLE_DEVICES", str(number % gpus))


def needs_stand_in(item: pytest.Item) -> bool:
    """Whether a test runs on the emulator, because there is no GPU."""
    return (
        item.get_closest_marker("emulated") is not None
        and reason_for_no_gpu() is not None
        and None not in (shutil.which("g++"), importlib.util.find_spec("cupy"))
    )


def pytest_make_parametrize_id(val: object) -> str | None:
    """A text that is long, or has lines or rare letters: cut, on one line and without these."""
    if not isinstance(val, str):
        return None
    is_plain = val.isascii() and val.isprintable()
    if is_plain and len(val) <= LONGEST_TEXT:
        return None
    shown = (c if c.isascii() and c.isprintable() and c != "\\" else "|" for c in val)
    return "".join(shown)[: LONGEST_TEXT if is_plain else LONGEST_WITH_LINES]


def pytest_runtest_setup(item: pytest.Item) -> None:
    if "tests.cuda.emulator" in sys.modules:  # threads go on in the same order, whatever ran before
        sys.modules["tests.cuda.emulator"].Emulator.all_begin_again()
    if item.get_closest_marker("gpu") is None or needs_stand_in(item):
        return
    if reason_for_no_gpu() is not None:
        pytest.skip(f"no GPU: {reason_for_no_gpu()}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Have a worker of pytest-xdist report calls, and of what is before and after only faults.

    A report takes both processes some 0.4 ms, and a test has three. Those of calls have all that
    the first process counts. It is not told of begins and ends, because it shows none.
    """
    if not hasattr(item.config, "workerinput"):
        return None
    for report in runtestprotocol(item, nextitem=nextitem, log=False):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


@pytest.fixture(scope="session")
def all_emulators():
    from tests.cuda.emulator.device import Emulators

    return Emulators()


@pytest.fixture
def stand_in(all_emulators, monkeypatch, request):
    """What is CuPy for all code, and for the test's own module."""
    from tests.cuda.emulator.device import lead_all_drivers_here

    cp = lead_all_drivers_here(monkeypatch, all_emulators)
    if hasattr(request.module, "cp"):
        monkeypatch.setattr(request.module, "cp", cp)
    return cp


@pytest.fixture(autouse=True)
def stand_in_for_no_gpu(request):
    if needs_stand_in(request.node):
        request.getfixturevalue("stand_in")


@pytest.fixture
def calls_of(monkeypatch):
    """Has the options of the calls of a function that a module imports, or has, written down."""

    def begin(module: str, name: str) -> list[dict[str, object]]:
        source = importlib.import_module(module)
        function, calls = getattr(source, name), []

        def noted(*arguments, **options):
            calls.append(options)
            return function(*arguments, **options)

        monkeypatch.setattr(source, name, noted)
        return calls

    return begin
