"""Where values are not Spark's, and why: all of it, for the tests and for docs/sql.md."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from attrs import frozen

Rule = Callable[[Any, Any, str], bool]
"""Our value, Spark's, and the sign of a refused one."""


def _null_for_refused(ours: Any, theirs: Any, refused: str) -> bool:
    return ours is None and theirs == refused


def _value_for_refused(ours: Any, theirs: Any, refused: str) -> bool:
    return ours is not None and ours != refused and theirs == refused


def _refused_for_value(ours: Any, theirs: Any, refused: str) -> bool:
    """Or NULL, in a TRY_CAST."""
    return ours in (None, refused) and theirs is not None and theirs != refused


def _last_digits(ours: Any, theirs: Any, refused: str) -> bool:
    return isinstance(ours, float) and isinstance(theirs, float) and abs(ours - theirs) <= 4e-15 * abs(theirs)


def _last_digit(ours: Any, theirs: Any, refused: str) -> bool:
    """Of 16: the next one decides how it is rounded."""
    return isinstance(ours, float) and isinstance(theirs, float) and abs(ours - theirs) <= 2e-14 * abs(theirs)


def _nearly(ours: Any, theirs: Any, refused: str) -> bool:
    try:
        return abs(float(str(ours)) - float(str(theirs))) <= 1e-15 * abs(float(str(theirs))) + 1e-44
    except ValueError:
        return False


def _quotient(ours: Any, theirs: Any, refused: str) -> bool:
    """A DOUBLE for a DECIMAL that is rounded to six digits at least."""
    if not isinstance(theirs, Decimal):
        return False
    number = 0.0 if isinstance(ours, str) and ours.endswith("* 0") else ours
    return isinstance(number, float) and abs(number - float(theirs)) <= 1e-6 + 1e-14 * abs(float(theirs))


def _nearly_text(ours: Any, theirs: Any, refused: str) -> bool:
    """The same but for numbers in them that are nearly the same."""
    number = r"[-+]?[0-9]+\.[0-9]+(?:E-?[0-9]+)?"
    mine, other = re.findall(number, str(ours)), re.findall(number, str(theirs))
    same = re.sub(number, "", str(ours)) == re.sub(number, "", str(theirs))
    return same and len(mine) == len(other) and all(_nearly(a, b, refused) for a, b in zip(mine, other, strict=True))


def _same_shape(ours: Any, theirs: Any, refused: str) -> bool:
    """The same but for digits: where numbers follow each other one cannot tell where they end."""
    return ours != refused != theirs and re.sub("[0-9]+", "0", str(ours)) == re.sub("[0-9]+", "0", str(theirs))


def _sign_of_zero(ours: Any, theirs: Any, refused: str) -> bool:
    return str(ours).replace("-1.0 * 0", "1.0 * 0") == str(theirs).replace("-1.0 * 0", "1.0 * 0")


def _shortened(ours: Any, theirs: Any, refused: str) -> bool:
    if ours == refused:
        return isinstance(theirs, Decimal)
    return isinstance(ours, Decimal) and isinstance(theirs, Decimal) and abs(ours - theirs) <= Decimal("0.0000005")


def _letters(ours: Any, theirs: Any, refused: str) -> bool:
    return isinstance(ours, str) and isinstance(theirs, str) and not (ours.isascii() and theirs.isascii())


def _null_for_empty(ours: Any, theirs: Any, refused: str) -> bool:
    """A STRUCT of which every field is NULL."""
    return ours is None and isinstance(theirs, dict) and not any(v is not None for v in theirs.values())


@frozen
class Difference:
    calls: str
    """Which calls, as a regular expression."""
    rule: Rule
    what: str
    here: str
    why: str

    @property
    def row(self) -> str:
        """The line of the table in docs/sql.md."""
        return f"| {self.what} | {self.here} | {self.why} |"


_TEXT_OF_REAL = r"AS STRING\)|AS DECIMAL|\|\||^concat|^elt|^array_join"
_TIME_OF_TEXT = r"^(to_date|to_timestamp|to_timestamp_ltz|unix_timestamp|to_unix_timestamp)\("
_FAR = r"TIMESTAMP|DATE|^timestamp|^date|^from_unixtime|^trunc|^last_day|^to_|^unix_|^add_months|^make_|INTERVAL|^days?"

_REGULAR = (
    "regular expressions",
    "those of RE2, without look-around and back references",
    "they take time in the order of the text; a group that is not there is empty, and nothing matches nothing",
)
_REAL = (
    "a `DOUBLE` as text or `DECIMAL`",
    "as few digits as tell it from all others",
    "Java before 19 writes one more now and then",
)

_BYTES = ("`BINARY` that is no UTF-8 as `STRING`", "stops the query", "text is valid text")

DIFFERENCES: list[Difference] = [
    Difference(
        r"/| % |DIV|^(mod|pmod)\(",
        _null_for_refused,
        "division by zero, the remainder of it",
        "NULL, as without ANSI mode",
        "one row must not stop a stream",
    ),
    Difference(
        r"\[|^(element_at|elt)\(",
        _null_for_refused,
        "a place that an array does not have: `a[9]`, `element_at`, `elt`",
        "NULL, as without ANSI mode",
        "likewise",
    ),
    Difference(
        rf"{_TIME_OF_TEXT}|^(make_date|make_timestamp)\(",
        _null_for_refused,
        "text that is no time in `to_date`, `to_timestamp`, `unix_timestamp`; days that do not exist in `make_date`, "
        "`make_timestamp`",
        "NULL, as without ANSI mode",
        "likewise",
    ),
    Difference(
        r"^(ceil|ceiling|floor)\(",
        _value_for_refused,
        "`ceil` and `floor` of a `DOUBLE` beyond `BIGINT`",
        "the nearest `BIGINT` (0 for NaN)",
        "likewise",
    ),
    Difference(
        r"^slice\(", _value_for_refused, "`slice` that begins at 0, or is of a negative length", "empty", "likewise"
    ),
    Difference(
        r"^(bit_get|getbit)\(", _value_for_refused, "`bit_get` of a place that a number does not have", "0", "likewise"
    ),
    Difference(
        r"/|^try_divide",
        _quotient,
        "`/` of `DECIMAL`s",
        "a `DOUBLE`",
        "no digits are cut off; `CAST(a / b AS DECIMAL(p,s))`",
    ),
    Difference(
        r"[-+*]",
        _shortened,
        "`DECIMAL`s that would need more than 38 digits",
        "stop the query, or keep digits that Spark rounds off",
        "Spark shortens the fraction to 6 digits instead",
    ),
    Difference(
        r"^(a?(sin|cos|tan)h?|atan2|cbrt|cot|csc|sec|exp|expm1|hypot|ln|log|log1p|log2|log10|pow|power|degrees|radians)\(",
        _last_digits,
        "`sin`, `exp`, `ln`, `pow` and their like",
        "may differ in the last digit",
        "another library of mathematics",
    ),
    Difference(
        r"^(upper|lower|ucase|lcase|initcap)\(|ILIKE",
        _letters,
        "`upper`, `lower`, `initcap` of ß, İ and a few others",
        "one letter for one letter",
        "Java may write several",
    ),
    Difference(
        r"RLIKE|^(regexp|rlike|split)",
        lambda ours, theirs, refused: ours != refused,
        *_REGULAR,
    ),
    Difference(r"^(regexp\w*|rlike|split)\(\w+, (s|txt)\b", lambda ours, theirs, refused: True, *_REGULAR),
    Difference(
        r" I?LIKE ",
        _value_for_refused,
        "a stray `\\\\` in the pattern of `LIKE`",
        "stands for itself",
        "Spark stops",
    ),
    Difference(
        _TEXT_OF_REAL,
        _nearly_text,
        *_REAL,
    ),
    Difference(r"^b?round\(d", _last_digit, *_REAL),
    Difference(r"^(concat|concat_ws|array_join)\(.*\b(d|f|ad)\b", _same_shape, *_REAL),
    Difference(
        r"CAST\((d|f) AS BIGINT\)|^(bin|char|chr|hex)\(d\)",
        _refused_for_value,
        "`CAST(x AS BIGINT)` of 2^63 exactly",
        "stops the query",
        "Spark makes it 2^63 - 1",
    ),
    Difference(
        _FAR,
        _refused_for_value,
        "times after the year 9999 or before 1 as text, numbers beyond all times",
        "stop the query",
        "Spark stops at the first or last time, or computes a wrong one",
    ),
    Difference(
        r"CAST\(x AS STRING\)",
        _refused_for_value,
        *_BYTES,
    ),
    Difference(r"^(concat|concat_ws|elt)\(.*\bx\b", lambda ours, theirs, refused: ours == refused, *_BYTES),
    Difference(
        r"DIV", _refused_for_value, "`DIV` of `DECIMAL`s beyond `BIGINT`", "stops the query", "Spark cuts bits off"
    ),
    Difference(
        r"^(array_|least|greatest|sort_array)",
        _sign_of_zero,
        "the sign of a zero in `array_min`, `array_max`, `array_distinct`, `least`, `greatest`",
        "that of one of the zeros",
        "0.0 and -0.0 are equal",
    ),
    Difference(
        r"^from_json\(",
        _null_for_empty,
        "`from_json` of text that is no JSON, or `null`, as a STRUCT",
        "NULL",
        "one can ask for it: `IS NULL`; Spark gives a STRUCT of NULLs",
    ),
    Difference(
        r"^get_json_object\(",
        lambda ours, theirs, refused: ours is None and theirs == "null",
        "`get_json_object` of an item or a whole text that is `null`",
        "NULL, like a field",
        "Spark gives the text `null`",
    ),
    Difference(
        r"^(substr|substring|left|right|overlay|locate)\(.*, (i|d)\b",
        lambda ours, theirs, refused: True,
        "places and lengths of text near the ends of `INT`",
        "beyond the text",
        "Spark's additions wrap around",
    ),
]

OURS_ALONE = {"iif", "json_exists", "json_query", "json_value"}
OURS_ALONE |= {"date_bin", "from_unixtime_millis", "from_unixtime_ms", "regexp_match", "split_index", "strpos"}
OURS_ALONE |= {"ends_with", "starts_with", "to_char", "truncate", "week"}
TYPES_DIFFER = re.compile(r"/|^try_divide|wide \*|\* wide")


def allowed(call: str, ours: Any, theirs: Any, refused: str) -> bool:
    """May the values differ like this?"""
    return any(re.search(d.calls, call) and d.rule(ours, theirs, refused) for d in DIFFERENCES)
