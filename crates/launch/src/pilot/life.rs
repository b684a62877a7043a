//! The life of a pilot: dial, say hello, work, dial again when the line breaks, drain in time, leave.

use super::agent::{Agent, End, Means};
use super::channel::{self, ChannelError, Key, Receiver};
use super::inflow::Inflow;
use super::message::{Hello, Message, PROTOCOL, Welcome};
use super::options::{self, PilotOptions};
use super::outbox::Outbox;
use crate::{Folders, Keep, Launcher, Options, StopSignals, sandbox};
use crossbeam_channel::{Sender, bounded, never, select, unbounded};
use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tulpar_core::ids::Digest;
use tulpar_core::resources::USUAL_GRACE;

/// Until a driver has said how long a pilot shall go on without it.
const FIRST_LEASE: Duration = Duration::from_secs(300);
const DIAL: Duration = Duration::from_secs(10);
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// How often a pilot that takes nothing more looks whether it is done.
const LOOK: Duration = Duration::from_millis(200);
/// What is left to say is said within this, or not at all.
const FAREWELL: Duration = Duration::from_secs(30);
/// What tasks saved has to be sent.
const SENDING: Duration = Duration::from_secs(20);

#[derive(Debug, thiserror::Error)]
pub enum PilotError {
    #[error("{doing}: {source}")]
    Io { doing: &'static str, source: io::Error },
    #[error("the driver refused this pilot: {0}")]
    Refused(String),
    #[error("no driver could be reached at {addresses}: {problem}")]
    Unreachable { addresses: String, problem: String },
}

fn failed(doing: &'static str) -> impl FnOnce(io::Error) -> PilotError {
    move |source| PilotError::Io { doing, source }
}

enum Call {
    /// The connection is over; when something was last heard.
    Broken(Instant),
    /// The driver says: go.
    Leave,
    Refused(String),
    Heard(Welcome),
}

/// Why the pilot goes.
enum Parting {
    Asked,
    Late,
    Alone,
    Refused(String),
}

/// Runs until it is asked to go, must go, or its driver is gone for too long.
pub fn pilot_main(options: &PilotOptions) -> Result<(), PilotError> {
    let stop = StopSignals::block();
    let (stops, stopped) = bounded(1);
    stop.then(move || {
        // Once is enough.
        let _ = stops.try_send(());
    });
    let key = Key::read(&options.key).map_err(failed("reading the key of the run"))?;
    let instance = instance();
    let home = std::path::absolute(&options.folder)
        .map_err(failed("finding the folder of the pilot"))?
        .join(format!(".tulpar-pilot-{instance:016x}"));
    let begun = Instant::now();
    let schedule = options.until.map(|until| Schedule::of(until, options.grace, begun));
    let end = schedule.as_ref().map(|schedule| End { stop: schedule.stop, whole: schedule.stop - begun });
    let agent = start(options, home.clone(), instance, end).map_err(failed("starting the launcher"))?;
    let mut pilot = Pilot { options, key, instance, agent, home, schedule, lease: FIRST_LEASE, heard: begun };
    let parting = pilot.live(&stopped);
    sandbox::remove_tree(&pilot.home);
    match parting {
        Parting::Refused(why) => Err(PilotError::Refused(why)),
        Parting::Alone if pilot.lease == FIRST_LEASE => Err(PilotError::Unreachable {
            addresses: options.addresses().join(", "),
            problem: "it did not answer, or has another key".into(),
        }),
        Parting::Alone | Parting::Asked | Parting::Late => Ok(()),
    }
}

fn start(options: &PilotOptions, home: PathBuf, instance: u64, end: Option<End>) -> io::Result<Arc<Agent>> {
    std::fs::create_dir_all(home.join("objects"))?;
    let folders = Folders {
        project: options.project.clone().unwrap_or_else(|| options.folder.clone()),
        attempts: home.join("attempts"),
        objects: home.join("objects"),
        records: home.join("records"),
        checkpoints: home.join("checkpoints"),
    };
    let milli_cpus = options.milli_cpus.unwrap_or_else(|| options::cores() * 1000);
    let agent = Arc::new(Agent::new(Means {
        milli_cpus,
        gpus: options::gpus(),
        owns_cores: options::usable_cores() * 1000 == milli_cpus,
        store: options.store.unwrap_or_else(|| options::room(&home)),
        folders: folders.clone(),
        end,
    }));
    let mut launch = Options::new(format!("{}#{instance:x}", home.display()));
    launch.threads = (milli_cpus as usize).div_ceil(4000).clamp(1, 8);
    launch.keep_sandboxes = Keep::Never;
    launch.durable = false;
    launch.guard = Some(vec!["__guard".into(), launch.run.clone()]);
    launch.script = Some(vec!["__script".into()]);
    let weak = Arc::downgrade(&agent);
    launch.secrets = Box::new({
        let weak = weak.clone();
        move |name| weak.upgrade()?.secret(name).or_else(|| std::env::var(name).ok())
    });
    launch.records = Some(Box::new({
        let weak = weak.clone();
        move |attempt, line| {
            if let Some(agent) = weak.upgrade() {
                agent.take_record(attempt, line);
            }
        }
    }));
    launch.looks = Some(Box::new({
        let weak = weak.clone();
        move |looks| {
            if let Some(agent) = weak.upgrade() {
                agent.seen(looks);
            }
        }
    }));
    let launcher = Launcher::start(folders, launch, move |notice| {
        if let Some(agent) = weak.upgrade() {
            agent.notice(notice);
        }
    })?;
    agent.set_launcher(launcher);
    Ok(agent)
}

struct Pilot<'a> {
    options: &'a PilotOptions,
    key: Key,
    instance: u64,
    agent: Arc<Agent>,
    home: PathBuf,
    schedule: Option<Schedule>,
    lease: Duration,
    /// When the driver was last heard of.
    heard: Instant,
}

/// When a pilot with a wall time does what.
struct Schedule {
    /// No more tasks are taken.
    drain: Instant,
    /// Tasks are told to end.
    stop: Instant,
}

impl Schedule {
    fn of(until: Duration, grace: Duration, now: Instant) -> Schedule {
        let reserve = |most: u64| (until / 10).clamp(Duration::from_secs(1), Duration::from_secs(most)).min(until / 3);
        // Who takes longer than usual to save its state is told so much earlier, but not before half of the time.
        let longer = grace.saturating_sub(USUAL_GRACE);
        let stop = now + until.saturating_sub((reserve(60) + longer).min(until / 2));
        Schedule { drain: stop.checked_sub(reserve(300)).unwrap_or(now), stop }
    }
}

impl Pilot<'_> {
    fn live(&mut self, stopped: &crossbeam_channel::Receiver<()>) -> Parting {
        let schedule = &self.schedule;
        let alarm = |at: Option<Instant>| at.map_or_else(never, crossbeam_channel::at);
        let (mut drain, late) =
            (alarm(schedule.as_ref().map(|it| it.drain)), alarm(schedule.as_ref().map(|it| it.stop)));
        let look = schedule.as_ref().map_or_else(never, |_| crossbeam_channel::tick(LOOK));
        let mut pause = PAUSES.0;
        let mut calls = never();
        let mut line: Option<Arc<Outbox>> = None;
        let mut dial = crossbeam_channel::at(Instant::now());
        let parting = loop {
            let alone = match &line {
                Some(_) => never(),
                None => crossbeam_channel::at(self.heard + self.lease),
            };
            select! {
                recv(stopped) -> _ => break Parting::Asked,
                recv(drain) -> _ => {
                    self.agent.drain();
                    drain = never();
                }
                // Nothing new will come: when all is done there is no reason to stay.
                recv(look) -> _ => if self.agent.is_drained() {
                    break Parting::Late;
                },
                recv(late) -> _ => break Parting::Late,
                recv(alone) -> _ => break Parting::Alone,
                recv(dial) -> _ => {
                    dial = never();
                    match self.dial() {
                        Ok((outbox, heard)) => (line, calls) = (Some(outbox), heard),
                        Err(_) => {
                            dial = crossbeam_channel::after(pause);
                            pause = (pause * 2).min(PAUSES.1);
                        }
                    }
                }
                recv(calls) -> call => match call {
                    Ok(Call::Leave) => break Parting::Asked,
                    Ok(Call::Refused(why)) => break Parting::Refused(why),
                    Ok(Call::Heard(welcome)) => {
                        self.lease = Duration::from_millis(welcome.lease_ms);
                        pause = PAUSES.0;
                    }
                    Ok(Call::Broken(heard)) => {
                        if let Some(outbox) = line.take() {
                            self.agent.disconnected(&outbox);
                        }
                        self.heard = heard;
                        calls = never();
                        dial = crossbeam_channel::after(pause);
                        pause = (pause * 2).min(PAUSES.1);
                    }
                    // The last thing that is sent is that it is over.
                    Err(_) => calls = never(),
                },
            }
        };
        self.part(line, &parting);
        parting
    }

    /// Ends what runs, says what there is to say, and goodbye.
    fn part(&self, line: Option<Arc<Outbox>>, parting: &Parting) {
        if matches!(parting, Parting::Refused(_)) {
            return;
        }
        self.agent.drain();
        self.agent.stop();
        self.agent.settle(Instant::now() + FAREWELL.max(self.options.grace + SENDING));
        if let Some(outbox) = line {
            outbox.push(&Message::Bye);
            outbox.close();
            // The other side hangs up when it has heard; if not, our end closes everything.
            outbox.wait(Duration::from_secs(5));
        }
    }

    /// Calls the driver, at the first address that answers.
    fn dial(&self) -> Result<(Arc<Outbox>, crossbeam_channel::Receiver<Call>), ChannelError> {
        let mut problem = ChannelError::Closed;
        for address in self.options.addresses() {
            let found = match address.to_socket_addrs() {
                Ok(found) => found,
                Err(error) => {
                    problem = error.into();
                    continue;
                }
            };
            for address in found {
                match TcpStream::connect_timeout(&address, DIAL)
                    .map_err(ChannelError::from)
                    .and_then(|it| self.greet(it))
                {
                    Ok(line) => return Ok(line),
                    Err(error) => problem = error,
                }
            }
        }
        Err(problem)
    }

    fn greet(&self, stream: TcpStream) -> Result<(Arc<Outbox>, crossbeam_channel::Receiver<Call>), ChannelError> {
        let (receiver, sender) = channel::connect(stream, &self.key)?;
        let outbox = Arc::new(Outbox::default());
        let (holds, draining) = self.agent.holds();
        outbox.push(&Message::Hello(Box::new(Hello {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").into(),
            name: self.options.name.clone(),
            node: self.options.node,
            instance: self.instance,
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            milli_cpus: self.options.milli_cpus.unwrap_or_else(|| options::cores() * 1000),
            memory: 0,
            gpus: options::gpus(),
            until: self.options.until.map(|until| until.as_secs()),
            draining,
            holds,
        })));
        let (calls, heard) = unbounded();
        let writer = Arc::clone(&outbox);
        let spawn = |name: &str, body: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new().name(name.into()).spawn(body).map(drop)
        };
        spawn("send", Box::new(move || writer.run(sender, Duration::from_secs(2))))?;
        let line = Line { agent: Arc::clone(&self.agent), outbox: Arc::clone(&outbox), calls };
        let folder = self.home.join("incoming");
        spawn(
            "receive",
            Box::new(move || {
                let calls = line.calls.clone();
                let mut heard = Instant::now();
                let _ = line.listen(receiver, &folder, &mut heard);
                let _ = calls.send(Call::Broken(heard));
            }),
        )?;
        Ok((outbox, heard))
    }
}

/// The receiving half of a connection.
struct Line {
    agent: Arc<Agent>,
    outbox: Arc<Outbox>,
    calls: Sender<Call>,
}

impl Line {
    fn listen(self, mut receiver: Receiver, folder: &std::path::Path, heard: &mut Instant) -> Result<(), ChannelError> {
        static LINES: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let label = LINES.fetch_add(1, std::sync::atomic::Ordering::Relaxed).to_string();
        let mut inflow = Inflow::new(folder, &label)?;
        let mut silence = Duration::from_secs(30);
        let result = loop {
            let messages = match receiver.receive() {
                Ok(messages) => messages,
                Err(error) => break Err(error),
            };
            if !messages.is_empty() {
                *heard = Instant::now();
            } else if heard.elapsed() > silence {
                break Err(ChannelError::Closed);
            }
            for message in messages {
                if let Message::Welcome(welcome) = &message {
                    silence = Duration::from_millis(welcome.beat_ms) * 4;
                }
                self.take(message, &mut inflow);
            }
        };
        self.outbox.abort();
        result
    }

    fn take(&self, message: Message, inflow: &mut Inflow) {
        match message {
            Message::Welcome(welcome) => {
                let wanted = self.agent.welcomed(&welcome, &self.outbox);
                self.ask(wanted, inflow);
                let _ = self.calls.send(Call::Heard(welcome));
            }
            Message::Refused(why) => drop(self.calls.send(Call::Refused(why))),
            Message::Leave => drop(self.calls.send(Call::Leave)),
            Message::List { id, files } => self.agent.take_list(id, files),
            Message::DropList(id) => self.agent.drop_list(id),
            Message::Work(work) => {
                let wanted = self.agent.work(*work);
                self.ask(wanted, inflow);
            }
            Message::Cancel { ending, attempts } => self.agent.cancel(&attempts, &ending),
            Message::Kept(attempts) => self.agent.kept(&attempts),
            Message::Want(digests) => self.agent.send(&digests),
            Message::Return(attempts) => self.outbox.push(&Message::Returned(self.agent.give_back(&attempts))),
            Message::Chunk(chunk) => match inflow.take(&chunk) {
                Some(Ok(arrived)) => self.agent.arrived(&arrived),
                Some(Err(error)) => self.agent.missing(&chunk.digest, &error.to_string()),
                None => {}
            },
            Message::Missing { digest, problem } => {
                inflow.forget(&digest);
                self.agent.missing(&digest, &problem);
            }
            // What only a pilot says, a driver has no reason to.
            Message::Hello(_)
            | Message::Started(_)
            | Message::Ended(_)
            | Message::Draining
            | Message::Returned(_)
            | Message::Seen(_)
            | Message::Bye
            | Message::Beat => {}
        }
    }

    fn ask(&self, wanted: Vec<(Digest, u64)>, inflow: &mut Inflow) {
        let wanted: Vec<Digest> = wanted
            .into_iter()
            .filter(|(digest, size)| inflow.expect(*digest, *size))
            .map(|(digest, _)| digest)
            .collect();
        if !wanted.is_empty() {
            self.outbox.push(&Message::Want(wanted));
        }
    }
}

fn instance() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |now| now.as_nanos());
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let digest = Digest::of(format!("{now} {} {host}", std::process::id()).as_bytes());
    u64::from_le_bytes(digest.0[..8].try_into().expect("eight of them"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_that_take_long_to_save_their_state_are_told_earlier() {
        let now = Instant::now();
        let stop = |until: u64, grace: u64| {
            let schedule = Schedule::of(Duration::from_secs(until), Duration::from_secs(grace), now);
            schedule.stop.duration_since(now).as_secs()
        };
        assert_eq!(stop(20, 10), 18);
        assert_eq!(stop(14_400, 10), 14_340);
        assert_eq!(stop(14_400, 310), 14_040);
        assert_eq!(stop(100, 600), 50);
    }
}
