//! Connections of the client: plain or TLS, through a proxy or not, with a patience that ends. It knows no request but
//! CONNECT.

use super::wire::Wire;
use crate::location::Url;
use crate::types::Options;
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How soon a read that waits notices that it was cancelled.
const GLANCE: Duration = Duration::from_millis(200);
const LONGEST_CONNECT: Duration = Duration::from_secs(20);

/// A socket whose reads end after a while without any byte, or soon after the list was cancelled.
pub(crate) struct Patient {
    socket: TcpStream,
    timeout: Duration,
    cancel: Arc<AtomicBool>,
}

impl Read for Patient {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut since = None;
        loop {
            match self.socket.read(buffer) {
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    if self.cancel.load(Ordering::Relaxed) {
                        return Err(io::Error::new(ErrorKind::ConnectionAborted, "cancelled"));
                    }
                    // The first wait began one glance ago.
                    let since = since.get_or_insert_with(|| Instant::now() - GLANCE.min(self.timeout));
                    if since.elapsed() >= self.timeout {
                        let waited = format!("nothing came for {} s", self.timeout.as_secs_f32());
                        return Err(io::Error::new(ErrorKind::TimedOut, waited));
                    }
                }
                other => return other,
            }
        }
    }
}

impl Write for Patient {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

pub(crate) enum Stream {
    Plain(Patient),
    Tls(Box<StreamOwned<ClientConnection, Patient>>),
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(stream) => stream.read(buffer),
            Stream::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(stream) => stream.write(bytes),
            Stream::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(stream) => stream.flush(),
            Stream::Tls(stream) => stream.flush(),
        }
    }
}

/// A connection to one server, with what was read from it but not yet used.
pub(crate) struct Connection {
    pub(crate) wire: Wire<Stream>,
    /// Came from the pool: the server may have closed it meanwhile, which is nobody's failure.
    pub(crate) reused: bool,
    /// Requests name the whole URL, because a proxy reads them.
    pub(crate) by_proxy: bool,
}

/// Where TLS finds whom to trust, and which proxy to ask.
pub(crate) struct Dialer {
    /// Read when first needed: plain HTTP does without the hundred certificates of a system.
    tls: OnceLock<Result<Arc<ClientConfig>, String>>,
    proxies: Proxies,
}

impl Dialer {
    pub(crate) fn new() -> Self {
        Dialer { tls: OnceLock::new(), proxies: Proxies::from_environment() }
    }

    pub(crate) fn dial(&self, options: &Options, url: &Url) -> io::Result<Connection> {
        let secure = url.scheme == "https";
        let port = url.port.unwrap_or(if secure { 443 } else { 80 });
        let proxy = self.proxies.of(url);
        let patient = match proxy {
            Some((host, port)) => open(options, host, *port)?,
            None => open(options, &url.host, port)?,
        };
        if !secure {
            let wire = Wire::new(Stream::Plain(patient));
            return Ok(Connection { wire, reused: false, by_proxy: proxy.is_some() });
        }
        let patient = if proxy.is_some() { tunnel(patient, &url.host, port)? } else { patient };
        let config = self.tls.get_or_init(|| trust(options)).clone().map_err(io::Error::other)?;
        let name = ServerName::try_from(url.host.trim_matches(['[', ']']).to_owned()).map_err(io::Error::other)?;
        let session = ClientConnection::new(config, name).map_err(io::Error::other)?;
        let wire = Wire::new(Stream::Tls(Box::new(StreamOwned::new(session, patient))));
        Ok(Connection { wire, reused: false, by_proxy: false })
    }
}

fn open(options: &Options, host: &str, port: u16) -> io::Result<Patient> {
    let mut last = io::Error::new(ErrorKind::NotFound, "the name of the host is not known");
    for address in (host.trim_matches(['[', ']']), port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, options.timeout.min(LONGEST_CONNECT)) {
            Ok(socket) => {
                socket.set_nodelay(true)?;
                socket.set_read_timeout(Some(GLANCE.min(options.timeout)))?;
                socket.set_write_timeout(Some(options.timeout))?;
                return Ok(Patient { socket, timeout: options.timeout, cancel: options.cancel.clone() });
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn tunnel(mut patient: Patient, host: &str, port: u16) -> io::Result<Patient> {
    write!(patient, "CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n")?;
    let mut wire = Wire::new(patient);
    let length = wire.head()?.ok_or(ErrorKind::UnexpectedEof)?;
    let line = String::from_utf8_lossy(&wire.available()[..length]).into_owned();
    let accepted = line.split_whitespace().nth(1).is_some_and(|status| status.starts_with('2'));
    if !accepted {
        let line = line.lines().next().unwrap_or_default();
        return Err(io::Error::other(format!("the proxy does not connect to {host}: {line}")));
    }
    wire.consume(length);
    Ok(wire.stream)
}

fn trust(options: &Options) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if let Some(path) = &options.certificates {
        let failed = |error: &dyn std::fmt::Display| format!("no certificates in {}: {error}", path.display());
        for certificate in CertificateDer::pem_file_iter(path).map_err(|error| failed(&error))? {
            let certificate = certificate.map_err(|error| failed(&error))?;
            roots.add(certificate).map_err(|error| failed(&error))?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// `http_proxy`, `https_proxy` and `no_proxy`, as most programs read them. Loopback addresses never go by a proxy.
#[derive(Default)]
struct Proxies {
    plain: Option<(String, u16)>,
    secure: Option<(String, u16)>,
    exempt: Vec<String>,
}

impl Proxies {
    fn from_environment() -> Self {
        let variable = |name: &str| {
            let upper = || std::env::var(name.to_ascii_uppercase()).ok();
            std::env::var(name).ok().or_else(upper).filter(|value| !value.is_empty())
        };
        let exempt = variable("no_proxy").unwrap_or_default();
        Proxies {
            plain: variable("http_proxy").and_then(|text| Self::parse(&text)),
            secure: variable("https_proxy").and_then(|text| Self::parse(&text)),
            exempt: exempt.split(',').map(|word| word.trim().trim_start_matches('.').to_owned()).collect(),
        }
    }

    fn parse(text: &str) -> Option<(String, u16)> {
        let text = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        match crate::location::Location::parse(&text).ok()? {
            crate::location::Location::Url(url) => Some((url.host, url.port.unwrap_or(80))),
            crate::location::Location::File(_) => None,
        }
    }

    fn of(&self, url: &Url) -> Option<&(String, u16)> {
        let proxy = if url.scheme == "https" { self.secure.as_ref() } else { self.plain.as_ref() }?;
        let host = url.host.trim_matches(['[', ']']);
        let loopback = host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
        let below = |domain: &str| host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
        let exempt = self.exempt.iter().any(|domain| domain == "*" || (!domain.is_empty() && below(domain)));
        (!loopback && !exempt).then_some(proxy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::location::Location;

    #[test]
    fn hosts_that_are_exempt_or_here_need_no_proxy() {
        let proxies = Proxies {
            plain: Proxies::parse("http://proxy.example.org:3128/"),
            secure: None,
            exempt: vec!["inside.org".to_owned()],
        };
        let asked = |text: &str| match Location::parse(text) {
            Ok(Location::Url(url)) => proxies.of(&url).cloned(),
            other => panic!("{other:?}"),
        };
        assert_eq!(asked("http://data.org/a"), Some(("proxy.example.org".to_owned(), 3128)));
        assert_eq!(asked("https://data.org/a"), None);
        assert_eq!(asked("http://a.inside.org/a"), None);
        assert_eq!(asked("http://beinside.org/a"), Some(("proxy.example.org".to_owned(), 3128)));
        assert_eq!(asked("http://127.0.0.1:8080/a"), None);
        assert_eq!(asked("http://localhost/a"), None);
    }
}
