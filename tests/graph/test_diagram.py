from graph.diagram import PAGE, page


def test_the_diagram_in_the_docs_is_the_graph_that_runs() -> None:
    assert PAGE.read_text() == page(), "run `python -m graph.diagram`"
