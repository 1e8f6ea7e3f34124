"""A communicator in one process: words of errors, arrays on devices, and who hears a Ctrl-C."""

from __future__ import annotations

import signal
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import gpumatch
from gpumatch.distributed import communicator
from gpumatch.distributed.communicator import Communicator


class Ours(Exception):
    """Other ranks may not have its module."""


def no_file():
    return FileNotFoundError(2, "No such file", "costs.npy")


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (ValueError("a word"), ValueError, "a word"),
        (no_file(), FileNotFoundError, "costs.npy: No such file"),
        (OSError("the disk is gone"), OSError, "the disk is gone"),
        (OSError(28, "No space"), OSError, "[Errno 28] No space"),
        (KeyError("a"), KeyError, "KeyError: 'a'"),
        (Ours("a word"), RuntimeError, "Ours: a word"),
        (KeyboardInterrupt("a word"), RuntimeError, "a word"),
        (
            gpumatch.CertificateError("a gap"),
            gpumatch.CertificateError,
            "a gap",
        ),
    ],
    ids=lambda given: type(given).__name__ if isinstance(given, BaseException) else None,
)
def test_all_ranks_get_an_error_that_they_know(error, kind, text):
    assert communicator._in_words(error, 2) == (kind, text)


def heard_of(kind, text, own, size=2):
    """What a rank raises when the second of two, or the only one, has failed so."""
    world = object.__new__(Communicator)
    world.rank, world.size, world._has_ended = 0, size, False
    world._words = np.array([[0, 5], [communicator.FAIL, 0]][-size:])
    world._comm = SimpleNamespace(bcast=lambda told, root: (kind, text))
    world._raise_first(own)
    assert world._has_ended


@pytest.mark.parametrize("own", [None, ZeroDivisionError("mine")], ids=["well", "failed, too"])
def test_the_first_rank_that_failed_is_named(own):
    with pytest.raises(ValueError, match=r"^rank 1: no$") as caught:
        heard_of(ValueError, "no", own)
    assert caught.value.__cause__ is own


def test_an_error_that_cannot_be_made_of_a_text_is_a_runtime_error():
    class Two(Exception):
        def __init__(self, one, two):
            """Takes more than a text."""

    with pytest.raises(RuntimeError, match=r"^rank 1: no$"):
        heard_of(Two, "no", None)


def test_a_single_rank_raises_its_own_error():
    """It goes on where `__exit__` was called from, which raises it as it is."""
    heard_of(ValueError, "no", ValueError("no"), size=1)


# -- devices ---------------------------------------------------------------------------------------


def test_links_take_what_is_on_a_device_but_no_flags(monkeypatch):
    """NCCL knows no flags."""
    world = object.__new__(Communicator)
    world._mpi, world._given, world._links, agreed = "MPI", "ranks", None, []
    world._agree = agreed.append
    numbers, flags = (SimpleNamespace(dtype=np.dtype(name)) for name in ("int32", "bool"))
    assert world._links_for(numbers) is None
    monkeypatch.setattr(communicator, "links_of", lambda mpi, comm: (mpi, comm))
    world.link_devices()
    assert agreed == [0]
    assert world._links_for(numbers) == ("MPI", "ranks")
    assert world._links_for(flags) is None
    assert world._links_for(np.arange(3)) is None


# -- Ctrl-C ----------------------------------------------------------------------------------------


def handlers_in_a_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(communicator._own_handler()))
    thread.start()
    thread.join()
    return found


def test_only_the_main_thread_takes_a_handler_of_pythons():
    before = signal.getsignal(signal.SIGINT)
    try:
        for handler in (signal.default_int_handler, lambda *_: None):
            signal.signal(signal.SIGINT, handler)
            assert communicator._own_handler() is handler
            assert handlers_in_a_thread() == [None]
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        assert communicator._own_handler() is None
    finally:
        signal.signal(signal.SIGINT, before)
