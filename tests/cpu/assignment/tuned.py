"""Other numbers for the engines: every call without a tuning of its own takes the default one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType
from typing import Any
from unittest import mock

import pytest


def tune(monkeypatch: pytest.MonkeyPatch, tuning: ModuleType, **fields: Any) -> None:
    """Give the default of an engine's module `tuning` these values until the test ends."""
    monkeypatch.setattr(tuning, "DEFAULT", replace(tuning.DEFAULT, **fields))


@contextlib.contextmanager
def tuned(tuning: ModuleType, **fields: Any) -> Iterator[None]:
    """Within, the default of an engine's module `tuning` has these values."""
    with mock.patch.object(tuning, "DEFAULT", replace(tuning.DEFAULT, **fields)):
        yield
