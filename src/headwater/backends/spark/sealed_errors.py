"""How a user's mistake gets from a task to the driver: in the text of the error that Spark passes on.

Spark's texts also quote values of the data, so nothing in them is to be believed. An error travels as plain data, one of the
known kinds, under a keyed checksum; the key is made anew in every session of the driver, and only its own tasks get it.
"""

from __future__ import annotations

import base64
import hmac
import json
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from attrs import field, frozen

from headwater.errors import HeadwaterError, error_data, error_of

_SEALED = re.compile(r"headwater-error:([0-9a-f]{64}):([A-Za-z0-9_=-]+);")
_KEY_BYTES = 32


@frozen
class Seal:
    """What the errors of a session's tasks are recognised by. Data cannot know it; it is shown nowhere."""

    _key: bytes = field(factory=lambda: secrets.token_bytes(_KEY_BYTES), repr=False)

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """In a task: mistakes of users reach the driver as they are."""
        try:
            yield
        except HeadwaterError as error:
            raise RuntimeError(self.sealed(error)) from error

    def sealed(self, error: HeadwaterError) -> str:
        """The error as text for ``opened``."""
        payload = base64.urlsafe_b64encode(json.dumps(error_data(error)).encode()).decode("ascii")
        return f"headwater-error:{self._checksum(payload)}:{payload};"

    def opened(self, text: str) -> HeadwaterError | None:
        """The error that a task of this session has sealed into the text, if there is one; whatever else is in it."""
        for found in _SEALED.finditer(text):
            checksum, payload = found.groups()
            if hmac.compare_digest(checksum, self._checksum(payload)):
                return error_of(json.loads(base64.urlsafe_b64decode(payload)))
        return None

    def _checksum(self, payload: str) -> str:
        return hmac.digest(self._key, payload.encode("ascii"), "sha256").hex()
