"""Has gdb refuse to list threads from now on, as it does when the connection to gdbserver is lost."""

import gdb

from openmp_gdb import debugger as adapter


class WithoutThreads:
    """A gdb.Inferior that does not list its threads."""

    def __init__(self, inferior):
        self.inferior = inferior

    def __getattr__(self, name):
        return getattr(self.inferior, name)

    def threads(self):
        raise gdb.error("Remote connection closed")


adapter.Debugger.inferior = lambda self, inferior: adapter.Inferior(WithoutThreads(inferior), self.stops)
