"""The documents say what is so: examples run, and what pages link to and name is there."""

from __future__ import annotations

import ast
import doctest
import functools
import importlib.util
import io
import re
import shlex

import pytest

import bench.__main__
from gpumatch.io import collection
from tests.documents import (
    DOCUMENTS,
    EVERY_DOCUMENT,
    FLAGS,
    README,
    ROOT,
    blocks,
    output_of,
    prose,
)


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
        text = block.text.replace("\\\n", "")
        for command, want in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
            got = output_of(command)
            agrees = doctest.OutputChecker().check_output(want, got, FLAGS)
            assert agrees, f"{document.name}:{block.line}: $ {command}\n{got}"


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
        found = any(place.exists() for place in places) or f"/{name}" in places_below()
        assert found, f"{document.name} names {name}"


@functools.cache
def places_below():
    """The ends of the paths of all files and folders below gpumatch; folders end in a slash."""
    paths = [f"/{one.relative_to(ROOT)}{'/' * one.is_dir()}" for one in ROOT.glob("gpumatch/**/*")]
    return {path[match.start() :] for path in paths for match in re.finditer("/", path)}


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
    for name, value in re.findall(r"`(\w*[A-Z]\w*) = ([\w.*]+)`", prose(document)):
        pattern = rf"\b{name}(?:: \w+)? = {re.escape(value)}\b"
        assert re.search(pattern, all_sources()), f"{document.name}: {name} = {value}"


@functools.cache
def all_sources():
    paths = [*ROOT.glob("gpumatch/**/*.py"), *ROOT.glob("gpumatch/**/*.cu*")]
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)
