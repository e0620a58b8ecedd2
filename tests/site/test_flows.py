"""The pictures of the architecture say what the imports are."""

from __future__ import annotations

import pytest

from tools.notebooks.io import ROOT
from tools.site.flows import (
    FLOWS,
    flow_drawing,
    import_graph,
    passes_through,
    room_imports,
    room_of,
)


@pytest.mark.parametrize("name", FLOWS)
def test_every_room_of_a_flow_holds_something_and_imports_go_down(name):
    flow = FLOWS[name]
    graph = import_graph(ROOT, flow.entries)
    prefixes = [prefix for prefix, _ in flow.rooms]
    assert {room_of(module, prefixes) for module in graph} >= set(prefixes)
    order = prefixes.index
    for upper, lower in room_imports(graph, prefixes):
        inside = lower.startswith(upper) or upper.startswith(lower)
        assert order(upper) < order(lower) or inside, f"{upper} imports {lower}"
    drawn = flow_drawing(flow, graph)
    assert drawn.width <= 360
    assert all(prefix in "".join(drawn.parts) for prefix in prefixes)


def test_a_module_that_is_imported_no_longer_leaves_the_picture():
    flow = FLOWS["corpus"]
    graph = import_graph(ROOT, flow.entries)
    whole = "".join(flow_drawing(flow, graph).parts)
    assert "checkpoints" in whole
    gone = {m: o for m, o in graph.items() if not m.endswith("checkpoints")}
    assert "checkpoints" not in "".join(flow_drawing(flow, gone).parts)


def test_an_arrow_that_others_make_is_left_out():
    arrows = {("a", "b"), ("b", "c"), ("a", "c")}
    assert passes_through("a", "c", arrows)
    assert not passes_through("a", "b", arrows)
