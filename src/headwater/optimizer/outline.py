"""A plan as people and tools see it: a tree of labelled boxes with facts beside them."""

from __future__ import annotations

import json
from collections.abc import Iterator

from attrs import frozen

_GAP = "   "
_WIDEST = 76
"""Facts stand in a column of their own, but not further right than this."""


@frozen
class Box:
    """One operator of a plan."""

    id: int
    label: str
    facts: tuple[tuple[str, str], ...] = ()
    """What is worth knowing at a glance: name and text."""
    notes: tuple[tuple[str, str], ...] = ()
    """What only a closer look shows."""
    inputs: tuple[Box, ...] = ()

    def walk(self) -> Iterator[Box]:
        """This box and all below it; one that is shared comes as often as it is used."""
        yield self
        for child in self.inputs:
            yield from child.walk()


def as_tree(root: Box) -> str:
    """Lines and branches. What occurs twice is drawn once, and named after that.

    >>> print(as_tree(Box(2, "Filter x > 1", (("rate", "5"),), (), (Box(1, "Source s"),))))
    Filter x > 1   rate 5
    └─ Source s
    """
    uses: dict[int, int] = {}
    for box in root.walk():
        uses[box.id] = uses.get(box.id, 0) + 1
    names = {id_: f"#{i + 1}" for i, id_ in enumerate(i for i, n in uses.items() if n > 1)}
    lines = list(_lines(root, "", "", names, set()))
    widest = max(len(left) for left, _ in lines)
    column = min(widest, _WIDEST)
    shown = (f"{left.ljust(column)}{_GAP}{right}" if right else left for left, right in lines)
    return "\n".join(shown)


def _lines(box: Box, first: str, rest: str, names: dict[int, str], drawn: set[int]) -> Iterator[tuple[str, str]]:
    name = names.get(box.id)
    if name is not None and box.id in drawn:
        yield f"{first}{name} (shared, above)", ""
        return
    drawn.add(box.id)
    mark = f"{name} " if name is not None else ""
    yield f"{first}{mark}{box.label}", ", ".join(f"{key} {text}" for key, text in box.facts)
    inner = f"{rest}{'│  ' if box.inputs else '   '}"
    for key, text in box.notes:
        yield f"{inner}· {key}: {text}", ""
    for i, child in enumerate(box.inputs):
        last = i == len(box.inputs) - 1
        yield from _lines(child, f"{rest}{'└─ ' if last else '├─ '}", f"{rest}{'   ' if last else '│  '}", names, drawn)


def as_json(root: Box, **more: object) -> str:
    """One object: ``nodes`` by number, each once, with the numbers of its inputs."""
    nodes = {}
    for box in root.walk():
        nodes[box.id] = {
            "id": box.id,
            "label": box.label,
            **{key.replace(" ", "_"): text for key, text in (*box.facts, *box.notes)},
            "inputs": [child.id for child in box.inputs],
        }
    return json.dumps({"root": root.id, **more, "nodes": list(nodes.values())}, indent=2, ensure_ascii=False)


def as_mermaid(root: Box) -> str:
    """A flowchart for Markdown, sources below, the result on top."""
    boxes = {box.id: box for box in root.walk()}
    lines = ["flowchart BT"]
    for box in boxes.values():
        facts = "".join(f"<br/><small>{_escaped(key)} {_escaped(text)}</small>" for key, text in box.facts)
        lines.append(f'  n{box.id}["{_escaped(box.label)}{facts}"]')
    lines += [f"  n{child.id} --> n{box.id}" for box in boxes.values() for child in box.inputs]
    return "\n".join(lines)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
