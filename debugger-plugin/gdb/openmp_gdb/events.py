"""What gdb tells the plugin of: stops, files that are loaded, inferiors that end."""

from __future__ import annotations

import gdb

from openmp_core import Plugin

from . import dap, output
from .debugger import Debugger, Inferior


class Events:
    """Follows what gdb does with its inferiors."""

    def __init__(self, debugger: Debugger, plugin: Plugin) -> None:
        self._debugger = debugger
        self._plugin = plugin
        #: gdb will call `_show`.
        self._is_soon = False
        events = gdb.events
        events.cont.connect(lambda event: self._ran(event.inferior_thread))
        for name in ("stop", "inferior_call", "memory_changed", "register_changed"):
            getattr(events, name).connect(lambda _: self._ran(None))
        # gdb has printed the stop before.
        events.stop.connect(lambda _: output.end_quiet())
        # Behind the count of stops: what the plugin asks then is answered anew.
        events.stop.connect(self._stopped)
        if output.is_front_end():
            # There is no prompt before which gdb would do this.
            events.stop.connect(lambda _: self._show())
            # Threads of a core come without a stop.
            events.new_thread.connect(lambda _: self._show_soon())
        events.new_objfile.connect(self._new_objfile)
        events.clear_objfiles.connect(self._clear_objfiles)
        events.exited.connect(lambda event: plugin.replaced(debugger.inferior(event.inferior)))
        events.inferior_deleted.connect(lambda event: plugin.removed(debugger.inferior(event.inferior)))
        events.before_prompt.connect(lambda *_: plugin.prompt())

    def _stopped(self, event: gdb.StopEvent) -> None:
        with self._debugger.in_event():
            self._plugin.stopped(getattr(event, "breakpoints", []))

    def _show(self) -> None:
        self._is_soon = False
        with self._plugin.session.failures.guarded(output.write_later):
            self._plugin.prompt()
            gdb.flush()

    def _show_soon(self) -> None:
        dap.complete_events(self._plugin.stops.reason)
        if not self._is_soon:
            self._is_soon = True
            gdb.post_event(self._show)

    def _ran(self, thread: gdb.InferiorThread | None) -> None:
        self._debugger.stops.ran(thread.inferior if thread is not None and thread.is_valid() else None)

    def _new_objfile(self, event: gdb.NewObjFileEvent) -> None:
        file = event.new_objfile
        if file.progspace is None:
            return
        inferiors = self._of(file.progspace)
        # The program itself is loaded anew: that is how `exec` and `run` show.
        if file.filename == file.progspace.filename:
            for inferior in inferiors:
                self._plugin.replaced(inferior)
        for inferior in inferiors:
            self._plugin.files_loaded(inferior)

    def _clear_objfiles(self, event: gdb.ClearObjFilesEvent) -> None:
        for inferior in self._of(event.progspace):
            self._plugin.files_unloaded(inferior)

    def _of(self, progspace: gdb.Progspace) -> list[Inferior]:
        return [self._debugger.inferior(inferior) for inferior in gdb.inferiors() if inferior.progspace == progspace]
