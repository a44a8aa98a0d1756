"""The two mechanisms of Zhang, Rubinstein and Dimitrakakis (2016) for discrete Bayesian networks."""

from __future__ import annotations

from dataclasses import dataclass

from pymc_dp import _validate
from pymc_dp.errors import ArgumentError


@dataclass(frozen=True, init=False)
class LaplaceUpdates:
    """Release the counts of every node of a network with one noise for all: ``Statistics(mechanism=LaplaceUpdates())``.

    For models whose observed variables are all ``pm.Bernoulli`` or ``pm.Categorical``, their parameters indexed by
    other observed ones or by columns. Each node's table has a count for every level and configuration of its parents.
    Noise is that of the joint sensitivity, so that all counts have the same; `Statistics` without a mechanism splits ε
    among the nodes instead, and gives those with less sensitivity less noise.

    Parameters
    ----------
    papers : bool
        True: algorithm 1 to the letter, noise of scale ``2 |I| / ε`` on all counts of ``|I|`` nodes. False (default): a
        node without parents and with two levels shows one count, the other one being the number of rows less it, and
        moves by 1, not 2; so do cells of public size. Algorithm 1 in full is ``papers=True`` with
        ``noise_aware=False``, whose counts are cut off at 0 and at the number of rows.

    Raises
    ------
    ArgumentError
        If `papers` is neither True nor False.

    Notes
    -----
    **Guarantee.** (ε, 0) under Laplace noise, (ε, δ) under Gaussian noise, for one row of all nodes; class exact,
    arithmetic hardened; both neighbour relations (``papers`` for replacing only). One row leaves one count of each node
    and joins another: Δ1 = ``2 |I|`` at most, or ``|I|`` where a row comes or goes.

    References
    ----------
    Zhang, Rubinstein, Dimitrakakis (2016), On the differential privacy of Bayesian inference, algorithm 1, lemma 1, doi
    10.48550/arXiv.1512.06992.

    Examples
    --------
    >>> LaplaceUpdates()
    LaplaceUpdates(papers=False)
    """

    papers: bool

    def __init__(self, papers: bool = False) -> None:
        object.__setattr__(self, "papers", _validate.flag("papers", papers))


@dataclass(frozen=True, init=False)
class FourierUpdates:
    """Release what the tables of a network share once, as coefficients: ``Statistics(mechanism=FourierUpdates())``.

    For Bayesian networks: observed ``pm.Bernoulli`` or ``pm.Categorical`` variables whose parameters are indexed by
    observed ones, ``p[a, b]``, in no circle. The tables of all nodes are computed from noised coefficients of the
    downward closure N of their families, so that they agree wherever they overlap; `Release.marginals` returns them.
    Coefficients, noise and sensitivity are those of the closure: nothing takes time ``2^|I|``.

    Parameters
    ----------
    t : float
        Public increment of algorithm 2, for the tables of the plug-in form and of `Release.marginals`: they add up to
        ``2 t |N|`` noise scales more rows, spread evenly, which makes negative cells rare. The paper's claim, none with
        probability ``1 - exp(-t)``, fails for small t (``|N| = 16``, t = 0.05: 0.003, not 0.049; below 0.001 where the
        public number of rows is used without noise, as here). 0 (default): no increment. Noise-aware inference is free
        of it.
    papers : bool
        True: noise of algorithm 2, scale ``2 |N| / ε`` on every coefficient as a sum of signs (the paper's are
        ``2^(-|I|/2)`` of these), the number of rows among them, which tables do without; for two levels, and replacing.
        False (default): noise of scale Δ1 / ε, where Δ1 is the most that one row can move all coefficients together
        (with two levels and replacing, twice the number of those that it can change), or a bound on it in wide graphs;
        none on the public number of rows, and any number of levels.

    Raises
    ------
    ArgumentError
        If `t` is negative or `papers` neither True nor False.

    Notes
    -----
    **Guarantee.** (ε, 0) under Laplace noise, (ε, δ) under Gaussian noise, for one row of all nodes; class exact,
    arithmetic hardened (coefficients are whole numbers, of signs or of a grid of 2^-20); both neighbour relations
    (``papers`` for replacing only). Values that are no level count as level 0 in every table alike.

    **Inference.** Noise-aware: exact coefficients are normal given the parameters, node by node given those of its
    parents, with the released sizes in their variances; noise on all of them is accounted for jointly. What the model
    says about parents that no edge joins is not used. Plug-in (``noise_aware=False``): tables are treated as exact,
    cells below 0 for empty.

    References
    ----------
    Zhang, Rubinstein, Dimitrakakis (2016), algorithm 2, corollaries 2, 3, doi 10.48550/arXiv.1512.06992; Barak et al.
    (2007), theorem 6, doi 10.1145/1265530.1265569.

    Examples
    --------
    >>> FourierUpdates(t=1.0)
    FourierUpdates(t=1.0, papers=False)
    """

    t: float
    papers: bool

    def __init__(self, t: float = 0.0, papers: bool = False) -> None:
        found = _validate.number("t", t)
        if found < 0:
            raise ArgumentError(f"t must be >= 0, got {found:g}. 0 adds nothing; 1 makes negative cells rare.")
        object.__setattr__(self, "t", found)
        object.__setattr__(self, "papers", _validate.flag("papers", papers))


Updates = LaplaceUpdates | FourierUpdates


__all__ = ["FourierUpdates", "LaplaceUpdates"]
