"""Algorithms by name, and circumstances in which small graphs show what large ones do."""

from __future__ import annotations

import pytest

from tests.cpu.matching import runs


@pytest.fixture(params=runs.NAMES)
def match(request):
    """See `runs.matcher`; of every algorithm, unless a test names some."""
    return runs.matcher(request.param)


@pytest.fixture
def small_budget(monkeypatch):
    runs.with_small_budget(monkeypatch)


@pytest.fixture
def crowd(monkeypatch):
    runs.in_a_crowd(monkeypatch)
