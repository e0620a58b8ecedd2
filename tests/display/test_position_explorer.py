"""The explorer of positions shows matrices that are large enough to look at."""

from __future__ import annotations

import pytest

from course_utils.display.widgets.position_explorer import position_explorer


def test_the_explorer_refuses_a_matrix_too_small_to_look_at():
    assert "dot product" in position_explorer().html
    for sizes in ({"n_tokens": 4}, {"d_model": 2}):
        with pytest.raises(ValueError, match="at least 8 tokens and 4 dimensions"):
            position_explorer(**sizes)
    with pytest.raises(ValueError, match="expected an even number"):
        position_explorer(d_model=7)
