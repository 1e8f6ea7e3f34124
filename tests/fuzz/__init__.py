"""Random problems at every door, checked by other means.

One problem is a pure function of one seed: its door, size, values, container and options.
``python -m tests.fuzz --minutes 60`` draws seeds until the time is up, and
``python -m tests.fuzz --replay SEED`` runs one again. What fails is drawn again in smaller sizes
from the same seed, and the smallest that fails is printed (``--replay SEED/8``).

trials.py           what a problem is drawn with, and how it is counted
sizes.py            around every threshold of the code
values.py           dtypes and families of costs
containers.py       the forms in which a matrix is given
problems.py         an assignment problem with its options
oracles.py          its optimum, by SciPy and by exact arithmetic
judgement.py        what must hold for a result
transformations.py  what must not change the optimum, or change it in a known way
doors/              one file for each way into the library
workers.py          processes that may crash or hang;  __main__.py  the command
"""
