"""Run cells one after the other in this process, and say where they stopped.

    python -m run_cells CELLS.json REPORT.json

The cells are a list of `{"id": …, "source": …}`. The report is `{}` if all of them ran,
else the error and its deepest place inside a cell: id, line, type and message. A plain
shell in place of a kernel: no sockets, no reply to wait for, one process to end.
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from typing import Any

from IPython.core.interactiveshell import InteractiveShell


def run(cells: list[dict[str, str]]) -> dict[str, Any]:
    """Run the cells up to the first error; return the report."""
    shell: Any = InteractiveShell.instance()
    ids = [cell["id"] for cell in cells]
    for cell in cells:
        # the name of the code in tracebacks: the cell's id in place of a made-up one
        shell.compile.get_code_name = lambda *_, name=cell["id"]: name
        result = shell.run_cell(cell["source"])
        error = result.error_before_exec or result.error_in_exec
        if error is None:
            continue
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if frame.filename in ids]
        return {
            "cell": own[-1].filename if own else cell["id"],
            "line": own[-1].lineno if own else 0,
            "type": type(error).__name__,
            "message": str(error),
        }
    return {}


if __name__ == "__main__":
    report = run(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    Path(sys.argv[2]).write_text(json.dumps(report), encoding="utf-8")
