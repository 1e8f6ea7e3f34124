"""Peers in processes of their own: measured, ended at their cap, their failures told."""

from __future__ import annotations

import pytest

import graphs
from bench.harness import Limits, Overrun, attempt
from bench.peers import PEERS, Peer, in_process
from tests.bench import contenders

MATRIX = graphs.grid(6)


def test_a_peer_is_measured():
    result = in_process(contenders.entries, MATRIX, Limits(repeats=2))
    assert result["size"] == MATRIX.nnz
    assert len(result["seconds"]) == 2


def test_an_endless_peer_is_ended():
    with pytest.raises(Overrun):
        in_process(contenders.endless, MATRIX, Limits(cap=0.05))


def test_a_crash_is_told():
    with pytest.raises(RuntimeError, match="died"):
        in_process(contenders.crashing, MATRIX, Limits())


def test_an_exception_is_told():
    with pytest.raises(MemoryError, match="too many entries"):
        in_process(contenders.raising, MATRIX, Limits())


@pytest.mark.parametrize("name", PEERS)
def test_peers_find_the_maximum(name):
    if not Peer(name).installed:
        pytest.skip(f"{name} is not installed")
    call = PEERS[name](graphs.ladder(5))
    assert call() == graphs.matching_size("ladder", 5)


def test_a_peer_that_is_not_installed_fails_without_ending_the_run(monkeypatch):
    monkeypatch.setitem(PEERS, "abacus", contenders.raising)
    assert not Peer("abacus").installed

    class Problem:
        matrix = MATRIX

    assert "MemoryError" in attempt(Peer("abacus"), Problem, Limits())["failed"]
