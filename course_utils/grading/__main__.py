"""`python -m course_utils.grading`: the command line of the grader."""

from __future__ import annotations

import sys

from course_utils.grading.classroom.cli import main

sys.exit(main())
