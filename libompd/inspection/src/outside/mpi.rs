//! What a call of MPI was given: communicator, partner and tag, by the code that calls it. Of a wait for a request of Open MPI, they are in
//! the request.

use ompd_process::{Addr, Target, TargetExt};
use ompd_stack::{Code, Frame};

use super::model::{Communicator, MpiArguments, Partner};
use crate::rank::{self, MpiLibrary};

/// Where the functions have their arguments (MPI 4.1, annex A.3), counted from 0.
struct Positions {
    functions: &'static [&'static str],
    partner: Option<u8>,
    tag: Option<u8>,
    communicator: Option<u8>,
}

const POSITIONS: &[Positions] = &[
    Positions {
        functions: &["MPI_Send", "MPI_Ssend", "MPI_Rsend", "MPI_Bsend", "MPI_Recv"],
        partner: Some(3),
        tag: Some(4),
        communicator: Some(5),
    },
    Positions { functions: &["MPI_Probe", "MPI_Mprobe"], partner: Some(0), tag: Some(1), communicator: Some(2) },
    Positions { functions: &["MPI_Barrier"], partner: None, tag: None, communicator: Some(0) },
    Positions { functions: &["MPI_Bcast"], partner: None, tag: None, communicator: Some(4) },
    Positions {
        functions: &["MPI_Allreduce", "MPI_Scan", "MPI_Exscan", "MPI_Reduce_scatter", "MPI_Reduce_scatter_block"],
        partner: None,
        tag: None,
        communicator: Some(5),
    },
    Positions {
        functions: &["MPI_Reduce", "MPI_Allgather", "MPI_Alltoall", "MPI_Neighbor_allgather", "MPI_Neighbor_alltoall"],
        partner: None,
        tag: None,
        communicator: Some(6),
    },
    Positions {
        functions: &["MPI_Gather", "MPI_Scatter", "MPI_Allgatherv", "MPI_Neighbor_allgatherv"],
        partner: None,
        tag: None,
        communicator: Some(7),
    },
    Positions {
        functions: &[
            "MPI_Gatherv",
            "MPI_Scatterv",
            "MPI_Alltoallv",
            "MPI_Alltoallw",
            "MPI_Neighbor_alltoallv",
            "MPI_Neighbor_alltoallw",
        ],
        partner: None,
        tag: None,
        communicator: Some(8),
    },
    // Which of their partners they wait for is unknown.
    Positions { functions: &["MPI_Sendrecv_replace"], partner: None, tag: None, communicator: Some(7) },
    Positions { functions: &["MPI_Sendrecv"], partner: None, tag: None, communicator: Some(10) },
    Positions {
        functions: &["MPI_Comm_dup", "MPI_Comm_split", "MPI_Comm_split_type", "MPI_Comm_create"],
        partner: None,
        tag: None,
        communicator: Some(0),
    },
];

/// Handles and numbers that a library has for what every library has (its `mpi.h`; of Fortran `mpif.h`).
struct Numbers {
    any_source: i32,
    no_process: i32,
    any_tag: i32,
    world: Handle,
    own: Handle,
    /// In Fortran.
    world_number: i32,
    own_number: i32,
}

impl Numbers {
    fn partner(&self, number: i32) -> Option<Partner> {
        match number {
            any if any == self.any_source => Some(Partner::Any),
            none if none == self.no_process => Some(Partner::None),
            rank => u32::try_from(rank).ok().map(Partner::Rank),
        }
    }
}

/// How a library names a communicator in C.
enum Handle {
    /// The address of a variable.
    Variable(&'static str),
    Number(i32),
}

/// Open MPI 1 to 5, `ompi/include/mpi.h.in`, `mpif-values`.
const OPEN_MPI: Numbers = Numbers {
    any_source: -1,
    no_process: -2,
    any_tag: -1,
    world: Handle::Variable("ompi_mpi_comm_world"),
    own: Handle::Variable("ompi_mpi_comm_self"),
    world_number: 0,
    own_number: 1,
};
/// The ABI that MPICH, Intel MPI, MVAPICH and others have in common, MPICH's `src/include/mpi.h.in`.
const MPICH: Numbers = Numbers {
    any_source: -2,
    no_process: -1,
    any_tag: -1,
    world: Handle::Number(0x4400_0000),
    own: Handle::Number(0x4400_0001),
    world_number: 0x4400_0000,
    own_number: 0x4400_0001,
};

/// Reads what calls of MPI were given.
pub(super) struct Arguments<'a, 't> {
    target: &'a dyn Target,
    code: &'a Code<'t>,
    numbers: Option<&'static Numbers>,
}

impl<'a, 't> Arguments<'a, 't> {
    pub(super) fn new(target: &'a dyn Target, code: &'a Code<'t>) -> Arguments<'a, 't> {
        let numbers = match rank::mpi_library(target) {
            Some(MpiLibrary { name: Some("Open MPI"), .. }) => Some(&OPEN_MPI),
            Some(MpiLibrary { name: Some("MPICH" | "Intel MPI"), .. }) => Some(&MPICH),
            _ => None,
        };
        Arguments { target, code, numbers }
    }

    /// What the call of `function`, which the frame `number` of `frames` is in by the name `symbol`, was given.
    pub(super) fn of(&self, function: &str, symbol: &str, frames: &[Frame], number: usize) -> MpiArguments {
        if function == "MPI_Wait" {
            return self.received(symbol, frames, number).unwrap_or_default();
        }
        let positions = POSITIONS.iter().find(|of| of.functions.contains(&function));
        let Some((positions, numbers)) = positions.zip(self.numbers) else { return MpiArguments::default() };
        // In Fortran all arguments are addresses.
        let by_address = symbol.starts_with(['m', 'p']) || symbol.contains("_f08");
        let number_at = |index: u8| match by_address {
            true => self.target.read_u32(self.code.argument_address(frames, number, index)?).ok().map(|n| n as i32),
            false => self.code.argument_number(frames, number, index).map(|number| number as i32),
        };
        let communicator = positions.communicator.and_then(|index| match (by_address, &numbers.world) {
            (false, Handle::Variable(_)) => {
                let address = self.code.argument_address(frames, number, index)?;
                Some(self.communicator(address.0, |handle| self.is_variable(handle, address), numbers))
            }
            (false, Handle::Number(_)) => {
                let value = number_at(index)?;
                let is = |handle: &Handle| matches!(handle, Handle::Number(number) if *number == value);
                Some(self.communicator(u64::from(value as u32), is, numbers))
            }
            (true, _) => Some(match number_at(index)? {
                number if number == numbers.world_number => Communicator::World,
                number if number == numbers.own_number => Communicator::Own,
                number => Communicator::Other(u64::from(number as u32)),
            }),
        });
        let partner = positions.partner.and_then(number_at).and_then(|partner| numbers.partner(partner));
        let tag = positions.tag.and_then(number_at).filter(|tag| *tag >= 0 || *tag == numbers.any_tag);
        // A partner of an unknown communicator is nobody.
        let partner = partner.filter(|_| communicator.is_some());
        MpiArguments { communicator, partner, tag: tag.map(|tag| u32::try_from(tag).ok()) }
    }

    /// What the receive was given whose request `MPI_Wait` is given. The request says by its class that it is one of Open MPI's `ob1`,
    /// and the function of `ob1` that begins receives shows by its code where it keeps what it was given.
    fn received(&self, symbol: &str, frames: &[Frame], number: usize) -> Option<MpiArguments> {
        const CLASS: &str = "mca_pml_ob1_recv_request_t_class";
        const BEGINS: &str = "mca_pml_ob1_irecv";
        // Source, tag and communicator (`mca_pml_base_module_irecv_fn_t`, ompi/mca/pml/pml.h).
        const GIVEN: [u8; 3] = [3, 4, 5];
        let numbers = self.numbers.filter(|_| symbol.starts_with(['M', 'P']) && !symbol.contains("_f08"))?;
        let request = self.target.read_ptr(self.code.argument_address(frames, number, 0)?).ok()?;
        // An object begins with the address of its class (opal/class/opal_object.h).
        let class = self.target.read_ptr(request).ok()?;
        let module =
            self.target.module_at(class).filter(|module| module.symbol(CLASS).is_some_and(|at| at.addr == class))?;
        let places = self.code.stores_of_arguments(module.symbol(BEGINS)?.addr, &GIVEN)?;
        let [from, tag, communicators] = places.as_slice() else { return None };
        let number_at = |places: &[i64]| match places {
            [one] => self.target.read_u32(request.offset(*one as u64)).ok().map(|number| number as i32),
            _ => None,
        };
        let (from, tag) = (number_at(from)?, number_at(tag)?);
        let mut communicators = communicators.iter().map(|at| self.target.read_ptr(request.offset(*at as u64)).ok());
        let address = communicators.next()??;
        if communicators.any(|other| other != Some(address)) {
            return None;
        }
        let communicator = self.communicator(address.0, |handle| self.is_variable(handle, address), numbers);
        let tag = Some(tag).filter(|tag| *tag >= 0 || *tag == numbers.any_tag).map(|tag| u32::try_from(tag).ok());
        Some(MpiArguments { communicator: Some(communicator), partner: numbers.partner(from), tag })
    }

    fn communicator(&self, value: u64, is: impl Fn(&Handle) -> bool, numbers: &Numbers) -> Communicator {
        if is(&numbers.world) {
            Communicator::World
        } else if is(&numbers.own) {
            Communicator::Own
        } else {
            Communicator::Other(value)
        }
    }

    /// Whether a variable of the library lies at an address: in the library, or in the executable that has a copy of it.
    fn is_variable(&self, handle: &Handle, address: Addr) -> bool {
        let Handle::Variable(name) = handle else { return false };
        let at = self.target.module_at(address).and_then(|module| module.symbol(name));
        at.is_some_and(|symbol| symbol.addr == address)
    }
}

#[cfg(test)]
mod tests {
    use super::POSITIONS;
    use crate::outside::names::mpi_waits;

    #[test]
    fn arguments_are_known_of_functions_that_wait() {
        let all = || POSITIONS.iter().flat_map(|of| of.functions);
        assert!(all().any(|function| *function == "MPI_Recv"));
        for function in all() {
            assert!(mpi_waits(function), "{function}");
        }
    }
}
