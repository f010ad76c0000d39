"""Stands for the package on a machine that got it as an archive: unpacks it there once, then is the package.

The compiled kernels are cached beside their source, so the source must be in files that stay where they are.
This file is sent as ``headwater/__init__.py``; it must not import anything of the package.
"""

import os
import shutil
import tempfile
import time
import zipfile
from contextlib import suppress
from pathlib import Path

_UNUSED_SECONDS = 30 * 24 * 3600


def _places():
    with suppress(RuntimeError):  # no home folder
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headwater" / "packages"
    yield Path(tempfile.gettempdir()) / f"headwater-{os.getuid()}" / "packages"


def _unpack(archive, digest):
    """The folder with the package, complete."""
    problem = None
    for place in _places():
        folder = place / digest
        try:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not (_is_ours(place) and _is_ours(place.parent)):
                continue
            if not folder.is_dir():
                _forget_unused(place)
                _extract(archive, place, folder)
            os.utime(folder)
        except OSError as error:
            problem = error
            continue
        return folder / "package" / "headwater"
    raise ImportError(f"could not unpack the package headwater anywhere: {problem}")


def _is_ours(folder):
    """Nobody else can have put anything there: what lies there is run."""
    found = os.lstat(folder)
    return found.st_uid == os.getuid() and not found.st_mode & 0o002


def _extract(archive, place, folder):
    """Under another name first: other workers of this machine may do the same now."""
    temporary = tempfile.mkdtemp(dir=place)
    try:
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(temporary, [name for name in packed.namelist() if name.startswith("package/")])
        os.rename(temporary, folder)
    except OSError:
        shutil.rmtree(temporary, ignore_errors=True)
        if not folder.is_dir():
            raise


def _forget_unused(place):
    for old in place.iterdir():
        if time.time() - old.stat().st_mtime > _UNUSED_SECONDS:
            shutil.rmtree(old, ignore_errors=True)


_folder = _unpack(__loader__.archive, "DIGEST_OF_THE_PACKAGE")
__path__ = [str(_folder)]
__file__ = str(_folder / "__init__.py")
exec(compile((_folder / "__init__.py").read_text(), __file__, "exec"))
