"""CSV and JSON lines: the fast reader and the judge agree, and what is wrong is found exactly."""

from __future__ import annotations

import json
import random
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.model.schema import Schema
from headwater.sources.csv_text import CsvText
from headwater.sources.json_text import JsonText

TYPES = {
    "BIGINT": pa.int64(),
    "TINYINT": pa.int8(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "DECIMAL": pa.decimal128(5, 2),
}
TOKENS = [
    *("0x1F", "0xff", "1", "-0", "+1", "1.", "1e3", "1E3", ".5", "-.5", "nan", "-nan", "inf", "INF", "Infinity", "1_0"),
    *("1\xa0", "\t1", " 1 ", "true", "T", "True", "tRUE", "yes", "1.0", "00012", "128", "99999999999999999999", "--1"),
    *("2026-01-01", "2026-1-1", "20260101", "2026-01-01T01", "2026-01-01T0102", "2026-01-01 01:02", "2026-02-29"),
    *("2026-01-01T01:02:03.5", "2026-01-01T01:02:03.1234567", "2026-01-01T01:02:03Z", "2026-01-01T01:02:03+01:30"),
    *("2026-01-01T01:02:60", "2026-01-01T24:00:00", "0001-01-01", "9999-12-31 23:59:59.999999", "2026-01-01Z"),
    *("12.50", "12.345", "123456", "1e400", "1e-400", "1e2", "0b1", "-9223372036854775808", "9223372036854775808"),
]


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize("type_", TYPES.values(), ids=TYPES)
def test_what_the_fast_reader_takes_the_judge_takes_too(type_: pa.DataType, token: str):
    text = CsvText(Schema.of(a=type_, b="STRING"))
    fast = text._fast(pa.py_buffer(f"{token},x\n".encode()), 2, [0, 1])
    judged = text._judged(pa.py_buffer(f"{token},x\n?,?,?\n".encode()), 2, [0, 1]).rows
    if fast is not None:
        assert str(judged.to_pylist()) == str(fast.to_pylist())


def parse(text: str | bytes, schema: Schema, names: list[str] | None = None, **options):
    block = pa.py_buffer(text.encode() if isinstance(text, str) else text)
    return CsvText(schema, **options).parse(block, names or list(schema.names))


def bad(found) -> list[tuple[int, str, str]]:
    if found.line is None:
        return []
    return list(zip(found.line.tolist(), found.reason.to_pylist(), found.raw.to_pylist(), strict=True))


def test_every_kind_of_malformed_csv_row_is_found_with_its_line():
    lines = [
        b"x,1",
        b"",
        b'"open,2',
        b'"a ""b""",3',
        b'5" pipe,4',
        b"\xff,5",
        b"few",
        b"one,two,3",
        b"n,two",
        b"last,6",
    ]
    found = parse(b"\n".join(lines), Schema.of(b="STRING", a="BIGINT"))
    assert [tuple(r.values()) for r in found.rows.to_pylist()] == [("x", 1), ('a "b"', 3), ('5" pipe', 4), ("last", 6)]
    assert bad(found) == [
        (2, "a quote is not closed", '"open,2'),
        (5, "the line is not text in UTF-8", "\ufffd,5"),
        (6, "there are 1 values, not 2", "few"),
        (7, "there are 3 values, not 2", "one,two,3"),
        (8, 'column "a" is BIGINT, which "two" is not', "n,two"),
    ]


def test_an_open_quote_does_not_swallow_the_lines_after_it():
    found = parse('a,"b\nc,d\ne,"f\n', Schema.of(x="STRING", y="STRING"))
    assert [line for line, *_ in bad(found)] == [0, 2]
    assert found.rows.to_pylist() == [{"x": "c", "y": "d"}]


def test_values_may_hold_newlines_if_that_is_said():
    schema = Schema.of(x="STRING", y="BIGINT")
    found = parse('"a\nb",1\nc,2\n', schema, multiline=True)
    assert found.rows.column(0).to_pylist() == ["a\nb", "c"]
    found = parse('"a\nb",1\nc,two\n', schema, multiline=True)
    assert bad(found) == [(2, 'column "y" is BIGINT, which "two" is not', "c,two")]


def test_empty_is_null_quoted_empty_is_not_and_both_can_be_told_apart_with_another_null():
    schema = Schema.of(x="STRING", y="BIGINT")
    assert parse('"",1\n,\n', schema).rows.to_pylist() == [{"x": "", "y": 1}, {"x": None, "y": None}]
    assert parse("NA,NA\n,1\n", schema, null="NA").rows.to_pylist() == [{"x": None, "y": None}, {"x": "", "y": 1}]
    assert bad(parse("a,\n", schema, null="NA")) == [(0, 'column "y" is BIGINT, which "" is not', "a,")]


def test_timestamps_in_other_formats_and_zones():
    schema = Schema.of(t="TIMESTAMP")
    formats = ("%d/%m/%Y %H:%M",)
    expected = parse("2026-02-01T10:11:00\n", schema).rows
    assert parse("01/02/2026 10:11\n", schema, formats=formats).rows == expected
    assert parse("2026-02-01T11:11:00+01:00\n", schema).rows == expected
    mixed = parse("2026-02-01T11:11:00+01:00\n2026-02-01 10:11\n01/02/2026 10:11\nnever\n", schema, formats=formats)
    assert mixed.rows.column(0).to_pylist() == expected.column(0).to_pylist() * 3
    assert [line for line, *_ in bad(mixed)] == [3]


@settings(deadline=None)
@given(st.lists(st.sampled_from([*TOKENS, "", '"q"', 'q"', '"', "é"]), min_size=1, max_size=12), st.data())
def test_the_verdict_on_a_row_does_not_depend_on_its_neighbours(tokens: list[str], data):
    type_ = data.draw(st.sampled_from(list(TYPES.values())))
    schema = Schema.of(a=type_, b="STRING")
    lines = [f"{token},{i}" for i, token in enumerate(tokens)]
    together = parse("\n".join(lines), schema)
    alone = [parse(line, schema) for line in lines]
    rows = [row for found in alone for row in found.rows.to_pylist()]
    assert str(together.rows.to_pylist()) == str(rows)
    assert [reason for _, reason, _ in bad(together)] == [r for found in alone for _, r, _ in bad(found)]
    assert together.rows.num_rows + len(bad(together)) == len(lines)


# -- JSON -------------------------------------------------------------------------------------------------------------

OBJECTS = [
    *(b'{"a":1,"d":"2026-01-02","m":"1.25"}', b"{}", b'{"a":null,"z":[1]}', b'{"f":NaN}', b'{"m":1.25}'),
    *(b'{"x":"YWI=","l":[{"q":"2026-01-01"},null]}', b'{"t":"2026-01-01T00:00:00+02:00"}', b'  {"a":5}  '),
    *(
        b"nope",
        b"[1]",
        b'{"a":"x"}',
        b'{"a":2.5}',
        b'{"a":1}{"a":2}',
        b'{"b":"\xff"}',
        b'{"d":"2026-13-01"}',
        b'{"b":5}',
    ),
    *(b'{"i":300}', b'{"l":[{"q":5}]}', b'{"l":[{"q":"z"}]}', b'{"m":1.234}', b'{"m":12345}', b'{"a":1,"a":2}'),
    *(b'{"t":5}', b'{"x":"YW"}', b'{"a":99999999999999999999}', b'{"a":', b'{"f":"1"}', b'{"a":true}'),
]
OBJECT = Schema.of(
    a="BIGINT",
    b="STRING",
    d="DATE",
    f="DOUBLE",
    i="TINYINT",
    t="TIMESTAMP",
    x="BINARY",
    m=pa.decimal128(5, 2),
    l=pa.list_(pa.struct([("q", pa.date32())])),
)


def objects(lines: list[bytes]):
    return JsonText(OBJECT).parse(pa.py_buffer(b"\n".join(lines)))


def test_json_values():
    (row,) = objects([OBJECTS[0]]).rows.to_pylist()
    assert row["m"] == Decimal("1.25")
    assert str(row["d"]) == "2026-01-02"
    (row,) = objects([OBJECTS[5]]).rows.to_pylist()
    assert row["x"] == b"ab"
    assert str(objects([OBJECTS[6]]).rows.column("t")[0]) == "2025-12-31 22:00:00"


def test_every_kind_of_malformed_json_line_is_found():
    found = objects([b"", *OBJECTS])
    assert found.rows.num_rows == 8
    assert found.line is not None
    assert found.line.tolist() == list(range(9, len(OBJECTS) + 1))
    assert found.reason is not None
    assert found.reason.to_pylist()[2:4] == [
        'column "a" is BIGINT, which "x" is not',
        'column "a" is BIGINT, which 2.5 is not',
    ]


@settings(deadline=None)
@given(st.lists(st.sampled_from(OBJECTS), min_size=1, max_size=12))
def test_the_verdict_on_a_line_does_not_depend_on_its_neighbours(lines: list[bytes]):
    together = objects(lines)
    alone = [objects([line]) for line in lines]
    assert str(together.rows.to_pylist()) == str([row for found in alone for row in found.rows.to_pylist()])
    assert bad(together) == [(i, *rest) for i, found in enumerate(alone) for _, *rest in bad(found)]


@settings(deadline=None)
@given(st.lists(st.fixed_dictionaries({"a": st.integers(-(2**63), 2**63 - 1), "b": st.text(), "f": st.floats()})))
def test_what_python_writes_is_read_back(rows: list[dict]):
    found = objects([json.dumps(row).encode() for row in rows])
    assert str(found.rows.select(["a", "b", "f"]).to_pylist()) == str([{k: r[k] for k in "abf"} for r in rows])


# -- keys in another spelling, and other names ------------------------------------------------------------------------

SPELLED = Schema.of(
    userId="BIGINT", inner=pa.struct([("aB", pa.int32()), ("c", pa.list_(pa.struct([("De", pa.string())])))])
)
LINES = [
    ('{"userid":1,"INNER":{"AB":2,"c":[{"de":"x"},{"DE":"\\"userid\\": 5"}]}}', (1, 2, ["x", '"userid": 5'])),
    ('{"userId":3,"inner":{"aB":4,"C":[]}}', (3, 4, [])),
    ('{"userid":9,"userId":5,"inner":{"aB":6,"ab":7,"c":[{"De":"y"}]}}', (5, 6, ["y"])),
    ('{"meta":{"userId":8},"USERID":7,"inner":{"aB":1,"c":[]}}', (7, 1, [])),
]


@pytest.mark.parametrize("seed", range(6))
def test_json_keys_are_found_without_regard_to_case_whatever_else_is_in_the_block(seed: int):
    chosen = random.Random(seed).choices(LINES, k=1 + seed)
    found = JsonText(SPELLED).parse(pa.py_buffer("".join(f"{line}\n" for line, _ in chosen).encode()))
    assert found.reason is None
    rows = [(r["userId"], r["inner"]["aB"], [d["De"] for d in r["inner"]["c"]]) for r in found.rows.to_pylist()]
    assert rows == [values for _, values in chosen]


def test_a_json_object_with_two_spellings_neither_of_them_the_declared_is_malformed():
    lines = ['{"userid":1,"USERID":2}', '{"userid":3}', '{"inner":{"ab":1,"AB":2,"c":null}}']
    found = JsonText(SPELLED).parse(pa.py_buffer("".join(f"{line}\n" for line in lines).encode()))
    assert found.line is not None
    assert found.reason is not None
    assert found.rows.column("userId").to_pylist() == [3]
    assert found.line.tolist() == [0, 2]
    assert set(found.reason.to_pylist()) == {"several keys may be the one of a column: they differ only in case"}


@pytest.mark.parametrize("name", ["*", "a*", "[0]", "?", "a.b", 'q"x', "it's", "a/b~c", "$", "höhe"])
def test_columns_of_json_may_have_any_name(name: str):
    schema = Schema.of(**{name: "BIGINT", "t": "INT"})
    lines = [{name: 1, "t": 2}, {name: "no number", "t": 3}, {name.upper(): 4, "t": 5}]
    text = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)
    found = JsonText(schema).parse(pa.py_buffer(text.encode()))
    assert found.rows.column(name).to_pylist() == [1, 4]
    assert found.reason is not None
    assert found.reason.to_pylist() == [f'column "{name}" is BIGINT, which "no number" is not']


def test_timestamps_of_json_may_have_formats_of_their_own():
    schema = Schema.of(ts="TIMESTAMP", day="DATE", inner=pa.struct([("at", pa.timestamp("us"))]))
    lines = [
        {"ts": "01.02.2026 03:04", "day": "02.02.2026 00:00", "inner": {"at": "03.02.2026 00:01"}},
        {"ts": "2026-02-01T03:04:05", "day": "2026-02-02", "inner": None},
        {"ts": "02/01/2026"},
    ]
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    found = JsonText(schema, formats=("%d.%m.%Y %H:%M",)).parse(pa.py_buffer(text.encode()))
    assert found.rows.column("ts").to_pylist() == [datetime(2026, 2, 1, 3, 4), datetime(2026, 2, 1, 3, 4, 5)]
    assert found.rows.column("day").to_pylist() == [date(2026, 2, 2)] * 2
    assert found.rows.column("inner").to_pylist() == [{"at": datetime(2026, 2, 3, 0, 1)}, None]
    assert found.reason is not None
    assert found.reason.to_pylist() == ['column "ts" is TIMESTAMP, which "02/01/2026" is not']


def test_a_line_that_is_no_json_spells_no_key():
    schema = Schema.of(**{"a\nb": "INT", "t": "INT"})
    found = JsonText(schema).parse(pa.py_buffer(b'{"a\\nb":1,"t":1}\n{"a\\Nb":1,"t":2}\n{"A\\nB":3,"t":3}\n'))
    assert found.rows.column("a\nb").to_pylist() == [1, 3]
    assert found.line is not None
    assert found.line.tolist() == [1]
