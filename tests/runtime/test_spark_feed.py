"""Why a source that Spark reads has ended: told without Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headwater.backends.spark.feed import SparkFeed
from headwater.errors import InputError


class Feed(SparkFeed):
    """Counts how often it is started; its query has ended with some text."""

    def __init__(self, text: str | None) -> None:
        nothing: Any = SimpleNamespace(error=None)
        super().__init__("bid", nothing, nothing, nothing, nothing)
        self.started, self.text = 0, text
        self.start()

    def start(self) -> None:
        self.started += 1
        self._query = SimpleNamespace(isActive=False, exception=lambda: self.text)  # type: ignore[assignment]


def test_it_says_in_a_line_what_failed():
    found = Feed("Path does not exist: /data\n=== Streaming Query ===\nCurrent State: ACTIVE").failure()
    assert str(found).startswith(
        'SOURCE_FAILED: the source of stream "bid" failed\n  detail: Path does not exist: /data\n'
    )


def test_an_end_without_a_word_is_a_failure_too():
    assert "Spark ended it without a word." in str(Feed(None).failure())


def test_one_that_did_not_start_in_time_is_started_again(caplog: pytest.LogCaptureFixture):
    feed = Feed("Python worker failed to connect back.\n=== Streaming Query ===")
    assert feed.failure() is None
    assert feed.started == 2
    assert "is started again" in " ".join(caplog.messages)
    for _ in range(10):
        last = feed.failure()
    assert "failed to connect back" in str(last), "but not for ever"
    assert feed.started == 6


def test_what_failed_in_a_tick_comes_first():
    feed = Feed("An exception was raised by the Python Proxy.")
    feed._loop.error = ValueError("the disk is gone")
    assert feed.failure() is feed._loop.error


def test_a_batch_that_was_refused_says_why_itself():
    feed = Feed("An exception was raised by the Python Proxy.")
    feed._refused = InputError("NOT_PARQUET", "this is no parquet file")
    assert feed.failure() is feed._refused
