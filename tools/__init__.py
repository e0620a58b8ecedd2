"""What builds, runs and checks the course."""

import sys

# nbformat loads jsonschema, which compiles a grammar of internet addresses where this
# package is installed: a second and more at the start of every process, unused here.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
