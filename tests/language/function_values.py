"""More calls with their values and types: JSON, and what users of Flink and PostgreSQL write."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

_BIDS = '{"id": 7, "bids": [{"who": "ann", "price": 2.5}, {"who": null}]}'

FURTHER: list[tuple[str, object, str]] = [
    # JSON
    ("""get_json_object('{"a": {"b": [1, 2.50, "x"]}}', '$.a.b[2]')""", "x", "STRING"),
    ("""get_json_object('{"a": {"b": [1, 2]}}', '$.a')""", '{"b":[1,2]}', "STRING"),
    ("""get_json_object('{"a b": 1}', '$[''a b'']')""", "1", "STRING"),
    ("get_json_object(s, '$.a')", None, "STRING"),
    ("""json_value('{"a": "5"}', '$.a' RETURNING INT NULL ON EMPTY NULL ON ERROR)""", 5, "INT"),
    ("""json_value('{"a": "x"}', '$.a' RETURNING INT)""", None, "INT"),
    ("""json_value('{"a": [5]}', '$.a')""", None, "STRING"),
    ("""json_value('{"a": true}', '$.a' RETURNING BOOLEAN)""", True, "BOOLEAN"),
    ("""json_query('{"a": [5, {"b": null}]}', '$.a' WITHOUT ARRAY WRAPPER)""", '[5,{"b":null}]', "STRING"),
    ("""json_query('{"a": 5}', '$.a')""", None, "STRING"),
    ("""json_exists('{"a": null}', '$.a')""", True, "BOOLEAN"),
    ("""json_exists('{"a": null}', '$.b' FALSE ON ERROR)""", False, "BOOLEAN"),
    ("json_exists('bad', '$.b')", False, "BOOLEAN"),
    ("json_exists(CAST(z AS STRING), '$.b')", None, "BOOLEAN"),
    ("json_array_length('[1, [2, 3]]')", 2, "INT"),
    ("""json_array_length('{"a": [1]}')""", None, "INT"),
    ("""json_object_keys('{"b": 1, "a": {"c": 2}}')""", ["b", "a"], "ARRAY<STRING>"),
    ("json_object_keys('[1]')", None, "ARRAY<STRING>"),
    (
        f"from_json('{_BIDS}', 'id INT, bids ARRAY<STRUCT<who: STRING, price: DECIMAL(5,2)>>')",
        {"id": 7, "bids": [{"who": "ann", "price": Decimal("2.50")}, {"who": None, "price": None}]},
        "STRUCT<id: INT, bids: ARRAY<STRUCT<who: STRING, price: DECIMAL(5,2)>>>",
    ),
    ("""from_json('{"a": "1"}', 'STRUCT<a: INT>')""", {"a": None}, "STRUCT<a: INT>"),
    ("from_json('bad', 'ARRAY<INT>')", None, "ARRAY<INT>"),
    ("from_json('[1, \"x\"]', 'ARRAY<INT>')", None, "ARRAY<INT>"),
    ("from_json('[1, null]', 'ARRAY<INT>')", [1, None], "ARRAY<INT>"),
    (
        """from_json('{"d": "2024-02-29", "t": 5}', 'd DATE, t TIMESTAMP')""",
        {"d": date(2024, 2, 29), "t": datetime(1970, 1, 1, 0, 0, 5)},
        "STRUCT<d: DATE, t: TIMESTAMP>",
    ),
    ("to_json(struct(i, z, s, d, t))", '{"i":7,"s":"Headwater","d":12.50,"t":"2026-03-14T15:09:26.535Z"}', "STRING"),
    ("to_json(array(r, NULL))", '[{"x":5,"y":"q"},null]', "STRING"),
    ("to_json(a)", "[3,1,null]", "STRING"),
]
