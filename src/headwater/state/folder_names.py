"""Names of streams and queries as names of folders: a name in backquotes may hold anything, a path may not."""

from __future__ import annotations

from hashlib import sha256
from urllib.parse import quote, unquote

_LONGEST = 120
"""File systems take names of 255 bytes, and what is written inside has names of its own."""


def folder_name(name: str) -> str:
    """One folder, inside of whatever it is put into; different names have different ones.

    >>> folder_name("hot_bids"), folder_name("../outside"), folder_name("/abs")
    ('hot_bids', '%2E%2E%2Foutside', '%2Fabs')
    """
    escaped = quote(name, safe="").replace(".", "%2E").replace("~", "%7E") or "%"
    if len(escaped) <= _LONGEST:
        return escaped
    return f"{escaped[:_LONGEST]}~{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def name_of_folder(folder: str) -> str:
    """The name that it was made of; of a long one only the beginning is left.

    >>> name_of_folder(folder_name("a.b/c"))
    'a.b/c'
    """
    return "" if folder == "%" else unquote(folder)
