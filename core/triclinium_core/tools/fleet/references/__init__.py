"""Published simulations and closed formulas that the fleet has to agree with: set-ups, figures, and how far they may differ.

``REFERENCES`` has them all. Each is played by ``simulate``, and so on the machines that a client runs: there is no retry
loop here. ``triclinium simulate --validate`` plays them and shows what came of it.
"""

from triclinium_core.tools.fleet.references.catalogue import REFERENCES
from triclinium_core.tools.fleet.references.experiment import Experiment, Quantity, Row

__all__ = ["REFERENCES", "Experiment", "Quantity", "Row"]
