"""The tables in the documents are those of the code and of `bench/results/`.

Between `<!-- bench FILE -->` and `<!-- end -->` stands what `python -m bench report FILE` prints,
after `<!-- from FILE -->` some of its lines.
"""

from __future__ import annotations

import json
import re
import shlex

import numpy as np

import gpumatch
from gpumatch.dispatch import backends, registry
from tests.documents import ALGORITHMS, EVERY_DOCUMENT, ROOT, output_of, table


def test_table_of_algorithms():
    listed = table(ALGORITHMS, "| name | problem | backends | options | reference |")
    known = [
        [
            algorithm.name,
            algorithm.problem,
            ", ".join(algorithm.backends),
            " ".join(f"{name}={'|'.join(values)}" for name, values in algorithm.options.items()),
            algorithm.reference,
        ]
        for algorithm in gpumatch.algorithms()
    ]
    assert listed == known


def test_table_of_options():
    running = ROOT / "docs" / "guide" / "running.md"
    listed = table(running, "| algorithm | option | cpu | cuda | reference |")
    known = [
        [
            algorithm.name,
            option,
            *(values_at(algorithm, backend, option) for backend in registry.BACKENDS),
        ]
        for algorithm in gpumatch.algorithms()
        for option in algorithm.options
    ]
    assert listed == known


def values_at(algorithm, backend, option):
    home = algorithm.homes.get(backend)
    return "|".join(home.values.get(option, ())) if home else ""


@EVERY_DOCUMENT
def test_measured_tables_are_those_of_the_results(document):
    for file, shown in marked(document, "bench"):
        assert shown.strip() == report_of(file).strip(), f"not the report of {file}"


@EVERY_DOCUMENT
def test_quoted_figures_are_those_of_the_results(document):
    for file, shown in marked(document, "from"):
        assert set(shown.split("\n")) <= {"", *report_of(file).split("\n")}, f"not from {file}"


def test_overview_is_that_of_the_results():
    page = ROOT / "docs" / "reproduction" / "README.md"
    text = page.read_text(encoding="utf-8")
    shown = re.search(r"<!-- overview -->\n(.*?)\n<!-- end -->", text, re.DOTALL)
    assert shown[1] == output_of("python -m bench overview").rstrip("\n")


def marked(document, mark):
    """What stands between `<!-- MARK FILE -->` and `<!-- end -->`, each with its file."""
    text = document.read_text(encoding="utf-8")
    return re.findall(rf"<!-- {mark} (\S+) -->\n(.*?)<!-- end -->", text, re.DOTALL)


def report_of(file):
    return output_of(f"python -m bench report {shlex.quote(str(ROOT / file))}")


DEVELOP = ROOT / "docs" / "develop.md"
CUDA = ROOT / "gpumatch" / "cuda"
UTILITIES = (
    *("expand", "expand_alone", "search_levels", "pull", "for_all"),
    *("push", "append_gathered", "compact", "compact_in_warp"),
)


def test_table_of_what_kernels_use():
    """Each .cu file that uses any of it is listed with just what it calls, by its headers too."""
    listed = {file: set(uses.split()) for file, uses, _ in table(DEVELOP, "| file | uses | for |")}
    called = {}
    for file in CUDA.rglob("*.cu"):
        text = own_text(file)
        called[file.relative_to(CUDA).as_posix()] = {
            name for name in UTILITIES if re.search(rf"(?<![\w.]){name}(<[^;()]*>)?\(", text)
        }
    scan = "matching/apsb_apfb.cu"
    assert listed == {file: uses for file, uses in called.items() if uses or file == scan}


def own_text(file):
    """The file and its problem's headers, without comments."""
    text = re.sub(r"//.*", "", file.read_text(encoding="utf-8"))
    for header in re.findall(r'#include "((?:matching|assignment)/[\w/]+\.cuh)"', text):
        text += own_text(CUDA / header)
    return text


def test_compaction_has_cost_no_time():
    record = json.loads((ROOT / "bench/results/frontier-h200.json").read_text())
    assert all(min(call["after"]) < 1.05 * min(call["before"]) for call in record["calls"])
    trials = [min(call["after"]) / min(call["before"]) for call in record["trials"]]
    assert [round(100 * ratio - 100) for ratio in trials] == [31, 37, 12, 23]  # docs/develop.md


CPU_OR_GPU = ROOT / "docs" / "algorithms" / "cpu_or_gpu.md"


def test_table_of_where_the_gpu_pays():
    record = json.loads((ROOT / "bench/results/gpu-pays-h200.json").read_text())
    kept = [[g["graph"], str(g["entries"]), g["cpu"], g["cuda"]] for g in record["graphs"]]
    shown = table(CPU_OR_GPU, "| graph | entries | cpu | cuda |")
    assert [[*row[:2], *map(float, row[2:])] for row in shown] == kept
    assert all(cuda < cpu for _, n, cpu, cuda in kept if int(n) >= backends.GPU_PAYS_FROM)


def test_table_of_where_the_gpu_pays_for_assignment():
    record = json.loads((ROOT / "bench/results/gpu-pays-assignment-h200.json").read_text())
    kept = [[p["costs"], str(p["n"]), p["cpu"], p["cuda"]] for p in record["problems"]]
    shown = table(CPU_OR_GPU, "| costs | n | cpu | cuda |")
    assert [[*row[:2], *map(float, row[2:])] for row in shown] == kept
    large = [(cpu, cuda) for _, n, cpu, cuda in kept if int(n) ** 2 >= backends.GPU_PAYS_FROM_PAIRS]
    assert all(cuda < cpu for cpu, cuda in large)


def test_table_of_where_the_gpu_pays_for_sparse_costs():
    record = json.loads((ROOT / "bench/results/gpu-pays-sparse-h200.json").read_text())
    names = ("rows", "entries", "cuda", "cpu", "cpu1")
    shown = table(CPU_OR_GPU, "| costs | rows | pairs | cuda | cpu | cpu, one thread |")
    assert [row[0] for row in shown] == [p["costs"] for p in record["problems"]]
    for row, problem in zip(shown, record["problems"]):
        known = [problem[name] for name in names]
        assert np.allclose([float(cell) for cell in row[1:]], known, rtol=1e-3)
    large = [p for p in record["problems"] if p["entries"] >= backends.GPU_PAYS_FROM]
    assert all(p["cuda"] < p["cpu"] for p in large)


def test_what_auto_asks_for_sparse_costs_is_what_was_held():
    record = json.loads((ROOT / "bench/results/gpu-pays-sparse-h200.json").read_text())
    a_vertex, an_entry = backends._SPARSE_BYTES_A_VERTEX, backends._SPARSE_BYTES_AN_ENTRY
    for p in record["memory"]:
        asked = a_vertex * (p["rows"] + p["cols"]) + an_entry * p["entries"]
        assert p["held"] + 12 * p["entries"] <= asked


def test_table_of_sparse_costs_on_the_gpu():
    record = json.loads((ROOT / "bench/results/sparse-engine-h200.json").read_text())
    problems = record["problems"]
    names = ("rows", "entries", "cpu", "ortools", "cuda")
    page = ROOT / "docs" / "reproduction" / "sparse_assignment.md"
    shown = table(page, "| costs | rows | entries | cpu | or-tools | cuda |")
    assert [row[0] for row in shown] == [p["costs"] for p in problems]
    numbers = [[float(x) if x else None for x in row[1:]] for row in shown]
    assert numbers == [[p[name] for name in names] for p in problems]
    assert all(p["cuda"] < p["cpu"] for p in problems if p["entries"] >= backends.GPU_PAYS_FROM)


def test_tables_of_trees_of_sparse_costs():
    fronts = json.loads((ROOT / "bench/results/sparse-engine-h200.json").read_text())["fronts"]
    page = ROOT / "docs" / "reproduction" / "sparse_assignment.md"
    header = "| costs, milliseconds | trees by levels | trees now | call before | call now |"
    shown = table(page, header)
    assert [row[0] for row in shown] == [p["costs"] for p in fronts["problems"]]
    order = [(what, when) for what in ("trees", "call") for when in ("before", "now")]
    for row, p in zip(shown, fronts["problems"]):
        assert [float(cell) for cell in row[1:]] == [p[when][what] for what, when in order]
    widths = ("16", "32", "64", "256", "512", "1024")
    shown = table(page, f"| costs, milliseconds | {' | '.join(widths)} |")
    assert len(shown) == 3
    for costs, *times in shown:
        known = [fronts["steps"][costs].get(width) for width in widths]
        assert [float(time.replace(",", "")) if time else None for time in times] == known


def test_tables_of_the_ends_of_auctions():
    ends = json.loads((ROOT / "bench/results/sparse-engine-h200.json").read_text())["ends"]
    page = ROOT / "docs" / "reproduction" / "sparse_assignment.md"
    shown = table(
        page,
        "| the first auction ends with | it takes | all auctions | trees of rows"
        " | trees of spare rows | call |",
    )
    known = {(tried["it leaves"], tried["auctions"]): tried for tried in ends["million"]}
    for row in shown:
        left = int(row[0].split()[0].strip(","))
        first, auctions, of_rows, of_spares, call = map(float, row[1:])
        tried = known[left, auctions]
        assert first == tried["first auction ms"] / 1000
        assert (of_rows, of_spares) == (tried["trees of rows"], tried["trees of spare rows"])
        assert tried["call"] in (None, call)
    shown = table(page, "| costs, milliseconds in turns | before | now |")
    problems = ends["in turns"]["problems"]
    assert {costs: tuple(map(float, times)) for costs, *times in shown} == {
        costs: (times["before"], times["now"]) for costs, times in problems.items()
    }


TRIALS = ROOT / "docs" / "algorithms" / "assignment_trials.md"
DEVECI = ROOT / "docs" / "algorithms" / "deveci2013.md"


def test_table_of_dense_costs_on_the_gpu():
    problems = json.loads((ROOT / "bench/results/dense-core-h200.json").read_text())["problems"]
    large = {p["costs"]: p for p in problems if p["rows"] == 10_000}
    shown = table(TRIALS, "| costs | before | now |")
    assert {row[0] for row in shown} == large.keys()
    for costs, before, now in shown:
        known = large[costs]["before"] or f"over {large[costs]['before_at_least']:g}"
        assert [before, now] == [str(known), str(large[costs]["now"])]


def test_table_of_small_dense_costs_on_the_gpu():
    record = json.loads((ROOT / "bench/results/small-dense-h200.json").read_text())
    known = {(p["costs"], p["rows"]): p for p in record["now"]["problems"]}
    sizes = (50, 100, 200, 400)
    header = "| costs |" + "".join(f" {n} rows before | now |" for n in sizes)
    shown = table(TRIALS, header)
    assert len(shown) == 9
    for costs, *times in shown:
        of_sizes = [known[costs, n] for n in sizes]
        written = [(p["before"], f"{p['now']}{'' if p['team'] else '*'}") for p in of_sizes]
        assert times == [str(time) for pair in written for time in pair]


def test_table_of_the_two_forms_of_gpubfs():
    record = json.loads((ROOT / "bench/results/deveci2013-forms-h200.json").read_text())
    forms = DEVECI.read_text(encoding="utf-8").partition("The two forms of each algorithm")[2]
    assert len(record["graphs"]) == 16

    def medians(algorithm):
        """The medians of the scan and of the queue, by whether the graph is permuted."""
        pairs = {False: [], True: []}
        for name, graph in record["graphs"].items():
            runs = (graph["results"][f"{algorithm} ct{form}"]["seconds"] for form in ("", " queue"))
            pairs[name.endswith("_RCP")].append([1e3 * float(np.median(run)) for run in runs])
        return pairs

    for algorithm in ("apfb-gpubfs", "apsb-gpubfs", "apfb-gpubfs-wr", "apsb-gpubfs-wr"):
        pairs = medians(algorithm)
        means = [np.exp(np.log(pairs[is_permuted]).mean(axis=0)) for is_permuted in (False, True)]
        ratios = [scan / queue for scan, queue in pairs[False] + pairs[True]]
        ends = f"{max(ratios):.1f}, {min(ratios):.2f}"
        shown = " | ".join([*(f"{mean:.2f}" for mean in np.concatenate(means)), ends])
        assert f"| `{algorithm}` | {shown} |" in forms
