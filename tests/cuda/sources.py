"""All CUDA sources: those that any module of gpumatch/cuda declares."""

from __future__ import annotations

from collections.abc import Iterator

from gpumatch.cuda.kernels import Source
from gpumatch.cuda.kernels.build import sources

__all__ = ["every_instance", "sources"]


def every_instance() -> Iterator[tuple[Source, dict[str, str]]]:
    """Each source with each combination of its arguments: all there is to compile."""
    for source in sources():
        for arguments in source.instances():
            yield source, arguments
