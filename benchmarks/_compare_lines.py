"""The methods that `compare.py` asks, what is known of each without importing it, and what was found of it."""

from __future__ import annotations

from dataclasses import dataclass, field

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

    def runs(self, usual: int) -> int:
        """Runs on each side of the audit: more where one takes milliseconds, fewer where it takes part of a second."""
        return max(RUNS_AT_LEAST, round(usual * self.times))


@dataclass
class Found:
    """What was found of one peer: scores by measure, and CPU seconds of fits by question.

    `first` are from the start of its process to the end of the first fit, with nothing compiled before; `again`, those
    of a later fit, the median.
    """

    scores: dict[str, list[float]] = field(default_factory=dict)
    first: dict[str, float] = field(default_factory=dict)
    again: dict[str, float] = field(default_factory=dict)
    versions: str = ""
    audited: str = ""
    days: set[str] = field(default_factory=set)
    why: dict[str, str] = field(default_factory=dict)


LOGISTIC = ("adult", "abalone", "synthetic")
REGRESSIONS = (*LOGISTIC, "tax", "straight")
GROUPS = ("one row", "each row", "persons")
SAMPLE = "a person is one sample"
LINES = (
    Line("pymc_dp, noised gradients", "of_pymc_dp", (*REGRESSIONS, *GROUPS), persons="`dp.Unit`, `max_rows=5`"),
    Line(
        "pymc_dp, noised gradients, max_rows=2",
        "of_pymc_dp",
        ("persons",),
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
