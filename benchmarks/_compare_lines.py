"""The methods that `compare.py` asks, and what is known of each without importing it."""

from __future__ import annotations

from dataclasses import dataclass

RUNS_AT_LEAST = 100


@dataclass(frozen=True)
class Line:
    """A peer, and what is known of it without importing it; `Peer` in its module says the same to its interpreter.

    `kinds` are the questions it answers, `persons` how it protects persons with several rows, and `of_persons` what is
    one of them to its ε.
    """

    name: str
    module: str
    kinds: tuple[str, ...]
    neighbours: str = "replace"
    pure: bool = False
    audited: bool = True
    interpreter: str = ""
    times: float = 1.0
    persons: str = ""
    of_persons: str = "add or remove"

    @property
    def method(self) -> str:
        """The name in tables that have a column for what is protected."""
        return self.name.removesuffix(f", {self.neighbours}")

    def runs(self, usual: int) -> int:
        """Runs on each side of the audit: more where one takes milliseconds, fewer where it takes part of a second."""
        return max(RUNS_AT_LEAST, round(usual * self.times))


BEGINNINGS = {
    "adult": "Adult",
    "abalone": "Abalone",
    "bayes": "naive Bayes",
    "tax": "Tax units",
    "synthetic": "Logistic",
    "straight": "Linear",
    "one row": "One row",
    "each row": "Each row",
    "persons": "Persons",
}
"""Names of measures begin so, by question."""
LOGISTIC = ("adult", "abalone", "synthetic")
REGRESSIONS = (*LOGISTIC, "tax", "straight")
GROUPS = ("one row", "each row", "persons")
SAMPLE = "a person is one sample"
LINES = (
    Line("pymc_dp, noised gradients", "of_pymc_dp", (*REGRESSIONS, *GROUPS), persons="`dp.Unit`, `max_rows=5`"),
    Line(
        "pymc_dp, noised gradients, add or remove",
        "of_pymc_dp",
        ("synthetic", "tax"),
        neighbours="add or remove",
        audited=False,
    ),
    Line("pymc_dp, noised gradients, trust_model", "of_pymc_dp", ("synthetic",), audited=False),
    Line(
        "pymc_dp, noised gradients, trust_model, add or remove",
        "of_pymc_dp",
        ("synthetic",),
        neighbours="add or remove",
        audited=False,
    ),
    Line(
        "pymc_dp, noised gradients, max_rows=2",
        "of_pymc_dp",
        ("persons",),
        neighbours="add or remove",
        audited=False,
        persons="`dp.Unit`, `max_rows=2`",
    ),
    Line("pymc_dp, released statistics", "of_pymc_dp", ("bayes", "tax", "straight"), times=50),
    Line("pymc_dp, OPS, one draw", "of_pymc_dp", (*LOGISTIC, "each row"), times=1 / 3),
    Line("pymc_dp, SGNHT from OPS", "of_pymc_dp", (*LOGISTIC, "tax")),
    Line("objective perturbation, Kifer et al.", "objective", (*LOGISTIC, "one row", "each row"), times=10),
    Line(
        "diffprivlib",
        "of_diffprivlib",
        (*REGRESSIONS, "bayes", "one row", "each row"),
        pure=True,
        interpreter="diffprivlib",
        times=10,
    ),
    Line(
        "DP-SGD, Opacus",
        "of_opacus",
        (*REGRESSIONS, *GROUPS),
        neighbours="add or remove",
        interpreter="opacus",
        persons=SAMPLE,
    ),
    Line(
        "DP-SGD by hand, JAX",
        "by_hand_jax",
        (*REGRESSIONS, *GROUPS),
        neighbours="add or remove",
        times=10,
        persons=SAMPLE,
    ),
    Line("control: a tenth of that noise", "by_hand_jax", (), neighbours="add or remove", times=10),
    Line("DP-SVI, d3p", "of_d3p", (*REGRESSIONS, *GROUPS), interpreter="d3p", persons=SAMPLE, of_persons="replace"),
    Line("not private", "not_private", (*REGRESSIONS, "bayes", "one row"), neighbours="none", audited=False),
    Line(
        "not private, NUTS of PyMC",
        "of_pymc",
        REGRESSIONS,
        neighbours="none",
        audited=False,
    ),
)
REFERENCE = LINES[-1].name
"""Times are over its second fit: PyMC's own sampler of the same model, with as many draws."""
