//! Names of library functions as programs call them, and which functions are a library's.

use std::borrow::Cow;

/// Where systems keep their libraries. What lies elsewhere and has source lines is the program's own.
const SYSTEM_DIRECTORIES: [&str; 6] = ["/lib/", "/lib32/", "/lib64/", "/usr/lib/", "/usr/lib64/", "/usr/local/lib/"];

/// True if a file is a library of the system by its path.
pub(super) fn is_system_library(path: &str) -> bool {
    SYSTEM_DIRECTORIES.iter().any(|directory| path.starts_with(directory))
}

/// True if code of this source file belongs to a library, though it may be inlined into the program: C++ templates, and Rust's
/// own libraries.
pub(super) fn is_library_source(file: &str) -> bool {
    file.starts_with("/usr/include/") || file.contains("/include/c++/") || file.starts_with("/rustc/")
}

/// True if a function with this name is part of a language's library.
pub(super) fn is_library_function(name: &str) -> bool {
    ["std::", "__gnu_cxx::", "core::", "alloc::", "_gfortran_"].iter().any(|prefix| name.starts_with(prefix))
        || mpi_name(name).is_some()
}

/// The name by which programs call a function with this symbol.
pub(super) fn plain_name(symbol: &str) -> Cow<'_, str> {
    if let Some(name) = mpi_name(symbol) {
        return Cow::Owned(name);
    }
    if symbol.starts_with("std::") {
        return Cow::Owned(without_arguments(symbol));
    }
    let name = symbol.strip_prefix("__GI_").unwrap_or(symbol);
    // The calls that compilers make for target constructs have no other name.
    let of_library = |rest: &&str| rest.starts_with(|c: char| c.is_ascii_lowercase()) && !rest.starts_with("tgt_");
    let Some(name) = name.strip_prefix("__").filter(of_library) else {
        return Cow::Borrowed(name);
    };
    // What the headers of glibc call in place of `read` or `scanf`.
    let name = name.strip_prefix("libc_").unwrap_or(name);
    let name = ["isoc99_", "isoc23_"].iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    Cow::Borrowed(name.strip_suffix("_chk").unwrap_or(name))
}

/// `MPI_Recv` for the functions that tools may replace, and for those that Fortran calls: `PMPI_Recv`, `mpi_recv_`, `mpi_recv__`,
/// `mpi_recv_f`, `mpi_recv_f08_`, `pmpi_recv`.
pub(super) fn mpi_name(symbol: &str) -> Option<String> {
    let name = symbol.strip_prefix(['P', 'p']).unwrap_or(symbol);
    if let Some(rest) = name.strip_prefix("MPI_") {
        let named = rest.starts_with(|c: char| c.is_ascii_uppercase()) && rest.bytes().all(is_of_name);
        let rest = rest.strip_suffix("_f08").unwrap_or(rest);
        return (named && symbol.starts_with(['P', 'M'])).then(|| format!("MPI_{rest}"));
    }
    let rest = name.strip_prefix("mpi_")?;
    // Programs have functions that begin with `mpi_`, and none that begins with `pmpi_`.
    let of_library = symbol.starts_with('p').then_some(rest);
    let rest = ["_f08_", "_f_", "_f", "__", "_"].iter().find_map(|suffix| rest.strip_suffix(suffix)).or(of_library)?;
    let first = rest.chars().next().filter(char::is_ascii_lowercase)?;
    let rest = rest.strip_prefix(first).filter(|rest| rest.bytes().all(is_of_name))?;
    Some(format!("MPI_{}{rest}", first.to_ascii_uppercase()))
}

/// True if a function of MPI, by its name in C, may wait for other processes.
pub(super) fn mpi_waits(name: &str) -> bool {
    const WAITING: [&str; 37] = [
        "Send",
        "Ssend",
        "Rsend",
        "Bsend",
        "Recv",
        "Mrecv",
        "Probe",
        "Mprobe",
        "Wait",
        "Barrier",
        "Bcast",
        "Gather",
        "Scatter",
        "Allgather",
        "Alltoall",
        "Reduce",
        "Allreduce",
        "Scan",
        "Exscan",
        "Neighbor_",
        "Init",
        "Finalize",
        "Comm_accept",
        "Comm_connect",
        "Comm_spawn",
        "Comm_dup",
        "Comm_split",
        "Comm_create",
        "Comm_disconnect",
        "Intercomm_",
        "Cart_create",
        "Graph_create",
        "Dist_graph_create",
        "Win_",
        "File_",
        "Abort",
        "Buffer_detach",
    ];
    const QUICK: [&str; 5] = ["Initialized", "Send_init", "Ssend_init", "Rsend_init", "Recv_init"];
    let Some(name) = name.strip_prefix("MPI_") else { return false };
    !QUICK.contains(&name) && WAITING.iter().any(|prefix| name.starts_with(prefix))
}

/// True if a function returns only when a device has done what it was given: of CUDA's driver and runtime, HIP and OpenCL, by their
/// manuals.
pub(super) fn waits_for_device(symbol: &str) -> bool {
    // Of another version, and with another default of its stream.
    let name = ["_ptsz", "_ptds", "_spt"].iter().find_map(|suffix| symbol.strip_suffix(suffix)).unwrap_or(symbol);
    let name = name.strip_suffix("_v2").unwrap_or(name);
    let of = ["cuda", "cu", "hip"].iter().find_map(|prefix| name.strip_prefix(prefix)?.strip_suffix("Synchronize"));
    name == "clFinish" || of.is_some_and(|of| ["Ctx", "Device", "Event", "Stream", "Thread"].contains(&of))
}

/// True if a function is of CUDA's driver or runtime, HIP, HSA, Level Zero or OpenCL, by how these name theirs. So may others be.
pub(super) fn is_of_device_library(symbol: &str) -> bool {
    let upper = |rest: &str| rest.starts_with(|c: char| c.is_ascii_uppercase());
    symbol.starts_with("hsa_")
        || ["cu", "cuda", "hip", "ze", "cl"].into_iter().any(|p| symbol.strip_prefix(p).is_some_and(upper))
}

/// True if a file is such a library.
pub(super) fn is_device_library(path: &str) -> bool {
    const LIBRARIES: [&str; 6] =
        ["libcuda.so", "libcudart", "libamdhip64", "libhsa-runtime64", "libze_loader", "libOpenCL"];
    let name = path.rsplit('/').next().unwrap_or(path);
    LIBRARIES.iter().any(|library| name.starts_with(library))
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// A C++ name without the arguments of its templates: `std::future::get`.
fn without_arguments(name: &str) -> String {
    let mut depth = 0_u32;
    let mut plain = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            c if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_the_names_that_programs_call() {
        for (symbol, name) in [
            ("usleep", "usleep"),
            ("__GI___libc_read", "read"),
            ("__read_chk", "read"),
            ("__isoc99_fscanf", "fscanf"),
            ("__pthread_clockjoin_ex", "pthread_clockjoin_ex"),
            ("__tgt_target_kernel", "__tgt_target_kernel"),
            ("PMPI_Recv", "MPI_Recv"),
            ("MPI_Win_lock_all", "MPI_Win_lock_all"),
            ("mpi_allreduce_", "MPI_Allreduce"),
            ("pmpi_recv__", "MPI_Recv"),
            ("pmpi_sendrecv", "MPI_Sendrecv"),
            ("mpi_recv_f08_", "MPI_Recv"),
            ("std::future<std::vector<int>>::get", "std::future::get"),
            ("_start", "_start"),
            ("__", "__"),
        ] {
            assert_eq!(plain_name(symbol), name);
        }
        assert!(
            ["mpi_", "MPI_", "mpi_helper", "MPIR_Wait", "pMPI_Recv", "mpi_Recv_"].iter().all(|n| mpi_name(n).is_none())
        );
    }

    #[test]
    fn functions_of_mpi_that_wait() {
        assert!(
            ["MPI_Recv", "MPI_Sendrecv_replace", "MPI_Waitall", "MPI_Init_thread"].iter().all(|name| mpi_waits(name))
        );
        assert!(["MPI_Irecv", "MPI_Testall", "MPI_Comm_rank", "MPI_Initialized"].iter().all(|name| !mpi_waits(name)));
    }

    #[test]
    fn functions_that_wait_for_a_device() {
        let waiting = [
            "cuCtxSynchronize_v2",
            "cuStreamSynchronize_ptsz",
            "cudaDeviceSynchronize",
            "hipStreamSynchronize_spt",
            "clFinish",
        ];
        assert_eq!(waiting.iter().find(|name| !waits_for_device(name)), None);
        let others = ["cudaMemcpy", "cuMemcpyDtoHAsync_v2", "cudaLaunchKernel", "custom_Synchronize", "cuSynchronize"];
        assert_eq!(others.iter().find(|name| waits_for_device(name)), None);
        assert!(is_of_device_library("cuMemcpyDtoHAsync_v2") && is_of_device_library("cudaLaunchKernel"));
        assert!(!is_of_device_library("custom") && !is_of_device_library("zero"));
        assert!(is_device_library("/usr/lib/libcuda.so.580.1") && !is_device_library("/usr/lib/libcudnn.so"));
    }

    #[test]
    fn libraries_are_told_from_the_program() {
        assert!(
            is_system_library("/usr/lib/x86_64-linux-gnu/libmpi.so.40")
                && !is_system_library("/opt/solver/lib/libsolver.so")
        );
        assert!(is_library_source("/usr/include/c++/12/future") && is_library_source("/opt/gcc/include/c++/13/mutex"));
        assert!(!is_library_source("/opt/solver/include/solver.h"));
    }
}
