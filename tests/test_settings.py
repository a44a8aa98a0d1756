"""Graphs are compiled as users compile them, but where a package says otherwise."""

import pytensor


def test_graphs_are_compiled_outside_of_the_packages_that_interpret_them():
    assert pytensor.config.mode == "Mode"
