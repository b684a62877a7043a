//! How ranks and workers share the work.

use super::words::{bytes, count, percent, seconds};
use super::{Finding, Severity, at_stake, share_of};
use crate::analysis::Role;
use crate::report::Report;

/// Bytes that are worth sharing out.
const WORTH: i64 = 16 << 20;

pub(super) fn all_read_everything(report: &Report) -> Option<Finding> {
    let processes = report.job.processes;
    let group = report.role(Role::Data).filter(|group| group.bytes_read >= WORTH && processes >= 2)?;
    let readers = group.readers_per_byte?;
    let times = group.times_read.unwrap_or(readers);
    let full = readers >= 0.9 * processes as f64;
    if !full && readers < 1.5 {
        return None;
    }
    // With fair shuffling over many epochs every rank comes to see every byte too: then each byte is read far oftener
    // than once a rank.
    let unmistakable = full && times < 1.5 * processes as f64;
    let saved = at_stake(report) * share_of(report, group.read_time) * (1.0 - 1.0 / readers.max(1.0));
    let severity = if unmistakable { Severity::High } else { Severity::Note };
    let title = match (full, unmistakable) {
        (true, true) => "every rank reads all of the data".to_owned(),
        (true, false) => "every rank comes to read all of the data".to_owned(),
        _ => format!("a byte of the data is read by {readers:.1} ranks"),
    };
    Some(
        Finding::new(
            "IO25",
            severity,
            title,
            "ranks that do not share out the data read what others read already, and train on the same samples",
        )
        .because(format!(
            "{processes} processes; each byte of {} is read by {readers:.1} of them, {times:.1} times in all",
            bytes(group.unique_bytes)
        ))
        .saving(if unmistakable { saved } else { 0.0 })
        .by(&[
            "PyTorch: DistributedSampler(dataset), with set_epoch every epoch; in an IterableDataset cut by get_worker_info()",
            "TensorFlow: dataset.shard(number_of_ranks, rank) before shuffling, on files rather than samples",
            "what all ranks need: let one read and broadcast it",
            "if samples are shuffled over all ranks anew every epoch, this is as it should be; a cache on each node helps",
        ]),
    )
}

pub(super) fn imbalance(report: &Report) -> Option<Finding> {
    // A shell or a copy beside one training is no rank: nobody waits for it at every step.
    if report.job.trainers < 2 {
        return None;
    }
    let run = report.job.run_time;
    let (rank, slowest, other, how) = match &report.io {
        Some(io) if io.traced => {
            let slowest = io.slowest_rank?;
            (slowest.rank, slowest.seconds, io.mean_rank, "on average")
        }
        _ => {
            let straggler = report.totals.straggler.filter(|_| report.job.processes >= 2)?;
            (straggler.rank, straggler.slowest, straggler.fastest, "the fastest, on the file that they share")
        }
    };
    let lost = slowest - other;
    (run > 0.0 && lost >= 0.02 * run && slowest >= 1.5 * other).then(|| {
        Finding::new(
            "IO26",
            if lost >= 0.1 * run { Severity::High } else { Severity::Warning },
            format!("rank {rank} is in I/O longer than the others"),
            "ranks that train together wait for the slowest at every step",
        )
        .because(format!("{} in I/O, {} {how}; {} of the run", seconds(slowest), seconds(other), percent(lost / run)))
        .saving(lost)
        .by(&[
            "give all ranks shards of the same number and size",
            "let what only one rank does (logs, checkpoints, downloads) run beside training",
            "look at the node of this rank: a slow disk or network card shows like this too",
        ])
    })
}

/// Bytes, where the times are alike or not known.
pub(super) fn uneven_bytes(report: &Report) -> Option<Finding> {
    let uneven = report.totals.uneven.filter(|_| report.job.processes >= 2)?;
    let name = report.totals.uneven_name.clone();
    // With many ranks one of them is a small part of the whole: the two are compared with each other.
    let apart = uneven.apart() as f64 / uneven.most.max(1) as f64;
    (apart > 0.3 && uneven.most >= WORTH.cast_unsigned()).then(|| {
        Finding::new(
            "IO31",
            Severity::Note,
            "ranks move very different amounts of a file that they share",
            "who moves most is waited for, unless the others have other work meanwhile",
        )
        .because(format!("one rank moved {}, another {}", bytes(uneven.most as f64), bytes(uneven.least as f64)))
        .by(&["give all ranks the same share", "let one rank of each node move the bytes: cb_nodes of MPI-IO"])
        .on(name.into_iter().collect())
    })
}

/// Only for programs that use MPI-IO.
pub(super) fn independent_mpi_io(report: &Report) -> Option<Finding> {
    let totals = &report.totals;
    let reads = totals.independent_reads > 1000 && totals.collective_reads == 0;
    let writes = totals.independent_writes > 1000 && totals.collective_writes == 0;
    (report.job.processes >= 2 && (reads || writes)).then(|| {
        let mut finding = Finding::new(
            "IO27",
            Severity::Warning,
            "MPI-IO is used without collective calls",
            "only collective calls let MPI merge the requests of all ranks into few large ones",
        );
        if reads {
            finding =
                finding.because(format!("{} independent reads, no collective one", count(totals.independent_reads)));
        }
        if writes {
            finding =
                finding.because(format!("{} independent writes, no collective one", count(totals.independent_writes)));
        }
        finding.by(&[
            "MPI_File_read_all and MPI_File_write_all instead of MPI_File_read and MPI_File_write",
            "parallel HDF5: H5Pset_dxpl_mpio(…, H5FD_MPIO_COLLECTIVE); h5py: with dataset.collective",
        ])
    })
}
