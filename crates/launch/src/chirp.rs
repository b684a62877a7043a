//! How a job at a site of somebody else's tells, while it runs, how it does.
//!
//! On HTCondor through the starter's proxy (*Chirp*: lines of text over TCP; where and with which cookie is in a file that
//! the environment names, or of the scratch folder), as a note in the one event log of the run. Where the folder of the job is shared, in a file there.
//! Where neither works nobody is told, and nothing else changes: all samples are in the record.
//!
//! By the same way a trial of a search hears that it is to pause: a file lies beside its parcel then.

use crossbeam_channel::{Receiver, Sender, after, bounded, never, select, unbounded};
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tulpar_core::live::{LiveLine, Seen};
use tulpar_core::parcel;

const CONFIG: &str = ".chirp.config";
const PATIENCE: Duration = Duration::from_secs(5);
/// Failures in a row after which nobody is called any more.
const MOST_FAILURES: u32 = 3;
/// The log of the run is kept for ever, and other people's disks are not ours: no more often than this, and than this
/// part of the job's age.
const EVERY_MS: u64 = 10_000;
const SHARE: u64 = 64;

/// What a trial says on the way is acted upon, so it is told sooner; the last words of so long.
const SAID_EVERY: Duration = Duration::from_secs(2);
/// Of what was said since the last time, the most that is told to a site that keeps it for ever.
const MOST_SAID: usize = 20;

/// Whether a trial is to pause follows from what it said: it is asked soon after that, and then more and more seldom.
const FIRST_QUESTION: Duration = Duration::from_secs(2);
const LAST_QUESTION: Duration = Duration::from_secs(60);

/// Tells of looks, in a thread of its own: whoever watches the task must not wait for the network.
pub(crate) struct Watchers {
    looks: Sender<LiveLine>,
    said: Sender<LiveLine>,
}

/// When it is next asked whether the trial is to pause, and who is told so.
struct Questions {
    stop: Sender<()>,
    next: Instant,
    pause: Duration,
}

impl Questions {
    fn new(stop: Sender<()>) -> Self {
        Self { stop, next: Instant::now() + FIRST_QUESTION, pause: FIRST_QUESTION }
    }

    fn soon(&mut self) {
        self.pause = FIRST_QUESTION;
        self.next = self.next.min(Instant::now() + self.pause);
    }

    /// A moment later than the last time. Who does not answer is asked again: the job may have moved.
    fn ask(&mut self, way: &Way) {
        if Instant::now() < self.next {
            return;
        }
        if way.is_to_stop() {
            let _ = self.stop.send(());
            self.pause = LAST_QUESTION;
        }
        self.next = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(LAST_QUESTION);
    }
}

enum Way {
    Chirp(PathBuf),
    /// Where the last look lies; what was said is beside it.
    File(PathBuf),
}

impl Watchers {
    /// The way that there is from the job in this folder. `stop` is told when a job of which nothing is shared is to
    /// save its state and end; others get a signal.
    pub(crate) fn find(folder: &Path, out: &Path, shared: bool, stop: Option<Sender<()>>) -> Option<Self> {
        let named = |name| std::env::var_os(name).map(PathBuf::from);
        // HTCondor 25 puts it beside the scratch folder.
        let config = named("_CONDOR_CHIRP_CONFIG")
            .unwrap_or_else(|| named("_CONDOR_SCRATCH_DIR").as_deref().unwrap_or(folder).join(CONFIG));
        let way = if config.is_file() {
            Way::Chirp(config)
        } else if shared {
            Way::File(out.join(parcel::SEEN))
        } else {
            return None;
        };
        // One that waits is enough: the next says more. Of what a trial says every word counts.
        let ((looks, received), (said, heard)) = (bounded(1), unbounded());
        std::thread::Builder::new().name("watchers".into()).spawn(move || run(&way, &received, &heard, stop)).ok()?;
        Some(Self { looks, said })
    }

    /// Never waits.
    pub(crate) fn tell(&self, looks: Vec<LiveLine>) {
        for look in looks {
            if let Seen::Said { .. } = look.seen {
                let _ = self.said.send(look);
            } else {
                let _ = self.looks.try_send(look);
            }
        }
    }
}

fn run(way: &Way, looks: &Receiver<LiveLine>, said: &Receiver<LiveLine>, stop: Option<Sender<()>>) {
    let mut next = EVERY_MS;
    let mut failures = 0;
    let mut questions = stop.map(Questions::new);
    while failures < MOST_FAILURES {
        let question = match &questions {
            Some(questions) => after(questions.next.saturating_duration_since(Instant::now())),
            None => never(),
        };
        let told = select! {
            recv(question) -> _ => Ok(()),
            recv(looks) -> look => {
                let Ok(look) = look else { return };
                let Seen::Running(sample) = &look.seen else { continue };
                if sample.ms < next {
                    continue;
                }
                next = sample.ms + EVERY_MS.max(sample.ms / SHARE);
                way.look(&look)
            }
            recv(said) -> first => {
                let Ok(first) = first else { continue };
                let words: Vec<LiveLine> = std::iter::once(first).chain(said.try_iter()).collect();
                let told = way.said(&words);
                questions.iter_mut().for_each(Questions::soon);
                // What is said meanwhile goes together.
                std::thread::sleep(SAID_EVERY);
                told
            }
        };
        failures = if told.is_ok() { 0 } else { failures + 1 };
        questions.iter_mut().for_each(|questions| questions.ask(way));
    }
}

impl Way {
    fn look(&self, look: &LiveLine) -> io::Result<()> {
        match self {
            Way::Chirp(config) => look.to_word().map_or(Ok(()), |word| chirp(config, &word)),
            Way::File(path) => fs::write(path, lines(std::slice::from_ref(look))),
        }
    }

    /// Whether the submitting side wants the job to save its state and end.
    fn is_to_stop(&self) -> bool {
        match self {
            Way::Chirp(config) => call(config, &format!("access {} 0", parcel::STOP)).is_ok(),
            Way::File(_) => false,
        }
    }

    fn said(&self, words: &[LiveLine]) -> io::Result<()> {
        match self {
            Way::Chirp(config) => {
                let last = words.len().saturating_sub(MOST_SAID);
                words[last..].iter().filter_map(LiveLine::to_word).try_for_each(|word| chirp(config, &word))
            }
            Way::File(path) => {
                let mut file = fs::File::options().append(true).create(true).open(path.with_file_name(parcel::SAID))?;
                file.write_all(&lines(words))
            }
        }
    }
}

fn lines(looks: &[LiveLine]) -> Vec<u8> {
    let mut bytes = Vec::new();
    looks.iter().for_each(|look| look.write(&mut bytes));
    bytes
}

/// Writes one word into the job's event log. It holds no character that must be quoted.
fn chirp(config: &Path, word: &str) -> io::Result<()> {
    call(config, &format!("ulog {word}"))
}

/// One request to the proxy.
fn call(config: &Path, request: &str) -> io::Result<()> {
    let text = fs::read_to_string(config)?;
    let mut words = text.split_whitespace();
    let (Some(host), Some(port), Some(cookie)) = (words.next(), words.next(), words.next()) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let port: u16 = port.parse().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    let address = (host, port).to_socket_addrs()?.next().ok_or(io::ErrorKind::NotFound)?;
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut answers = BufReader::new(stream.try_clone()?);
    for line in [format!("cookie {}\n", quoted(cookie)), format!("{request}\n")] {
        (&stream).write_all(line.as_bytes())?;
        let mut answer = String::new();
        answers.read_line(&mut answer)?;
        // A number: less than nothing is an error.
        if !answer.trim().parse::<i64>().is_ok_and(|code| code >= 0) {
            return Err(io::Error::other("the proxy refused"));
        }
    }
    Ok(())
}

fn quoted(word: &str) -> String {
    let mut quoted = String::with_capacity(word.len());
    for letter in word.chars() {
        if matches!(letter, ' ' | '\t' | '\n' | '\r' | '\\') {
            quoted.push('\\');
        }
        quoted.push(letter);
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use tulpar_core::ids::{AttemptId, JobId};
    use tulpar_core::job::Sample;
    use tulpar_core::units::Timestamp;

    fn look(ms: u64) -> LiveLine {
        let sample = Sample {
            ms,
            processes: 1,
            rss: 4096,
            cpu_us: 5,
            read_bytes: 6,
            write_bytes: 7,
            gpu_percent: None,
            gpu_memory: None,
        };
        LiveLine::new(Timestamp(ms * 1000), AttemptId { job: JobId(3), n: 1 }, Seen::Running(sample))
    }

    /// What a proxy that answers so is told.
    fn told(answers: &'static [&'static str], ms: &[u64]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let config = folder.path().join(CONFIG);
        fs::write(&config, format!("127.0.0.1 {port} se\\cret\n")).unwrap();
        let proxy = std::thread::spawn(move || {
            let mut said = Vec::new();
            let mut answers = answers.iter();
            while let Some(first) = answers.next() {
                let (stream, _) = listener.accept().unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                for answer in [Some(first), answers.next()].into_iter().flatten() {
                    let Some(Ok(line)) = lines.next() else { break };
                    said.push(line);
                    (&stream).write_all(answer.as_bytes()).unwrap();
                }
            }
            said
        });
        let (looks, received) = bounded(16);
        ms.iter().for_each(|ms| looks.send(look(*ms)).unwrap());
        drop(looks);
        run(&Way::Chirp(config), &received, &never(), None);
        proxy.join().unwrap()
    }

    #[test]
    fn looks_go_into_the_log_of_the_site_every_ten_seconds_at_most() {
        let said = told(&["0\n", "0\n", "0\n", "0\n"], &[1000, 9000, 10_000, 11_000, 19_999, 20_001]);
        assert_eq!(
            said,
            [
                "cookie se\\\\cret",
                "ulog tulpar:10000000,10000,1,4096,5,6,7,,",
                "cookie se\\\\cret",
                "ulog tulpar:20001000,20001,1,4096,5,6,7,,"
            ]
        );
    }

    #[test]
    fn a_proxy_that_refuses_is_not_called_for_ever() {
        let said = told(&["-1\n", "", "-1\n", "", "-1\n", ""], &[10_000, 20_000, 30_000, 40_000, 50_000]);
        assert_eq!(said.len(), 3);
    }

    #[test]
    fn in_a_shared_folder_the_last_look_lies_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seen.json");
        let (looks, received) = bounded(4);
        [10_000, 20_000].iter().for_each(|ms| looks.send(look(*ms)).unwrap());
        drop(looks);
        run(&Way::File(path.clone()), &received, &never(), None);
        let text = fs::read(&path).unwrap();
        assert_eq!(LiveLine::read(text.strip_suffix(b"\n").unwrap()), Some(look(20_000)));
    }
}
