import pickle

import pytest

import pymc_dp as dp


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        ({"bounds": {"age": (5, 5)}}, ["age", "low < high", "(5.0, 5.0)"]),
        ({"bounds": {"age": (100, 0)}}, ["age", "low < high", "(100.0, 0.0)"]),
        ({"bounds": {"age": 5}}, ["age", "pair (low, high)", "5"]),
        ({"bounds": {"age": (1, 2, 3)}}, ["age", "pair (low, high)"]),
        ({"bounds": {"age": "ab"}}, ["age", "pair (low, high)", "'ab'"]),
        ({"bounds": {"age": ("0", 1)}}, ["bounds['age'] low", "number", "'0'"]),
        ({"bounds": {"age": (0, float("nan"))}}, ["bounds['age'] high", "finite", "nan"]),
        ({"bounds": {"age": (float("-inf"), 0)}}, ["bounds['age'] low", "finite", "-inf"]),
        ({"bounds": {"age": (False, True)}}, ["bounds['age'] low", "number", "False"]),
        ({"bounds": [("age", 0, 1)]}, ["bounds", "map names", "got a list"]),
        ({"bounds": {7: (0, 1)}}, ["map names", "7 is no name"]),
        ({"norms": {"x": 0}}, ["norms['x']", "> 0", "0.0"]),
        ({"norms": {"x": -1.0}}, ["norms['x']", "> 0", "-1.0"]),
        ({"public": "region"}, ["'region'", "public=('region',)"]),
        ({"public": [3]}, ["each of public must be a name", "3"]),
        ({"rows": 3}, ["rows", "name of a dimension", "3"]),
        ({"neighbours": "add-remove"}, ["'add-remove'", "'replace'", "Did you mean 'add_remove'?"]),
        ({"neighbours": None}, ["None", "'replace'"]),
        ({"neighbours": "add_remove"}, ["n_max", "give n_max"]),
        ({"neighbours": "add_remove", "n_max": 0}, ["n_max", "in 1..", "0"]),
        ({"neighbours": "add_remove", "n_max": 2.5}, ["n_max", "whole number", "2.5"]),
        ({"unit": dp.Unit("who", 5)}, ["unit=", "add_remove", "n_max", "2 ε"]),
        ({"unit": "who", "neighbours": "add_remove", "n_max": 5}, ["dp.Unit", "'who'", "max_rows=5"]),
        ({"unit": dp.Unit("who", 2**16), "neighbours": "add_remove", "n_max": 2**17}, ["n_max=131072", "4294967296"]),
        ({"n_max": 10}, ["n_max=10", "no meaning", "add_remove"]),
    ],
)
def test_contradictions_are_refused_with_value_range_and_way_out(arguments, texts):
    with pytest.raises((dp.errors.DomainError, dp.errors.ArgumentError)) as caught:
        dp.Domain(**arguments)
    assert isinstance(caught.value, dp.errors.PrivacyError)
    for text in texts:
        assert text in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        ({"metric": "age"}, ["metric", "'age'", "dp.metrics.L1"]),
        (
            {"metric": dp.metrics.L1("age"), "neighbours": "add_remove", "n_max": 9},
            ["metric", "add_remove", "no distance"],
        ),
        ({"metric": dp.metrics.L1("age"), "public": ["age"]}, ["age", "needs no protection"]),
        ({"metric": dp.metrics.Geographic("lat", "lon"), "bounds": {"lat": (0, 100)}}, ["lat", "(-90, 90)", "100"]),
    ],
)
def test_metrics_that_contradict_the_rest_are_refused(arguments, texts):
    with pytest.raises(dp.errors.DomainError) as caught:
        dp.Domain(**arguments)
    assert all(text in str(caught.value) for text in texts)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [(("", 3), "name of the column"), ((3, 3), "got 3"), (("who", 0), "1.."), (("who", 2.5), "whole")],
)
def test_a_unit_is_a_column_and_a_number_of_rows(arguments, text):
    with pytest.raises(dp.errors.PrivacyError, match=text):
        dp.Unit(*arguments)


def test_a_domain_of_persons_is_a_value_and_has_a_relation_of_its_own():
    domain = dp.Domain(neighbours="add_remove", n_max=100, unit=dp.Unit("who", max_rows=5))
    assert domain.relation == "unit: who" and domain.most_rows == 500 and domain.rows_of_one == 5
    names = {"Domain": dp.Domain, "Unit": dp.Unit}
    assert pickle.loads(pickle.dumps(domain)) == domain and eval(repr(domain), names) == domain
    assert domain.protected == "one person (who, max_rows=5)"
    rows = dp.Domain(neighbours="add_remove", n_max=100)
    assert rows.most_rows == 100 and rows.relation == "add_remove" and rows.protected == "one row"
    assert dp.Domain().most_rows is None
