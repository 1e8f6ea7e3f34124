"""Contenders and peers that tests of the harness run, in this process and in others."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field

from bench.harness import Overrun, Sample, repeat


@dataclass
class Scripted:
    """Takes as many seconds as it is told to, without waiting; raises what is an exception."""

    name: str
    script: list
    size: int = 7
    more: dict = field(default_factory=dict)
    ran: list = field(default_factory=list)

    def measure(self, problem, limits):
        return repeat(lambda: self._sample(problem), limits)

    def _sample(self, problem):
        self.ran.append(problem)
        step = self.script[min(len(self.ran), len(self.script)) - 1]
        if isinstance(step, BaseException):
            raise step
        return Sample(step, self.size, more=self.more)


def slow(name):
    return Scripted(name, [Overrun()])


# Peers for a process of their own: a function of the matrix that gives the call.


def entries(matrix):
    return lambda: matrix.nnz


def endless(matrix):
    return lambda: time.sleep(3600)


def crashing(matrix):
    return lambda: os._exit(9)


def raising(matrix):
    def call():
        raise MemoryError("too many entries")

    return call
