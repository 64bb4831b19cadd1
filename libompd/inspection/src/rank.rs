//! Which rank of a parallel job a process is, by what its launcher has put into its environment, and its MPI library.

use ompd_process::{Environment, Target, TargetKind};

/// A process of a job that consists of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rank {
    /// Its number in the job, from 0.
    pub number: u64,
    /// Processes of the job.
    pub size: Option<u64>,
    /// Its number among those on its host.
    pub local: Option<u64>,
    /// The launcher's name for the job, of Slurm `4711.0` with the step (text of the environment).
    pub job: Option<String>,
    /// The host, if the launcher names it (text of the environment).
    pub host: Option<String>,
    /// Whose variables tell the number.
    pub launcher: &'static str,
}

/// Variables of one launcher.
struct Launcher {
    name: &'static str,
    number: &'static str,
    size: &'static str,
    local: &'static str,
    job: &'static str,
}

/// The first that is there counts. All processes that a launcher starts within a job inherit the batch system's own variables.
/// For these processes they say only where the launcher was started.
const LAUNCHERS: &[Launcher] = &[
    // Open MPI, `ompi/runtime/ompi_rte.c`.
    Launcher {
        name: "Open MPI",
        number: "OMPI_COMM_WORLD_RANK",
        size: "OMPI_COMM_WORLD_SIZE",
        local: "OMPI_COMM_WORLD_LOCAL_RANK",
        job: "PMIX_NAMESPACE",
    },
    // MVAPICH2, user guide, "Running with mpirun_rsh".
    Launcher {
        name: "MVAPICH",
        number: "MV2_COMM_WORLD_RANK",
        size: "MV2_COMM_WORLD_SIZE",
        local: "MV2_COMM_WORLD_LOCAL_RANK",
        job: "PMI_JOBID",
    },
    // PMIx standard, "Environment variables".
    Launcher { name: "PMIx", number: "PMIX_RANK", size: "", local: "", job: "PMIX_NAMESPACE" },
    // Hydra (MPICH, Intel MPI), `src/pm/hydra`.
    Launcher { name: "PMI", number: "PMI_RANK", size: "PMI_SIZE", local: "MPI_LOCALRANKID", job: "PMI_JOBID" },
    // Cray ALPS, aprun(1).
    Launcher { name: "ALPS", number: "ALPS_APP_PE", size: "", local: "", job: "ALPS_APP_ID" },
    // IBM Spectrum, jsrun.
    Launcher {
        name: "JSM",
        number: "JSM_NAMESPACE_RANK",
        size: "JSM_NAMESPACE_SIZE",
        local: "JSM_NAMESPACE_LOCAL_RANK",
        job: "LSB_JOBID",
    },
    // srun(1), "OUTPUT ENVIRONMENT VARIABLES".
    Launcher {
        name: "Slurm",
        number: "SLURM_PROCID",
        size: "SLURM_NTASKS",
        local: "SLURM_LOCALID",
        job: "SLURM_JOB_ID",
    },
];

/// Steps of a batch job that are the job's own script (slurm.h, `SLURM_BATCH_SCRIPT` and its like), in which nothing is a rank.
const NO_STEPS: [&str; 4] = ["4294967291", "4294967292", "4294967293", "4294967294"];

/// Where in a job of Slurm a process is (srun(1), "OUTPUT ENVIRONMENT VARIABLES").
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlurmPlace {
    /// The job's number.
    pub job: Option<String>,
    /// The step.
    pub step: Option<String>,
    /// The node, as Slurm calls it.
    pub node: Option<String>,
}

impl SlurmPlace {
    /// By the variables of a process.
    pub fn of(environment: &Environment) -> SlurmPlace {
        let text = |name| environment.get(name).ok().flatten().filter(|value| !value.is_empty()).map(str::to_owned);
        SlurmPlace { job: text("SLURM_JOB_ID"), step: text("SLURM_STEP_ID"), node: text("SLURMD_NODENAME") }
    }

    /// `4711.0`.
    fn name(&self) -> Option<String> {
        let job = self.job.as_ref()?;
        Some(self.step.as_ref().map_or_else(|| job.clone(), |step| format!("{job}.{step}")))
    }
}

/// The rank of a process; `None` where no launcher has said that it is one.
pub fn rank(environment: &Environment) -> Option<Rank> {
    let text = |name: &str| environment.get(name).ok().flatten().filter(|value| !value.is_empty());
    let number = |name: &str| text(name).and_then(|value| value.parse::<u64>().ok());
    let slurm = SlurmPlace::of(environment);
    let found = LAUNCHERS.iter().find_map(|launcher| {
        let is_batch = launcher.name == "Slurm" && slurm.step.as_deref().is_none_or(|step| NO_STEPS.contains(&step));
        Some((launcher, number(launcher.number).filter(|_| !is_batch)?))
    });
    let (launcher, number_of_it) = found?;
    // Under Slurm all launchers' jobs are jobs of Slurm's, and people know them by that name.
    let job = slurm.name().or_else(|| text(launcher.job).map(str::to_owned));
    // PMIx has no variable for it; of a step that Slurm itself has started, Slurm's is the size of that.
    let is_step = text("PMIX_NAMESPACE").is_some_and(|namespace| namespace.starts_with("slurm.pmix."));
    let of_step = || number("SLURM_STEP_NUM_TASKS").filter(|_| is_step && launcher.name == "PMIx");
    Some(Rank {
        number: number_of_it,
        size: number(launcher.size).or_else(of_step),
        local: number(launcher.local),
        job,
        host: slurm.node,
        launcher: launcher.name,
    })
}

/// The host of a process: as its launcher calls it, of a live process else this machine's name (`hostname`, proc_sys_kernel(5)).
pub fn host(kind: TargetKind, rank: Option<&Rank>) -> Option<String> {
    let own = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|name| name.trim().to_owned());
    let named = rank.and_then(|rank| rank.host.clone());
    named.or_else(|| own().filter(|name| kind == TargetKind::Live && !name.is_empty()))
}

/// A library with the functions of MPI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MpiLibrary {
    /// Which one it is; `None` if it has no function of those that are known.
    pub name: Option<&'static str>,
    /// Its file (text of the target).
    pub file: String,
}

/// Functions and variables by which MPI libraries are known. Intel MPI is made from MPICH, exports its names too, and stands before
/// it; others that are made from MPICH count as MPICH.
const LIBRARIES: &[(&str, &[&str])] = &[
    ("Open MPI", &["ompi_mpi_init"]),
    // impi-rt 2021.19 from PyPI.
    ("Intel MPI", &["I_MPI_Check_image_status", "impi_malloc"]),
    ("MPICH", &["MPII_Version_string", "MPIR_Err_return_comm"]),
];

/// The MPI library that a process has loaded; `None` if no file of it exports the functions.
pub fn mpi_library(target: &dyn Target) -> Option<MpiLibrary> {
    let module = target.modules().iter().find(|module| module.exports("PMPI_Init"))?;
    let known = |(_, symbols): &&(&str, &[&str])| symbols.iter().any(|symbol| module.exports(symbol));
    Some(MpiLibrary { name: LIBRARIES.iter().find(known).map(|(name, _)| *name), file: module.path.clone() })
}

#[cfg(test)]
mod tests {
    use super::{Environment, rank};

    fn of(variables: &str) -> Option<super::Rank> {
        rank(&Environment::parse(format!("{}\0", variables.replace(' ', "\0")).as_bytes()))
    }

    #[test]
    fn each_launcher_is_known() {
        let rank = of("OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_RANK=1").expect("a rank");
        assert_eq!((rank.number, rank.size, rank.local, rank.launcher), (5, Some(8), Some(1), "Open MPI"));
        let rank = of("PMI_RANK=3 PMI_SIZE=4 MPI_LOCALRANKID=3").expect("a rank");
        assert_eq!((rank.number, rank.size, rank.local, rank.launcher), (3, Some(4), Some(3), "PMI"));
        for (variables, launcher, job, local) in [
            (
                "MV2_COMM_WORLD_RANK=3 MV2_COMM_WORLD_SIZE=4 MV2_COMM_WORLD_LOCAL_RANK=1 PMI_JOBID=j PMI_RANK=9",
                "MVAPICH",
                Some("j"),
                Some(1),
            ),
            ("PMIX_RANK=3 PMIX_NAMESPACE=prterun-n1-77@1", "PMIx", Some("prterun-n1-77@1"), None),
            ("ALPS_APP_PE=3 ALPS_APP_ID=12", "ALPS", Some("12"), None),
            ("JSM_NAMESPACE_RANK=3 JSM_NAMESPACE_LOCAL_RANK=1 LSB_JOBID=5", "JSM", Some("5"), Some(1)),
        ] {
            let rank = of(variables).expect(launcher);
            assert_eq!((rank.number, rank.launcher, rank.job.as_deref(), rank.local), (3, launcher, job, local));
        }
        let srun = "SLURM_PROCID=2 SLURM_NTASKS=4 SLURM_LOCALID=0 SLURM_JOB_ID=4711 SLURM_STEP_ID=1 SLURMD_NODENAME=n3";
        let rank = of(srun).expect("a rank");
        assert_eq!((rank.number, rank.job.as_deref(), rank.host.as_deref()), (2, Some("4711.1"), Some("n3")));
    }

    #[test]
    fn a_step_of_slurm_that_uses_pmix_has_its_size() {
        let srun = "SLURM_STEP_NUM_TASKS=8 SLURM_JOB_ID=2 SLURM_STEP_ID=0 SLURM_PROCID=6 PMIX_RANK=6";
        let rank = of(&format!("{srun} PMIX_NAMESPACE=slurm.pmix.2.0")).expect("a rank");
        assert_eq!((rank.number, rank.size, rank.job.as_deref()), (6, Some(8), Some("2.0")));
        // What mpirun has started in that step is not its tasks.
        assert_eq!(of(&format!("{srun} PMIX_NAMESPACE=prterun-n1-77@1")).expect("a rank").size, None);
    }

    #[test]
    fn a_launcher_within_a_job_of_slurm_counts_and_the_script_does_not() {
        let inherited = "SLURM_PROCID=0 SLURM_JOB_ID=9 SLURM_STEP_ID=0 PMIX_RANK=7 PMIX_NAMESPACE=x";
        let rank = of(inherited).expect("a rank");
        assert_eq!((rank.number, rank.launcher, rank.job.as_deref()), (7, "PMIx", Some("9.0")));
        assert_eq!(of("SLURM_PROCID=0 SLURM_JOB_ID=9 SLURM_STEP_ID=4294967291"), None);
        assert_eq!(of("SLURM_PROCID=0 SLURM_JOB_ID=9"), None);
        assert_eq!(of("OMPI_COMM_WORLD_RANK=none"), None);
        assert_eq!(super::rank(&Environment::default()), None);
    }
}
