//! The executor for pilots: nodes that come and go, each one connection to a process that runs what it is sent.
//!
//! Pilots dial in ([`tulpar_launch::pilot`]); a [`Supply`] starts them as jobs of a queue or as processes of this machine.
//! What the engine placed on a node goes to the pilot that is this node. A pilot that breaks off keeps its attempts for the
//! time of its *lease*, also for a driver that is started again. It knows nothing of how jobs are queued.

mod desk;
mod intake;
mod keeper;
mod lists;
mod state;
mod supply;

pub use state::PilotNode;
pub use supply::{Listed, LocalSupply, PilotJob, Supply, SupplyError};

use crate::executor::{Executor, FromExecutor, ToDriver};
use crate::remote::Remote;
use crossbeam_channel::{Receiver, unbounded};
use desk::Desk;
use keeper::Template;
use state::State;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tulpar_core::ids::AttemptId;
use tulpar_core::job::{Ending, JobSpec};
use tulpar_core::resources::{Capacity, USUAL_GRACE};
use tulpar_launch::pilot::channel::Key;
use tulpar_launch::pilot::message::Message;

/// How many times the cores of a pilot the engine may fill: one task runs, the next are there already, so that no core
/// waits for the journal and the way there and back, and ends of short tasks come several at once.
const AHEAD: u32 = 4;

/// What the engine shall be told that a pilot has. Only cores are told too many: pilots start no more at once than they
/// have cores for, and what waits at one while another has nothing to do is moved.
pub fn declared(real: &Capacity) -> Capacity {
    Capacity { milli_cpus: real.milli_cpus.saturating_mul(AHEAD), ..real.clone() }
}

/// What a pilot must have, from what the engine was told.
pub fn real(declared: &Capacity) -> Capacity {
    Capacity { milli_cpus: declared.milli_cpus / AHEAD, ..declared.clone() }
}

/// Connections that have not said who they are yet.
const STRANGERS: usize = 64;

#[derive(Debug, thiserror::Error)]
pub enum PilotsError {
    #[error("{doing}: {source}")]
    Io { doing: &'static str, source: io::Error },
}

fn failed(doing: &'static str) -> impl FnOnce(io::Error) -> PilotsError {
    move |source| PilotsError::Io { doing, source }
}

pub struct Options {
    /// Where pilots call. Port 0: the one of an earlier driver of the run if it is free, else any.
    pub listen: SocketAddr,
    /// Names or addresses of this machine as pilots see it; none: found out.
    pub advertise: Vec<String>,
    /// How long a pilot goes on without the driver, and the driver waits for it.
    pub lease: Duration,
    /// How often each side says that it is there.
    pub beat: Duration,
    /// How long a pilot job may stay.
    pub wall: Option<Duration>,
    /// What tasks get at most to save their state.
    pub grace: Duration,
    /// There are tasks that run in containers.
    pub starts_containers: bool,
    /// Where pilots come from; `None`: somebody else starts them.
    pub supply: Option<Box<dyn Supply>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
            advertise: Vec::new(),
            lease: Duration::from_secs(120),
            beat: Duration::from_secs(10),
            wall: None,
            grace: USUAL_GRACE,
            starts_containers: false,
            supply: None,
        }
    }
}

/// Of a thread.
type Body = Box<dyn FnOnce(&Arc<Desk>) + Send>;

pub struct Pilots {
    desk: Arc<Desk>,
    address: SocketAddr,
    connect: String,
    folder: PathBuf,
    threads: Vec<JoinHandle<()>>,
}

impl Pilots {
    /// Listens, and asks the supply for a pilot for each node.
    pub fn start(
        remote: Remote,
        nodes: Vec<PilotNode>,
        options: Options,
    ) -> Result<(Self, Receiver<FromExecutor>), PilotsError> {
        let folder = folder(&remote.run().path);
        fs::create_dir_all(&folder).map_err(failed("making the folder of the pilots"))?;
        let key_path = folder.join("key");
        let key = Key::open_or_create(&key_path).map_err(failed("making the key of the run"))?;
        let address_path = folder.join("address");
        let listener = listen(options.listen, &address_path).map_err(failed("listening for pilots"))?;
        let address = listener.local_addr().map_err(failed("listening for pilots"))?;
        let connect = advertised(&options.advertise, address);
        let temporary = folder.join("address.new");
        fs::write(&temporary, format!("{connect}\n"))
            .and_then(|()| fs::rename(&temporary, &address_path))
            .map_err(failed("writing where pilots call"))?;
        let (driver, from_executor) = ToDriver::new();
        let (landings, landed) = unbounded();
        let state = State::new(nodes, driver);
        let desk = Desk::new(remote, key, state, (options.lease, options.beat), landings);
        let desk = Arc::new(desk.map_err(failed("opening the folder of the run"))?);
        let template = Template {
            wall: options.wall,
            grace: options.grace,
            starts_containers: options.starts_containers,
            connect: connect.clone(),
            key: key_path,
            address: address_path,
        };
        let supply = options.supply;
        let thread = |name: &str, body: Body| {
            let desk = Arc::clone(&desk);
            std::thread::Builder::new()
                .name(name.into())
                .spawn(move || body(&desk))
                .map_err(failed("starting a thread"))
        };
        let threads = vec![
            thread("pilot-intake", Box::new(move |desk| intake::run(desk, &landed)))?,
            thread("pilot-keeper", Box::new(move |desk| keeper::run(desk, supply, &template)))?,
            thread("pilot-accept", Box::new(move |desk| accept(desk, &listener)))?,
        ];
        Ok((Self { desk, address, connect, folder, threads }, from_executor))
    }

    /// Where pilots of this run call: `HOST:PORT[,HOST:PORT…]`.
    pub fn connect(&self) -> &str {
        &self.connect
    }

    /// The file that pilots need.
    pub fn key(&self) -> PathBuf {
        self.folder.join("key")
    }
}

/// Everything about the pilots of a run.
pub fn folder(run: &Path) -> PathBuf {
    run.join("pilots")
}

fn listen(wanted: SocketAddr, address: &Path) -> io::Result<TcpListener> {
    let text = fs::read_to_string(address).unwrap_or_default();
    let before = text.trim().rsplit(':').next().and_then(|port| port.parse::<u16>().ok());
    if wanted.port() == 0
        && let Some(port) = before
        && let Ok(listener) = TcpListener::bind(SocketAddr::new(wanted.ip(), port))
    {
        return Ok(listener);
    }
    TcpListener::bind(wanted)
}

fn advertised(names: &[String], address: SocketAddr) -> String {
    let mut names = names.to_vec();
    if names.is_empty() && !address.ip().is_unspecified() {
        names.push(address.ip().to_string());
    } else if names.is_empty() {
        // The address that packets to elsewhere carry; nothing is sent.
        let outward = UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
            socket.connect("192.0.2.1:9")?;
            Ok(socket.local_addr()?.ip().to_string())
        });
        names.extend(outward.ok());
        names.push(rustix::system::uname().nodename().to_string_lossy().into_owned());
    }
    let port = address.port();
    let with_port =
        |name: &String| if name.contains(':') { format!("[{name}]:{port}") } else { format!("{name}:{port}") };
    names.iter().map(with_port).collect::<Vec<_>>().join(",")
}

fn accept(desk: &Arc<Desk>, listener: &TcpListener) {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            // Out of descriptors, perhaps: some will be free again.
            Err(_) => {
                std::thread::sleep(Duration::from_millis(100));
                continue;
            }
        };
        if desk.state().closing {
            return;
        }
        let there = desk.state().slots.iter().filter(|slot| slot.line.is_some()).count();
        if COUNT.load(Ordering::Relaxed) >= there + STRANGERS {
            continue;
        }
        COUNT.fetch_add(1, Ordering::Relaxed);
        let desk = Arc::clone(desk);
        let serve = move || {
            // Whoever has no key, or breaks off, is none of the run's business; a pilot that breaks off calls again.
            let _ = desk.serve(stream);
            COUNT.fetch_sub(1, Ordering::Relaxed);
        };
        if std::thread::Builder::new().name("pilot-receive".into()).spawn(serve).is_err() {
            COUNT.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Executor for Pilots {
    fn submit(&mut self, batch: Vec<Box<JobSpec>>) {
        self.desk.submit(batch);
    }

    fn cancel(&mut self, attempts: &[AttemptId], ending: &Ending) {
        self.desk.state().cancel(attempts, ending);
    }

    /// Pilots that come back say what they have; what nobody has is lost when none is left that could.
    fn reconcile(&mut self, attempts: &[AttemptId]) {
        let mut state = self.desk.state();
        state.orphans.extend(attempts);
        state.reconciled = Some(Instant::now());
        drop(state);
        self.desk.changed.notify_all();
    }

    fn shutdown(mut self: Box<Self>) {
        self.close();
    }
}

impl Pilots {
    fn close(&mut self) {
        if self.threads.is_empty() {
            return;
        }
        {
            let mut state = self.desk.state();
            state.closing = true;
            for line in state.slots.iter().filter_map(|slot| slot.line.as_ref()) {
                line.outbox.push(&Message::Leave);
            }
        }
        self.desk.changed.notify_all();
        // Wakes the accepting thread, which then sees that it is over.
        let own = if self.address.ip().is_unspecified() { Ipv4Addr::LOCALHOST.into() } else { self.address.ip() };
        let _ = TcpStream::connect_timeout(&SocketAddr::new(own, self.address.port()), Duration::from_secs(1));
        // The keeper goes when the pilots have gone, the intake when nobody can bring anything more.
        for thread in self.threads.drain(1..) {
            let _ = thread.join();
        }
        for line in self.desk.state().slots.iter().filter_map(|slot| slot.line.as_ref()) {
            line.hang_up();
        }
        self.desk.close_intake();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        for name in ["key", "address"] {
            let _ = fs::remove_file(self.folder.join(name));
        }
    }
}

impl Drop for Pilots {
    fn drop(&mut self) {
        self.close();
    }
}
