"""One Spark for the tests of this folder, started when a test first asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from headwater.backends.spark.session import SessionHandle, open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
