"""The SQL dialect: sqlglot's Spark parser, extended by streams, windows and their statements (Krämer 7.2, CQL).

Types of sqlglot do not leave this package.
"""

from __future__ import annotations

from typing import ClassVar

from sqlglot.dialects.spark import Spark
from sqlglot.tokens import TokenType

from headwater.errors import HeadwaterError
from headwater.language.parsing.statement_parsing import StatementParser
from headwater.language.parsing.syntax import SelectStatement, StreamWindow


class Headwater(Spark):
    """Spark's SQL with the TIMESTAMP of the model (no time zone) and quotes doubled as in standard SQL."""

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES: ClassVar = ["\\", "'"]
        KEYWORDS: ClassVar = {**Spark.Tokenizer.KEYWORDS, "TIMESTAMP": TokenType.TIMESTAMP}
        KEYWORDS |= {"MATCH_CONDITION": TokenType.MATCH_CONDITION}
        COMMANDS: ClassVar[set[TokenType]] = set()

    Parser = StatementParser


def _probe() -> None:
    """Find out at import, not in the middle of a script, that this sqlglot does not work with our dialect."""
    try:
        (tree,) = Headwater().parse("SELECT x FROM s WINDOW(RANGE 1 MINUTE)")
        assert isinstance(tree, SelectStatement)
        assert isinstance(tree.this.args["from_"].this.args["stream_window"], StreamWindow)
    except Exception as problem:
        raise HeadwaterError(
            "BROKEN_PARSER",
            "the installed sqlglot does not work with the dialect of this version",
            detail=f"{type(problem).__name__}: {problem}",
            hint="Install the version that Headwater asks for: pip install 'sqlglot~=30.30.0'",
        ) from problem


_probe()
