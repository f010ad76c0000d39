"""SOURCE functions: what they take, what they make, and what they say about mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.errors import InputError
from headwater.language.binder import bind_script
from headwater.language.catalog import Stream
from headwater.sources.base import Source
from headwater.sources.connectors import make_source
from headwater.sources.csv_files import CsvFormat
from headwater.sources.files import FileSource
from headwater.sources.memory import MemorySource
from headwater.sources.nexmark import NexmarkSource
from headwater.sources.rate import RateSource
from headwater.sources.socket import SocketSource


def declared(source: str, columns: str = "x BIGINT, ts TIMESTAMP") -> Stream:
    entry = bind_script(f"CREATE STREAM s ({columns}) SOURCE {source}").catalog.get("s")
    assert isinstance(entry, Stream)
    return entry


def make(source: str, base: Path, columns: str = "x BIGINT, ts TIMESTAMP") -> Source:
    return make_source(declared(source, columns), base_folder=base)


def test_files(tmp_path: Path):
    (tmp_path / "data").mkdir()
    (tmp_path / "one.csv").write_text("x,ts\n")
    source = make("parquet('data', rows_per_tick => 1000, malformed => 'DIVERT', max_age => '2 hours')", tmp_path)
    assert isinstance(source, FileSource)
    assert (source.path, source.rows_per_tick, source.malformed) == (str(tmp_path / "data"), 1000, "divert")
    assert (source.finite, source.max_age) == (False, 7_200_000_000)
    source = make(
        "csv('one.csv', header => false, delimiter => '\\t', null => 'NA', timestamp_format => '%d/%m/%Y | %H:%M')",
        tmp_path,
    )
    assert isinstance(source, FileSource)
    assert source.format == CsvFormat(False, "\t", "NA", ("%d/%m/%Y", "%H:%M"))
    assert source.finite
    assert make("JSON('data', follow => false)", tmp_path).finite
    assert not make("csv('data/*.csv')", tmp_path).finite


def test_generators_and_the_rest(tmp_path: Path):
    source = make(
        "nexmark('bid', rate => 5, events => 100, seed => 3, disorder => '1.5 seconds', start => '1970-01-02', "
        "paced => false)",
        tmp_path,
        "price BIGINT, ts TIMESTAMP",
    )
    assert isinstance(source, NexmarkSource)
    g = source.generator
    assert (g.kind, g.rate, g.events, g.seed, g.disorder, g.start) == ("bid", 5, 100, 3, 1_500_000, 86_400_000_000)
    assert not source.paced
    assert isinstance(make("rate(10, rows => 5)", tmp_path, "at TIMESTAMP, n BIGINT"), RateSource)
    assert isinstance(make("memory()", tmp_path), MemorySource)
    assert isinstance(make("socket('localhost', 9999)", tmp_path), SocketSource)


@pytest.mark.parametrize(
    ("source", "columns", "expected"),
    [
        (
            "parket('data')",
            "x INT",
            'there is no source function "parket"\n  hint:   Did you mean "parquet"?',
        ),
        ("kafka('data')", "x INT", "There are parquet, csv, json, nexmark, rate, socket, memory, push."),
        ("parquet()", "x INT", 'MISSING_ARGUMENT: source parquet of stream "s": argument "path" is missing'),
        (
            "parquet('a', 'b')",
            "x INT",
            'source parquet of stream "s": it takes at most 1 argument without a name',
        ),
        (
            "parquet('data', header => true)",
            "x INT",
            'source parquet of stream "s": there is no option "header"',
        ),
        ("csv('data', delimeter => ';')", "x INT", 'Did you mean "delimiter"?'),
        ("csv('data', delimiter => ';;')", "x INT", "\"delimiter\" must be one character, not ';;'"),
        ("csv('data', path => 'x')", "x INT", '"path" is given twice'),
        ("csv('data', malformed => 'skip')", "x INT", "\"malformed\" must be 'fail' or 'divert', not 'skip'"),
        ("csv('data')", "x ARRAY<INT>", 'CSV cannot hold column "x" of type ARRAY<INT>'),
        ("csv('nowhere')", "x INT", 'NO_SUCH_FOLDER: source csv of stream "s": the folder "'),
        ("csv('nowhere/x.csv')", "x INT", "Make the file, or name its folder."),
        ("csv(5)", "x INT", '"path" must be a string, not 5'),
        ("nexmark('bids')", "price INT", "\"kind\" must be 'person' or 'auction' or 'bid', not 'bids'"),
        (
            "nexmark('bid')",
            "prise INT",
            'source nexmark of stream "s": nexmark has no column "prise" in "bid"',
        ),
        ("nexmark('bid', rate => 0)", "price INT", '"rate" must be a whole number from 1 to 1000000000, not 0'),
        ("nexmark('bid', disorder => '2 lightyears')", "price INT", "a length of time such as '2 seconds'"),
        ("nexmark('bid', start => 'now')", "price INT", "a time such as '2026-01-01 00:00:00', not 'now'"),
        ("rate(1)", "x INT", "It has two, whatever their names: (timestamp TIMESTAMP, value BIGINT)."),
        ("socket('h', 1, format => 'text')", "x INT", "lines of text have one column, not (x INT)"),
    ],
)
def test_mistakes_name_the_stream_and_the_function(tmp_path: Path, source: str, columns: str, expected: str):
    (tmp_path / "data").mkdir()
    with pytest.raises(InputError) as caught:
        make(source, tmp_path, columns)
    assert expected in str(caught.value)
    assert '"s"' in caught.value.message


def test_a_stream_without_a_source(tmp_path: Path):
    stream = bind_script("CREATE STREAM s (x INT)").catalog.get("s")
    assert isinstance(stream, Stream)
    with pytest.raises(InputError, match='NO_SOURCE: stream "s" has no source'):
        make_source(stream, base_folder=tmp_path)
