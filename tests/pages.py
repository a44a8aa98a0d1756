"""Pages of text whose code is run, as one reader would: from top to bottom."""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pymc as pm
import pytensor
import pytest

from pymc_dp.release.paid import forget_releases

ROOT = Path(__file__).parents[1]
SHORT = {
    **{"draws": 5, "tune": 5, "chains": 1, "cores": 1, "progressbar": False, "compute_convergence_checks": False},
    "nuts": {"max_treedepth": 2},
}


def blocks(text: str) -> list[str]:
    """Return what is between ```python and ```."""
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def targets(text: str) -> list[str]:
    """Return what a page links to on the disk, without places within pages."""
    found = re.findall(r"\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)|`(notebooks/[^`*]+)`", text)
    return [one or other for one, other in found]


@contextmanager
def running(page: Path, folder: Path) -> Iterator[dict[str, Any]]:
    """Run a page in `folder` and give everything it defines.

    Chains are short and nothing is compiled: what counts is that each line is right.
    """
    import matplotlib.pyplot as plt

    forget_releases()  # of other pages, whose ledgers may still be open
    sample, namespace = pm.sample, {}
    with (
        pytest.MonkeyPatch.context() as patch,
        pytensor.config.change_flags(mode="FAST_COMPILE"),
        warnings.catch_warnings(),
    ):
        # A chain of five draws may stand still, and ArviZ divides by its variance.
        warnings.filterwarnings("ignore", "invalid value encountered in scalar divide", RuntimeWarning)
        patch.chdir(folder)
        # The lengths of private steps are paid for, and their chains are fast.
        patch.setattr(pm, "sample", lambda **kwargs: sample(**{**kwargs, **({} if "step" in kwargs else SHORT)}))
        plt.switch_backend("Agg")
        for number, block in enumerate(blocks(page.read_text(encoding="utf-8"))):
            exec(compile(block, f"{page.name}, python block {number}", "exec"), namespace)
        yield namespace
        plt.close("all")
