//! Pages that a program makes: what is asked reaches it, what it gives reaches the client, nothing can be sent in.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, PoisonError};
use tulpar_transfer::{Answer, AnswerBody, Asked, Handler, Pages};

/// Says what it was asked; `/stream` gives what comes through a channel.
struct Echo {
    news: Arc<Mutex<Option<Receiver<&'static str>>>>,
}

impl Handler for Echo {
    fn answer(&self, asked: &Asked) -> Answer {
        if asked.path == ["stream"] {
            let news = self.news.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap();
            return Answer {
                status: 200,
                kind: "text/event-stream",
                headers: Vec::new(),
                body: AnswerBody::Stream(Box::new(move |out| {
                    news.iter().try_for_each(|text| out.write_all(text.as_bytes()))
                })),
            };
        }
        let text = format!("{:?} {:?} {:?}", asked.path, asked.query("q"), asked.header("x-word"));
        Answer::new(200, "text/plain", text.into_bytes()).with("X-Bad", "a\r\nSet-Cookie: b").with("X-Good", "c")
    }
}

fn start() -> (Pages, std::sync::mpsc::Sender<&'static str>) {
    let (send, news) = channel();
    let echo = Echo { news: Arc::new(Mutex::new(Some(news))) };
    (Pages::start("127.0.0.1:0", 8, Arc::new(echo)).unwrap(), send)
}

fn said(pages: &Pages, request: &str) -> String {
    let mut socket = TcpStream::connect(pages.address()).unwrap();
    socket.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn what_is_asked_reaches_the_handler_and_its_answer_the_client() {
    let (pages, _send) = start();
    let text = said(&pages, "GET /a%20b/c?q=1+2 HTTP/1.1\r\nX-Word: hi\r\nConnection: close\r\n\r\n");
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    assert!(text.ends_with("\r\n\r\n[\"a b\", \"c\"] Some(\"1 2\") Some(\"hi\")"), "{text}");
    assert!(text.contains("X-Good: c") && !text.contains("Set-Cookie"), "no line end gets into a head: {text}");
}

#[test]
fn several_requests_share_a_connection_and_a_head_has_no_body() {
    let (pages, _send) = start();
    let text = said(&pages, "HEAD /one HTTP/1.1\r\n\r\nGET /two HTTP/1.1\r\nConnection: close\r\n\r\n");
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 2, "{text}");
    assert!(!text.contains("[\"one\"]") && text.contains("[\"two\"]"), "{text}");
}

#[test]
fn nothing_can_be_sent_in() {
    let (pages, _send) = start();
    for method in ["POST", "PUT", "DELETE"] {
        let text = said(&pages, &format!("{method} / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"));
        assert!(text.starts_with("HTTP/1.1 405 ") && text.contains("Allow: GET, HEAD"), "{text}");
    }
    assert!(said(&pages, "nonsense\r\n\r\n").starts_with("HTTP/1.1 400 "));
    assert!(said(&pages, "GET /%ff HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 400 "));
    let long = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(300_000));
    let mut socket = TcpStream::connect(pages.address()).unwrap();
    // It may hang up before all of it was sent.
    let _ = socket.write_all(long.as_bytes());
    let mut start = [0; 12];
    if socket.read_exact(&mut start).is_ok() {
        assert_eq!(&start, b"HTTP/1.1 431");
    }
}

#[test]
fn a_stream_is_written_as_it_comes_and_ends_with_its_writer() {
    let (pages, send) = start();
    let mut socket = TcpStream::connect(pages.address()).unwrap();
    socket.write_all(b"GET /stream HTTP/1.1\r\n\r\n").unwrap();
    let mut seen = String::new();
    for news in ["one\n", "two\n"] {
        send.send(news).unwrap();
        while !seen.ends_with(news) {
            let mut bytes = [0; 256];
            let count = socket.read(&mut bytes).unwrap();
            assert!(count > 0, "it ended early: {seen}");
            seen.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
        }
    }
    drop(send);
    socket.read_to_string(&mut seen).unwrap();
    assert!(seen.ends_with("one\ntwo\n") && !seen.contains("Content-Length"), "{seen}");
    pages.stop();
}
