"""Errors that tasks report: as they are, and nothing else is taken for one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.malice import MADE, SHORT, TEXT

from headwater.backends.spark.sealed_errors import Seal
from headwater.errors import HeadwaterError, InputError, SqlError, StateError, StreamError, error_data, error_of
from headwater.runtime.loop import Stopped

ERRORS = [
    HeadwaterError("A", "m", detail="d \udcff \n;", hint="h"),
    SqlError("B", "m", detail="d", hint="h", text="SELECT\n'é'", line=2, column=1, length=3),
    *(kind("C", 'a "quoted" text;') for kind in (InputError, StateError, StreamError)),
]


def quoted_by_spark(text: str) -> str:
    return f"Job aborted: Traceback …\n  raise\nRuntimeError: {text}\n\tat org.apache.spark.Task.run(Task.scala:1)"


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_crosses_as_it_is(error: HeadwaterError):
    seal = Seal()
    with pytest.raises(RuntimeError) as raised, seal.reporting():
        raise error
    found = seal.opened(quoted_by_spark(f"{TEXT}{raised.value}{TEXT}"))
    assert type(found) is type(error)
    assert error_data(found) == error_data(error)
    assert str(found) == str(error)


def test_of_a_kind_that_is_not_for_users_comes_what_it_says():
    seal = Seal()
    found = seal.opened(seal.sealed(Stopped()))
    assert type(found) is HeadwaterError
    assert found.code == "STOPPED"


@pytest.mark.parametrize("text", ["", "Python worker failed to connect back.", TEXT, SHORT, Seal().sealed(ERRORS[0])])
def test_other_texts_report_nothing(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Not even what another session has sealed."""
    monkeypatch.chdir(tmp_path)
    assert Seal().opened(quoted_by_spark(text)) is None
    assert not (tmp_path / MADE).exists()


def test_a_sealed_text_cannot_be_changed():
    seal = Seal()
    text = seal.sealed(InputError("A", "m"))
    for i in range(len(text)):
        other = "B" if text[i] != "B" else "C"
        assert seal.opened(text[:i] + other + text[i + 1 :]) is None


def test_the_key_is_shown_nowhere():
    seal = Seal()
    assert seal._key.hex() not in repr(seal)
    assert repr(seal._key) not in repr(seal)
    assert "key" not in repr(seal)


@pytest.mark.parametrize(
    "plain",
    [
        {},
        {"kind": "os.system"},
        error_data(ERRORS[0]) | {"kind": "Path"},
        error_data(ERRORS[0]) | {"more": "x"},
        error_data(ERRORS[0]) | {"hint": 1},
        error_data(ERRORS[1]) | {"line": "1"},
        {n: v for n, v in error_data(ERRORS[1]).items() if n != "text"},
    ],
)
def test_only_what_an_error_tells_of_itself_becomes_one(plain: dict):
    with pytest.raises(ValueError, match="not what an error tells"):
        error_of(plain)
