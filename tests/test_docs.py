"""The documents say what is so: examples run, files exist, tables are those of the code.

In a document, a `python` block is a doctest; one that names cupy or cuda needs a GPU, and one that
names torch needs torch. A `console` block is a session: commands after `$`, each followed by what
it prints. A `sh` block is not run; what it asks of `python -m bench` is parsed. Between `<!-- bench
FILE -->` and `<!-- end -->` stands what `python -m bench report FILE` prints, after `<!-- from FILE
-->` some of its lines.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib.util
import io
import json
import re
import shlex
import sys
import tracemalloc
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import numpy as np
import pytest
from scipy.sparse import csr_array

import bench.__main__
import gpumatch
import graphs.__main__
from gpumatch import BipartiteGraph, cli
from gpumatch.contracts import AssignmentTask, MatchingTask, Solution
from gpumatch.costs import as_costs
from gpumatch.cpu.assignment.sparse import tuning as sparse_tuning
from gpumatch.dispatch import backends, registry
from gpumatch.io import collection
from gpumatch.running import kept_memory
from gpumatch.running.control import Control
from tests.cpu.assignment.tuned import tune

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
ALGORITHMS = ROOT / "docs" / "algorithms" / "README.md"
DOCUMENTS = [
    README,
    *(ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "datasets/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
EVERY_DOCUMENT = pytest.mark.parametrize(
    "document", DOCUMENTS, ids=[str(path.relative_to(ROOT)) for path in DOCUMENTS]
)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
COMMANDS = {
    "gpumatch": cli.main,
    "python -m graphs": graphs.__main__.main,
    "python -m bench": bench.__main__.main,
}

# -- reading a document --------------------------------------------------------------------------


class Block(NamedTuple):
    """A fenced block: its language, its text, and the document's line that it begins on."""

    language: str
    text: str
    line: int


def blocks(document, language):
    text = document.read_text(encoding="utf-8")
    found = re.finditer(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    every = [Block(m[1], m[2], text.count("\n", 0, m.start(2))) for m in found]
    return [block for block in every if block.language == language]


def prose(document):
    """The document without its fenced blocks."""
    return re.sub(
        r"^```.*?^```$", "", document.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )


def cells(line):
    """The cells of a line of a Markdown table, plain."""
    parts = re.split(r"(?<!\\)\|", line.strip().strip("|"))
    return [part.strip().replace("`", "").replace("\\|", "|") for part in parts]


def table(document, header):
    """The rows of the table that has this header."""
    _, found, below = document.read_text(encoding="utf-8").partition(header + "\n")
    assert found, f"{document.name} has no table {header}"
    lines = below.splitlines()[1:]
    return [cells(line) for line in takewhile(lambda line: line[:1] == "|", lines)]


@EVERY_DOCUMENT
def test_fences_are_closed(document):
    """They open with a language, so that the next bare one closes."""
    fences = re.findall(r"^```(.*)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    assert all(fences[::2]), "a fence opens without a language"
    assert not any(fences[1::2]), "a fence is not closed before the next"
    assert len(fences) % 2 == 0


# -- examples ------------------------------------------------------------------------------------


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder where the repository's `datasets` are at hand and files can be written."""
    (tmp_path / "datasets").symlink_to(ROOT / "datasets", target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GPUMATCH_DATA", raising=False)
    monkeypatch.setattr(collection, "_cache", lambda: tmp_path / "no-cache")
    monkeypatch.setattr(collection, "_download", lambda name: pytest.fail(f"{name} is not here"))
    return tmp_path


@pytest.fixture
def as_installed(document, monkeypatch):
    """README's examples run after `pip install .` as well, where no checkout's data is found."""
    if document == README:
        collection.manifest()
        monkeypatch.setattr(collection, "_checkout_datasets", lambda: ROOT / "not-a-checkout")


def run_python(document, *, on_device):
    """Run the examples whose libraries and devices are here, and that stand on no other."""
    names: dict = {}
    absent: set[str] = set()
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=FLAGS)
    said = io.StringIO()
    for block in blocks(document, "python"):
        test = parser.get_doctest(block.text, names, document.name, str(document), block.line)
        assert test.examples, f"{document.name}:{block.line}: a python block without >>>"
        defined, used = names_in(test)
        if lacks_what_it_needs(block, on_device) or used & absent:
            absent |= defined
            continue
        absent -= defined
        runner.run(test, out=said.write, clear_globs=False)
        names = test.globs
    assert runner.summarize(verbose=False).failed == 0, said.getvalue()


def lacks_what_it_needs(block, on_device):
    if re.search("cupy|cuda", block.text) and not on_device:
        return True
    return "torch" in block.text and importlib.util.find_spec("torch") is None


def names_in(test):
    """The names that a block's examples define, and those that they use."""
    defined, used = set(), set()
    for node in ast.walk(ast.parse("".join(example.source for example in test.examples))):
        match node:
            case ast.Name(ctx=ast.Load()):
                used.add(node.id)
            case ast.Name():
                defined.add(node.id)
            case ast.FunctionDef() | ast.ClassDef():
                defined.add(node.name)
            case ast.alias():
                defined.add((node.asname or node.name).partition(".")[0])
    return defined, used - defined


@EVERY_DOCUMENT
def test_python_examples(document, desk, as_installed):
    run_python(document, on_device=False)


@pytest.mark.gpu
@EVERY_DOCUMENT
def test_python_examples_on_a_gpu(document, desk, as_installed):
    run_python(document, on_device=True)


@EVERY_DOCUMENT
def test_sessions(document, desk, as_installed):
    for block in blocks(document, "console"):
        for command, want in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE):
            got = output_of(command)
            agrees = doctest.OutputChecker().check_output(want, got, FLAGS)
            assert agrees, f"{document.name}:{block.line}: $ {command}\n{got}"


def output_of(line):
    """What a command prints, and its exit code where the line ends in `; echo $?`.

    What `printf` gives to the command is its standard input.
    """
    command, asks, _ = line.partition("; echo $?")
    given = b""
    if command.startswith("printf "):
        text, _, command = command.partition(" | ")
        given = shlex.split(text)[1].encode().decode("unicode_escape").encode()
    name = next(name for name in COMMANDS if command.startswith(name + " "))
    printed = io.StringIO()
    with (
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(given))),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
    ):
        code = COMMANDS[name](shlex.split(command.removeprefix(name)))
    assert asks or code == 0, f"{command}: exit code {code}\n{printed.getvalue()}"
    return printed.getvalue() + (f"{code}\n" if asks else "")


@EVERY_DOCUMENT
def test_commands_that_take_long_are_parsed(document):
    for block in blocks(document, "sh"):
        for command in re.findall(
            r"^(?:\w+=\S+ )*python -m bench (.*?)(?: *#.*)?$", block.text, re.M
        ):
            options = bench.__main__._parser().parse_args(shlex.split(command))
            assert callable(options.command)


def test_every_page_is_in_the_contents_of_the_site():
    """By a table of contents, or by a link on the first page of its section (docs/conf.py)."""
    listed = set()
    for index in (ROOT / "docs" / "index.md", ROOT / "docs" / "api" / "index.md"):
        for block in re.findall(r"^:::\{toctree\}\n(.*?)^:::", index.read_text(), re.M | re.S):
            names = [line for line in block.split("\n") if line and not line.startswith(":")]
            listed |= {index.parent / f"{name}.md" for name in names}
    for first in (path for path in listed.copy() if path.name == "README.md"):
        beside = re.findall(r"\]\((\w+\.md)[#)]", first.read_text(encoding="utf-8"))
        listed |= {first.parent / name for name in beside}
    assert listed == set((ROOT / "docs").rglob("*.md")) - {ROOT / "docs" / "index.md"}


# -- links and names -----------------------------------------------------------------------------


@EVERY_DOCUMENT
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(document)):
        if re.match(r"https?:", target):
            continue
        path, _, anchor = target.partition("#")
        file = document.parent / path if path else document
        assert file.exists(), target
        if anchor:
            headings = re.findall(r"^#+ (.*)$", prose(file), re.MULTILINE)
            assert anchor in [slug(heading) for heading in headings], target


def slug(heading):
    """A heading's anchor, as GitHub and GitLab make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@EVERY_DOCUMENT
def test_named_files_exist(document):
    ends = "py|cu|cuh|toml|json|md|png"
    for name in re.findall(rf"`([\w./-]+\.(?:{ends})|[\w./-]+/)`", prose(document)):
        places = [ROOT / name, ROOT / "gpumatch" / name, document.parent / name]
        found = any(place.exists() for place in places) or any(ROOT.glob(f"gpumatch/**/{name}"))
        assert found, f"{document.name} names {name}"


PAPERS = [path for path in DOCUMENTS if "\n| of the paper |" in path.read_text(encoding="utf-8")]
CODE = [path for path in ROOT.glob("[gb]*/**/*") if path.suffix in (".py", ".cu", ".cuh")]
FILE = r"`([\w./-]+\.(?:py|cuh?))`"
DEFINED = {  # the lines of a file that define a name, by its suffix
    ".py": r"^ *(?:def|class) (\w+)|^(\w+)(?:: .*)? = ",
    ".cu": r"^(?:[a-z_]\S* .*?)?\b(\w+)(?= ?[({=])|^  \w[\w:<>*& ]* (\w+)(?:\[\w+\])?;",
}


@pytest.mark.parametrize("document", PAPERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_tables_from_paper_to_code_name_what_is_defined(document):
    """In the files that the cell names; if it names none, in any that the page names."""
    text = document.read_text(encoding="utf-8")
    tables = re.findall(r"^\| of the paper \|.*\n(?:\|.*\n)+", text, re.MULTILINE)
    on_page = definitions(re.findall(FILE, prose(document)))
    for cell in re.split(r"(?<!\\)\|", "".join(tables)):
        files = re.findall(FILE, cell)
        defined = definitions(files) if files else on_page
        names = re.findall(r"`([A-Za-z_][\w.:]*)`", re.sub(FILE, "", cell))
        unknown = {part for name in names for part in re.split(r"\.|::", name)} - defined
        assert not unknown, f"{document.name}: {cell.strip()}"


def definitions(files):
    """Functions, classes, structs, their members, constants and template parameters."""
    found = set()
    for name in files:
        for path in (path for path in CODE if str(path).endswith(f"/{name}")):
            text = re.sub(r"^ *(//|# ).*", "", path.read_text(encoding="utf-8"), flags=re.M)
            of_kind = re.findall(DEFINED[path.suffix.removesuffix("h")], text, re.MULTILINE)
            of_templates = re.findall(r"\w+", "".join(re.findall("^template <(.*)>", text, re.M)))
            found |= {name for names in of_kind for name in names} | {*of_templates}
    return found


@EVERY_DOCUMENT
def test_named_constants_have_the_values_given(document):
    """`NAME = value` in the prose is so in the sources."""
    sources = [*ROOT.glob("gpumatch/**/*.py"), *ROOT.glob("gpumatch/**/*.cu*")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    for name, value in re.findall(r"`(\w*[A-Z]\w*) = ([\w.*]+)`", prose(document)):
        pattern = rf"\b{name}(?:: \w+)? = {re.escape(value)}\b"
        assert re.search(pattern, text), f"{document.name}: {name} = {value}"


# -- tables --------------------------------------------------------------------------------------


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


COMPLEXITY = ROOT / "docs" / "algorithms" / "complexity.md"
MEMORY = table(COMPLEXITY, "| on the CPU | bytes a vertex, at most |")
SHAPES = {"square": ("uniform", 40_000, 3), "wide": ("lopsided", 20_000, 80_000, 3)}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("names", "most"), MEMORY, ids=[names for names, _ in MEMORY])
def test_table_of_memory_on_the_cpu(names, most, shape):
    matrix = graphs.make(*SHAPES[shape])
    for graph in map(BipartiteGraph, (matrix, matrix.T)):
        _ = graph.indptr, graph.col_indptr
        for name in names.split(", "):
            assert peak_memory(home_of(name), graph) <= int(most) * sum(graph.shape)


@pytest.mark.parametrize("number", [np.float64, np.int64], ids=["floats", "integers"])
@pytest.mark.parametrize(("row", "ncols"), [(0, 9000), (2, 13_500)], ids=["square", "wide"])
def test_table_of_memory_of_the_sparse_engine(row, ncols, number, monkeypatch):
    page = ROOT / "docs" / "algorithms" / "assignment.md"
    shown = table(page, "| problem | bytes an entry | bytes a vertex |")
    an_entry, a_vertex = map(int, shown[row][1:])
    if number is np.int64:
        an_entry, a_vertex = an_entry + 8, a_vertex + 16
    monkeypatch.setattr(kept_memory, "LEAST", sys.maxsize)  # so that all memory is traced
    untried = sparse_tuning.SPARE._replace(bids=0, unmatched=-1)
    tune(monkeypatch, sparse_tuning, trial_with_spare=untried)  # the auction takes most memory
    matrix = weighted(9000, ncols, number)
    costs = as_costs(matrix)
    run = registry.table("assignment")["engine"].homes["cpu"].run_with({})

    def task():
        solution = Solution.empty(costs.shape, is_integer=costs.is_integer)
        return AssignmentTask(costs, solution, Control())

    peak = traced_peak(run, task)
    most = an_entry * matrix.nnz + a_vertex * sum(matrix.shape)
    assert 0.8 * most < peak < most + 2**14


def weighted(nrows, ncols, number):
    """A matrix of random costs in which all rows can be matched."""
    rng = np.random.default_rng(3)
    rows = np.append(rng.integers(0, nrows, 4 * nrows), np.arange(nrows))
    cols = np.append(rng.integers(0, ncols, 4 * nrows), rng.permutation(ncols)[:nrows])
    matrix = csr_array((np.ones(rows.size), (rows, cols)), shape=(nrows, ncols))
    matrix.data = rng.integers(1, 10**6, matrix.nnz).astype(number)
    return matrix


def home_of(name):
    """The function of an algorithm or a start on the CPU."""
    if name in registry.starts("cpu"):
        return registry.STARTS[name]["cpu"].run_with({})
    algorithms = gpumatch.algorithms()
    return next(a.homes["cpu"] for a in algorithms if a.name == name).run_with({})


def peak_memory(run, graph):
    """Bytes that a run from no matching takes at most, beside the graph and the mates."""

    def task():
        mates = np.full(graph.nrows, -1, np.int32), np.full(graph.ncols, -1, np.int32)
        return MatchingTask(graph, *mates, Control())

    return traced_peak(run, task)


def traced_peak(run, task):
    """Bytes that a run of a new task takes at most."""
    run(task())  # compiling takes memory, too
    measured = task()
    tracemalloc.start()
    try:
        run(measured)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
