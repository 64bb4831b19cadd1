"""Prints of each thread its number in its team, and what the library has asked gdb for that."""

import gdb

import openmp_gdb

state = openmp_gdb.register().session.process().state
for thread in gdb.selected_inferior().threads():
    thread.switch()
    # As at a hit of a breakpoint with a condition: nothing that was read before counts.
    state.ran()
    state.asked.clear()
    number = int(gdb.parse_and_eval("$_omp_thread_num()"))
    print(thread.ptid[1], number, sorted(state.asked))
