"""What a worker has: its text is sent to it, so it must not need anything but Python."""

import hashlib
import importlib.util
import socket
from pathlib import Path


def survey(required: tuple[str, ...]) -> tuple[str, list[str], str]:
    """The machine, which of these packages are missing, and the content of the package headwater, if it is installed."""
    missing = [name for name in required if importlib.util.find_spec(name) is None]
    found = importlib.util.find_spec("headwater")
    if found is None or not found.origin or not Path(found.origin).is_file():
        return socket.gethostname(), missing, ""
    return socket.gethostname(), missing, digest(Path(found.origin).parent)


def package_files(folder: Path) -> list[str]:
    """Everything in a package that is no cache, as paths relative to it."""
    paths = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return sorted(path.relative_to(folder).as_posix() for path in paths)


def digest(folder: Path) -> str:
    """The same for the same content."""
    return digest_of({name: (folder / name).read_bytes() for name in package_files(folder)})


def digest_of(files: dict[str, bytes]) -> str:
    whole = hashlib.sha256()
    for name, data in sorted(files.items()):
        whole.update(f"{name} {len(data)} ".encode() + data)
    return whole.hexdigest()[:16]
