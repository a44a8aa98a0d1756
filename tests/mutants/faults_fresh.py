"""Twenty more mistakes, by somebody who knew the package and had seen none of its tests."""

from __future__ import annotations

from tests.mutants.fault import Fault

FRESH: tuple[Fault, ...] = (
    Fault(
        name="fresh-sums-trials-without-root-two",
        operation="sums of features",
        kind="factor left out",
        file="pymc_dp/kernel/shapes.py",
        old="(m, m**2), (apart * m, apart * m**2))",
        new="(m, m**2), (apart * m, m**2))",
        breaks="A replaced row moves all its trials to another count, √2 times as far as Gaussian noise is made for.",
        first=("tests/kernel/test_tallies.py", "tests/kernel/test_sums.py"),
    ),
    Fault(
        name="fresh-moments-between-the-ends-there-are",
        operation="moments of columns",
        kind="clip by value",
        file="pymc_dp/gradients/moments.py",
        old='        low, high = (np.array([getattr(one, end) for one in self.entries]) for end in ("low", "high"))\n',
        new="        low, high = np.min(own, axis=1, initial=np.inf), np.max(own, axis=1, initial=-np.inf)\n",
        breaks="The smallest and the largest row of a block scale all others, so that one row moves what each adds.",
    ),
    Fault(
        name="fresh-gradients-nan-passes-the-norm",
        operation="gradients",
        kind="bound left out",
        file="pymc_dp/kernel/limits.py",
        old="        value = vector[j] * share\n        if not abs(value) <= units:\n",
        new="        value = vector[j] * share\n        if abs(value) > units:\n",
        breaks="NaN is not above the limit and its square wraps to 0: one row takes -2^63 into the sum.",
    ),
    Fault(
        name="fresh-choices-one-race-for-all-elements",
        operation="choices on grids",
        kind="noise reused",
        file="pymc_dp/draws/finite_choice.py",
        old="_log_arrivals(rng, held.shape) + behind",
        new="_log_arrivals(rng, held.shape[-1:]) + behind",
        breaks="Elements that are drawn together share their randomness, so that two draws that differ show the rows.",
    ),
    Fault(
        name="fresh-gibbs-elements-that-share-a-cell",
        operation="Gibbs",
        kind="bound left out",
        file="pymc_dp/step_methods/gibbs/ranges.py",
        old="        hit = (owner != NONE) if element is None else (owner == element) | (owner == MANY)\n",
        new="        hit = (owner != NONE) if element is None else owner == element\n",
        breaks="An element that meets rows in a sum with others is updated for nothing, as if no row reached it.",
        first=("tests/promises/test_charges.py",),
    ),
    Fault(
        name="fresh-ratios-half-an-interval-for-who-comes",
        operation="Barker",
        kind="bound halved",
        file="pymc_dp/step_methods/row_functions/limits.py",
        old='(self.high - self.low if neighbours == "replace" else max(-self.low, self.high)) * self.unit\n',
        new='(self.high - self.low) * self.unit / (1 if neighbours == "replace" else 2)\n',
        breaks="A row that is added may have the whole of an interval from 0 on, of which half is charged.",
    ),
    Fault(
        name="fresh-ratios-of-exact-sums-in-floats",
        operation="Barker",
        kind="sum in floats",
        file="pymc_dp/step_methods/metropolis/ratios.py",
        old="        exact = exact_product(there.coefficients - here.coefficients, self._sums)\n",
        new="        change = there.coefficients - here.coefficients\n"
        "        exact = Fraction(float(change @ np.array(self._sums, dtype=np.float64)))\n",
        breaks="Products of large sums cancel with an error that one row changes by more than the range of its ratio.",
        first=("tests/step_methods/test_coefficients.py",),
    ),
    Fault(
        name="fresh-penalty-a-scan-charged-as-one-bit",
        operation="penalty",
        kind="other event",
        file="pymc_dp/step_methods/metropolis/penalty.py",
        old="        return SelfComposedEvent(\n"
        "            event=bit if blocks == 1 else SelfComposedEvent(event=bit, count=blocks), count=funding.uses\n"
        "        )\n",
        new="        return SelfComposedEvent(event=bit, count=funding.uses)\n",
        breaks="A scan over several blocks releases a bit for each, and ledger and trace say that it was one.",
        first=("tests/promises/test_bits.py", "tests/promises/test_samplers.py"),
    ),
    Fault(
        name="fresh-batches-a-row-twice",
        operation="SGLD and its kin",
        kind="bound doubled",
        file="pymc_dp/step_methods/langevin/kernels.py",
        old="            place = last\n            _held(keys, place)\n",
        new="            place = last\n",
        breaks="A batch of fixed size may hold a row twice, whose gradient then moves the sum by twice the clip norm.",
        first=("tests/step_methods/langevin", "tests/promises/test_batches.py"),
    ),
    Fault(
        name="fresh-annealing-draws-by-weights-without-noise",
        operation="annealed importance sampling",
        kind="other event",
        file="pymc_dp/step_methods/annealing/sampler.py",
        old="                places = public.choice(count, size=self.settings.draws, p=weights / weights.sum())\n",
        new="                places = chosen(rng, logs, self.settings.draws)\n",
        breaks="Draws are chosen by the exact weights, each a mechanism, and the noised weights alone are paid for.",
        first=("tests/promises/test_charges.py", "tests/test_annealing.py", "tests/step_methods/annealing"),
    ),
    Fault(
        name="fresh-exact-draws-row-that-changes-its-cell",
        operation="exact draws",
        kind="wrong relation",
        file="pymc_dp/proofs/closed_form_ranges.py",
        old="        return np.maximum(same.max(), np.sort(alone)[-2:].sum() if apart else 0.0)\n",
        new="        return np.maximum(same.max(), alone.max() if apart else 0.0)\n",
        breaks="A replaced row that leaves one cell for another is bounded as one that only comes or goes.",
        first=("tests/promises/test_charges.py", "tests/step_methods/ops"),
    ),
    Fault(
        name="fresh-accounting-delta-for-each-of-two-rules",
        operation="accounting",
        kind="bound doubled",
        file="pymc_dp/kernel/accounting/adaptive_account.py",
        old="        half = self.delta_left / 2\n",
        new="        half = self.delta_left\n",
        breaks="Two rules may each let histories through that fail with all of δ, so that together they fail with 2 δ.",
        first=("tests/accounting",),
    ),
    Fault(
        name="fresh-metric-squares-as-steep-as-values",
        operation="per unit of a metric",
        kind="factor left out",
        file="pymc_dp/release/lipschitz_sums.py",
        old="STEPS_PER_STEP = {(1,): 1, (2,): 2, (1, 2): 3}\n",
        new="STEPS_PER_STEP = {(1,): 1, (2,): 1, (1, 2): 2}\n",
        breaks="A square moves by two steps where its value moves by one, and ε per unit is stated for one of them.",
        first=("tests/release", "tests/audit/test_sensitivity.py"),
    ),
    Fault(
        name="fresh-persons-in-several-files",
        operation="persons",
        kind="bound doubled",
        file="pymc_dp/rows/person_files.py",
        old="        where = (hashes_of(who) % np.uint64(self.count)).astype(np.int64)\n",
        new="        _, number = np.unique(who, return_inverse=True)\n"
        "        where = (hashes_of(number.ravel()) % np.uint64(self.count)).astype(np.int64)\n",
        breaks="Numbers of persons within a block send one to several files, each of which keeps max_rows.",
        first=("tests/rows",),
    ),
    Fault(
        name="fresh-refusals-private-data-in-a-public-prior",
        operation="refusals",
        kind="bound left out",
        file="pymc_dp/inspection/privacy_rule.py",
        old='    if not isinstance(leaf, Constant):\n        return "private"\n'
        '    if name in findings.domain.public:\n        return "named"\n',
        new='    if name in findings.domain.public:\n        return "named"\n'
        '    if not isinstance(leaf, Constant):\n        return "private"\n',
        breaks="A pm.Data that nobody named reaches the prior of a variable that is named for its constants.",
        first=("tests/promises/test_private_unless_named.py",),
    ),
    Fault(
        name="fresh-traces-labels-of-rows-in-the-private-model",
        operation="traces and reports",
        kind="label kept",
        file="pymc_dp/transforms/prior_model.py",
        old="    lengths = {dim: model._dim_lengths[dim] for dim in used}\n",
        new="    lengths = dict(model._dim_lengths)\n",
        breaks="The private model, which may be published, keeps the coords of the rows: how many, and whose.",
        first=("tests/promises/test_private_unless_named.py",),
    ),
    Fault(
        name="fresh-engines-ranks-are-let-through",
        operation="engines",
        kind="wrong relation",
        file="pymc_dp/rows/engines/mixed.py",
        old='"negate", "not", "floor", "ceil", "round", "sin"),\n',
        new='"negate", "not", "floor", "ceil", "round", "rank", "sin"),\n',
        breaks="A lazy frame with ranks is taken, in which one row of its source changes the values of many.",
        first=("tests/rows",),
    ),
    Fault(
        name="fresh-levels-counted-before-the-charge",
        operation="search for levels",
        kind="charge after the read",
        file="pymc_dp/find_levels.py",
        old="        with paid(_table(held, name, known), budget, event=threshold.event, label=label, "
        "ledger=ledger) as payment:\n"
        "            seen = payment.read(lambda: threshold.released(_counts(held, rest, known, shown), most))\n",
        new="        from pymc_dp.rows.gate import opened_gate\n\n"
        "        with opened_gate():\n"
        "            counts = _counts(held, rest, known, shown)\n"
        "        with paid(_table(held, name, known), budget, event=threshold.event, label=label, "
        "ledger=ledger) as payment:\n"
        "            seen = payment.read(lambda: threshold.released(counts, most))\n",
        breaks="Labels are read before the ledger may refuse, and an error at a row shows what it holds.",
        first=("tests/test_find_levels.py", "tests/rows/test_gate.py"),
    ),
    Fault(
        name="fresh-files-what-could-not-be-read",
        operation="stored tables",
        kind="value in a text",
        file="pymc_dp/rows/parquet.py",
        old='                raise PrivacyError(f"{path} cannot be read ({type(error).__name__}).") from None\n',
        new='                raise PrivacyError(f"{path} cannot be read ({error}).") from None\n',
        breaks="What pyarrow says of a block that it cannot read may quote a value, and this error is shown.",
        first=("tests/rows",),
    ),
    Fault(
        name="fresh-ledger-older-copy-put-back",
        operation="durable ledger",
        kind="bound left out",
        file="pymc_dp/accounting/book.py",
        old="                require_newest(self.name, seen(self.name), [last], self.terms.dataset, locked.hash_at)\n",
        new="",
        breaks="A ledger whose file is put back from a backup while it is open spends once more what it has forgotten.",
        first=("tests/accounting",),
    ),
)

__all__ = ["FRESH"]
