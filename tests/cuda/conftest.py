"""Each test begins with the same order of the emulators' threads, whatever ran before it."""

import sys

import pytest


@pytest.fixture(autouse=True)
def emulators_begin_again():
    if "tests.cuda.emulator" in sys.modules:  # not where there is no CuPy
        sys.modules["tests.cuda.emulator"].Emulator.all_begin_again()
