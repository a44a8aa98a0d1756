"""What `dp.plots.budget` draws: positions, numbers and labels."""

import pytest

from pymc_dp import plots
from pymc_dp.accounting import ComposedEvent, DiscreteGaussianEvent, Ledger, total_epsilon
from pymc_dp.accounting.events import PureEvent
from pymc_dp.errors import ArgumentError
from pymc_dp.metrics import L1


def drawn(figure, function):
    return [element for element in figure.viz["plot"]["epsilon"].item() if element["function"] == function]


def bars(figure):
    return [bar["x"].tolist() for bar in figure.viz["bars"]["epsilon"].values]


def labels(figure):
    return list(drawn(figure, "yticks")[0]["labels"])


def test_trace_has_one_bar_for_each_variable_and_nothing_left(trace):
    figure = plots.budget(trace, backend="none")
    assert bars(figure) == [[0.0, 0.75], [0.75, 1.0]]
    assert labels(figure) == ["affair (bernoulli)", "income (bernoulli)"]
    assert [note["string"] for note in drawn(figure, "text")] == ["0.75", "0.25"]
    assert drawn(figure, "vline")[0]["x"] == 1.0


def test_ledger_shows_what_is_left(ledger):
    figure = plots.budget(ledger, backend="none")
    assert bars(figure) == [[0.0, 0.5], [0.5, 1.5], [1.5, 2.0]]
    assert labels(figure)[0] == "statistics of affair"
    assert labels(figure)[-1] == "left"
    assert [note["string"] for note in drawn(figure, "text")] == ["0.5", "1", "0.5"]
    assert drawn(figure, "title")[0]["string"] == "Spent on this data set: ε = 1.5 of 2"


def test_a_ledger_of_a_metric_says_what_it_counts_per_unit_of():
    account = Ledger(2.0, metric=L1("age"))
    account.spend(PureEvent(epsilon=0.5), label="a draw", neighbours=L1("age").relation)
    figure = plots.budget(account, backend="none")
    (title,), (label,) = drawn(figure, "title"), drawn(figure, "xlabel")
    assert title["string"] == "Spent on this data set, per unit of ρ = |Δage|: ε = 0.5 of 2"
    assert label["string"] == "privacy loss ε, per unit of ρ"
    (rows,) = drawn(plots.budget(Ledger(2.0), backend="none"), "xlabel")
    assert rows["string"] == "privacy loss ε, per row"


def test_parts_of_gaussian_noise_add_up_to_what_they_cost_together(gaussian_noise):
    """Alone they cost more: it is their ρ that adds."""
    figure = plots.budget(gaussian_noise, backend="none")
    bars = [bar["x"].tolist() for bar in figure.viz["bars"]["epsilon"].values]
    events = [DiscreteGaussianEvent(scale=scale, l2_squared=1, shifts=(1,)) for scale in (5.0, 10.0)]
    both = total_epsilon(ComposedEvent(events=tuple(events)), 1e-6).epsilon
    assert bars[:2] == [[0.0, pytest.approx(total_epsilon(events[0], 1e-6).epsilon)], [bars[0][1], pytest.approx(both)]]
    assert both < sum(total_epsilon(event, 1e-6).epsilon for event in events)


@pytest.mark.parametrize("source", [None, 1.0, "trace.nc"])
def test_other_sources_are_refused(source):
    with pytest.raises(ArgumentError, match=r"source must be a trace made by dp\.sample or a dp\.Ledger, got"):
        plots.budget(source, backend="none")
