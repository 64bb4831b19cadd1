//! The texts below the help: examples, exit statuses, and what a command does with its program, hosts or terminal.

pub(super) const AFTER: &str = "\
Examples:
  ompd-inspect 4711                    why does process 4711 hang?
  ompd-inspect core.4711               the same, from a core file
  ompd-inspect --samples 2 4711        is it stuck, or just slow?
  ompd-inspect stacks 4711             where in the source is each thread?
  ompd-inspect waits 4711              which thread waits for what?
  ompd-inspect --name solver           every process called solver
  ompd-inspect job 4711                all ranks of a Slurm job
  ompd-inspect -o report.json --json 4711         everything, for programs
  ompd-inspect run --timeout 60s -- ./app in.dat  report if it hangs

Exit status: 0 all was read; 1 something was not, or there is no OpenMP; \
2 nothing was inspected; 3 a verdict named by --fail-on.";

pub(super) const AFTER_RUN: &str = "\
The program keeps the standard input, output and error of ompd-inspect. Reports go to standard error. \
SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are passed on to the program.

A process that uses no processor time for --idle is inspected, and a busy one after ten times as long. \
It hangs if the verdict is DEADLOCK, or SUSPECT with --fail-on suspect. When it hangs or its time is over, it and the processes it started get \
SIGTERM, then SIGKILL.

Exit status: that of the program, 128+N if signal N ended it; 3 it hung; 124 its time was over; \
125 ompd-inspect failed; 126 the program cannot be executed; 127 there is no such program.";

pub(super) const AFTER_JOB: &str = "\
ompd-inspect must be installed on every host, at the same path or at --inspector. The job's own launcher \
starts it there (srun --overlap, ssh or clush). It inspects the ranks of its host. All hosts look at the \
same time of their clocks.

Examples:
  ompd-inspect job 4711               every rank of job 4711 of Slurm
  ompd-inspect job 4711.0             every rank of its first step
  ompd-inspect job --pid 2266         every rank that mpirun 2266 started
  ompd-inspect job --hosts n[1-64] --name app   processes called app, by ssh
  ompd-inspect job --cores 'core.*'   core files of ranks
  ompd-inspect job --samples 2 4711   which ranks move?
  ompd-inspect job --top 4711         a live view, every 2 seconds
  ompd-inspect job --json -o job.json 4711      for programs, and for merge

Exit status: 0 every rank was inspected; 1 some were not, or hosts did not answer; 2 no rank was inspected; \
3 a verdict named by --fail-on.";

pub(super) const AFTER_TOP: &str = "\
Keys on a terminal: q quit, p pause, s sort, i hide idle threads, + and - interval, Enter stack, ? help. \
Without a terminal each refresh is a block of lines. The default interval is 2 seconds. The view ends when \
the processes end, after --count refreshes, or when you end it.

Each refresh stops each process once, for at most half of the interval or --max-pause. A DEADLOCK is shown \
when two looks confirm it, a SUSPECT when looks confirm it for 0.5 seconds. With --json each refresh is \
one line (schema: docs/top.schema.json).

Examples:
  ompd-inspect top 4711                      what each thread does, every 2 s
  ompd-inspect top --interval 500ms 4711     more often (at least 200ms)
  ompd-inspect top --name solver             every process called solver
  ompd-inspect top --count 3 4711 > log      three refreshes as plain lines
  ompd-inspect top --json --count 1 4711     one refresh as a line of JSON";

pub(super) const AFTER_MERGE: &str = "\
Ranks are known by what their launcher has put into their environment (Open MPI, MPICH, PMIx, Slurm and \
others). The result of --json can be merged again. The order does not matter.

Examples:
  ompd-inspect merge rank*.json               the ranks of a job in one report
  ompd-inspect merge --tree rank*.json        their stacks as one tree
  ompd-inspect merge --html -o job.html rank*.json   one page for a browser

Exit status: 0 all reports were read; 1 some were not, or a process was not inspected; 2 no report was read.";

pub(super) const AFTER_COMPLETIONS: &str = "\
Examples:
  source <(ompd-inspect completions bash)      in ~/.bashrc
  ompd-inspect completions zsh > ~/.zfunc/_ompd-inspect
  ompd-inspect completions fish > ~/.config/fish/completions/ompd-inspect.fish";
