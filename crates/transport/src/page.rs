//! A page over HTTP: the state of a program, for scrapers.
//!
//! No web server. It knows GET and HEAD, answers from memory, and closes each connection after one
//! answer. Everything is bounded: [`VISITORS_MAX`] connections at a time, [`REQUEST_BYTES_MAX`] of
//! a request, [`VISIT_TIME`] for each. No key is proved here, so the page must contain no secret,
//! and a visitor can do nothing but read it.
//!
//! [`PageServer`] is a descriptor that is readable when it has something to do; its owner then
//! calls [`PageServer::serve`]. The owner provides the page.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use crate::{Error, Event, Interest, Poller, Result};

/// Connections that are served at the same time. One more takes the place of the oldest.
pub const VISITORS_MAX: usize = 16;
/// Longest request with its headers, in bytes.
pub const REQUEST_BYTES_MAX: usize = 8 << 10;
/// How long a connection may last.
pub const VISIT_TIME: Duration = Duration::from_secs(5);

/// The listener's token; visitors count from the next on.
const LISTENER: u64 = 0;

/// The page at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The value of `Content-Type`.
    pub content_type: &'static str,
    /// Its contents.
    pub body: Vec<u8>,
}

/// Listens at an address and shows pages.
#[derive(Debug)]
pub struct PageServer {
    listener: TcpListener,
    address: SocketAddr,
    poller: Poller,
    visitors: BTreeMap<u64, Visitor>,
    next: u64,
}

#[derive(Debug)]
struct Visitor {
    socket: TcpStream,
    since: Instant,
    request: Vec<u8>,
    /// The unsent rest of the answer, once the request is complete.
    answer: Option<(Vec<u8>, usize)>,
}

impl PageServer {
    /// Listens; port 0 lets the system choose.
    ///
    /// # Errors
    /// [`Error::Io`] naming the address if it is taken or not ours to use.
    pub fn bind(address: SocketAddr) -> Result<Self> {
        let failed = |cause: std::io::Error| Error::io(format!("listen at {address}"), cause);
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let poller = Poller::new()?;
        poller.add(&listener, LISTENER, Interest::READ)?;
        Ok(Self { listener, address, poller, visitors: BTreeMap::new(), next: LISTENER + 1 })
    }

    /// Where it listens, with the port that the system chose.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Reads and writes without waiting. `page` returns the page at a path, without its query;
    /// nothing where there is no such page.
    ///
    /// # Errors
    /// [`Error::Io`] only if the server itself is broken; a visitor's troubles end its visit.
    pub fn serve(
        &mut self,
        now: Instant,
        page: &mut dyn FnMut(&str) -> Option<Page>,
    ) -> Result<()> {
        self.visitors.retain(|_, visitor| now < visitor.since + VISIT_TIME);
        let mut events: Vec<Event> = Vec::new();
        self.poller.wait(&mut events, Some(Duration::ZERO))?;
        for event in events {
            if event.token == LISTENER {
                self.admit(now)?;
            } else if let Some(visitor) = self.visitors.get_mut(&event.token)
                && !visitor.go_on(page)
            {
                // A descriptor that is closed leaves the poller by itself.
                self.visitors.remove(&event.token);
            } else if let Some(visitor) = self.visitors.get(&event.token) {
                let sends = visitor.answer.is_some();
                let interest = if sends { Interest::WRITE } else { Interest::READ };
                self.poller.modify(&visitor.socket, event.token, interest)?;
            }
        }
        Ok(())
    }

    /// Accepts one connection; the poller reports the next again.
    fn admit(&mut self, now: Instant) -> Result<()> {
        // A connection that has gone again, or no descriptor: the next time.
        let Ok((socket, _)) = self.listener.accept() else { return Ok(()) };
        if socket.set_nonblocking(true).is_err() {
            return Ok(());
        }
        if self.visitors.len() >= VISITORS_MAX {
            self.visitors.pop_first();
        }
        self.poller.add(&socket, self.next, Interest::READ)?;
        let visitor = Visitor { socket, since: now, request: Vec::new(), answer: None };
        self.visitors.insert(self.next, visitor);
        self.next += 1;
        Ok(())
    }
}

impl AsFd for PageServer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }
}

impl Visitor {
    /// Reads or writes what can be; false when the visit is over.
    fn go_on(&mut self, page: &mut dyn FnMut(&str) -> Option<Page>) -> bool {
        if self.answer.is_none() {
            let mut bytes = [0; 4096];
            match self.socket.read(&mut bytes) {
                Ok(0) => return false,
                Ok(count) => self.request.extend_from_slice(&bytes[..count]),
                Err(error) => return is_passing(&error),
            }
            let Some(answer) = answer(&self.request, page) else { return true };
            self.answer = Some((answer, 0));
        }
        let Some((answer, sent)) = &mut self.answer else { return true };
        match self.socket.write(&answer[*sent..]) {
            Ok(count) => *sent += count,
            Err(error) => return is_passing(&error),
        }
        *sent < answer.len()
    }
}

fn is_passing(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// The answer to a request; none as long as it is not whole.
fn answer(request: &[u8], page: &mut dyn FnMut(&str) -> Option<Page>) -> Option<Vec<u8>> {
    let end = request.windows(4).position(|four| four == b"\r\n\r\n");
    let Some(end) = end.filter(|end| *end <= REQUEST_BYTES_MAX) else {
        let is_too_long = request.len() > REQUEST_BYTES_MAX;
        return is_too_long.then(|| refusal("431 Request Header Fields Too Large"));
    };
    let line = request[..end].split(|&byte| byte == b'\r').next().unwrap_or_default();
    let words: Vec<&str> = std::str::from_utf8(line).unwrap_or_default().split(' ').collect();
    let &[method, target, version] = &words[..] else { return Some(refusal("400 Bad Request")) };
    if !version.starts_with("HTTP/1.") || !target.starts_with('/') {
        return Some(refusal("400 Bad Request"));
    }
    if !matches!(method, "GET" | "HEAD") {
        return Some(refusal("405 Method Not Allowed"));
    }
    let path = target.split(['?', '#']).next().unwrap_or_default();
    let Some(page) = page(path) else { return Some(refusal("404 Not Found")) };
    let mut answer = head("200 OK", page.content_type, page.body.len());
    if method == "GET" {
        answer.extend_from_slice(&page.body);
    }
    Some(answer)
}

fn refusal(status: &str) -> Vec<u8> {
    let text = format!("{}\n", status.split_once(' ').map_or(status, |(_, words)| words));
    let mut answer = head(status, "text/plain; charset=utf-8", text.len());
    answer.extend_from_slice(text.as_bytes());
    answer
}

fn head(status: &str, content_type: &str, length: usize) -> Vec<u8> {
    let allow = if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n{allow}\
         Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page that is longer than any socket takes at once.
    const LENGTH: usize = 8 << 20;

    fn server() -> PageServer {
        PageServer::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap()
    }

    fn pages(path: &str) -> Option<Page> {
        let body = match path {
            "/metrics" => b"a 1\n".to_vec(),
            "/long" => vec![b'x'; LENGTH],
            _ => return None,
        };
        Some(Page { content_type: "text/x", body })
    }

    /// What a visitor that sends this gets to read before the connection ends.
    fn visit(server: &mut PageServer, request: &[u8]) -> Vec<u8> {
        let mut socket = TcpStream::connect(server.address()).unwrap();
        let request = request.to_vec();
        let reader = std::thread::spawn(move || {
            let mut read = Vec::new();
            // A visitor that is refused during its request may see a reset.
            let _ = socket.write_all(&request).and_then(|()| socket.read_to_end(&mut read));
            read
        });
        let until = Instant::now() + Duration::from_secs(60);
        while !reader.is_finished() && Instant::now() < until {
            server.serve(Instant::now(), &mut pages).unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
        reader.join().unwrap()
    }

    #[test]
    fn a_page_is_shown_whole_with_its_type_and_length() {
        let mut server = server();
        let answer = visit(&mut server, b"GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n");
        let text = String::from_utf8(answer).unwrap();
        assert!(text.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/x\r\n"), "{text}");
        assert!(
            text.contains("Content-Length: 4\r\n") && text.ends_with("\r\n\r\na 1\n"),
            "{text}"
        );
        let head = visit(&mut server, b"HEAD /metrics HTTP/1.0\r\n\r\n");
        assert!(head.ends_with(b"Connection: close\r\n\r\n"));
        let long = visit(&mut server, b"GET /long HTTP/1.1\r\n\r\n");
        assert!(long.len() > LENGTH && long.ends_with(b"xxxx"));
    }

    #[test]
    fn what_is_no_request_is_refused_in_a_word() {
        let mut server = server();
        for (request, status) in [
            (&b"GET /other HTTP/1.1\r\n\r\n"[..], "404"),
            (b"POST /metrics HTTP/1.1\r\n\r\n", "405"),
            (b"GET metrics HTTP/1.1\r\n\r\n", "400"),
            (b"GET /metrics SPDY/9\r\n\r\n", "400"),
            (b"\xff\xfe\r\n\r\n", "400"),
            (b"\r\n\r\n", "400"),
            (&[b'a'; REQUEST_BYTES_MAX + 1], "431"),
        ] {
            let answer = visit(&mut server, request);
            let said = String::from_utf8_lossy(&answer).into_owned();
            assert!(said.starts_with(&format!("HTTP/1.1 {status} ")), "{said:?}");
        }
    }

    #[test]
    fn silent_visitors_make_room_for_others() {
        let mut server = server();
        let begin = Instant::now();
        let silent: Vec<TcpStream> = (0..VISITORS_MAX + 3)
            .map(|_| {
                let socket = TcpStream::connect(server.address()).unwrap();
                server.serve(begin, &mut pages).unwrap();
                socket
            })
            .collect();
        assert!(server.visitors.len() <= VISITORS_MAX);
        assert!(visit(&mut server, b"GET /metrics HTTP/1.1\r\n\r\n").ends_with(b"a 1\n"));
        server.serve(begin + VISIT_TIME, &mut pages).unwrap();
        assert!(server.visitors.is_empty());
        drop(silent);
    }
}
