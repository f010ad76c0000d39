"""The examples in ``docs`` run, and give what the pages say.

``PYTHONPATH=src python tests/test_docs.py`` writes the answers of today, and the table of rules, into the pages: look at the
difference before you keep it.

What the blocks of a page are:

* ``sql``: a script. One that is marked ``<!-- declares -->`` stands before all later ones of the page, one that is marked
  ``<!-- alone -->`` needs none of them, and ``<!-- mistake -->`` is refused. Scripts that show no output must bind.
* ``input``: more elements for the scripts that follow, written as in ``tests/queries``; ``<!-- in minutes -->``: so are the
  instants of the whole page, or in other units.
* ``history``: what the script before it answers to them.
* ``console``, ``json``, ``mermaid``: what the script before it says: SHOW, DESCRIBE and EXPLAIN, its notices, or
  the mistake. After ``$ headwater …`` it is what the command prints, with the files of the page (``<!-- file: name -->``).
* ``plan``: plan text, as it is printed. ``python``: an interactive session.
* what is marked ``<!-- from: path -->`` is in that file.
* ``text`` that is marked ``<!-- reference: module:Name -->`` is what the code says of that: signatures, and what each does.
"""

from __future__ import annotations

import contextlib
import doctest
import inspect
import os
import re
import shlex
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
import typer
from attrs import evolve, field, frozen
from typer.testing import CliRunner

from headwater.algebra.plan_text import print_plan
from headwater.backends.explain import shown
from headwater.cli.main import app
from headwater.engine import connect
from headwater.errors import HeadwaterError, InputError
from headwater.expressions.aggregates import BY_SQL_NAME
from headwater.expressions.functions.record import MANY
from headwater.language.catalog import Connector, Stream
from headwater.language.functions.registry import SCALARS, SPECIAL_FORMS
from headwater.language.functions.special_functions import SPECIAL_FUNCTIONS
from headwater.model.schema import Schema
from headwater.optimizer.optimize import rules
from headwater.optimizer.rule import Rule
from headwater.settings import Settings
from headwater.sources.connectors import _FUNCTIONS as FUNCTIONS
from headwater.sources.connectors import make_source
from headwater.testing.plan_text import parse_plan

sys.path.append(str(Path(__file__).resolve().parent / "queries"))

from query_corpus import Case, Recording, answer
from query_runs import bound, tables

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))
ANSWERS = ("history", "console", "json", "mermaid")
_FENCE = re.compile(r"^```(\w*)$")
_MARK = re.compile(r"^<!-- (.*) -->$")
_TIMES = re.compile(r"\(\d+\.\d ms\)")
"""How long a rule took is another number each time."""


@frozen
class Block:
    """A fenced block of a page, with the mark in the line before it."""

    page: Path
    line: int
    kind: str
    mark: str
    text: str

    @property
    def is_command(self) -> bool:
        return self.kind == "console" and self.text.startswith("$ ")

    @property
    def is_reference(self) -> bool:
        return self.kind == "text" and self.mark.startswith("reference: ")

    @property
    def file(self) -> str:
        return self.mark.removeprefix("file: ") if self.mark.startswith("file: ") else ""


@frozen
class Example:
    """A block that can be checked, with what the page says before it."""

    block: Block
    script: Block | None = None
    streams: str = ""
    recording: Recording = field(factory=Recording)
    files: tuple[Block, ...] = ()

    @property
    def case(self) -> Case:
        assert self.script is not None, "there is no script before this"
        streams = "" if self.script.mark == "alone" else self.streams
        return Case(self.script.page, "example", self.script.line, self.script.text, "", streams, self.recording)


def blocks(page: Path) -> Iterator[Block]:
    mark, start, kind, lines = "", 0, None, []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if kind is None and (fence := _FENCE.match(line)):
            kind, start, lines = fence.group(1), number, []
        elif kind is not None and line == "```":
            yield Block(page, start, kind, mark, "\n".join(lines))
            mark, kind = "", None
        elif kind is not None:
            lines.append(line)
        elif line:
            found = _MARK.match(line)
            mark = found.group(1) if found else ""


def examples(page: Path) -> Iterator[Example]:
    so_far = Example(Block(page, 0, "", "", ""))
    for block in blocks(page):
        if block.file:
            so_far = evolve(so_far, files=(*so_far.files, block))
        if block.kind == "sql":
            so_far = evolve(so_far, script=block)
        elif block.kind == "input":
            lines = (*so_far.recording.lines, *filter(None, block.text.splitlines()))
            unit = block.mark.removeprefix("in ").removesuffix("s") if block.mark else so_far.recording.unit
            so_far = evolve(so_far, recording=Recording(lines, unit))
        yield evolve(so_far, block=block)
        if block.mark == "declares":
            so_far = evolve(so_far, streams=f"{so_far.streams}\n{block.text}")


ALL = [example for page in PAGES for example in examples(page)]
CHECKED = [e for e in ALL if e.block.kind in ("sql", "plan", *ANSWERS) or e.block.is_reference]


# -- what an example says ---------------------------------------------------------------------------------------------


def outcome(example: Example) -> str:
    """The text that belongs into the block."""
    block = example.block
    if block.kind == "plan":
        return print_plan(parse_plan(block.text))
    if block.is_reference:
        return reference(block.mark.removeprefix("reference: "))
    with folder(example):
        if block.is_command:
            return printed(block)
        if block.kind == "history":
            return answered(example)
        said = what_is_said(example)
    return said if block.kind in ANSWERS else block.text


def what_is_said(example: Example) -> str:
    case = example.case
    if example.script is not None and example.script.mark == "mistake":
        with pytest.raises(HeadwaterError) as caught:
            tables(case, None, None)
        return str(caught.value)
    script = bound(case)
    return "\n\n".join(shown(a, script.settings) for a in script.answers) or "\n".join(map(str, script.notices))


def answered(example: Example) -> str:
    found = {answer(tables(example.case, *way), example.recording.scale) for way in ((None, None), ("middle", 1))}
    assert len(found) == 1, "the answer depends on the way"
    return found.pop()


def printed(block: Block) -> str:
    """All commands of a block with what each prints."""
    lines = []
    for command in (line for line in block.text.splitlines() if line.startswith("$ ")):
        program, *arguments = shlex.split(command.removeprefix("$ "))
        assert program in ("headwater", "bin/headwater")
        result = CliRunner().invoke(app, arguments)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        lines += [command, *result.output.rstrip().splitlines()]
    return "\n".join(lines)


def reference(path: str) -> str:
    """A function, the functions of a module, or the public names of a class, each with the first words of its docstring."""
    module, _, name = path.partition(":")
    found = import_module(module)
    if not name:
        return "\n".join(described(each, getattr(found, each)) for each in found.__all__)
    described_one = getattr(found, name)
    if not inspect.isclass(described_one):
        return described(name, described_one)
    own = [base for base in inspect.getmro(described_one) if base.__module__.startswith("headwater")]
    members = {n: v for base in reversed(own) for n, v in vars(base).items() if not n.startswith("_")}
    shown = {n: v for n, v in members.items() if inspect.isfunction(v) or isinstance(v, (property, classmethod))}
    return "\n".join(described(each, value) for each, value in sorted(shown.items()))


def described(name: str, value: object) -> str:
    """``push(stream, rows, *, frontier=None, wait=True)``, and below it what that does."""
    words = " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split()).replace("``", "`")
    call = name
    if callable(value):
        parameters = inspect.signature(value).parameters.values()
        plain = [p.replace(annotation=inspect.Parameter.empty) for p in parameters if p.name not in ("self", "cls")]
        call += str(inspect.Signature(plain))
    lines = textwrap.wrap(call, 120, subsequent_indent=" " * 8)
    return "\n".join([*lines, *textwrap.wrap(words, 120, initial_indent="    ", subsequent_indent="    ")])


@contextlib.contextmanager
def folder(example: Example) -> Iterator[None]:
    """A folder with the files of the page, as the current one; the modules among them can be imported."""
    before, path = Path.cwd(), list(sys.path)
    with tempfile.TemporaryDirectory() as made:
        (Path(made) / "examples").symlink_to(ROOT / "examples")
        for block in example.files:
            (Path(made) / block.file).write_text(f"{block.text}\n", encoding="utf-8")
        os.chdir(made)
        sys.path.append(made)
        try:
            yield
        finally:
            sys.path[:] = path
            os.chdir(before)
            for block in example.files:
                sys.modules.pop(block.file.removesuffix(".py"), None)


# -- tests ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("example", CHECKED, ids=lambda e: f"{e.block.page.name}:{e.block.line}")
def test_the_example_gives_what_the_page_says(example: Example):
    assert _TIMES.sub("", outcome(example)) == _TIMES.sub("", example.block.text)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_sessions_go_as_shown(page: Path):
    for block in blocks(page):
        if block.kind == "python" and ">>>" in block.text:
            test = doctest.DocTestParser().get_doctest(block.text, {}, page.name, str(page), block.line)
            assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed == 0


def test_what_is_quoted_is_in_its_file():
    for block in (e.block for e in ALL if e.block.mark.startswith("from: ")):
        assert f"{block.text}\n" in (ROOT / block.mark.removeprefix("from: ")).read_text(encoding="utf-8")


def test_every_block_is_known():
    known = {"sql", "input", "plan", "python", "text", *ANSWERS}
    assert {b.kind for page in PAGES for b in blocks(page)} <= known


# -- tables that must be complete -------------------------------------------------------------------------------------


def rows(page: str, first: str) -> list[tuple[str, ...]]:
    """The rows of all tables whose first column has this head; ``\\|`` is no border."""
    found, inside = [], False
    for line in (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines():
        cells = tuple(c.strip().replace("\\|", "|") for c in re.split(r"(?<!\\)\|", line)[1:-1])
        if not cells or cells[0].startswith("---"):
            inside = inside and bool(cells)
        elif inside:
            found.append(cells)
        else:
            inside = cells[0] == first
    return found


def told(rule: Rule) -> tuple[str, ...]:
    """A rule's row in the table of all."""
    condition = "" if rule.condition == "none" else rule.condition
    return f"`{rule.name}`", rule.kind, f"`{rule.law}`", condition, rule.source


def test_every_rule_is_told_with_its_law():
    assert rows("optimizer.md", "rule") == list(map(told, rules()))


@frozen
class Signature:
    """``lpad(text, n [, fill])``: optional arguments are in brackets, … stands for any more."""

    name: str
    least: int
    most: int

    @classmethod
    def of(cls, text: str) -> Signature:
        name, _, inside = text.removesuffix(")").partition("(")
        needed, bracket, optional = inside.partition("[")
        least, most = (
            len([a for a in part.replace("]", "").split(",") if a.strip(" …")]) for part in (needed, optional)
        )
        return cls(name, least, MANY if "…" in inside else least + most if bracket else least)


def test_every_function_is_told_with_its_arguments():
    spans = [
        span for kind, signatures, *_ in rows("sql.md", "functions") for span in re.findall("`([^`]+)`", signatures)
    ]
    told = {s.name: s for s in map(Signature.of, spans)}
    assert len(told) == len(spans), "a function is told twice"
    catalogued = {n: Signature(n, f.least, f.most) for n, f in {**SCALARS, **SPECIAL_FUNCTIONS}.items()}
    assert told == catalogued


def test_every_aggregate_and_special_form_is_told():
    for head, names in (("aggregates", BY_SQL_NAME), ("forms", SPECIAL_FORMS)):
        spans = [span for _, texts, *_ in rows("sql.md", head) for span in re.findall("`([^`(]+)[^`]*`", texts)]
        assert sorted(s.lower() for s in spans) == sorted(names)


def test_every_setting_is_told():
    assert [name for name, *_ in rows("sql.md", "setting")] == [f"`{name}`" for name in Settings.names()]


def test_every_option_of_connect_is_told_with_its_default():
    parameters = inspect.signature(connect).parameters.values()
    told = [(name, default) for name, default, *_ in rows("operations.md", "option of connect")]
    assert told == [(f"`{p.name}`", f"`{p.default!r}`") for p in parameters]


def test_every_option_of_run_is_told():
    command = typer.main.get_command(app).commands["run"]  # pyrefly: ignore
    options = {opt for p in command.params for opt in (*p.opts, *p.secondary_opts) if opt.startswith("--")}
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    told = page[page.index("## The command line") : page.index("## Options of connect")]
    assert [option for option in options if f"`{option}" not in told and option != "--python-functions"] == []


def test_every_source_and_its_options_are_told():
    told = {
        (source, option)
        for options, sources, *_ in rows("sources.md", "option")
        for option in re.findall("`([^`]+)`", options)
        for source in re.findall("`([^`]+)`", sources)
    }
    assert told == {(source, option) for source in FUNCTIONS for option in options_of(source)}


def options_of(source: str) -> list[str]:
    """All that a source takes, as it says when it is given something else."""
    stream = Stream("s", Schema.of(x="STRING"), source=Connector(source, (), (("no_such_option", 1),)))
    with pytest.raises(InputError) as caught:
        make_source(stream, base_folder=ROOT)
    assert caught.value.hint.startswith("There are ")
    return caught.value.hint.removeprefix("There are ").removesuffix(".").split(", ")


def idioms() -> list[str]:
    """The statements in the last column of the tables for people who know Flink or Spark."""
    cells = [cells[-1] for cells in rows("flink-and-spark.md", "idiom")]
    spans = [span for cell in cells for span in re.findall("`([^`]+)`", cell)]
    return [span for span in spans if re.match("SELECT|CREATE", span) and "…" not in span]


@pytest.mark.parametrize("statement", idioms())
def test_idioms_run_and_answer(statement: str):
    last = [example for example in ALL if example.block.page.name == "flink-and-spark.md"][-1]
    example = evolve(last, script=evolve(last.block, mark="", text=statement))
    notices = re.findall(r"^notice: (\w+)", what_is_said(example), re.MULTILINE)
    assert set(notices) <= {"UNBOUNDED_STATE"}, "it may not be what is meant"
    assert statement.startswith("CREATE") or "\n" in answered(example), "there is no row"


@pytest.mark.parametrize("query", [q.strip("`") for _, q in rows("sql.md", "Spark refuses") if q.startswith("`")])
def test_what_spark_refuses_runs(query: str):
    last = [example for example in ALL if example.block.page.name == "sql.md"][-1]
    assert "\n" in answered(evolve(last, script=evolve(last.block, mark="", text=query)))


def anchors(page: Path) -> set[str]:
    """What the headings of a page are called in links, as GitHub does it."""
    lines = page.read_text(encoding="utf-8").splitlines()
    titles = [line.lstrip("#").strip().lower() for line in lines if re.match("#+ ", line)]
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in titles}


def test_links_lead_somewhere():
    for page in [*PAGES, ROOT / "README.md"]:
        for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", page.read_text(encoding="utf-8")):
            place = page.parent / target if target else page
            assert place.exists(), f"{page.name} links to {target}"
            assert not anchor or anchor in anchors(place), f"{page.name} links to {target}#{anchor}"


def test_every_page_is_listed():
    for index, folder_ in ((ROOT / "README.md", "docs/"), (ROOT / "docs" / "README.md", "")):
        text = index.read_text(encoding="utf-8")
        assert [p.name for p in PAGES if p.name != "README.md" and f"]({folder_}{p.name})" not in text] == []


def update() -> None:
    """The blocks of all pages as they should be."""
    for page in PAGES:
        lines = page.read_text(encoding="utf-8").splitlines()
        own = [e for e in CHECKED if e.block.page == page and (e.block.kind in ANSWERS or e.block.is_reference)]
        for example in reversed(own):
            block = example.block
            old, new = block.text.splitlines(), outcome(example).splitlines()
            lines[block.line : block.line + len(old)] = new
        if page.name == "optimizer.md":
            start = next(i for i, line in enumerate(lines) if line.startswith("| rule |")) + 2
            end = lines.index("", start)
            lines[start:end] = [f"| {' | '.join(told(rule))} |" for rule in rules()]
        page.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    update()
