"""What each command takes, and what it takes if it is not told."""

from __future__ import annotations

import pytest

from gpumatch.cli import _parser, distributed, running
from gpumatch.dispatch.registry import algorithms, option_names

RUN = {
    "algorithm": "auto", "backend": "auto", "threads": None, "seed": 0, "initial": None,
    "output": None, "pairs": False, "json": False, "quiet": False, "progress": False,
    "time_limit": None,
}  # fmt: skip
ORDER = {name: RUN[name] for name in ("backend", "threads", "seed", "output", "json", "quiet")}
RANKS = {"distributed": False}
PROOF = {"proof": None}
SOURCE = {"source": "here.mtx", "format": "auto", "duplicates": None}
DEFAULTS = {
    "match": {
        **SOURCE, **RUN, **RANKS, **PROOF, "init": "auto",
        **dict.fromkeys(option_names("matching")),
        "general": False, "weights": False, "cardinality": None, "minimize": False,
        "triangle": None, **dict.fromkeys(option_names("general-weights")),
    },
    "assign": {
        **SOURCE, **RUN, **RANKS, **PROOF,
        "objective": "sum", "maximize": False, "cardinality": "full",
        "cost_limit": None, "points": None, "metric": None,
        **dict.fromkeys(option_names("assignment")),
    },
    "dmperm": {**SOURCE, **ORDER, "plot": None},
    "scale": {**SOURCE, **ORDER, "job": 5},
    "check": {
        **SOURCE, "proof": "proof.txt", "supply": None, "demand": None, "pair_capacity": None,
        "triangle": "both", "quiet": False, "points": None, "metric": None,
    },
    "algorithms": {"json": False},
    "info": {"json": False},
}  # fmt: skip


@pytest.mark.parametrize("command", DEFAULTS)
def test_what_a_command_takes_by_default(command):
    given = [command, *(["here.mtx"] if "source" in DEFAULTS[command] else [])]
    if command == "check":
        given.insert(1, "proof.txt")
    taken = vars(_parser().parse_args(given))
    assert callable(taken.pop("command"))
    assert taken.pop("version") is None
    assert taken == DEFAULTS[command]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("HB/ash219", True),
        ("a/b.mtx", False),
        ("plain", True),
        ("plain.mtx", False),
        ("a/b/c", False),
        ("-", False),
        ("here/there", False),
    ],
)
def test_what_names_a_matrix_of_the_collection(source, expected, tmp_path, monkeypatch):
    """At most one slash, no ending, and no such file."""
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "there").touch()
    monkeypatch.chdir(tmp_path)
    assert running._is_of_the_collection(source) is expected


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (["--backend", "auto"], None),
        (["--backend", "cpu"], None),
        (["--backend", "cuda"], None),
        (["--threads", "2"], "threads"),
        (["--seed", "1"], "seed"),
        (["--initial", "pairs.npz"], "initial"),
        (["--init", "cheap"], "init"),
        (["--frontier", "queue"], "frontier"),
        (["--host-loop", "level"], "host-loop"),
    ],
)
def test_what_several_ranks_refuse(given, named):
    options = _parser().parse_args(["match", "here.mtx", "--distributed", *given])
    if named is None:
        distributed._refuse(options, option_names("matching"))
        return
    with pytest.raises(ValueError, match=f"^--{named} is not for --distributed$"):
        distributed._refuse(options, option_names("matching"))


def test_standard_input_is_not_for_all_ranks():
    options = _parser().parse_args(["match", "-", "--distributed"])
    with pytest.raises(ValueError, match="standard input is not for --distributed"):
        distributed._refuse(options, option_names("matching"))


@pytest.mark.parametrize("backend", ["auto", "cpu", "cuda"])
def test_what_all_ranks_are_told(backend):
    given = ["--backend", backend, "--time-limit", "3", "--progress"]
    options = _parser().parse_args(["match", "here.mtx", "--distributed", *given])
    where = "cuda" if backend == "cuda" else "cpu"
    assert distributed.how(options) == {"backend": where, "time_limit": 3.0, "progress": True}


@pytest.mark.parametrize("command", ["match", "assign", "dmperm", "scale", "info", "warmup"])
def test_options_are_explained_and_never_cut_short(command, capsys):
    (commands,) = (action for action in _parser()._actions if action.choices)
    assert all(action.help for action in commands.choices[command]._actions)
    source = [] if command in ("info", "warmup") else ["here.mtx"]
    with pytest.raises(SystemExit):
        _parser().parse_args([command, *source, "--jso"])
    assert "unrecognized arguments: --jso" in capsys.readouterr().err


def test_exit_codes_are_told(capsys):
    with pytest.raises(SystemExit):
        _parser().parse_args(["--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "0 proven, 2 bad input or infeasible, 3 not proven, 130 interrupted." in said


@pytest.mark.parametrize("end", [".NPY", ".Npz", ".CSV", ".mtx"])
def test_endings_of_an_output_are_of_either_case(end, tmp_path):
    path = str(tmp_path / f"pairs{end}")
    assert _parser().parse_args(["match", "here.mtx", "--output", path]).output == path


def test_every_command_is_in_the_list_with_what_it_does():
    (commands,) = (action for action in _parser()._actions if action.choices)
    told = {entry.dest: entry.help for entry in commands._choices_actions}
    assert told.keys() == commands.choices.keys() >= {"match", "assign", "info", "warmup"}
    assert all(len(text) > 10 for text in told.values())


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("dmperm", "Permute a sparse matrix to block triangular form"),
        ("scale", "Permute and scale a sparse matrix so that its diagonal is large."),
        ("info", "Show versions, devices, threads, why CUDA is off,"),
    ],
)
def test_a_commands_help_begins_with_what_it_does(command, text, capsys):
    with pytest.raises(SystemExit):
        _parser().parse_args([command, "--help"])
    paragraphs = [" ".join(part.split()) for part in capsys.readouterr().out.split("\n\n")]
    assert paragraphs[1].startswith(text)


@pytest.mark.parametrize("problem", ["match", "assign"])
def test_help_says_which_algorithms_take_an_option(problem, capsys):
    with pytest.raises(SystemExit):
        _parser().parse_args([problem, "--help"])
    said = " ".join(capsys.readouterr().out.split()).replace("- ", "-")
    kind = {"match": "matching", "assign": "assignment"}[problem]
    for algorithm in algorithms(kind):
        for option, values in algorithm.options.items():
            text = said.split(f" {running.option_of(option)} ")[-1].split(" --")[0]
            assert algorithm.name in text
            assert " or ".join(values) in text
