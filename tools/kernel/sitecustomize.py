"""What a notebook's Python does before anything else; this folder is on its PYTHONPATH.

`COURSE_OFFLINE=1` refuses every connection that would leave the machine, so that a
notebook that needs the network fails here rather than at a reader with none.
`COURSE_FAKE_COLAB=1` makes the run look like Colab: `google.colab` is loaded.
"""

from __future__ import annotations

import os
import sys
import types
from typing import Any


def is_local(host: Any) -> bool:
    """Whether an address stays on this machine."""
    name = host.decode() if isinstance(host, bytes) else host
    return name in (None, "", "localhost", "::", "::1", "0.0.0.0") or (
        isinstance(name, str) and name.startswith("127.")
    )


def refuse_network(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse what leaves the machine with the error of a machine that is offline."""
    if event in ("socket.connect", "socket.sendto"):
        address = arguments[
            1
        ]  # a path for a Unix socket, (host, port, …) for a network
        host = address[0] if isinstance(address, tuple) else None
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        host = arguments[0]
    else:
        return
    if not is_local(host):
        raise ConnectionError(
            f"a connection to {host!r} was refused: the course's notebooks run offline "
            "(COURSE_OFFLINE=1); use data that is inside the package, or catch this "
            "error and fall back to it."
        )


if os.environ.get("COURSE_OFFLINE") == "1":
    sys.addaudithook(refuse_network)
if os.environ.get("COURSE_FAKE_COLAB") == "1":
    for module in ("google", "google.colab"):
        sys.modules[module] = types.ModuleType(module)
