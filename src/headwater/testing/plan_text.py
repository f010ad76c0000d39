"""Plans from text, as tests write them: lines by their indentation; each kind of node reads its own line.

Expressions are in the SQL of the language, columns in double quotes (``expression_text.py``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from attrs import frozen

from headwater.algebra import nodes as n
from headwater.algebra.plan_cursor import Cursor
from headwater.model.functions import UserFunction
from headwater.testing.expression_text import bind_text

_LINE = re.compile(r"""(?:'(?:[^']|'')*'|"(?:[^"]|"")*"|[^\n'"])*""")


def parse_plan(text: str) -> n.Plan:
    """The plan that the text describes; blank lines and lines that begin with # say nothing.

    Raises a ``SqlError`` with the code PLAN_TEXT that says where it expected what.
    """
    functions: list[UserFunction] = []
    lines: list[_Line] = []
    for start, end in _lines(text):
        cursor = Cursor(text, start, end)
        if not lines and cursor.accept("function"):
            functions.append(_function(cursor))
        else:
            lines.append(_Line(text, start, end, cursor.at - start))
    if not lines:
        raise Cursor(text, len(text), len(text)).expected("a plan")
    return _build(lines, functions)


# -- lines ----------------------------------------------------------------------------------------------------------


@frozen
class _Line:
    """A node's line: where it is in the text, and how far it is indented."""

    text: str
    start: int
    end: int
    indent: int

    def cursor(self, functions: Sequence[UserFunction] = ()) -> Cursor:
        return Cursor(self.text, self.start, self.end, functions, bind_text)


def _lines(text: str) -> Iterator[tuple[int, int]]:
    """Where each line that says something begins and ends; a line break inside of quotes does not end it."""
    at = 0
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        physical = text[at:end].strip()
        if physical and not physical.startswith("#"):
            found = _LINE.match(text, at)
            end = found.end() if found else end
            if end < len(text) and text[end] != "\n":
                raise Cursor(text, end, len(text)).mistake(f"expected another {text[end]} before the end of the text")
            yield at, end
        at = end + 1


def _depths(lines: Sequence[_Line]) -> list[int]:
    """How deep in the tree each line stands; the first is the root."""
    depths = [0]
    for line in lines[1:]:
        depth, odd = divmod(line.indent - lines[0].indent, 2)
        if odd or not 1 <= depth <= depths[-1] + 1:
            allowed = [str(lines[0].indent + 2 * d) for d in range(1, depths[-1] + 2)]
            message = f"expected {' or '.join(allowed)} spaces before an input, found {line.indent}"
            raise line.cursor().mistake(message)
        depths.append(depth)
    return depths


def _build(lines: Sequence[_Line], functions: Sequence[UserFunction]) -> n.Plan:
    """From the last line to the first, so that a node's inputs are there before it."""
    depths = _depths(lines)
    built: list[tuple[int, n.Plan]] = []
    for line, depth in zip(reversed(lines), reversed(depths), strict=True):
        inputs = []
        while built and built[-1][0] == depth + 1:
            inputs.append(built.pop()[1])
        built.append((depth, _node(line.cursor(functions), inputs)))
    return built[0][1]


def _node(cursor: Cursor, inputs: Sequence[n.Plan]) -> n.Plan:
    start = cursor.at
    for words, kind in _KINDS:
        if cursor.accept(*words.split()):
            if len(inputs) != kind.arity and (kind.arity is not None or len(inputs) < _FEW):
                more = " or more" if kind.arity is None else ""
                needed = _FEW if kind.arity is None else kind.arity
                message = f"{words} needs {needed}{more} input{'' if needed == 1 else 's'}, but has {len(inputs)}"
                raise cursor.mistake(message, at=start, length=cursor.at - start)
            plan = kind.read(cursor, words, tuple(inputs))
            cursor.finish()
            return plan
    raise cursor.expected(
        "a node", hint=f"The nodes are {', '.join(words for kind in n.NODES for words in kind.words)}."
    )


_KINDS = sorted(((words, kind) for kind in n.NODES for words in kind.words), key=lambda pair: -len(pair[0]))
"""By the words that a line begins with; "except all" before "except"."""
_FEW = 2
"""The least that a node of many inputs has."""


def _function(cursor: Cursor) -> UserFunction:
    name = cursor.name("the name of the function in double quotes")
    cursor.expect("(")
    parameters = () if cursor.accept(")") else cursor.listed(cursor.type)
    if parameters:
        cursor.expect(")")
    cursor.expect("RETURNS")
    returns = cursor.type()
    cursor.expect("AS")
    path = cursor.string("the path of the function, as in 'module:attribute'")
    cursor.finish()
    return UserFunction(name, path, parameters, returns)
