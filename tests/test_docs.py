"""The site says everything that is public, its links lead somewhere, and its code runs."""

import importlib
import inspect
import re

import pytest

from tests.pages import ROOT, blocks, running

DOCS = ROOT / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if not {"generated", "notebooks"} & set(page.parts))
MODULES = ("", ".datasets", ".from_draws", ".markov", ".metrics", ".models", ".networks", ".plots", ".schedules")
MODULES += (".testing", ".theorems", ".theorems.families", ".audit", ".plan")
RESULTS = {
    **{".answer": ["Answer"], ".explain": ["Explanation"], ".sensitivities": ["Found", "Sensitivity"]},
    ".rehearse": ["Rehearsed"],
    ".release.verdict": ["Reason", "Verdict"],
    ".trace.accessor": ["PrivacyAccessor"],
    ".trace.report": ["Report"],
}
"""What functions at the top return, by the module that it is in."""
SKIPPED = {"from_bambi", "load_adult", "load_collisions", "load_syria_events", "load_tax_units", "sample"}
"""Their examples are shown, but need a package or tables that are not everywhere, or compile."""
CONSTANTS = {"EARTH", "PER_UNIT"}
SLOW = {"how_it_works", "public_and_private", "samplers", "seven_names"}
HOWTOS = """
bambi check_a_release curves fields gradients hierarchical larger_than_memory latents_per_row missing_values networks
poststratify regression table_in_duckdb which_bounds which_method
"""
SLOW |= {f"howto/{name}" for name in HOWTOS.split()}
"""Pages whose code takes about two seconds or more."""


def named(page):
    return page.relative_to(DOCS).with_suffix("").as_posix()


def public():
    """Every public name with where it is to be had; what is only passed on is its own module's."""
    found = {}
    for suffix in (*MODULES, *RESULTS):
        module = importlib.import_module(f"pymc_dp{suffix}")
        names = (
            RESULTS.get(suffix)
            or getattr(module, "__all__", None)
            or [name for name, item in vars(module).items() if getattr(item, "__module__", None) == module.__name__]
        )
        for name in names:
            item = getattr(module, name)
            if not inspect.ismodule(item) and name not in {known for known, _, _ in found.values()}:
                found[f"{module.__name__}.{name}"] = (name, module.__name__, item)
    return found


def listed():
    """Return the names of all tables of the reference, with their modules."""
    found = set()
    for page in (DOCS / "api").glob("*.md"):
        for table in re.findall(r"^```\{eval-rst\}\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S):
            module = re.search(r"currentmodule:: (\S+)", table)
            found |= {f"{module[1]}.{name}" for name in re.findall(r"^   (\w+)$", table, re.M)} if module else set()
    return found


def test_the_reference_has_every_public_name_and_no_other():
    assert listed() == set(public())


@pytest.mark.parametrize("name", sorted(set(public()) - {f"pymc_dp.metrics.{name}" for name in CONSTANTS}))
def test_every_public_name_has_an_example_that_runs(name):
    short, _, item = public()[name]
    lines = [line for line in (item.__doc__ or "").splitlines() if line.lstrip().startswith(">>>")]
    assert lines and (short in SKIPPED or "doctest: +SKIP" not in "".join(lines))


def of_samplers(names, text):
    found, clamped = names["found"].range.value, names["dp"].sensitivity(names["clamped"]).range.value
    assert f"# {found:.2f}, so one draw from the posterior at ε = 1 has temperature {found:.2f}" in text
    assert f"# {clamped:.2f}, without bounds" in text
    temperature = float(re.search(r"T = ([\d.]+)", str(names["fit"].dp.report())).group(1))
    assert f"# OPS: T = {temperature:.1f}, as wide as with {int(6366 / temperature)} of 6366 rows" in text


def of_questions(names, text):
    ledger = names["ledger"]
    assert f"# {ledger.spent.epsilon:.1f} of {ledger.budget.epsilon} are spent" in text
    assert "A budget of 1.5: two releases have spent 1 and 0.1, and 0.4 are left" in text
    assert names["codes"].tolist() == [1, 2, 3, 1]
    assert "observed_data" in names["checks"] and "log_likelihood" in names["with_density"]


def of_how_it_works(names, text):
    assert names["idata"].dp.epsilon == 0.5
    assert "affair" in names["checks"].posterior_predictive and names["idata"].dp.report().publishable


def of_publishing(names, text):
    """What is drawn from the model of a release holds no row."""
    checks = names["checks"]
    assert "yes" in checks["posterior_predictive"] and "Predictive draws of the *release* are free" in text
    assert not any(100 in node.sizes.values() for node in checks.children.values())


CLAIMS = {"samplers": of_samplers, "questions": of_questions, "how_it_works": of_how_it_works}
CLAIMS["howto/publish"] = of_publishing
"""What the numbers in the comments of these pages say."""
RUN = [
    pytest.param(page, id=named(page), marks=[pytest.mark.slow(cases="all")] * (named(page) in SLOW))
    for page in PAGES
    if blocks(page.read_text(encoding="utf-8"))
]


@pytest.mark.filterwarnings("ignore:overflow encountered in dot:RuntimeWarning")  # of NUTS, far from the posterior
@pytest.mark.parametrize("page", RUN)
def test_code_of_pages_runs(page, tmp_path):
    with running(page, tmp_path) as namespace:
        assert namespace
        CLAIMS.get(named(page), lambda names, text: None)(namespace, page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_names_in_the_text_exist(page):
    text = page.read_text(encoding="utf-8")
    for path in set(re.findall(r"(?<![\w.])dp\.([A-Za-z_][\w.]*\w)", text)):
        item = importlib.import_module("pymc_dp")
        for name in path.split("."):
            assert hasattr(item, name), f"dp.{path}"
            item = getattr(item, name)
