//! The modules of a log by their numbers (those of log version 3.41; older logs are shifted to them by the header).

/// One instrumented layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Module {
    Posix,
    MpiIo,
    Hdf5File,
    Hdf5Dataset,
    PnetcdfFile,
    PnetcdfVariable,
    BlueGene,
    Lustre,
    Stdio,
    DxtPosix,
    DxtMpiIo,
    Mdhim,
    Apxc,
    Apmpi,
    Heatmap,
    Dfs,
    Daos,
    /// A module that came after this reader was written: its size is known, its records are not.
    Unknown(u8),
}

impl Module {
    const KNOWN: [(Module, &'static str); 17] = [
        (Module::Posix, "POSIX"),
        (Module::MpiIo, "MPI-IO"),
        (Module::Hdf5File, "H5F"),
        (Module::Hdf5Dataset, "H5D"),
        (Module::PnetcdfFile, "PNETCDF_FILE"),
        (Module::PnetcdfVariable, "PNETCDF_VAR"),
        (Module::BlueGene, "BG/Q"),
        (Module::Lustre, "LUSTRE"),
        (Module::Stdio, "STDIO"),
        (Module::DxtPosix, "DXT_POSIX"),
        (Module::DxtMpiIo, "DXT_MPIIO"),
        (Module::Mdhim, "MDHIM"),
        (Module::Apxc, "APXC"),
        (Module::Apmpi, "APMPI"),
        (Module::Heatmap, "HEATMAP"),
        (Module::Dfs, "DFS"),
        (Module::Daos, "DAOS"),
    ];

    pub(crate) fn from_number(number: usize) -> Module {
        match number.checked_sub(1).and_then(|index| Module::KNOWN.get(index)) {
            Some((module, _)) => *module,
            None => Module::Unknown(u8::try_from(number).unwrap_or(u8::MAX)),
        }
    }

    pub(crate) fn number(self) -> usize {
        match self {
            Module::Unknown(number) => usize::from(number).min(63),
            known => Module::KNOWN.iter().position(|(module, _)| *module == known).map_or(0, |index| index + 1),
        }
    }

    /// The name that Darshan's own tools print.
    pub fn name(self) -> String {
        match self {
            Module::Unknown(number) => format!("MODULE_{number}"),
            known => Module::KNOWN.iter().find(|(module, _)| *module == known).map_or("", |(_, name)| name).to_owned(),
        }
    }
}
