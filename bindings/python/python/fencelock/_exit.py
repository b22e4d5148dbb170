"""The end of the process: leases are released, waits end, all within half a second."""

import atexit

# `logging` registers its own end at exit when it is imported. Ours must run before that, so it has
# to be registered after it: our last warnings are still to be written.
import logging  # noqa: F401
import os
import sys

from . import _native

_registered_in: int | None = None


def register() -> None:
    """Makes sure that the end of this process closes its clients."""
    global _registered_in
    if _registered_in == os.getpid():
        return
    _registered_in = os.getpid()
    atexit.register(_native.close_all)
    # A child of multiprocessing ends with os._exit and, up to Python 3.12, runs no atexit
    # functions, only its own finalizers.
    if "multiprocessing.util" in sys.modules:
        from multiprocessing import parent_process, util

        if parent_process() is not None:
            util.Finalize(None, _native.close_all, exitpriority=0)
