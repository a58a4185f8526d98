"""Build of ``triclinium_c._scan`` with cffi; the compiler checks the declarations against ``scan.h``."""

from __future__ import annotations

import sys

from cffi import FFI

BIND_NOW = ["-Wl,-z,relro,-z,now"] if sys.platform == "linux" else []
"""Linker options for Linux: resolve all symbols when the module is loaded, then make their table read-only."""

ffibuilder = FFI()

ffibuilder.cdef(
    """
    #define TRICLINIUM_FIELDS_PER_FRAME ...

    int64_t triclinium_scan_headers(
        const uint8_t *buffer, uint64_t start, uint64_t end, uint64_t *out, uint64_t frames_max);
    """
)

ffibuilder.set_source(
    "triclinium_c._scan",
    '#include "scan.h"',
    sources=["scan.c"],
    include_dirs=["."],
    depends=["scan.h"],
    extra_link_args=BIND_NOW,
)

if __name__ == "__main__":
    ffibuilder.compile(verbose=True)
