"""Published simulations and closed formulas that the fleet has to agree with: set-ups, figures, and how far they may differ.

``REFERENCES`` has them all. Each is played by ``simulate``, and so on the machines that a client runs: there is no retry
loop here. ``triclinium simulate --validate`` plays them and shows what came of it.
"""

from triclinium_core.testing.fleet.references.backoff_and_jitter import BACKOFF_AND_JITTER
from triclinium_core.testing.fleet.references.collapse import COLLAPSE
from triclinium_core.testing.fleet.references.experiment import Experiment, Quantity, Row
from triclinium_core.testing.fleet.references.failure_rates import FAILURE_RATES
from triclinium_core.testing.fleet.references.formulas import FORMULAS

REFERENCES: tuple[Experiment, ...] = (*BACKOFF_AND_JITTER, *FAILURE_RATES, *COLLAPSE, *FORMULAS)
"""All experiments, in the order in which they are shown."""

__all__ = ["REFERENCES", "Experiment", "Quantity", "Row"]
