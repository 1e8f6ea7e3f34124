"""All CUDA sources: those that any module of gpumatch/cuda declares."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import gpumatch.cuda
from gpumatch.cuda.kernels import Source


def sources() -> list[Source]:
    """Every source, once. This imports all modules there, and CuPy."""
    found = []
    for module in pkgutil.walk_packages(gpumatch.cuda.__path__, "gpumatch.cuda."):
        names = vars(importlib.import_module(module.name))
        found += [thing for thing in names.values() if isinstance(thing, Source)]
    return list(dict.fromkeys(found))


def every_instance() -> Iterator[tuple[Source, dict[str, str]]]:
    """Each source with each combination of its arguments: all there is to compile."""
    for source in sources():
        for arguments in source.instances():
            yield source, arguments
