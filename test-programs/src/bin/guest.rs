//! The first process of an emulated machine ([`test_programs::emulate`] starts it). It starts the programs of the plan one after
//! the other, inspects each when it has settled, may leave it to a debugger, has the kernel write its core, inspects that, and sends all
//! of it through the serial port.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, BufWriter, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};
use nix::sys::signal::Signal;
use nix::sys::termios::{SetArg, cfmakeraw, tcdrain, tcgetattr, tcsetattr};
use test_programs::guest::{
    COMMAND, DEBUGGER, Look, PLAN, PROGRAMS, Planned, SERVER, Settles, VERSION, send, send_end, serving,
};
use test_programs::{Env, Executable, Launch, Running};

/// Who may look at whom (kernel documentation, admin-guide/LSM/Yama).
const PTRACE_SCOPE: &str = "/proc/sys/kernel/yama/ptrace_scope";
/// Where each program runs and leaves its core.
const SCRATCH: &str = "/tmp/work";

fn main() {
    assert_eq!(std::process::id(), 1, "this is the first process of a machine of its own");
    let done = set_up().and_then(|mut serial| {
        let sent = all(&mut serial);
        serial.flush()?;
        tcdrain(serial.get_ref().as_fd())?;
        sent
    });
    if let Err(error) = done {
        let _ = writeln!(std::io::stderr(), "guest: {error:#}");
    }
    // It returns only if it fails; then the end of this process ends the machine.
    let _ = reboot(RebootMode::RB_POWER_OFF);
}

fn set_up() -> Result<BufWriter<File>> {
    for (kind, at) in [("proc", "/proc"), ("devtmpfs", "/dev"), ("tmpfs", "/tmp"), ("sysfs", "/sys")] {
        fs::create_dir_all(at)?;
        mount(Some(kind), at, Some(kind), MsFlags::empty(), None::<&str>).with_context(|| format!("mounting {at}"))?;
    }
    fs::create_dir_all("/dev/shm")?;
    mount(Some("tmpfs"), "/dev/shm", Some("tmpfs"), MsFlags::empty(), None::<&str>).context("mounting /dev/shm")?;
    fs::write("/proc/sys/kernel/printk", "1")?;
    fs::write("/proc/sys/kernel/core_pattern", "core")?;
    fs::write("/proc/sys/kernel/core_uses_pid", "0")?;
    let serial = File::options().read(true).write(true).open("/dev/ttyAMA0").context("opening the serial port")?;
    let mut raw = tcgetattr(serial.as_fd())?;
    cfmakeraw(&mut raw);
    tcsetattr(serial.as_fd(), SetArg::TCSANOW, &raw)?;
    Ok(BufWriter::with_capacity(1 << 16, serial))
}

fn all(serial: &mut BufWriter<File>) -> Result<()> {
    let version = fs::read("/proc/sys/kernel/osrelease")?;
    send(serial, VERSION, &mut version.as_slice())?;
    let plan: Vec<Planned> = serde_json::from_slice(&fs::read(PLAN).context(PLAN)?).context(PLAN)?;
    for planned in &plan {
        if let Err(error) = one(serial, planned) {
            let text = format!("{error:#}");
            send(serial, &format!("{}.error", planned.name), &mut text.as_bytes())?;
        }
    }
    send_end(serial)?;
    Ok(())
}

fn one(serial: &mut BufWriter<File>, planned: &Planned) -> Result<()> {
    let name = &planned.name;
    let scratch = Path::new(SCRATCH);
    let _ = fs::remove_dir_all(scratch);
    fs::create_dir_all(scratch)?;
    let executable = Executable {
        path: Path::new(PROGRAMS).join(name),
        program: planned.program.clone(),
        toolchain: planned.toolchain,
        opt: planned.opt,
    };
    let launch = Launch::new(&executable, planned.runtime, Env::Settled).leaving_core_in(scratch);
    let mut launch = launch.of_user(planned.user);
    launch = launch.variable("LD_LIBRARY_PATH", &planned.libraries);
    for (name, value) in &planned.variables {
        launch = launch.variable(name, value);
    }
    let mut running = match planned.settles {
        Settles::Steady => launch.start(),
        // It says nothing of itself but that it is there.
        Settles::Hangs if planned.program == "hang" => launch.start_hang(),
        Settles::Hangs => launch.start_hanging(),
        // It does nothing, in no rounds.
        Settles::Healthy if planned.program == "healthy/idle" => launch.start_healthy(),
        Settles::Healthy => launch.start_healthy().and_then(|mut running| running.await_round(2).map(|()| running)),
    }
    .context("it does not settle")?;
    let truth = serde_json::to_vec(&running.truth)?;
    send(serial, &format!("{name}.truth"), &mut truth.as_slice())?;
    let pid = running.pid.to_string();
    for look in planned.looks.iter().filter(|look| !look.of_core) {
        inspect(serial, planned, look, &pid)?;
    }
    if planned.serves {
        serve(serial, name, &pid)?;
    }
    if planned.looks.iter().any(|look| look.of_core) {
        of_core(serial, planned, &mut running, scratch)?;
    }
    Ok(())
}

/// Lets a debugger at the other end of the second port in, until it leaves.
fn serve(serial: &mut BufWriter<File>, name: &str, pid: &str) -> Result<()> {
    let mut server = Command::new(SERVER);
    server.args(["--once", "--attach", DEBUGGER, pid]).env("LD_LIBRARY_PATH", "/lib");
    let mut server = server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let mut told = BufReader::new(server.stderr.take().context("no pipe from the server")?);
    let mut said = String::new();
    // What comes to the port before the server has opened it is lost.
    while !said.contains("Remote debugging using") {
        ensure!(told.read_line(&mut said)? > 0, "{SERVER} ended: {said}");
    }
    send(serial, &serving(name), &mut std::io::empty())?;
    serial.flush()?;
    told.read_to_string(&mut said)?;
    let status = server.wait()?;
    ensure!(status.success(), "{SERVER}: {said}");
    Ok(())
}

fn of_core(serial: &mut BufWriter<File>, planned: &Planned, running: &mut Running, scratch: &Path) -> Result<()> {
    let core = running.kernel_core_by(Signal::SIGQUIT, scratch)?.map_err(|skip| anyhow::anyhow!("{skip}"))?;
    let mut file = File::open(&core)?;
    ensure!(file.metadata()?.len() > 0, "the core is empty");
    send(serial, &format!("{}.core", planned.name), &mut file)?;
    let path = core.to_str().context("a plain path")?;
    for look in planned.looks.iter().filter(|look| look.of_core) {
        inspect(serial, planned, look, path)?;
    }
    fs::remove_file(&core)?;
    Ok(())
}

/// Sends what the command prints. What it says on standard error is sent with it, after its exit status.
fn inspect(serial: &mut BufWriter<File>, planned: &Planned, look: &Look, target: &str) -> Result<()> {
    if let Some(scope) = look.ptrace_scope {
        fs::write(PTRACE_SCOPE, scope.to_string()).with_context(|| format!("writing {scope} to {PTRACE_SCOPE}"))?;
    }
    let mut command = Command::new(COMMAND);
    command.args(&look.arguments).arg(target).stdin(Stdio::null()).env("XDG_CACHE_HOME", "/dev/null");
    if let Some(user) = planned.user {
        command.uid(user).gid(user);
    }
    let output = command.output().with_context(|| format!("starting {COMMAND}"))?;
    let mut said = format!("{}\n", output.status.code().map_or("killed".to_owned(), |code| code.to_string()));
    said.push_str(&String::from_utf8_lossy(&output.stderr));
    for (kind, bytes) in [("out", output.stdout), ("err", said.into_bytes())] {
        send(serial, &format!("{}.{}.{kind}", planned.name, look.name), &mut bytes.as_slice())?;
    }
    Ok(())
}
