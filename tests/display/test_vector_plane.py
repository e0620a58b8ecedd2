"""The plane of vectors takes vectors of the plane."""

from __future__ import annotations

import pytest

from course_utils.display.widgets.vector_plane import vector_plane


@pytest.mark.parametrize("vectors", [[(1.0, 0.0)], [(1.0, 0.0), (1.0, 2.0, 3.0)]])
def test_the_plane_takes_two_or_more_vectors_of_two_numbers(vectors):
    with pytest.raises(ValueError, match="expected two or more vectors of two numbers"):
        vector_plane(vectors=vectors)
