"""Published simulations and closed formulas with which the simulated fleet must agree: set-ups, figures, tolerances.

``REFERENCES`` lists their experiments. ``simulate`` runs each experiment with the machines of a client, so there
is no second retry loop. ``triclinium simulate --validate`` runs all experiments and shows the results.
"""

from triclinium_core.tools.fleet.references.catalogue import REFERENCES
from triclinium_core.tools.fleet.references.experiment import Experiment, Quantity, Row

__all__ = ["REFERENCES", "Experiment", "Quantity", "Row"]
