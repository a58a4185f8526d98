"""Catalogue of all references, in the order in which they are shown."""

from __future__ import annotations

from triclinium_core.tools.fleet.references.backoff_and_jitter import BACKOFF_AND_JITTER
from triclinium_core.tools.fleet.references.collapse import COLLAPSE
from triclinium_core.tools.fleet.references.experiment import Experiment
from triclinium_core.tools.fleet.references.failure_rates import FAILURE_RATES
from triclinium_core.tools.fleet.references.formulas import FORMULAS

REFERENCES: tuple[Experiment, ...] = (*BACKOFF_AND_JITTER, *FAILURE_RATES, *COLLAPSE, *FORMULAS)
"""All experiments, with distinct names."""
