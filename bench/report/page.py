"""One static page of all results: sortable tables, drawings, machines, versions and commands.

Everything is in the one file, script and drawings too, so it can be kept, sent, and read offline.
A suite's part is its report, with the times of all contenders drawn above it. A file that was made
otherwise is shown as the tables that are in it.
"""

from __future__ import annotations

import html
import itertools
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.report.tables import Time, time_of

__all__ = ["page"]

Times = dict[str, dict[str, Time]]  # by graph and contender

COLOURS = ("#0b6e4f", "#c1121f", "#3a5ba0", "#e09f3e", "#6a4c93", "#4f6d7a", "#b56576", "#2a9d8f")
ROWS_DRAWN = 40  # graphs of a drawing at most
LEFT, WIDTH, STEP = 190, 560, 14  # of a drawing, in pixels
LONGEST = 32  # letters of a graph's name

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 74rem; margin: 2rem auto; padding: 0 1rem;
  color: #222; background: #fff; overflow-wrap: anywhere; }
h2 { margin-top: 3rem; border-bottom: 1px solid #ccc; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 13px; display: block;
  overflow-x: auto; }
th, td { padding: .15rem .6rem; border-bottom: 1px solid #e5e5e5; text-align: right;
  white-space: nowrap; font-variant-numeric: tabular-nums; }
th:first-child, td:first-child { text-align: left; }
th { cursor: pointer; background: #f4f4f4; }
th[aria-sort=ascending]::after { content: " ▲"; } th[aria-sort=descending]::after { content: " ▼"; }
code { background: #f4f4f4; padding: 0 .25rem; } .runs { color: #666; font-size: 13px; }
nav ul { columns: 15rem; padding-left: 1.2rem; } summary { cursor: pointer; }
p code, nav a { overflow-wrap: anywhere; } figure { margin: 1rem 0; overflow-x: auto; }
svg text { font: 10px sans-serif; }
"""
SCRIPT = """
const value = cell => { const number = parseFloat(cell.textContent.replace(/[≥,]/g, ''));
  return isNaN(number) ? cell.textContent : number; };
function sort(head) {
  const column = head.cellIndex, body = head.closest('table').tBodies[0];
  const up = head.getAttribute('aria-sort') !== 'ascending', sign = up ? 1 : -1;
  for (const other of head.parentNode.cells) other.removeAttribute('aria-sort');
  head.setAttribute('aria-sort', up ? 'ascending' : 'descending');
  const compare = (a, b) => { const x = value(a.cells[column]), y = value(b.cells[column]);
    if (x === '' || y === '') return (x === '') - (y === '');
    return sign * (typeof x === typeof y ? (x > y) - (x < y) : typeof x === 'number' ? -1 : 1); };
  body.append(...[...body.rows].sort(compare));
}
for (const head of document.querySelectorAll('th'))
  head.addEventListener('click', () => sort(head));
"""


def page(files: Iterable[Path], reports: Mapping[str, Any], home: str | None = None) -> str:
    """The page of result files. `reports` has the function that makes each suite's report.

    `home` is the page that it links back to.
    """
    parts = [(html.escape(file.stem), *_part(file, reports)) for file in files]
    links = "".join(f'<li><a href="#{name}">{name}</a></li>' for name, *_ in parts)
    way_back = f'<p><a href="{html.escape(home)}">← gpumatch</a></p>\n' if home else ""
    bodies = "".join(
        f'<section id="{name}"><h2>{name}</h2>\n<p>{_inline(about)}</p>\n{body}</section>\n'
        for name, about, body in parts
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<title>gpumatch: benchmarks</title>\n"
        f"<style>{STYLE}</style></head>\n<body>{way_back}<h1>gpumatch: benchmarks</h1>\n"
        "<p>Each part is a file of <code>bench/results</code>. "
        "A click on a column's head sorts its table. "
        "“≥” marks runs that were given up.</p>\n"
        f"<nav><details><summary>All {len(parts)} files</summary><ul>{links}</ul></details></nav>\n"
        f"{bodies}<script>{SCRIPT}</script></body></html>\n"
    )


def _part(file: Path, reports: Mapping[str, Any]) -> tuple[str, str]:
    """What a file is about, and its HTML."""
    data = json.loads(file.read_text())
    suite = data.get("suite")
    if suite not in reports:
        return str(data.get("what") or data.get("made") or ""), _plain(data)
    report = reports[suite]
    doc = __import__(report.__module__, fromlist=["__doc__"]).__doc__ or ""
    command = f"python -m bench {suite} --out {file.name}"
    text = _html_of(report(data, data["settings"].get("threshold", 0.0)))
    drawing = _drawing(data["graphs"]) if "graphs" in data else ""
    return doc.partition("\n\n")[0].replace("\n", " "), (
        f"<p>Command: <code>{html.escape(command)}</code></p>\n{drawing}{text}"
    )


# -- text ------------------------------------------------------------------------------------------


def _html_of(markdown: str) -> str:
    """HTML of the Markdown that reports are made of: headings, tables, lists, paragraphs."""
    made = []
    for block in re.split(r"\n\s*\n", markdown.strip()):
        lines = block.split("\n")
        if lines[0].startswith("#"):
            made.append(f"<h3>{_inline(lines.pop(0).lstrip('# '))}</h3>")
        for kind, group in itertools.groupby(lines, key=lambda line: line[:1]):
            made.append(_group(kind, list(group)))
    return "\n".join(made) + "\n"


def _group(kind: str, lines: list[str]) -> str:
    if kind == "|":
        header, _, *rows = ([*map(str.strip, line.strip("|").split("|"))] for line in lines)
        return _table(header, rows)
    if kind == "-":
        items = "".join(f"<li>{_inline(line[2:])}</li>" for line in lines)
        return f"<ul>{items}</ul>"
    text = _inline(" ".join(lines))
    is_run = bool(re.match(r"\d{4}-\d\d-\d\d: ", text))
    return f'<p class="runs">{text}</p>' if is_run else f"<p>{text}</p>"


def _inline(text: str) -> str:
    text = html.escape(text, quote=False)
    text = re.sub(r"`([^`]*)`", r"<code>\1</code>", text)
    return re.sub(r"\*\*([^*]*)\*\*", r"<strong>\1</strong>", text)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    heads = "".join(f"<th>{_inline(name)}</th>" for name in header)
    lines = "".join(
        "<tr>" + "".join(f"<td>{_inline(cell)}</td>" for cell in row) + "</tr>\n" for row in rows
    )
    return f"<table><thead><tr>{heads}</tr></thead>\n<tbody>{lines}</tbody></table>"


# -- files that no suite has made ------------------------------------------------------------------


def _plain(data: Mapping[str, Any]) -> str:
    """The facts of a file, and a table for each list of records."""
    facts = {name: value for name, value in data.items() if not isinstance(value, list | dict)}
    made = [f'<p class="runs">{_inline(f"{name}: {value}")}</p>' for name, value in facts.items()]
    return "\n".join([*made, *_tables(data)]) + "\n"


def _tables(data: Mapping[str, Any]) -> Iterator[str]:
    for name, value in data.items():
        records = [*value.values()] if isinstance(value, dict) else value
        if not isinstance(records, list) or not records:
            continue
        if all(isinstance(record, dict) for record in records):
            header = list(dict.fromkeys(key for record in records for key in record))
            rows = [[_cell(record.get(key)) for key in header] for record in records]
            yield f"<h3>{_inline(name)}</h3>\n{_table(header, rows)}"
        elif isinstance(value, dict):
            rows = [[str(key), _cell(one)] for key, one in value.items()]
            yield f"<h3>{_inline(name)}</h3>\n{_table(['', name], rows)}"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | dict):
        return json.dumps(value)
    return "" if value is None else str(value)


# -- drawings --------------------------------------------------------------------------------------


def _drawing(graphs: Mapping[str, Any]) -> str:
    """The time of each contender on each graph, by the logarithm, as SVG; the slowest graphs."""
    times: Times = {
        name: {
            code: time
            for code in graph["results"]
            if (time := time_of(graph, code)) is not None and time.seconds > 0
        }
        for name, graph in graphs.items()
    }
    times = {name: known for name, known in times.items() if len(known) > 1}
    if not times:
        return ""
    slowest = sorted(times, key=lambda name: -max(t.seconds for t in times[name].values()))
    drawn = {name: times[name] for name in slowest[:ROWS_DRAWN]}
    codes = list(dict.fromkeys(code for known in drawn.values() for code in known))
    seconds = [time.seconds for known in drawn.values() for time in known.values()]
    low = math.floor(math.log10(min(seconds)))
    high = max(math.ceil(math.log10(max(seconds))), low + 1)

    def place(seconds: float) -> float:
        return LEFT + WIDTH * (math.log10(seconds) - low) / (high - low)

    top = STEP * (2 + math.ceil(len(codes) / 4))
    bottom = top + STEP * len(drawn)
    powers = [10.0**power for power in range(low, high + 1)]
    parts = [*_legend(codes), *_axis(powers, place, top, bottom)]
    parts += _rows(drawn, codes, place, top)
    size = f'viewBox="0 0 {LEFT + WIDTH + 40} {bottom + STEP}" width="{LEFT + WIDTH + 40}"'
    drawing = f'<svg {size} role="img" aria-label="times by contender">{"".join(parts)}</svg>'
    return f"<figure>{drawing}</figure>\n"


def _legend(codes: Sequence[str]) -> Iterator[str]:
    for k, code in enumerate(codes):
        x, y = LEFT + (k % 4) * WIDTH // 4, STEP * (1 + k // 4)
        yield f'<circle cx="{x}" cy="{y - 3}" r="4" fill="{_colour(k)}"/>'
        yield f'<text x="{x + 8}" y="{y}">{html.escape(code)}</text>'


def _axis(
    powers: Sequence[float], place: Callable[[float], float], top: int, bottom: int
) -> Iterator[str]:
    for power in powers:
        x = f"{place(power):.0f}"
        yield f'<line x1="{x}" x2="{x}" y1="{top - STEP}" y2="{bottom - STEP}" stroke="#ddd"/>'
        yield f'<text x="{x}" y="{bottom}" text-anchor="middle">{power:g} s</text>'


def _rows(
    times: Times, codes: Sequence[str], place: Callable[[float], float], top: int
) -> Iterator[str]:
    """A line of dots for each graph; an open one for a run that was given up."""
    for row, (name, known) in enumerate(times.items()):
        y = top + STEP * row
        label = html.escape(name if len(name) <= LONGEST else name[: LONGEST - 1] + "…")
        yield f'<text x="{LEFT - 8}" y="{y + 3}" text-anchor="end">{label}</text>'
        for k, code in enumerate(codes):
            if code in known:
                time, colour = known[code], _colour(k)
                fill = f'fill="none" stroke="{colour}"' if time.at_least else f'fill="{colour}"'
                title = html.escape(f"{name}, {code}: {time} s")
                at = f'cx="{place(time.seconds):.1f}" cy="{y}" r="4"'
                yield f"<circle {at} {fill}><title>{title}</title></circle>"


def _colour(k: int) -> str:
    return COLOURS[k % len(COLOURS)]
