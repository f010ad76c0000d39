"""One Spark a test process, started when a test first asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headwater.runtime.spark.session import SessionHandle, open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder go to one process (with ``--dist loadgroup``), so that Spark starts once."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def session() -> Iterator[SessionHandle]:
    """Spark on two cores of this machine, two shards; compiled quickly, as no test runs for long."""
    with open_session(
        "local[2]", shards=2, config={"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    ) as handle:
        yield handle


@pytest.fixture(scope="session")
def spark(session: SessionHandle) -> SparkSession:
    return session.spark
