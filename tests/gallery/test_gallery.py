"""Models that people write: each is explained as the table says, each remedy works, and private posteriors are near."""

import textwrap

import pytest

import pymc_dp as dp
from tests.gallery.compare import CLOSE, ERROR, compared
from tests.gallery.measure import MARK, PAGE
from tests.gallery.models import GALLERY, USABLE, explained, off, page, released, table, usable

TABLE = table()
NEAR = {
    name: [parameter for parameter, off in found["apart"].items() if off <= CLOSE / 2]
    for name, found in TABLE.items()
    if isinstance(found.get("apart"), dict)
}
"""Parameters that were well within reach when the table was written: noise is drawn anew each time."""
DISTANCES = {name: distance for name, found in TABLE.items() if (distance := off(found)) is not None}
MOST = 0.95
"""Share of the models that were compared of which all medians should be near."""
FITTED = [name for name, parameters in NEAR.items() if parameters]


def test_the_table_has_every_model():
    assert set(TABLE) == set(GALLERY) and len(GALLERY) >= 80


def test_the_page_shows_the_table():
    assert PAGE.read_text(encoding="utf-8").partition(MARK)[2] == page(TABLE)


def test_chance_of_the_samplers_moves_no_median_far():
    """In standard deviations of the posterior that is wider: noise of a release may make it several times as wide."""
    compared = {name: found for name, found in TABLE.items() if "error" in found}
    errors = {name: found["error"] / max(1.0, *found["wider"].values()) for name, found in compared.items()}
    assert len(errors) == len(DISTANCES)
    assert {name: error for name, error in errors.items() if error > 2 * ERROR} == {}


@pytest.mark.xfail(reason="Too few medians are near yet: the page says which are not, and why.", strict=True)
def test_medians_of_nearly_all_models_are_near():
    near = sum(distance <= CLOSE for distance in DISTANCES.values())
    assert near >= MOST * len(DISTANCES)


@pytest.mark.parametrize("name", [name for name, found in TABLE.items() if found["status"] == "refused"])
def test_a_refusal_is_short_and_says_first_what_to_do(name):
    lines = TABLE[name]["problems"]
    assert sum(len(textwrap.wrap(line, dp.errors.COLUMNS)) for line in lines) <= dp.errors.MOST_LINES
    assert "Why: " in lines[1] and not any("Why: " in line for line in lines[::2])
    assert len(set(lines)) == len(lines)
    assert GALLERY[name].says in "\n".join(lines[:3])


@pytest.mark.few(8, cases=27)
@pytest.mark.parametrize("name", GALLERY)
@pytest.mark.filterwarnings("ignore")
def test_a_model_is_explained_as_the_table_says(name):
    status, problems = explained(GALLERY[name])
    assert (status, problems) == (TABLE[name]["status"], TABLE[name]["problems"])
    assert (status in USABLE) == (problems == [])


@pytest.mark.few(10, cases=12)
@pytest.mark.parametrize("name", [name for name, entry in GALLERY.items() if entry.remedied is not None])
@pytest.mark.filterwarnings("ignore")
def test_what_a_refusal_tells_to_do_works(name):
    entry = GALLERY[name]
    assert entry.remedied is not None and TABLE[name]["status"] == "refused"
    assert any(entry.says in problem for problem in TABLE[name]["problems"])
    assert released(entry.remedied)[0] == TABLE[name]["remedied"]
    assert TABLE[name]["remedied"] in USABLE


@pytest.mark.slow(cases=48)
@pytest.mark.parametrize("name", FITTED)
@pytest.mark.filterwarnings("ignore")
def test_medians_are_near_those_that_are_not_private(name, seed):
    """At ε = 100 the release leaves next to nothing open: what is off twice is wrong, not noisy.

    Once it may be: of curved likelihoods some walks end elsewhere, most of them with a warning.
    """
    far = [_far(name, seed)]
    if far[0]:
        far.append(_far(name, seed + 1))
    assert not all(far), far


def _far(name, seed):
    apart = compared(usable(name, TABLE[name]), seed).apart
    return {parameter: apart[parameter] for parameter in NEAR[name] if apart[parameter] > CLOSE}
