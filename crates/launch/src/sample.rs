//! One pass over `/proc` measures all process trees: samples over time, and who is over the memory limit.
//!
//! A process belongs to the attempt whose main process, or adopted stray, is above it.

use crate::process::{self, Io, Stat};
use crate::table::{Running, Table};
use crate::watch::Watch;
use std::collections::{HashMap, HashSet};
use std::time::Instant;
use tulpar_core::job::{Ending, Sample};
use tulpar_core::live::{LiveLine, Seen};
use tulpar_core::units::Timestamp;

/// Then every second one goes and the next ones come half as often.
const MOST: usize = 2000;

/// The samples of one attempt: evenly spread however long it runs.
#[derive(Default)]
pub(crate) struct Samples {
    list: Vec<Sample>,
    /// Only every so many passes are kept, as a power of two.
    thinned: u32,
    passes: u32,
    peak_rss: u64,
    memory_looks: u32,
    peak_gpu_memory: u64,
    gpu_percent_sum: u64,
    gpu_samples: u64,
    /// From this age on, in milliseconds, whoever watches is told again.
    tell_at: u64,
}

/// So many looks at memory hardly miss the peak.
const ENOUGH_LOOKS: u32 = 10;

/// Told no more often than this part of its age: what has run for hours changes slowly.
const TELL_SHARE: u64 = 512;
const TELL_AT_LEAST_EVERY: u64 = 60_000;

impl Samples {
    fn saw_memory(&mut self, held: u64) {
        self.peak_rss = self.peak_rss.max(held);
        self.memory_looks = self.memory_looks.saturating_add(1);
    }

    /// The peak of the attempt, 0 where it is not known. The kernel's figure, 0 where it says nothing, is of one process and
    /// exact; looks see all processes. A few looks, of a short attempt, may all have missed it.
    pub(crate) fn peak_memory(&self, of_the_kernel: u64) -> u64 {
        match of_the_kernel {
            0 if self.memory_looks < ENOUGH_LOOKS => 0,
            _ => of_the_kernel.max(self.peak_rss),
        }
    }

    fn push(&mut self, sample: Sample) {
        if let Some(percent) = sample.gpu_percent {
            self.gpu_percent_sum += u64::from(percent);
            self.gpu_samples += 1;
            self.peak_gpu_memory = self.peak_gpu_memory.max(sample.gpu_memory.unwrap_or(0));
        }
        let wanted = self.passes.is_multiple_of(1 << self.thinned);
        self.passes = self.passes.wrapping_add(1);
        if !wanted {
            return;
        }
        if self.list.len() == MOST {
            let mut position = 0;
            self.list.retain(|_| {
                position += 1;
                position % 2 == 1
            });
            self.thinned += 1;
        }
        self.list.push(sample);
    }

    /// Whether whoever watches is to be told of it now.
    fn is_to_be_told(&mut self, sample: &Sample) -> bool {
        if sample.ms < self.tell_at {
            return false;
        }
        self.tell_at = sample.ms + (sample.ms / TELL_SHARE).min(TELL_AT_LEAST_EVERY);
        true
    }

    pub(crate) fn take(&mut self) -> Vec<Sample> {
        std::mem::take(&mut self.list)
    }

    pub(crate) fn peak_gpu_memory(&self) -> u64 {
        self.peak_gpu_memory
    }

    /// In hundredths of a percent.
    pub(crate) fn gpu_utilisation(&self) -> u32 {
        (self.gpu_percent_sum * 100).checked_div(self.gpu_samples).unwrap_or(0) as u32
    }
}

/// What one pass found of one tree.
#[derive(Default)]
struct Tree {
    /// Zombies too: what they used is not yet their parent's.
    pids: Vec<i32>,
    alive: u32,
    rss: u64,
    /// Of the largest process alone.
    largest: u64,
    /// Memory that it holds, with what its processes share counted once.
    held: u64,
    /// And that is no estimate.
    known: bool,
    ticks: u64,
    io: Io,
}

/// Gives the smallest number of bytes that an attempt has left to its memory limit.
pub(crate) fn pass(watch: &mut Watch<'_>, sampling: bool, over: &mut Vec<Running>) -> u64 {
    let shared = watch.shared;
    let roots = {
        let mut table = shared.table();
        watch.adopt(&mut table);
        roots(&table)
    };
    let mut trees = trees(&roots, &mut watch.others, &mut watch.buffer);
    watch.sharing.keep_only(|serial| trees.contains_key(&serial));
    for (serial, tree) in &mut trees {
        (tree.held, tree.known) = watch.sharing.held(*serial, tree.rss, tree.largest, &tree.pids, &mut watch.buffer);
    }
    if sampling {
        for tree in trees.values_mut() {
            for pid in &tree.pids {
                let io = Io::of(*pid, &mut watch.buffer).unwrap_or_default();
                tree.io.read_bytes += io.read_bytes;
                tree.io.write_bytes += io.write_bytes;
            }
        }
    }
    let mut too_large = Vec::new();
    let mut looks = Vec::new();
    let mut headroom = u64::MAX;
    {
        let mut table = shared.table();
        for (serial, tree) in &trees {
            let Some(running) = table.running.get_mut(serial) else { continue };
            let newly_seen = !std::mem::replace(&mut running.seen, true);
            if tree.known {
                running.samples.saw_memory(tree.held);
            }
            let limit = running.spec.limits.memory.0;
            if limit > 0 && !running.killed {
                headroom = headroom.min(limit.saturating_sub(tree.rss));
                if tree.rss > limit {
                    too_large.push((*serial, limit));
                }
            }
            if sampling {
                let sample = sample(running, tree, &shared.gpus.reading(&running.spec.gpus));
                running.samples.push(sample);
                if shared.looks.is_some() && running.samples.is_to_be_told(&sample) {
                    let at = Timestamp(running.started.0 + sample.ms * 1000);
                    looks.push(LiveLine::new(at, running.spec.attempt, Seen::Running(sample)));
                }
            }
            if newly_seen {
                table.unseen -= 1;
            }
        }
    }
    if let Some(taker) = shared.looks.as_ref().filter(|_| !looks.is_empty()) {
        taker(looks);
    }
    for (serial, limit) in too_large {
        // Pages that forked workers share were counted for each of them: before ending a task for it, count right.
        let tree = &trees[&serial];
        let right: u64 = tree.pids.iter().filter_map(|pid| process::proportional_size(*pid, &mut watch.buffer)).sum();
        if right > limit {
            let mut table = shared.table();
            if let Some(running) = table.running.get_mut(&serial) {
                running.stop.get_or_insert(Ending::Memory);
            }
            table.kill(serial, Instant::now());
            crate::watch::settle(&mut table, serial, over);
        }
    }
    headroom
}

fn sample(running: &Running, tree: &Tree, gpu: &Option<(u32, u64)>) -> Sample {
    let ticks_per_second = system_number(libc::_SC_CLK_TCK);
    let done = &running.usage;
    Sample {
        ms: running.clock.elapsed().as_millis() as u64,
        processes: tree.alive,
        rss: tree.held,
        cpu_us: tree.ticks * 1_000_000 / ticks_per_second + done.user_us + done.system_us,
        read_bytes: tree.io.read_bytes + done.read_bytes,
        write_bytes: tree.io.write_bytes + done.write_bytes,
        gpu_percent: gpu.map(|(percent, _)| percent),
        gpu_memory: gpu.map(|(_, memory)| memory),
    }
}

fn roots(table: &Table) -> HashMap<i32, u32> {
    let mains = table
        .running
        .iter()
        .filter(|(_, running)| running.left.is_none())
        .map(|(serial, running)| (running.pid, *serial));
    mains.chain(table.strays.iter().map(|(pid, stray)| (*pid, stray.serial))).collect()
}

/// Processes that are none of ours, nor below us: most of those of a machine. They are not looked at again for a while.
#[derive(Default)]
pub(crate) struct Others {
    pids: HashSet<i32>,
    passes: u32,
}

/// A number may be given to a new process of ours; so long nobody would see it.
const OTHERS_FOR: u32 = 8;

fn trees(roots: &HashMap<i32, u32>, others: &mut Others, buffer: &mut Vec<u8>) -> HashMap<u32, Tree> {
    others.passes += 1;
    if others.passes.is_multiple_of(OTHERS_FOR) {
        others.pids.clear();
    }
    let there = process::all();
    let before = std::mem::take(&mut others.pids);
    let mut processes: HashMap<i32, Stat> = HashMap::with_capacity(there.len());
    for pid in there {
        if before.contains(&pid) && !roots.contains_key(&pid) {
            others.pids.insert(pid);
        } else if let Some(stat) = Stat::of(pid, buffer) {
            processes.insert(pid, stat);
        }
    }
    let own = std::process::id() as i32;
    let page = system_number(libc::_SC_PAGESIZE);
    // Whose each process is; `None` for those that are nobody's.
    let mut owners: HashMap<i32, Option<u32>> = HashMap::with_capacity(processes.len());
    let mut trees: HashMap<u32, Tree> = HashMap::new();
    let mut path = Vec::new();
    // What is below us and nobody's may be a task that was started a moment ago.
    let mut below_us: HashSet<i32> = HashSet::new();
    for (pid, stat) in &processes {
        path.clear();
        let mut at = *pid;
        // So many at the beginning of the path are below us.
        let mut below = 0;
        let owner = loop {
            if let Some(serial) = roots.get(&at) {
                break Some(*serial);
            }
            if let Some(owner) = owners.get(&at) {
                if below_us.contains(&at) {
                    below = path.len();
                }
                break *owner;
            }
            path.push(at);
            if at == own {
                below = path.len();
            }
            match processes.get(&at) {
                // The list is no snapshot: a pid that was reused meanwhile could close a circle.
                Some(stat) if stat.parent > 0 && path.len() < 10_000 => at = stat.parent,
                _ => break None,
            }
        };
        owners.extend(path.iter().map(|pid| (*pid, owner)));
        match owner {
            Some(serial) => {
                let tree = trees.entry(serial).or_default();
                tree.pids.push(*pid);
                tree.alive += u32::from(!stat.is_over());
                tree.rss += stat.rss_pages * page;
                tree.largest = tree.largest.max(stat.rss_pages * page);
                tree.ticks += stat.ticks;
            }
            None => {
                below_us.extend(&path[..below]);
                others.pids.extend(path[below..].iter().filter(|pid| processes.contains_key(pid)));
            }
        }
    }
    trees
}

fn system_number(which: libc::c_int) -> u64 {
    // SAFETY: no pointers. Both numbers that are asked for exist on every Linux.
    u64::try_from(unsafe { libc::sysconf(which) }).unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_watches_is_told_of_a_young_attempt_every_time_and_of_an_old_one_less_often() {
        let mut samples = Samples::default();
        let sample = |ms| Sample {
            ms,
            processes: 1,
            rss: 0,
            cpu_us: 0,
            read_bytes: 0,
            write_bytes: 0,
            gpu_percent: None,
            gpu_memory: None,
        };
        let told: Vec<u64> =
            (1..=86_400).map(|second| second * 1000).filter(|ms| samples.is_to_be_told(&sample(*ms))).collect();
        assert_eq!(told[..3], [1000, 2000, 3000]);
        assert_eq!(told.iter().filter(|ms| **ms <= 512_000).count(), 512);
        assert!(told.len() < 3500, "{} in a day", told.len());
        assert!(told.windows(2).all(|pair| pair[1] - pair[0] <= 61_000));
    }

    #[test]
    fn few_early_looks_are_no_peak_of_memory() {
        let mut samples = Samples::default();
        assert_eq!(samples.peak_memory(0), 0);
        samples.saw_memory(3_000_000);
        for _ in 2..ENOUGH_LOOKS {
            samples.saw_memory(2_000_000);
        }
        assert_eq!(samples.peak_memory(0), 0);
        assert_eq!(samples.peak_memory(40_000_000), 40_000_000);
        samples.saw_memory(2_000_000);
        assert_eq!(samples.peak_memory(0), 3_000_000);
    }

    #[test]
    fn a_long_attempt_keeps_a_bounded_number_of_even_samples() {
        let mut samples = Samples::default();
        for ms in 0..100_000 {
            samples.push(Sample {
                ms,
                processes: 1,
                rss: 0,
                cpu_us: 0,
                read_bytes: 0,
                write_bytes: 0,
                gpu_percent: None,
                gpu_memory: None,
            });
        }
        let list = samples.take();
        assert!(list.len() <= MOST && list.len() > MOST / 2, "{}", list.len());
        assert_eq!(list[0].ms, 0);
        let steps: std::collections::BTreeSet<u64> = list.windows(2).map(|pair| pair[1].ms - pair[0].ms).collect();
        assert_eq!(steps, [64].into());
    }
}
