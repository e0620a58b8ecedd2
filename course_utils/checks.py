"""The name by which every exercise notebook imports `check`, `progress`, `variant`.

Copies of the exercises are in learners' hands, so this one old name stays; the code
lives in `course_utils.grading.checks`.
"""

from __future__ import annotations

from course_utils.grading.checks import check, progress, variant

__all__ = ["check", "progress", "variant"]
