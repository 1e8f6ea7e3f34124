"""Deep Greedy Switching with a GPU: on the GPU alone, or in the paper's mixed form with a CPU.

Roverso, Naiem, El-Beltagy, El-Ansary, Haridi, "A GPU-enabled solver for time-constrained linear sum
assignment problems", INFOS 2010. In the mixed form the device evaluates differences, and the CPU
makes the exchanges one by one (Algorithm 1). Each evaluation of all vertices copies the mates to
the device and the differences to the host. Host and device each hold the costs.

The modules of host and device do not import each other. This module passes data between them.
"""

from __future__ import annotations

from gpumatch.contracts import AssignmentTask
from gpumatch.cpu.assignment.dgs.start import start_from
from gpumatch.cpu.assignment.dgs.switching import Differences, switch_until_none
from gpumatch.cuda.assignment.dgs import engine as on_device
from gpumatch.numeric.arrays import any_true

__all__ = ["run"]


def run(
    task: AssignmentTask,
    *,
    start: str = "random",
    evaluation: str = "auto",
    switching: str = "auto",
) -> bool:
    """Assign the rows as `gpumatch.cuda.assignment.dgs.engine.run` does.

    Parameters
    ----------
    start, evaluation : str
        As of that function.
    switching : {"auto", "parallel", "sequential"}
        ``"sequential"`` makes the exchanges one by one on the CPU. The others make all exchanges
        that do not conflict in one round on the device.
    """
    if switching != "sequential":
        return on_device.run(task, start=start, evaluation=evaluation)

    def switch(problem: on_device.Problem, form: on_device.Form) -> bool:
        return task.run_on_host(lambda task: _switch_on_host(problem, form, task, start))

    return on_device.solve(task, evaluation, switch)


def _switch_on_host(
    problem: on_device.Problem, form: on_device.Form, task: AssignmentTask, start: str
) -> bool:
    """Run Algorithm 1, evaluate all vertices on the device; False if the control has stopped it."""
    control, (row_to_col, col_to_row) = task.control, task.mates
    with control.part("start"):
        if not start_from(start, task):
            return False
    if task.limit is None and any_true(row_to_col < 0):
        return True
    number = type(problem.far)
    differences = Differences(task.costs, row_to_col, col_to_row, number, task.limit)
    evaluator = on_device.Evaluator(problem, form, serves_mates=False)
    found = (
        *((problem.rows.gain, differences.row_gain), (problem.rows.choice, differences.row_choice)),
        *((problem.cols.gain, differences.col_gain), (problem.cols.choice, differences.col_choice)),
    )

    def put_mates() -> None:
        problem.rows.mate.set(row_to_col)
        problem.cols.mate.set(col_to_row)
        problem.pay()

    def evaluate_all() -> bool:
        put_mates()
        evaluator.all()
        for on_gpu, on_cpu in found:
            on_gpu.get(out=on_cpu)
        return not control.tick(differences.matched)

    ended = switch_until_none(differences, evaluate_all, control)
    put_mates()
    return ended
