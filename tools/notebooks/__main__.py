"""`python -m tools.notebooks`: bring notebooks into the form that git keeps."""

from __future__ import annotations

import sys

from tools.notebooks.normalise import main

sys.exit(main())
