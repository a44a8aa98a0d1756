"""The column that says whose row it is: what cannot be one is refused before the charge, and shows nobody."""

import numpy as np
import pymc as pm
import pytensor
import pytest

import pymc_dp as dp
from pymc_dp.rows.stored import stored_rows
from tests.test_units import MOST, OWNERS, PERSONS, G, Y, counts, domain_of

pytestmark = pytest.mark.filterwarnings("ignore::pymc_dp.errors.RepeatedReleaseWarning")
DOMAIN_OF_IDS = dp.Domain(neighbours="add_remove", n_max=100, unit=dp.Unit("patient_id", max_rows=MOST))


def test_a_column_that_cannot_say_whose_row_it_is_is_refused_before_the_charge():
    domain, ledger = domain_of(counts()), dp.Ledger(5.0, unit="patient_id")
    with pytest.raises(dp.errors.UnsupportedModelError, match="dtype float64"):
        dp.privatize(counts(owners=OWNERS + 0.5), epsilon=1.0, domain=domain, ledger=ledger)
    other = dp.Domain(neighbours="add_remove", n_max=100, unit=dp.Unit("patiend_id", max_rows=MOST))
    for call in (dp.privatize, dp.explain):
        with pytest.raises(dp.errors.DomainError, match="Did you mean 'patient_id'"):
            call(counts(), epsilon=1.0, domain=other)
    rows = {"g": G, "y": Y}
    with pytest.raises(dp.errors.UnsupportedModelError, match="not in rows="):
        dp.privatize(counts(slice(3)), epsilon=1.0, domain=domain, ledger=ledger, rows=rows)
    with pytest.raises(dp.errors.UnsupportedModelError, match="stored as float64"):
        dp.privatize(
            counts(slice(3)), epsilon=1.0, domain=domain, ledger=ledger, rows={**rows, "patient_id": OWNERS + 0.5}
        )
    assert not ledger.history


def test_codes_of_16_bits_are_refused():
    """PyMC makes them of larger ones where floatX is 'float32': one person of two."""
    model = counts(owners=OWNERS + 2**17)
    with pytensor.config.change_flags(floatX="float32"):
        narrow = counts(owners=OWNERS + 2**17)
        wide = counts(owners=(OWNERS + 2**17).astype("uint32"))
    with pytest.raises(dp.errors.UnsupportedModelError, match="(?s)uint32.*dtype int16"):
        dp.privatize(narrow, epsilon=1.0, domain=domain_of(narrow))
    for fine in (model, wide):
        assert fine["patient_id"].get_value()[0] == OWNERS[0] + 2**17
        dp.privatize(fine, epsilon=1.0, domain=domain_of(fine))


def test_a_parameter_of_each_person_is_refused():
    """Names and number of the persons would be those of the parameters, private or not."""
    codes = np.unique(OWNERS, return_inverse=True)[1]
    ledger = dp.Ledger(5.0, 1e-5, unit="patient_id")
    for stored in (False, True):
        with pm.Model(coords={"patient": [f"Zoë {one}" for one in set(OWNERS)]}) as model:
            index = pm.Data("patient_id", codes)
            p = pm.Beta("p", 1, 1, dims="patient")
            pm.Bernoulli("y", p[index], observed=Y)
        rows = {"patient_id": codes, "y": Y} if stored else None
        for statistics, delta in ((dp.Statistics(), 0.0), (dp.Gradients(steps=10), 1e-6)):
            with pytest.raises(
                dp.errors.UnsupportedModelError, match="(?s)integrate over them.*reaches a likelihood"
            ) as refused:
                dp.privatize(
                    model, epsilon=1, delta=delta, statistics=statistics, domain=DOMAIN_OF_IDS, ledger=ledger, rows=rows
                )
            assert "Zoë" not in str(refused.value) and str(PERSONS) not in str(refused.value)
    assert not ledger.history


def test_the_length_of_a_name_shows_nowhere():
    """NumPy's type of texts tells it: <U10."""
    rows = {"patient_id": np.array(["a", "Rumpelstil"]), "y": np.array(["b", "Rumpelstil"]), "g": G[:2]}
    assert "10" not in repr(stored_rows(rows))
    with pytest.raises(dp.errors.UnsupportedModelError) as refused:
        dp.privatize(counts(slice(2)), epsilon=1.0, domain=domain_of(counts()), rows=rows)
    assert "10" not in str(refused.value)
    for wrong in (np.array("Rumpelstil"), np.array([b"Rumpelstil"])):
        with pytest.raises(dp.errors.ArgumentError) as refused:
            dp.privatize(counts(slice(2)), epsilon=1.0, domain=domain_of(counts()), rows={**rows, "g": wrong})
        assert "10" not in str(refused.value)
