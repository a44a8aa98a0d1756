import pytest

from pymc_dp.accounting.rdp import least_on_grid


@pytest.mark.parametrize("count", [1, 2, 7, 33, 400])
@pytest.mark.parametrize("step", [1, 8, 32])
@pytest.mark.parametrize("share", [0.0, 0.4, 0.77, 1.0])
def test_the_least_of_what_falls_and_rises_is_found(count, step, share):
    best, asked = int(share * (count - 1)), []

    def bound(place):
        asked.append(place)
        return abs(place - best) + 1.5

    assert least_on_grid(bound, count, step) == 1.5
    assert len(set(asked)) == len(asked) <= count // step + 2 + 3 * step.bit_length()


def test_any_bound_is_a_bound():
    bounds = [5.0, float("inf"), 3.0, 9.0, 2.0]
    assert least_on_grid(bounds.__getitem__, 5, 4) in bounds
