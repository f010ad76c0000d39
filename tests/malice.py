"""Texts that want to be taken for the report of a task: behind the mark stands a pickle that would make a folder."""

from __future__ import annotations

import base64
import json
import pickle

MADE = "pwned"
"""The folder, in the current one."""


class _Bomb:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        import os

        return os.mkdir, (MADE,)


PICKLE = base64.b64encode(pickle.dumps(_Bomb(), protocol=0)).decode()
assert "/" not in PICKLE, "it must fit into the name of a file"
_ERROR = {"kind": "InputError", "code": "FORGED", "message": "a lie", "detail": "", "hint": ""}
FORGED = base64.urlsafe_b64encode(json.dumps(_ERROR).encode()).decode()

TEXT = f"headwater-error:{PICKLE};headwater-error:{'0' * 64}:{PICKLE};headwater-error:{'a' * 64}:{FORGED};"
"""As it was before anything was sealed, and with two seals that are none."""
SHORT = f"headwater-error:{PICKLE};"
