"""What a private step does with a metric: most refuse it; the others account ε per unit of it. All refuse persons."""

from __future__ import annotations

from typing import ClassVar

from pymc_dp.accounting import Budget, loss_at
from pymc_dp.domain import Domain
from pymc_dp.errors import ArgumentError
from pymc_dp.inspection.inspect import check_domain, refuse_metric
from pymc_dp.inspection.owners import refuse_persons
from pymc_dp.inspection.weights import refuse_weights
from pymc_dp.release.record import MetricRecord
from pymc_dp.step_methods.stages import Stages


class MaybePerUnit(Stages):
    """Part of every private step method.

    Attributes
    ----------
    knows_metric : bool
        Whether the step accounts ε per unit of ``Domain(metric=...)``; any other refuses such a domain.
    diameter : float
        Largest distance of two rows under its metric; 1 without one.
    grids : tuple of str
        What values are rounded to before a metric sees them.
    """

    knows_metric: ClassVar[bool] = False
    diameter: float = 1.0
    grids: tuple[str, ...] = ()

    def refuse_metric(self, domain: Domain | None) -> None:
        """Raise for a metric that this step does not support, and for persons, whatever its own inspection looks at."""
        check_domain(domain)
        refuse_persons(domain)
        refuse_weights(domain)
        if domain is not None and not self.knows_metric:
            refuse_metric(domain)

    def check_unit(self, domain: Domain, budget: Budget) -> None:
        """Raise for a domain or a budget that the step cannot be bound to."""
        self.refuse_metric(domain)
        if domain.metric is not None and budget.delta:
            raise ArgumentError(
                f"delta={budget.delta:g} has no meaning per unit of a metric: a δ does not grow in proportion to "
                "distance. Use delta=0."
            )

    @property
    def row_epsilon(self) -> float:
        """The ε of all steps for one row, whatever it changes to; under a metric it may be inf."""
        return self.for_row(self.priced.epsilon)

    def for_row(self, loss: float) -> float:
        """Return what a loss that was accounted is for one row: under a metric that times the diameter."""
        return loss if self.binding.domain.metric is None or not loss else loss_at(loss, self.diameter)

    def metric_record(self) -> MetricRecord | None:
        """Return what the trace says about the metric; None without one."""
        return MetricRecord.of(self.binding.domain, self.priced.epsilon, self.diameter, self.grids)


__all__ = ["MaybePerUnit"]
