"""Mistakes that would each break a guarantee: every way by which something leaves the rows, wrong in a dozen ways."""

from __future__ import annotations

from tests.mutants.fault import Fault
from tests.mutants.faults_fresh import FRESH

SUMS = (
    Fault(
        name="sums-histogram-relation",
        operation="sums of features",
        kind="wrong relation",
        file="pymc_dp/kernel/shapes.py",
        old="(2, 2) if self.levels > 1 else (1, 1))",
        new="(1, 1))",
        breaks="A replaced row moves two counts of a histogram, and one is paid for.",
        first=("tests/kernel/test_tallies.py", "tests/kernel/test_sums.py"),
    ),
    Fault(
        name="sums-noise-once-for-all",
        operation="sums of features",
        kind="noise reused",
        file="pymc_dp/kernel/noise.py",
        old="            noised = mechanism(self, float(scale))([int(item) for item in sums.ravel()])\n",
        new="            one = mechanism(self, float(scale))([0])[0]\n"
        "            noised = [int(item) + one for item in sums.ravel()]\n",
        breaks="All entries of a table have the same noise, so that their differences are exact.",
        first=("tests/release/test_noise.py", "tests/audit/test_mechanisms.py"),
    ),
    Fault(
        name="sums-noise-of-half-the-scale",
        operation="sums of features",
        kind="bound halved",
        file="pymc_dp/kernel/tallies.py",
        old="found[:, here] = draw.noised(np.ascontiguousarray(total[:, here]), noise, scale)",
        new="found[:, here] = draw.noised(np.ascontiguousarray(total[:, here]), noise, scale / 2)",
        breaks="Released sums have half of the noise that is charged and recorded.",
        first=("tests/kernel/test_tallies.py", "tests/audit/test_mechanisms.py"),
    ),
    Fault(
        name="sums-gaussian-event-of-more-noise",
        operation="sums of features",
        kind="other event",
        file="pymc_dp/kernel/shapes.py",
        old="return DiscreteGaussianEvent(scale=scale, l2_squared=self.l2_squared, shifts=self.shifts, coordinates=count)",
        new="return DiscreteGaussianEvent(\n"
        "            scale=2**0.5 * scale, l2_squared=self.l2_squared, shifts=self.shifts, coordinates=count\n"
        "        )",
        breaks="Gaussian noise on sums is charged as if it were √2 times as wide.",
        first=("tests/kernel/test_tallies.py", "tests/release/test_statistics.py", "tests/audit/test_mechanisms.py"),
    ),
    Fault(
        name="sums-value-not-clamped",
        operation="sums of features",
        kind="bound left out",
        file="pymc_dp/kernel/reading_loops.py",
        old="    value = min(max(value, low), high)\n"
        "    return min(max(np.rint((value - centre) * per_unit), least), most)",
        new="    return np.rint((value - centre) * per_unit)",
        breaks="A row beyond the bounds adds all of its value to a released sum.",
        first=("tests/kernel/test_tallies.py", "tests/rows/test_sums.py"),
    ),
    Fault(
        name="sums-squares-not-rounded",
        operation="sums of features",
        kind="sum in floats",
        file="pymc_dp/kernel/reading_loops.py",
        old="            second += np.rint(k * k * (1.0 / GRID))\n",
        new="            second += k * k * (1.0 / GRID)\n",
        breaks="Squares are added up as floats that are no whole numbers: the sum depends on the order of the rows.",
        first=("tests/rows/test_sums.py", "tests/kernel/test_tallies.py"),
    ),
    Fault(
        name="sums-trials-of-a-row-not-shared",
        operation="sums of features",
        kind="bound left out",
        file="pymc_dp/kernel/limits.py",
        old="taken = left if value >= left else",
        new="taken = np.int64(most) if value >= most else",
        breaks="A row of counts adds `trials` to every level, and not to all of them together.",
        first=("tests/kernel/test_tallies.py", "tests/kernel/test_sums.py"),
    ),
    Fault(
        name="sums-charged-after-the-read",
        operation="sums of features",
        kind="charge after the read",
        file="pymc_dp/transforms/privatize.py",
        old="            sums = charge_release(plan, account, f\"statistics of {', '.join(plan.names)}\")\n",
        new="            from pymc_dp.kernel.account import Rehearsal\n"
        "            from pymc_dp.rows.gate import opened_gate\n"
        "\n"
        "            with opened_gate():\n"
        '                early = charge_release(plan, Rehearsal(plan.relation), "early")\n'
        "                _drawn(plan, early, beside, owner, progressbar)\n"
        "            sums = charge_release(plan, account, f\"statistics of {', '.join(plan.names)}\")\n",
        breaks="Sums are drawn before the ledger is asked, and drawn again after.",
        first=("tests/transforms/test_privatize.py", "tests/release/test_paid.py", "tests/promises"),
    ),
    Fault(
        name="sums-regression-move-between-cells",
        operation="sums of features",
        kind="bound halved",
        file="pymc_dp/kernel/blocks.py",
        old="        return 2 * (self.sizes + self.constant * Fraction(self.count)) + second\n",
        new="        return self.sizes + self.constant * Fraction(self.count) + second\n",
        breaks="A row of a regression that changes its cell moves sums of both, and those of one are paid for.",
        first=("tests/release/test_regression_sensitivity.py", "tests/audit/test_sensitivity.py"),
    ),
    Fault(
        name="find-bounds-entries-of-one-row",
        operation="find_bounds",
        kind="bound left out",
        file="pymc_dp/kernel/walk_kinds.py",
        old="        one: OneHot | MHot = OneHot(self.count) if self.width == 1 else MHot(self.count, self.width)\n",
        new="        one: OneHot | MHot = OneHot(self.count)\n",
        breaks="A row with several numbers moves several counts of the search for bounds, and one is paid for.",
        first=("tests/test_find_bounds.py", "tests/kernel/test_walks.py"),
    ),
)
PERSONS = (
    Fault(
        name="persons-twice-the-rows-are-kept",
        operation="rows of persons",
        kind="bound doubled",
        file="pymc_dp/kernel/persons.py",
        old="    kept[order[rank < most]] = True\n",
        new="    kept[order[rank < 2 * most]] = True\n",
        breaks="Twice as many rows of a person count as are paid for.",
        first=("tests/rows/test_persons.py", "tests/test_units.py"),
    ),
    Fault(
        name="persons-squared-sensitivity",
        operation="rows of persons",
        kind="factor left out",
        file="pymc_dp/kernel/shapes.py",
        old="l2_squared=rows**2 * square << 2 * finer",
        new="l2_squared=rows * square << 2 * finer",
        breaks="Gaussian noise for a person with m rows grows with √m only, though all rows may be alike.",
        first=("tests/kernel/test_tallies.py", "tests/release/test_persons.py"),
    ),
)
WEIGHTS = (
    Fault(
        name="weights-limit-doubled",
        operation="weights",
        kind="bound doubled",
        file="pymc_dp/kernel/table.py",
        old="np.minimum(found, WEIGHT)",
        new="np.minimum(found, 2 * WEIGHT)",
        breaks="A row counts by its weight up to twice the declared largest.",
        first=("tests/rows/test_weighted.py",),
    ),
    Fault(
        name="weights-share-of-the-largest-there-is",
        operation="weights",
        kind="clip by value",
        file="pymc_dp/kernel/table.py",
        old="        found = np.rint(np.asarray(weights, dtype=np.float64) * WEIGHT)\n",
        new="        held = np.asarray(weights, dtype=np.float64)\n"
        "        found = np.rint(held / max(1.0, np.nanmax(held, initial=0.0)) * WEIGHT)\n",
        breaks="Weights are shares of the largest in the table: one row of a huge weight changes what all others add.",
        first=("tests/rows/test_weighted.py",),
    ),
    Fault(
        name="weights-replaced-row",
        operation="weights",
        kind="wrong relation",
        file="pymc_dp/kernel/shapes.py",
        old="return Move(l1=2 * one << finer, l2_squared=(2 if self.signless else 4) * square << 2 * finer)",
        new="return Move(l1=one << finer, l2_squared=square << 2 * finer)",
        breaks="A replaced weighted row may go from a full weight on one side to one on the other, and "
        "one is paid for.",
        first=("tests/kernel/test_tallies.py", "tests/kernel/test_sums.py"),
    ),
)
GRADIENTS = (
    Fault(
        name="gradients-norm-not-enforced",
        operation="gradients",
        kind="bound left out",
        file="pymc_dp/kernel/limits.py",
        old="        if used > most:\n            return False\n    return True\n",
        new="    return True\n",
        breaks="The norm of the whole numbers that a row adds is not looked at, which is what privacy rests on.",
        first=("tests/kernel/test_sums.py",),
    ),
    Fault(
        name="gradients-replaced-row",
        operation="gradients",
        kind="wrong relation",
        file="pymc_dp/kernel/walk_kinds.py",
        old='return UNITS**2 * (4 if neighbours == "replace" else 1)',
        new='return UNITS**2 * (2 if neighbours == "replace" else 1)',
        breaks="A replaced score moves a sum by twice its norm, and √2 times is paid for.",
        first=("tests/kernel/test_walks.py", "tests/gradients/test_bounds.py"),
    ),
    Fault(
        name="gradients-noise-over-root-two",
        operation="gradients",
        kind="factor left out",
        file="pymc_dp/kernel/walk_kinds.py",
        old="        return draw.noised(total, self.noise, scale)\n",
        new="        return draw.noised(total, self.noise, scale / math.sqrt(2))\n",
        breaks="Gradients have noise that is narrower by √2 than is charged.",
        first=("tests/kernel/test_walks.py", "tests/gradients/test_bounds.py"),
    ),
    Fault(
        name="gradients-summed-in-floats",
        operation="gradients",
        kind="sum in floats",
        file="pymc_dp/kernel/walk_limits.py",
        old="    low, high = np.zeros_like(parts[0]), np.zeros_like(parts[0])\n",
        new="    if len(parts) > 1:\n"
        "        return np.sum(np.asarray(parts, dtype=np.float64), axis=0).astype(np.int64)\n"
        "    low, high = np.zeros_like(parts[0]), np.zeros_like(parts[0])\n",
        breaks="Sums of several threads are added up in floats, whose last bits depend on which rows a thread had.",
        first=("tests/kernel/test_walks.py", "tests/gradients/test_bounds.py"),
    ),
    Fault(
        name="gradients-charged-after-the-read",
        operation="gradients",
        kind="charge after the read",
        file="pymc_dp/kernel/walks.py",
        old="        account.charge(walk_event(self._sums, neighbours), label)\n",
        new="        own = source.opened()\n"
        "        own.__enter__()\n"
        "        account.charge(walk_event(self._sums, neighbours), label)\n"
        "        own.__exit__(None, None, None)\n",
        breaks="The rows of a walk are made ready before the ledger is asked.",
        first=("tests/kernel/test_walks.py", "tests/gradients/test_choice.py", "tests/release/test_paid.py"),
    ),
    Fault(
        name="histograms-charged-with-more-noise",
        operation="histograms of norms",
        kind="other event",
        file="pymc_dp/kernel/walk_kinds.py",
        old='        return UNITS**2 * (2 if neighbours == "replace" and self.count > 1 else 1)\n',
        new='        return UNITS**2 * (2 if neighbours == "replace" and self.count > 1 else 1) // 4\n',
        breaks="A histogram of norms is charged as if its noise were twice as wide.",
        first=("tests/kernel/test_walks.py", "tests/gradients/test_bounds.py"),
    ),
)
CURVATURES = (
    Fault(
        name="curvatures-norm-not-enforced",
        operation="curvatures",
        kind="bound left out",
        file="pymc_dp/kernel/limits.py",
        old="    return norm <= most\n",
        new="    return True\n",
        breaks="A row's curvature of any size is added to the sum.",
        first=("tests/kernel/test_walks.py",),
    ),
    Fault(
        name="curvatures-diagonal-noise",
        operation="curvatures",
        kind="factor left out",
        file="pymc_dp/kernel/walk_kinds.py",
        old='    own[kept] = draw.noised(np.diag(total)[kept], "gaussian", scale)\n',
        new='    own[kept] = draw.noised(np.diag(total)[kept], "gaussian", scale / math.sqrt(2))\n',
        breaks="The diagonal of a curvature has the noise of the entries off it, less by √2 than is charged.",
        first=("tests/kernel/test_walks.py", "tests/gradients/test_bounds.py"),
    ),
)
HISTOGRAMS = (
    Fault(
        name="histograms-norms-over-the-largest",
        operation="histograms of norms",
        kind="clip by value",
        file="pymc_dp/gradients/release.py",
        old="            places = np.where(~np.isfinite(norms), 0,",
        new="            norms = norms / max(1.0, np.nanmax(norms, initial=0.0) / edges[-2])\n"
        "            places = np.where(~np.isfinite(norms), 0,",
        breaks="Norms are scaled by the largest of a chunk: one row moves many rows to other bins.",
        first=("tests/gradients/test_one_row.py", "tests/gradients/test_tails.py"),
    ),
)
SAMPLERS = (
    Fault(
        name="gibbs-rows-not-tempered",
        operation="Gibbs",
        kind="bound left out",
        file="pymc_dp/step_methods/gibbs/grid.py",
        old="            weights = self.scores.at(self.points, values, sums, beta, size) + beta * "
        "self.rows_at(self.knots, values)\n",
        new="            weights = self.scores.at(self.points, values, sums, beta, size) + "
        "self.rows_at(self.knots, values)\n",
        breaks="Rows that are held one by one count in full, where a fraction β of them is paid for.",
        first=("tests/promises/test_choices.py", "tests/promises/test_charges.py"),
    ),
    Fault(
        name="gibbs-range-doubled",
        operation="Gibbs",
        kind="bound doubled",
        file="pymc_dp/step_methods/row_functions/summing_kernels.py",
        old="                    value = max(value - top[i], -width)\n",
        new="                    value = max(value - top[i], -2.0 * width)\n",
        breaks="The number of a row ranges over the points by twice as much as is charged.",
        first=(
            "tests/step_methods/row_functions/test_limits.py",
            "tests/step_methods/row_functions",
            "tests/promises/test_choices.py",
        ),
    ),
    Fault(
        name="gibbs-range-of-the-widest-row",
        operation="Gibbs",
        kind="clip by value",
        file="pymc_dp/step_methods/row_functions/limits.py",
        old="        add_rows(_dense(found), weights, owner, 1.0 / self.unit, float(self.width), size, total)\n",
        new="        widest = np.ptp(np.nan_to_num(found, neginf=0.0, posinf=0.0), "
        "axis=0).max(initial=0.0) / self.unit\n"
        "        add_rows(_dense(found), weights, owner, 1.0 / self.unit, max(float(self.width), "
        "widest), size, total)\n",
        breaks="Rows are held to the range of the widest row there is, and not to what is charged.",
        first=(
            "tests/step_methods/row_functions/test_limits.py",
            "tests/step_methods/row_functions",
            "tests/promises/test_choices.py",
        ),
    ),
    Fault(
        name="metropolis-interval-one-sided",
        operation="Metropolis",
        kind="wrong relation",
        file="pymc_dp/step_methods/row_functions/limits.py",
        old='return (self.high - self.low if neighbours == "replace" else max(-self.low, self.high)) * self.unit',
        new="return max(-self.low, self.high) * self.unit",
        breaks="A replaced row moves a log ratio by the length of the interval, and half of it is charged.",
        first=(
            "tests/step_methods/row_functions/test_limits.py",
            "tests/promises/test_bits.py",
        ),
    ),
    Fault(
        name="metropolis-summed-in-floats",
        operation="Metropolis",
        kind="sum in floats",
        file="pymc_dp/step_methods/row_functions/summing_kernels.py",
        old="        total += np.rint(min(max(value, low), high))\n    return total\n",
        new="        total += min(max(value, low), high)\n    return total\n",
        breaks="Log ratios of rows are added up as floats: one row more shifts the rounding of all others.",
        first=(
            "tests/step_methods/row_functions/test_limits.py",
            "tests/promises/test_bits.py",
            "tests/promises/test_choices.py",
        ),
    ),
    Fault(
        name="barker-loss-of-a-bit",
        operation="Barker",
        kind="factor left out",
        file="pymc_dp/step_methods/metropolis/spending.py",
        old="min(reach * reach / 8, reach * math.tanh(reach / 2))",
        new="min(reach * reach / 16, reach * math.tanh(reach / 2))",
        breaks="An accept bit is charged half of the ρ that it costs.",
        first=("tests/promises/test_bits.py", "tests/promises/test_charges.py"),
    ),
    Fault(
        name="penalty-noise-halved",
        operation="penalty",
        kind="bound halved",
        file="pymc_dp/step_methods/metropolis/penalty.py",
        old="        return reach / self.ratio * (1 + 1e-15)\n",
        new="        return 0.5 * reach / self.ratio * (1 + 1e-15)\n",
        breaks="The noise on a log ratio is half of what is charged.",
        first=("tests/promises/test_bits.py",),
    ),
)
MOMENTS = (
    Fault(
        name="moments-charged-as-if-a-row-came",
        operation="moments",
        kind="wrong relation",
        file="pymc_dp/kernel/walk_kinds.py",
        old="    return tuple(one.kind.event(one.scale, neighbours) for one in checked(sums))\n",
        new="    return tuple(\n"
        '        one.kind.event(one.scale, "add_remove" if type(one.kind) is Vector else neighbours)\n'
        "        for one in checked(sums)\n"
        "    )\n",
        breaks="Moments of a replaced row move by twice the norm of one, and once is paid for.",
        first=("tests/kernel/test_walks.py", "tests/gradients/test_bounds.py"),
    ),
    Fault(
        name="fit-counts-not-charged",
        operation="fit counts",
        kind="other event",
        file="pymc_dp/kernel/walks.py",
        old="        account.charge(walk_event(self._sums, neighbours), label)\n",
        new="        account.charge(walk_event(self._sums[: max(1, len(self._sums) - 1)], neighbours), label)\n",
        breaks="The last sum of a walk, the check of the fit, is released, and stands in no charge.",
        first=("tests/kernel/test_walks.py", "tests/gradients/test_bounds.py"),
    ),
)
DRAWS = (
    Fault(
        name="ops-event-of-half-the-range",
        operation="OPS draws",
        kind="other event",
        file="pymc_dp/step_methods/ops/price.py",
        old="    event = BoundedRangeEvent(eta=eta if inverse < 1 else range_)\n",
        new="    event = BoundedRangeEvent(eta=eta / 2 if inverse < 1 else range_)\n",
        breaks="A draw from the tempered posterior is charged half of its range.",
        first=(
            "tests/step_methods/ops/test_price.py",
            "tests/promises/test_distributions.py",
            "tests/promises/test_charges.py",
        ),
    ),
    Fault(
        name="ops-row-that-changes-its-cell",
        operation="OPS draws",
        kind="bound halved",
        file="pymc_dp/proofs/closed_form_ranges.py",
        old="np.sort(alone)[-2:].sum() if apart else 0.0",
        new="alone.max() if apart else 0.0",
        breaks="A row that changes its cell moves two of them, and the range of one is paid for.",
        first=("tests/promises/test_charges.py", "tests/proofs"),
    ),
    Fault(
        name="ops-same-key-every-time",
        operation="OPS draws",
        kind="noise reused",
        file="pymc_dp/kernel/randomness.py",
        old="        return np.random.Generator(AESCounter(key=secrets.randbits(128)))\n",
        new="        return np.random.Generator(AESCounter(key=secrets.randbits(0)))\n",
        breaks="Every chain and every run draws the same random numbers, which anybody can draw too.",
        first=("tests/test_random.py",),
    ),
    Fault(
        name="ais-weights-two-left-out",
        operation="OPS draws",
        kind="factor left out",
        file="pymc_dp/step_methods/annealing/price.py",
        old="    return math.ceil(min(_above(2 * math.tanh(eta / 4)), 2.0) * 2**WEIGHT_BITS) + particles + 1\n",
        new="    return math.ceil(min(_above(math.tanh(eta / 4)), 2.0) * 2**WEIGHT_BITS) + particles + 1\n",
        breaks="Weights of annealing move by twice what their noise is made for.",
        first=(
            "tests/step_methods/annealing/test_weights.py",
            "tests/step_methods/annealing/test_price.py",
            "tests/test_annealing.py",
        ),
    ),
    Fault(
        name="ais-charged-after-the-read",
        operation="OPS draws",
        kind="charge after the read",
        file="pymc_dp/annealing.py",
        old="    idata = None\n    try:\n        with paid(",
        new="    from pymc_dp.rows.gate import opened_gate\n\n"
        "    with opened_gate():\n        run.load()\n    idata = None\n    try:\n        with paid(",
        breaks="Rows are read before the ledger is asked.",
        first=("tests/test_annealing.py", "tests/promises/test_samplers.py"),
    ),
    Fault(
        name="chains-one-is-charged",
        operation="OPS draws",
        kind="factor left out",
        file="pymc_dp/step_methods/funding.py",
        old="        return self.chains * self.steps\n",
        new="        return self.steps\n",
        breaks="Steps of one chain are charged, however many chains there are.",
        first=("tests/promises/test_charges.py", "tests/step_methods/test_base.py"),
    ),
)
BATCHES = (
    Fault(
        name="batches-one-noise-for-all-entries",
        operation="SGLD and kin batches",
        kind="noise reused",
        file="pymc_dp/step_methods/langevin/kernels.py",
        old="        for j in range(position.size):\n"
        "            slope[j] = of_prior[j] + unit * (slope[j] + plan.sigma / unit * rng.standard_normal())\n",
        new="        noise = rng.standard_normal()\n"
        "        for j in range(position.size):\n"
        "            slope[j] = of_prior[j] + unit * (slope[j] + plan.sigma / unit * noise)\n",
        breaks="All entries of a gradient have the same noise, so that their differences are exact.",
        first=(
            "tests/step_methods/langevin/test_kernels.py",
            "tests/promises/test_batches.py",
            "tests/step_methods/langevin/test_dynamics.py",
        ),
    ),
    Fault(
        name="batches-noise-halved",
        operation="SGLD and kin batches",
        kind="bound halved",
        file="pymc_dp/step_methods/langevin/batches.py",
        old="        return multiplier * clip_norm * self.population / self.size\n",
        new="        return 0.5 * multiplier * clip_norm * self.population / self.size\n",
        breaks="A batch's gradient has half of the noise of the multiplier that is charged.",
        first=(
            "tests/step_methods/langevin",
            "tests/promises/test_batches.py",
            "tests/step_methods/langevin/test_kernels.py",
        ),
    ),
    Fault(
        name="batches-over-their-realised-size",
        operation="SGLD and kin batches",
        kind="clip by value",
        file="pymc_dp/step_methods/langevin/kernels.py",
        old="            add_clipped(gradient, position, starts, plan.clip, table, count, shared, slope)\n"
        "        if slope.size",
        new="            add_clipped(gradient, position, starts, plan.clip, table, count, shared, slope)\n"
        "        slope *= plan.batch_size / max(count, 1)\n"
        "        if slope.size",
        breaks="A sum is divided by how many rows the batch has, so that one row more changes what all others add.",
        first=(
            "tests/step_methods/langevin/test_kernels.py",
            "tests/promises/test_batches.py",
            "tests/step_methods/langevin",
        ),
    ),
    Fault(
        name="batches-not-rounded",
        operation="SGLD and kin batches",
        kind="sum in floats",
        file="pymc_dp/step_methods/row_functions/summing_kernels.py",
        old="            whole = np.rint(factor * vectors[i, j])\n",
        new="            whole = factor * vectors[i, j]\n",
        breaks="Clipped gradients are added up as floats: one row shifts the rounding of all others.",
        first=(
            "tests/step_methods/row_functions/test_clipped_sums.py",
            "tests/step_methods/row_functions",
            "tests/step_methods/langevin/test_kernels.py",
        ),
    ),
)
CHOICES = (
    Fault(
        name="clip-norm-is-the-quantile-itself",
        operation="exponential mechanism",
        kind="clip by value",
        file="pymc_dp/step_methods/langevin/estimated_norm.py",
        old="        chosen = choose(secure_generator(), self.weight(budget, neighbours) * self.scores(norms))\n",
        new="        chosen = np.argmax(self.scores(norms))\n",
        breaks="The clip norm is that of the rows, and not a draw of the exponential mechanism that is charged.",
        first=("tests/step_methods/langevin/test_estimated_norm.py",),
    ),
    Fault(
        name="find-bounds-charged-after-the-read",
        operation="find_bounds",
        kind="charge after the read",
        file="pymc_dp/find_bounds.py",
        old="            walk = Walk(table, account, search.sums, label=label)\n"
        "            payment = account.payment\n"
        "            noised = payment.read(lambda: search.noised(walk))\n",
        new="            from pymc_dp.kernel.account import Rehearsal\n\n"
        "            noised = search.noised(Walk(table, Rehearsal(table.relation), search.sums))\n"
        "            Walk(table, account, search.sums, label=label)\n"
        "            payment = account.payment\n",
        breaks="Values are counted before the ledger is asked.",
        first=("tests/test_find_bounds.py",),
    ),
    Fault(
        name="find-levels-threshold-off-by-one",
        operation="find_levels",
        kind="bound left out",
        file="pymc_dp/release/level_threshold.py",
        old="        return cls(scale=scale, least=1 + beyond, budget=budget)\n",
        new="        return cls(scale=scale, least=beyond, budget=budget)\n",
        breaks="A level that one row alone has is shown with a probability above δ.",
        first=("tests/release/test_level_threshold.py", "tests/test_find_levels.py"),
    ),
    Fault(
        name="labels-cost-of-a-count-of-none",
        operation="find_levels",
        kind="bound left out",
        file="pymc_dp/kernel/labels.py",
        old="    chance = 1 - (1 - tail(scale, least - 1)) ** most\n",
        new="    chance = 1 - (1 - tail(scale, least)) ** most\n",
        breaks="The kernel charges less than the probability with which a label of one row is shown.",
        first=("tests/kernel/test_labels.py", "tests/kernel/test_sums.py"),
    ),
    Fault(
        name="find-levels-by-exact-counts",
        operation="find_levels",
        kind="clip by value",
        file="pymc_dp/kernel/labels.py",
        old="    return {label: int(count) for label, count in zip(labels, noised, strict=True) if count >= least}\n",
        new="    pairs = zip(labels, counts, noised, strict=True)\n"
        "    return {label: int(noise) for label, count, noise in pairs if count >= least}\n",
        breaks="Whether a level is shown depends on its exact number of rows.",
        first=("tests/kernel/test_labels.py", "tests/test_find_levels.py"),
    ),
    Fault(
        name="find-map-range-of-one-row",
        operation="find_map",
        kind="wrong relation",
        file="pymc_dp/step_methods/mode/mode.py",
        old="        largest = np.max([np.ptp(values - other, axis=1).max() for other in values])\n",
        new="        largest = np.ptp(values, axis=1).max()\n",
        breaks="The range of one row is taken for that of a difference of two; what rows are held to has to mend it.",
        first=("tests/test_find_map.py", "tests/promises/test_choices.py"),
    ),
    Fault(
        name="metrics-steep-numbers-kept",
        operation="metrics",
        kind="bound left out",
        file="pymc_dp/step_methods/row_functions/node_bounds.py",
        old="        found = Numbers.within(self.most, self.nodes, values, owner)\n",
        new="        found = Numbers.of(self.nodes, values, owner)\n",
        breaks="Numbers of nodes that are steeper than is charged per unit of the metric are added up as they are.",
        first=("tests/promises/test_per_unit.py",),
    ),
    Fault(
        name="metrics-unit-charged-for-a-row",
        operation="metrics",
        kind="other event",
        file="pymc_dp/accounting/charging.py",
        old='        event, label = at_distance(event, diameter), f"{label} (whole rows: ρ up to {diameter:.6g})"\n',
        new='        label = f"{label} (whole rows: ρ up to {diameter:.6g})"\n',
        breaks="A ledger of whole rows is charged what a release costs per unit of a metric.",
        first=("tests/accounting/test_per_unit.py", "tests/trace/test_per_unit.py"),
    ),
)
LEDGER = (
    Fault(
        name="ledger-budget-doubled",
        operation="ledger",
        kind="bound doubled",
        file="pymc_dp/accounting/ledger.py",
        old="            if state.epsilon > self.budget.epsilon:\n",
        new="            if state.epsilon > 2 * self.budget.epsilon:\n",
        breaks="A ledger lets twice its ε be spent.",
        first=("tests/accounting/test_ledger.py",),
    ),
    Fault(
        name="accountants-bounded-range",
        operation="accountants",
        kind="factor left out",
        file="pymc_dp/kernel/accounting/events/bounded_range.py",
        old="        return min(eta**2 / 8, rho_of_pure(eta))\n",
        new="        return min(eta**2 / 16, rho_of_pure(eta))\n",
        breaks="An exponential mechanism counts half of its ρ.",
        first=("tests/accounting/events/test_events.py", "tests/accounting"),
    ),
    Fault(
        name="accountants-replace-as-one-row",
        operation="accountants",
        kind="wrong relation",
        file="pymc_dp/accounting/groups.py",
        old="    return of_rows(event, 2)\n",
        new="    return of_rows(event, 1)\n",
        breaks="What was computed for a row that comes or goes is taken to hold for one that is replaced.",
        first=("tests/accounting/test_group_privacy.py", "tests/accounting/events/test_events.py"),
    ),
)
LEAVES = (
    Fault(
        name="scrub-keeps-labels",
        operation="trace scrub",
        kind="label kept",
        file="pymc_dp/trace/scrub.py",
        old='dim in dataset.coords and (dim in dims or dim in ("chain", "draw"))',
        new="dim in dataset.coords",
        breaks="Labels of dimensions leave that the private model does not have.",
        first=("tests/trace/test_scrub.py",),
    ),
    Fault(
        name="private-model-keeps-labels-of-rows",
        operation="trace scrub",
        kind="label kept",
        file="pymc_dp/transforms/prior_model.py",
        old="    lengths = {dim: model._dim_lengths[dim] for dim in used}\n",
        new="    lengths = {**{dim: model._dim_lengths[dim] for dim in used}, **model._dim_lengths}\n",
        breaks="The model without rows keeps their labels, as names of patients are.",
        first=("tests/transforms", "tests/inspection/test_leaks.py"),
    ),
    Fault(
        name="trace-seeded-noise-is-called-private",
        operation="trace scrub",
        kind="noise reused",
        file="pymc_dp/release/plan.py",
        old='guarantee="exact" if insecure() is None else "none")',
        new='guarantee="exact")',
        breaks="A trace whose noise came from a seed is called private and may be published.",
        first=("tests/trace/test_scrub.py", "tests/test_random.py", "tests/transforms/test_privatize.py"),
    ),
    Fault(
        name="texts-error-of-a-row-passed-on",
        operation="texts",
        kind="value in a text",
        file="pymc_dp/release/paid.py",
        old="            elif not isinstance(error, PrivacyError):\n                failure = ReleaseError()\n",
        new="",
        breaks="An error that was raised where rows are read leaves with its text, which may show a value.",
        first=("tests/release/test_paid.py", "tests/promises"),
    ),
    Fault(
        name="texts-number-of-private-rows",
        operation="texts",
        kind="value in a text",
        file="pymc_dp/release/paid.py",
        old="    known = domain.n_max is None\n",
        new="    known = source.n_rows is not None\n",
        breaks="A warning about δ names the number of rows, which is private under add_remove.",
        first=("tests/release/test_paid.py", "tests/test_explain.py", "tests/test_domain.py"),
    ),
    Fault(
        name="texts-bar-over-private-rows",
        operation="texts",
        kind="value in a text",
        file="pymc_dp/_progress.py",
        old='    return progress(shown and neighbours == "replace", description, n_rows)\n',
        new="    return progress(shown, description, n_rows)\n",
        breaks="A progress bar shows how many rows there are, which is private under add_remove.",
        first=("tests/test_progress.py", "tests/rows"),
    ),
    Fault(
        name="saved-release-costs-anything",
        operation="saved releases",
        kind="bound left out",
        file="pymc_dp/released/release.py",
        old='        check_cost(written["record"], name)\n',
        new="",
        breaks="A saved release is taken whose events cost more than the ε and δ that it states.",
        first=("tests/released", "tests/trace/test_claim.py"),
    ),
)
FAULTS: tuple[Fault, ...] = (
    *SUMS,
    *PERSONS,
    *WEIGHTS,
    *GRADIENTS,
    *CURVATURES,
    *HISTOGRAMS,
    *SAMPLERS,
    *MOMENTS,
    *DRAWS,
    *BATCHES,
    *CHOICES,
    *LEDGER,
    *LEAVES,
    *FRESH,
)

__all__ = ["FAULTS"]
