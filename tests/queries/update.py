"""Writes the answers of today into the corpus: ``python tests/queries/update.py [names of files] [-- names of cases]``.

An answer that a judge contradicts is not written; what no judge can judge must say so (``-- judged: …``).
"""

from __future__ import annotations

import sys

from query_corpus import Case, answer, files, read, rewritten
from query_judges import judge
from query_outcomes import outcome


def main(arguments: list[str]) -> int:
    chosen = arguments[: arguments.index("--")] if "--" in arguments else arguments
    names = arguments[arguments.index("--") + 1 :] if "--" in arguments else []
    failures = 0
    for path in files():
        if chosen and path.stem not in chosen:
            continue
        answers = {}
        for case in read(path):
            if names and case.name not in names:
                continue
            try:
                answers[case.name] = checked(case)
            except Exception as problem:
                failures += 1
                print(f"{path.name}:{case.line}: {case.name}: {type(problem).__name__}: {problem}\n", file=sys.stderr)
        path.write_text(rewritten(path, answers), encoding="utf-8")
    return 1 if failures else 0


def checked(case: Case) -> str:
    """The case's answer, if the judges agree."""
    text, tables = outcome(case)
    if tables is not None:
        agree, silent = judge(case, tables)
        if not agree and not case.notes("judged"):
            raise AssertionError("no judge: " + "; ".join(silent) + "\n" + answer(tables, case.recording.scale))
    return text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
