"""Published simulations and closed formulas with which the fleet must agree: set-ups, figures, tolerances.

``REFERENCES`` has all of them. ``simulate`` runs each, with the machines of a client: there is no other retry loop.
``triclinium simulate --validate`` runs them and shows the results.
"""

from triclinium_core.tools.fleet.references.catalogue import REFERENCES
from triclinium_core.tools.fleet.references.experiment import Experiment, Quantity, Row

__all__ = ["REFERENCES", "Experiment", "Quantity", "Row"]
