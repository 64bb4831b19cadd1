"""Runs the programs that `ci/gpu build` made and compares what `ompd-inspect` shows of them with what they say. See `ci/gpu`."""

import glob
import json
import os
import subprocess
import sys
import time

FOLDER = sys.argv[1]
INSPECT = os.path.join(FOLDER, "ompd-inspect")
LOOKS = 500
FAILED = []


def check(what, holds, otherwise=""):
    print(f"{'ok  ' if holds else 'FAIL'}  {what}" + ("" if holds else f": {otherwise}"), flush=True)
    if not holds:
        FAILED.append(what)


class Program:
    """A program that uses the GPU, until `with` ends."""

    def __init__(self, compiler, how, **variables):
        libraries = os.path.join(FOLDER, "lib")
        self.what = f"{compiler} {how}" + ("" if not variables else " with the companion")
        environment = {**os.environ, "LD_LIBRARY_PATH": libraries, "OMP_TARGET_OFFLOAD": "mandatory", **variables}
        self.process = subprocess.Popen(
            [os.path.join(FOLDER, f"gpu-{compiler}"), how],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        )
        self.said = []
        for line in self.process.stdout:
            self.said.append(line.split())
            if line == "ready\n":
                return
        raise SystemExit(f"{self.what} ended early: {self.said}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def word(self, name):
        return next(words[1:] for words in self.said if words[0] == name)

    def look(self, *options):
        command = [INSPECT, "--json", *options, str(self.process.pid)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode not in (0, 1):
            raise SystemExit(f"{self.what}: {done.stderr}")
        return json.loads(done.stdout)

    def look_until(self, holds):
        """Looks until something holds, for it takes a moment to begin on a device."""
        give_up = time.monotonic() + 20
        while True:
            report = self.look()
            if holds(report) or time.monotonic() > give_up:
                return report


def outside_waits(report):
    """Of each thread that waits for something outside of OpenMP: thread, wait, and the call."""
    threads = list(report["os_threads"]) + [thread for runtime in report["runtimes"] for thread in runtime["threads"]]
    found = {}
    for thread in threads:
        outside = thread.get("outside") or {}
        if "wait" in outside:
            found[thread["lwp"]] = (outside["wait"], outside.get("call", {}))
    return found


def for_device(report):
    return {lwp: of for lwp, of in outside_waits(report).items() if of[0]["kind"].startswith("device")}


def hangs(compiler, how):
    with Program(compiler, how) as program:
        report = program.look_until(for_device)
        word, what = report["answer"]["word"], program.what
        print(f"      {what}: {word} {report['answer']['text']}, paused {report.get('pause_ms')} ms")
        check(f"{what}: it is on the device", program.word("host") == ["0"], program.said)
        check(f"{what}: no proof of a deadlock", word in ("WAITING", "SUSPECT", "BLOCKED"), word)
        check(f"{what}: the report is complete", report["complete"], report["issues"])
        waits = for_device(report)
        check(f"{what}: one thread waits for the device", len(waits) == 1, outside_waits(report))
        if how != "region" or len(waits) != 1:
            return
        [(lwp, (wait, call))] = waits.items()
        function, line = program.word("construct")
        check(f"{what}: it is thread 1", ["1", str(lwp)] in [w[1:] for w in program.said if w[0] == "thread"], lwp)
        check(f"{what}: it waits in a function of the driver", wait["device_call"].startswith("cu"), wait)
        check(f"{what}: the place is the construct's", (call.get("line"), call.get("caller")) == (int(line), function), call)
        own = [stack for stack in report["stacks"] if lwp in stack.get("lwps", [stack.get("lwp")])]
        lines = [frame.get("line") for stack in own for frame in stack["frames"]]
        check(f"{what}: its stack has the construct", int(line) in lines, own)
        check(f"{what}: its stack is whole", all("gap" not in stack for stack in own), own)


def ends(compiler):
    with Program(compiler, "busy") as program:
        words = [program.look()["answer"]["word"] for _ in range(LOOKS)]
        counts = {word: words.count(word) for word in sorted(set(words))}
        print(f"      {program.what}: {LOOKS} looks: {counts}")
        check(f"{program.what}: no proof of a deadlock", "DEADLOCK" not in counts, counts)
        rest, _ = program.process.communicate("\n", timeout=60)
        done = rest.split()[-3:]
        check(f"{program.what}: what it computed is right", done[0] == "done" and done[1] == done[2], rest)


def with_companion(compiler):
    variables = {"OMP_TOOL_LIBRARIES": os.path.join(FOLDER, "libompt_companion.so")}
    if compiler == "gcc":
        variables["LD_PRELOAD"] = os.path.join(FOLDER, "libgomp_ompt.so")
    with Program(compiler, "region", **variables) as program:
        shown = lambda report: [t for r in report["runtimes"] for t in r["threads"] if t.get("on_device")]  # noqa: E731
        report = program.look_until(for_device)
        threads = shown(report)
        check(f"{program.what}: one thread is in a construct", len(threads) == 1, threads)
        for thread in threads:
            construct = thread["on_device"]["construct"]
            location = construct["called"]["location"]
            of = (construct["kind"], construct["device"], location["function"], str(location["line"]))
            check(f"{program.what}: which one", of == ("target", 0, *program.word("construct")), construct)


def find_driver():
    """LLVM's library looks for the driver by the name that only machines for development have."""
    at = os.path.join(FOLDER, "lib", "libcuda.so")
    known = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    paths = [line.split(" => ")[1] for line in known.splitlines() if "libcuda.so.1 " in line]
    paths += glob.glob("/usr/local/nvidia/lib64/libcuda.so.1")
    if not paths:
        raise SystemExit("no driver of NVIDIA was found (libcuda.so.1)")
    if not os.path.lexists(at):
        os.symlink(paths[0], at)


find_driver()
for compiler in ("gcc", "clang"):
    for how in ("region", "nowait", "depend"):
        hangs(compiler, how)
    ends(compiler)
    with_companion(compiler)
print(f"{len(FAILED)} checks failed")
sys.exit(bool(FAILED))
