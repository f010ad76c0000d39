"""The corpus as a whole: large enough, every case with a name of its own and an expected block, nothing left unjudged."""

from __future__ import annotations

from collections import Counter

import pytest
from query_corpus import Case, files, read, rewritten

CASES: list[Case] = [case for path in files() for case in read(path)]


def test_it_is_large_enough():
    kinds = Counter(case.kind for case in CASES)
    assert kinds["query"] >= 200
    assert kinds["error"] >= 80


@pytest.mark.parametrize("path", files(), ids=lambda path: path.stem)
def test_a_file_is_in_order(path):
    cases = read(path)
    assert path.read_text(encoding="utf-8").startswith("# ")
    assert [name for name, n in Counter(case.name for case in cases).items() if n > 1] == []
    assert [case.name for case in cases if not case.expected] == []
    assert any(case.kind == "error" for case in cases) or path.stem == "spark_refuses"


def test_updating_with_the_same_answers_changes_nothing():
    for path in files():
        answers = {case.name: case.expected for case in read(path)}
        assert rewritten(path, answers) == path.read_text(encoding="utf-8")


def test_few_cases_are_left_to_a_reader():
    """A case that no judge can judge says why; there should be next to none."""
    assert len([case for case in CASES if case.notes("judged")]) <= 3
