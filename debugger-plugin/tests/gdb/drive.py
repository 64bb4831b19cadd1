"""Lets a program run from stop to stop, and writes down at each what the program and the plugin say: a line of JSON."""

import json

import gdb


def number(expression):
    """The value of an expression in the thread that has stopped."""
    return int(gdb.parse_and_eval(expression))


def stopped(described):
    """What is so at this stop. `described` is what the plugin printed."""
    record = {
        "lwp": gdb.selected_thread().ptid[1],
        "described": described,
        "meeting": [number(f"meeting[{n}]") for n in range(3)],
        "num_threads": number("$_omp_num_threads()"),
        "level": number("$_omp_level()"),
        "thread_num": number("$_omp_thread_num()"),
        "team": number("$_omp_team()"),
        "task": number("$_omp_task_id()"),
    }
    print("stop " + json.dumps(record), flush=True)


def drive():
    """Until the program ends."""
    while gdb.selected_inferior().pid:
        described = gdb.execute("continue", to_string=True)
        if gdb.selected_inferior().pid:
            stopped(described)


drive()
