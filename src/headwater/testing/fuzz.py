"""Random statements: whatever the text, the outcome of parsing and binding is an answer or an error of ours.

A statement is made of tokens of the grammar, or of known queries with tokens left out, doubled, exchanged or put in from
elsewhere, or nested deeply. A number gives the statement back.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from headwater.errors import HeadwaterError
from headwater.expressions.aggregates import BY_SQL_NAME
from headwater.language.binder import bind_script
from headwater.language.functions.registry import SCALARS

STREAMS = """
CREATE STREAM s (x INT, y STRING, d DOUBLE, t TIMESTAMP, b BOOLEAN, a ARRAY<INT>, r STRUCT<f: INT>) ORDERED BY t;
CREATE STREAM u (x INT NOT NULL, z STRING); CREATE TABLE k (id INT, name STRING, PRIMARY KEY (id));
CREATE VIEW v AS SELECT x, COUNT(*) AS n FROM s [RANGE 5 SECONDS] GROUP BY x;
"""
_KEYWORDS = """
SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT OFFSET UNION EXCEPT INTERSECT ALL DISTINCT AS JOIN LEFT RIGHT FULL OUTER SEMI
ANTI CROSS NATURAL ON USING AND OR NOT IN EXISTS ANY SOME BETWEEN LIKE IS NULL TRUE FALSE CASE WHEN THEN ELSE END CAST
INTERVAL VALUES WITH RANGE ROWS SLIDE PARTITION WINDOW UNBOUNDED NOW GRANULARITY INTERNAL SESSION TUMBLE HOP CUMULATE TABLE
DESCRIPTOR ISTREAM DSTREAM RSTREAM OVER QUALIFY ROW_NUMBER RANK FILTER ROLLUP CUBE GROUPING SETS SECONDS MINUTES HOURS DAY
CREATE STREAM VIEW FUNCTION DROP ALTER QUERY SET CONSISTENCY STRONG MIDDLE WEAK EXPLAIN SHOW STREAMS DESCRIBE ORDERED
DISORDER WITHIN TIMEOUT PRIMARY KEY INT STRING TIMESTAMP DOUBLE ARRAY STRUCT DECIMAL EXTRACT YEAR LATERAL RECURSIVE NULLS
FIRST LAST ASC DESC FOR TO EMIT REPLACE IF SOURCE LATE LISTAGG COUNT SUM window session_window heartbeat
"""
_OPERATORS = "( ( ) ) [ ] , , . * + - / % = <> < > <= >= || :: ; => : ? & | ^ ~"
_CONSTANTS = "0 1 2.5 1e308 -1 99999999999999999999 'a' '' '1' 'x''y' NULL '1_minute' `q` \"q\" é"
_COLUMNS = "s u k v x y d t b a r f id name n z w s.x s.* * u.x k.id"
_WORDS, _SIGNS, _VALUES, _NAMES = (text.split() for text in (_KEYWORDS, _OPERATORS, _CONSTANTS, _COLUMNS))
_COMMENT = re.compile(r"--[^\n]*")
_TOKEN = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|`[^`]*`|\w+(?:\.\w+)?|<=|>=|<>|\|\||::|=>|\S")


def script(seed: int, corpus: Sequence[tuple[str, str]] = ()) -> str:
    """The script of a number; ``corpus``: declarations and queries over them."""
    dice = random.Random(seed)
    kind = dice.random()
    if not corpus or kind < 0.35:
        return STREAMS + _of_tokens(dice)
    if kind < 0.97:
        declared, query = dice.choice(corpus)
        return declared + "\n" + _mutated(dice, query, dice.choice(corpus)[1])
    return STREAMS + _nested(dice)


def check(text: str) -> str:
    """The code of the error, or nothing; anything but an error of ours goes on to the caller."""
    try:
        bind_script(text)
    except HeadwaterError as error:
        str(error)
        return error.code
    return ""


def _token(dice: random.Random) -> str:
    functions = [*SCALARS, *BY_SQL_NAME]
    chosen = dice.choices([_WORDS, _SIGNS, _VALUES, _NAMES, functions], [6, 5, 2, 5, 1])[0]
    token = dice.choice(chosen)
    return f"{token} (" if chosen is functions else token


def _of_tokens(dice: random.Random) -> str:
    first = dice.choice(
        ["SELECT", "SELECT", "SELECT x FROM s", "SELECT x FROM s WHERE", "CREATE", "WITH", "EXPLAIN", "SET", ""]
    )
    return " ".join([first, *(_token(dice) for _ in range(dice.randint(0, 25)))])


def _mutated(dice: random.Random, query: str, other: str) -> str:
    tokens, others = (_TOKEN.findall(_COMMENT.sub("", text)) for text in (query, other))
    for _ in range(dice.choice([1, 1, 2, 3, 6])):
        at, what = dice.randrange(len(tokens) + 1), dice.randrange(14)
        if what == 0:
            del tokens[at : at + dice.randint(1, 3)]
        elif what == 1:
            tokens[at:at] = [_token(dice)]
        elif what == 2:
            tokens[at : at + 1] = [_token(dice)]
        elif what == 3:
            tokens[at:at] = tokens[at : at + dice.randint(1, 8)]
        elif what == 4 and tokens:
            tokens[min(at, len(tokens) - 1)] = dice.choice(tokens)
        elif what > 5 and tokens:  # like for like, so that it is still a statement
            place = min(at, len(tokens) - 1)
            like = [token for token in (*tokens, *others) if _kind(token) == _kind(tokens[place])]
            tokens[place] = dice.choice(like)
        else:
            start = dice.randrange(len(others) + 1)
            tokens[at:at] = others[start : start + dice.randint(1, 10)]
    return " ".join(tokens)


def _kind(token: str) -> str:
    if token[0].isdigit() or token[0] == "'":
        return "value"
    if token.upper() in _WORDS:
        return token.upper() if token.upper() in ("SELECT", "FROM", "BY", "AS") else "keyword"
    return "name" if token[0].isalpha() else "comparison" if token in ("=", "<>", "<", ">", "<=", ">=") else token


def _nested(dice: random.Random) -> str:
    depth = dice.choice([3, 40, 400, 3000])
    match dice.randrange(7):
        case 0:
            return f"SELECT {'(' * depth}x{')' * depth} FROM s"
        case 1:
            return f"SELECT x FROM {'(SELECT x FROM ' * (depth // 10)}s{')' * (depth // 10)}"
        case 2:
            return f" {dice.choice(['UNION', 'UNION ALL', 'EXCEPT'])} ".join(["SELECT x FROM u"] * min(depth, 400))
        case 3:
            return f"SELECT {'CASE WHEN b THEN ' * depth}x{' END' * depth} FROM s"
        case 4:
            return f"SELECT x FROM s WHERE {'NOT ' * depth}b"
        case 5:
            return "SELECT x FROM s WHERE " + " OR ".join(["x = 1"] * depth)
    return f"SELECT x FROM s WHERE {'x IN (SELECT x FROM u WHERE ' * (depth // 100)}TRUE{')' * (depth // 100)}"
