"""Build of the extension module; pyproject.toml has the rest of the package metadata."""

from __future__ import annotations

import sysconfig

from setuptools import setup

# One wheel works with CPython 3.11 and later, except free-threaded builds, which have no stable ABI.
STABLE_ABI = not sysconfig.get_config_var("Py_GIL_DISABLED")

setup(
    cffi_modules=["build_scan.py:ffibuilder"],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if STABLE_ABI else {},
)
