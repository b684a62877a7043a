//! The thread that waits: for exits, for deadlines, for the next sample.
//!
//! An attempt is over when its main process is over and no other process with its mark lives. What is left
//! when the main process ends is killed at once; but when we asked the attempt to end, its other
//! processes have the rest of the grace time too: a shell dies of SIGTERM at once while the training below it
//! still writes its checkpoint.

use crate::launcher::Shared;
use crate::marker::Marker;
use crate::process::{self, Adopted, Left, Stat};
use crate::queue::Work;
use crate::sharing::Sharing;
use crate::table::{Alarm, Running, Stray, Table};
use crate::told::Ears;
use crate::{finish, prepare, sample};
use rustix::event::epoll;
use std::collections::HashSet;
use std::time::{Duration, Instant};
use tulpar_core::job::Ending;
use tulpar_core::live::{LiveLine, Seen};

/// Marks the descriptor that wakes the thread.
pub(crate) const WAKE: u64 = u64::MAX;
/// Set in the number of a stray's descriptor; the rest is its pid.
const STRAY: u64 = 1 << 40;
const MEMORY_EVERY: Duration = Duration::from_millis(100);
/// How often trials of a search are listened to.
const HEAR_EVERY: Duration = Duration::from_millis(200);
/// Hardly anything fills memory faster, in bytes a millisecond: so long as there is room, nobody needs to look.
const MEMORY_SPEED: u64 = 2 << 20;

pub(crate) struct Watch<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) buffer: Vec<u8>,
    pub(crate) sharing: Sharing,
    pub(crate) others: sample::Others,
    adopted: Adopted,
    /// Children of the main thread that are not ours, by pid and start.
    foreign: HashSet<(i32, u64)>,
    next_sample: Instant,
    next_memory: Instant,
    next_hearing: Instant,
    /// Until then nobody can have reached a limit.
    calm_until: Instant,
    memory_kills: u64,
}

pub(crate) fn run(shared: &Shared) {
    let now = Instant::now();
    let mut watch = Watch {
        shared,
        buffer: Vec::with_capacity(4096),
        sharing: Sharing::default(),
        others: sample::Others::default(),
        adopted: Adopted::open(),
        foreign: HashSet::new(),
        next_sample: now + shared.options.sample_every,
        next_memory: now,
        next_hearing: now,
        calm_until: now,
        memory_kills: process::out_of_memory_kills(),
    };
    let mut events = Vec::with_capacity(256);
    while let Some(until) = watch.plan_sleep() {
        let timeout = until.saturating_duration_since(Instant::now());
        let timeout =
            rustix::event::Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
        events.clear();
        // Interrupted by a signal is as good as nothing happened.
        let _ = epoll::wait(&shared.epoll, rustix::buffer::spare_capacity(&mut events), Some(&timeout));
        let mut over = Vec::new();
        {
            let mut table = shared.table();
            table.sleeps_until = None;
            for event in &events {
                match event.data.u64() {
                    WAKE => {
                        let mut count = [0; 8];
                        let _ = rustix::io::read(&shared.wake, &mut count);
                    }
                    stray if stray & STRAY != 0 => watch.stray_left(&mut table, (stray & !STRAY) as i32, &mut over),
                    serial => watch.main_left(&mut table, serial as u32, &mut over),
                }
            }
            watch.alarms(&mut table, &mut over);
        }
        hand_on(shared, &mut over);
        watch.measure(&mut over);
        hand_on(shared, &mut over);
        watch.hear();
    }
}

/// What is over is reported, or given to the pool where there is something to collect.
fn hand_on(shared: &Shared, over: &mut Vec<Running>) {
    let rest: Vec<Running> = over.drain(..).filter_map(|running| finish::at_once(shared, running)).collect();
    if !rest.is_empty() {
        shared.queue.push(rest.into_iter().map(|running| Work::Finish(Box::new(running))));
    }
}

impl Watch<'_> {
    /// Until when there is nothing to do but wait for events; `None` when all is over.
    fn plan_sleep(&mut self) -> Option<Instant> {
        let mut table = self.shared.table();
        if table.closing && table.running.is_empty() {
            return None;
        }
        // Sleeping on without attempts costs one wake-up a sample; starting a timer with each first
        // attempt would cost one for each short task.
        let mut until = self.next_sample;
        if let Some(at) = self.looks_at_memory(&table) {
            until = until.min(at);
        }
        if table.trials > 0 && self.shared.looks.is_some() {
            until = until.min(self.next_hearing);
        }
        if let Some((alarm, ..)) = table.alarms.first() {
            until = until.min(*alarm);
        }
        table.sleeps_until = Some(until);
        Some(until)
    }

    /// When somebody's memory is to be looked at, sample or not.
    fn looks_at_memory(&self, table: &Table) -> Option<Instant> {
        // Where tasks come and go faster than that, each new one would have to wake this thread.
        if table.unseen > 0 || table.has_started {
            Some(self.next_memory)
        } else if table.memory_limited > 0 {
            Some(self.next_memory.max(self.calm_until))
        } else {
            None
        }
    }

    fn main_left(&mut self, table: &mut Table, serial: u32, over: &mut Vec<Running>) {
        let Some(running) = table.running.get_mut(&serial) else { return };
        if running.left.is_some() {
            return;
        }
        let _ = epoll::delete(&self.shared.epoll, &running.pidfd);
        running.wall = running.clock.elapsed();
        let left = match process::reap(running.pid, &mut self.buffer) {
            Ok((left, mut usage)) => {
                if !process::is_above_our_peak(usage.peak_rss) {
                    usage.peak_rss = 0;
                }
                process::add(&mut running.usage, &usage);
                left
            }
            // Somebody else in this process waited for it: what it used is lost, and so is how it left.
            Err(_) => Left::Exit(-1),
        };
        running.left = Some(left);
        if !running.killed && matches!(left, Left::Signal(libc::SIGKILL) | Left::Exit(137)) {
            let kills = process::out_of_memory_kills();
            if kills > self.memory_kills {
                // One each: two attempts that die together have two kills to share.
                self.memory_kills += 1;
                running.out_of_memory = true;
            }
        }
        if let Some(deadline) = running.deadline() {
            table.alarms.remove(&(deadline, serial, Alarm::Walltime));
        }
        self.adopt(table);
        if table.running.get(&serial).is_some_and(|running| running.strays > 0 && running.stop.is_none()) {
            table.kill(serial, Instant::now());
        }
        settle(table, serial, over);
    }

    fn stray_left(&mut self, table: &mut Table, pid: i32, over: &mut Vec<Running>) {
        let Some(stray) = table.strays.remove(&pid) else { return };
        let _ = epoll::delete(&self.shared.epoll, &stray.pidfd);
        let reaped = process::reap(pid, &mut self.buffer);
        if let Some(running) = table.running.get_mut(&stray.serial) {
            running.strays -= 1;
            if let Ok((_, usage)) = reaped {
                process::add(&mut running.usage, &usage);
            }
        }
        self.adopt(table);
        settle(table, stray.serial, over);
    }

    /// Takes note of every process that the kernel gave to us since the last look.
    pub(crate) fn adopt(&mut self, table: &mut Table) {
        // Inside a job all of its processes carry one mark: whoever watches the job ends what is left.
        if self.shared.inherited.is_some() {
            return;
        }
        for pid in self.adopted.read(&mut self.buffer) {
            if table.strays.contains_key(&pid) || self.shared.guard == Some(pid) {
                continue;
            }
            let Some(stat) = Stat::of(pid, &mut self.buffer) else { continue };
            if self.foreign.contains(&(pid, stat.started)) {
                continue;
            }
            let Some(marker) = Marker::of_process(pid).filter(|marker| self.shared.owner.owns(*marker)) else {
                self.foreign.insert((pid, stat.started));
                continue;
            };
            // A main process, when the first thread itself started it.
            if table.running.get(&marker.serial()).is_some_and(|running| running.pid == pid) {
                continue;
            }
            if !stat.is_over() {
                self.take_in(table, pid, marker.serial());
            } else if let (Ok((_, usage)), Some(running)) =
                (process::reap(pid, &mut self.buffer), table.running.get_mut(&marker.serial()))
            {
                process::add(&mut running.usage, &usage);
            }
        }
    }

    /// A living stray: follow it, and tell it what its attempt has been told.
    fn take_in(&mut self, table: &mut Table, pid: i32, serial: u32) {
        let Ok(pidfd) = process::open_pidfd(pid) else { return };
        let data = epoll::EventData::new_u64(STRAY | pid as u64);
        if epoll::add(&self.shared.epoll, &pidfd, data, epoll::EventFlags::IN).is_err() {
            process::signal(&pidfd, libc::SIGKILL);
            return;
        }
        let signal = match table.running.get_mut(&serial) {
            // Its attempt has been given up.
            None => Some(libc::SIGKILL),
            Some(running) => {
                running.strays += 1;
                let is_over = running.left.is_some() && running.stop.is_none();
                // SAFETY: no pointers.
                let has_had_it = || unsafe { libc::getpgid(pid) } == running.pid;
                if running.killed || is_over {
                    Some(libc::SIGKILL)
                } else if running.stop.is_some() && !has_had_it() {
                    Some(libc::SIGTERM)
                } else {
                    None
                }
            }
        };
        if let Some(signal) = signal {
            process::signal(&pidfd, signal);
        }
        table.strays.insert(pid, Stray { serial, pidfd });
    }

    fn alarms(&mut self, table: &mut Table, over: &mut Vec<Running>) {
        let now = Instant::now();
        while let Some((at, serial, alarm)) = table.alarms.first().copied()
            && at <= now
        {
            table.alarms.pop_first();
            match alarm {
                Alarm::Walltime => {
                    let limit = table.running.get(&serial).and_then(Running::limit);
                    table.stop(serial, limit.map_or(Ending::Walltime, |(_, ending)| ending), now);
                }
                Alarm::Kill => table.kill(serial, now),
                Alarm::GiveUp => {
                    if let Some(running) = table.running.get_mut(&serial)
                        && running.left.is_some()
                    {
                        running.strays = 0;
                        settle(table, serial, over);
                    }
                }
            }
        }
    }

    /// Samples, and looks after memory limits. The pass over `/proc` is made without the lock, and never takes
    /// more than a twentieth of a core, however many processes the machine has.
    fn measure(&mut self, over: &mut Vec<Running>) {
        let now = Instant::now();
        let sampling = now >= self.next_sample;
        let limited = {
            let mut table = self.shared.table();
            let limited = self.looks_at_memory(&table).is_some_and(|at| now >= at);
            table.has_started &= !limited;
            limited
        };
        if !sampling && !limited {
            return;
        }
        let mut cost = Duration::ZERO;
        let mut headroom = 0;
        if !self.shared.table().running.is_empty() {
            let before = process::thread_time();
            headroom = sample::pass(self, sampling, over);
            // Not the time that went by: on a busy machine most of that is others'.
            cost = process::thread_time().saturating_sub(before);
        }
        if sampling {
            self.next_sample = now + self.shared.options.sample_every.max(cost * 20);
            self.memory_kills = process::out_of_memory_kills();
        }
        self.next_memory = now + MEMORY_EVERY.max(cost * 20);
        self.calm_until = now + Duration::from_millis(headroom / MEMORY_SPEED).min(self.shared.options.sample_every);
    }
}

impl Watch<'_> {
    /// Tells what trials have said since the last time. Files are read without the lock.
    fn hear(&mut self) {
        let now = Instant::now();
        let Some(taker) = self.shared.looks.as_ref().filter(|_| now >= self.next_hearing) else { return };
        let mut trials = Vec::new();
        {
            let mut table = self.shared.table();
            if table.trials > 0 {
                let running = table.running.iter_mut().filter(|(_, running)| !running.spec.objectives.is_empty());
                trials.extend(running.map(|(serial, running)| {
                    let hearing = std::mem::take(&mut running.hearing);
                    (
                        *serial,
                        running.spec.attempt,
                        ears(self.shared, running),
                        running.spec.objectives[0].clone(),
                        hearing,
                    )
                }));
            }
        }
        let before = process::thread_time();
        let mut looks = Vec::new();
        for (_, attempt, ears, objective, hearing) in &mut trials {
            let news = hearing.news(ears, objective).into_iter();
            looks.extend(news.map(|(step, value)| LiveLine::new(prepare::now(), *attempt, Seen::Said { step, value })));
        }
        if !looks.is_empty() {
            taker(looks);
        }
        let cost = process::thread_time().saturating_sub(before);
        self.next_hearing = now + HEAR_EVERY.max(cost * 20);
        let mut table = self.shared.table();
        for (serial, .., hearing) in trials {
            // Only this thread takes attempts out of the table.
            if let Some(running) = table.running.get_mut(&serial) {
                running.hearing = hearing;
            }
        }
    }
}

/// Where a trial is heard. One that moves its files itself works in a folder inside, and prints where the job does.
fn ears(shared: &Shared, running: &Running) -> Ears {
    let mut ears = Ears::of(&running.folder);
    if running.spec.script.is_some() {
        let inside = prepare::inside(shared, running.spec.attempt.job);
        ears.work = crate::attempt_folder(&inside, running.spec.attempt).join("work");
    }
    ears
}

/// Hands an attempt on when nothing of it lives any more.
pub(crate) fn settle(table: &mut Table, serial: u32, over: &mut Vec<Running>) {
    let ended = table.running.get(&serial).is_some_and(|running| running.left.is_some() && running.strays == 0);
    if !ended {
        return;
    }
    if let Some(running) = table.running.remove(&serial) {
        if running.spec.limits.memory.0 > 0 {
            table.memory_limited -= 1;
        }
        table.trials -= usize::from(!running.spec.objectives.is_empty());
        if !running.seen {
            table.unseen -= 1;
        }
        table.stages.insert(running.spec.attempt, crate::table::Stage::Ending);
        over.push(running);
    }
}
