"""The code of the README runs from top to bottom, as one reader would run it."""

import re
from pathlib import Path

import numpy as np
import pymc as pm
import pytensor
import pytest

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Everything the page defines. Chains are short and nothing is compiled: what counts is that each line is right."""
    pytest.importorskip("statsmodels")
    import matplotlib.pyplot as plt

    sample = pm.sample
    short = {"draws": 5, "tune": 5, "chains": 1, "cores": 1, "progressbar": False, "compute_convergence_checks": False}
    namespace = {}
    with pytest.MonkeyPatch.context() as patch, pytensor.config.change_flags(mode="FAST_COMPILE"):
        patch.chdir(tmp_path_factory.mktemp("readme"))
        # The lengths of private steps are paid for, and their chains are fast.
        patch.setattr(pm, "sample", lambda **kwargs: sample(**{**kwargs, **({} if "step" in kwargs else short)}))
        plt.switch_backend("Agg")
        for number, block in enumerate(BLOCKS):
            exec(compile(block, f"README.md, python block {number}", "exec"), namespace)
        namespace["published"] = Path("public.nc").is_file()
        yield namespace
        plt.close("all")


def test_page_runs_and_publishes(page):
    assert page["published"]
    assert "affair" in page["raw"].posterior_predictive


def test_numbers_in_comments_are_right(page):
    assert page["codes"].tolist() == [2, 3, -1, 2]
    assert (page["ledger"].spent.epsilon, page["ledger"].budget.epsilon) == (0.5, 1.5)
    assert page["idata"].dp.epsilon == 0.5
    assert "# 5.28, so one draw" in TEXT and round(page["proof"].range.value, 2) == 5.28
    assert "# 1.88, without bounds" in TEXT and round(page["dp"].sensitivity(page["clamped"]).range.value, 2) == 1.88
    temperature = float(re.search(r"T = ([\d.]+)", str(page["fit"].dp.report())).group(1))
    assert f"# OPS: T = {temperature:.1f}, as wide as with {int(6366 / temperature)} of 6366 rows" in TEXT


@pytest.mark.parametrize(("epsilon", "share"), [(0.1, 52.5), (1, 73), (5, 99.3)])
def test_shares_of_right_guesses_are_those_of_the_text(epsilon, share):
    assert round(100 / (1 + np.exp(-epsilon)), 1 if share % 1 else 0) == share
    assert f"{share:g}%" in TEXT


def test_every_likelihood_is_named():
    from pymc_dp.families import NAMES

    assert [name for name in NAMES.split(", ") if f"pm.{name}" not in TEXT] == []


def test_every_linked_file_exists():
    links = re.findall(r"\]\((?!https?:)([^)]+)\)|`(notebooks/[^`]+)`", TEXT)
    assert all((README.parent / (link or path)).exists() for link, path in links)
