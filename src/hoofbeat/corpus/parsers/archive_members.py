"""Members of archives from strangers: which names, kinds and sizes are refused before anything is read.

PMC packages and Office files share these rules.
"""

from __future__ import annotations

import stat
import zipfile
from typing import IO

from hoofbeat.errors import HostileInputError
from hoofbeat.store.files import FREE_GROWTH, MAX_GROWTH

STEP = 1_000_000


def name_problem(name: str) -> str:
    """What forbids a member's name; nothing for a plain one."""
    parts = name.replace("\\", "/").split("/")
    if name.startswith(("/", "\\")) or ":" in parts[0]:
        return "a member has an absolute name"
    if ".." in parts:
        return "a member's name leads outside the package"
    if "\0" in name or len(name) > 1000:
        return "a member has an unusable name"
    return ""


def zip_problem(info: zipfile.ZipInfo) -> str:
    """What forbids a member of a zip file by its header: a link, a bomb or a cipher."""
    if stat.S_IFMT(info.external_attr >> 16) not in {0, stat.S_IFREG}:
        return "a member is a link or a device"
    if info.file_size > FREE_GROWTH + MAX_GROWTH * info.compress_size:
        return f"a member unpacks to more than {MAX_GROWTH} times its size"
    if info.flag_bits & 1:
        return "a member is encrypted"
    return ""


def bounded_content(stream: IO[bytes], max_bytes: int) -> bytes:
    """All bytes of a member, never more than `max_bytes`, whatever its header says."""
    pieces: list[bytes] = []
    held = 0
    while piece := stream.read(STEP):
        pieces.append(piece)
        held += len(piece)
        if held > max_bytes:
            raise HostileInputError(f"file too large: more than {max_bytes / 1e6:,.0f} MB", fix="leave it out")
    return b"".join(pieces)
