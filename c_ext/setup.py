"""Builds the extension; everything else about the distribution stands in pyproject.toml."""

from __future__ import annotations

import sysconfig

from setuptools import setup

# One wheel serves every CPython from 3.11 on; builds without the global lock have no stable ABI.
STABLE_ABI = not sysconfig.get_config_var("Py_GIL_DISABLED")

setup(
    cffi_modules=["build_scan.py:ffibuilder"],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if STABLE_ABI else {},
)
