//! One small server for the page of a program that is watched, or of one that has been.
//!
//! [`Page`] listens on this machine only, unless it is told otherwise, and serves browsers that
//! know the token in its address. It takes records of rounds ([`RoundRecord`]), keeps them in
//! bounded memory, and hands each one on to all browsers as it comes. All of it is done by one
//! thread of its own: a caller that publishes a round never waits, neither for a browser nor for
//! this thread.
//!
//! The page itself is TypeScript (`page/src`); what is served of it is what was built from that
//! (`page/built`), so that this crate is built without a builder of pages.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod assets;
mod body;
mod bounds;
mod history;
mod server;
mod state;
mod token;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use sapwood_report::RoundRecord;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use self::state::State;
use self::token::Token;

/// Rounds that wait for the thread at most.
const MESSAGES_MAX: usize = 64;

/// What an order of a browser is given to: JSON, and why it cannot be obeyed.
pub type Control = Box<dyn Fn(serde_json::Value) -> Result<(), String> + Send>;

/// What the page is of.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Its command, as a reader knows it.
    pub command: String,
    /// Whether it has ended already and its rounds are shown again.
    pub is_replay: bool,
}

/// What the thread is told.
enum Message {
    Round { record: Box<RoundRecord>, published_ms: f64 },
    End(String),
}

/// A page that is served as long as this lives.
pub struct Page {
    address: String,
    is_open_to_others: bool,
    messages: Option<mpsc::Sender<Message>>,
    thread: Option<JoinHandle<u64>>,
    rounds_lost: u64,
}

impl Page {
    /// Starts to serve. Without an address it is one of this machine only, with a free port.
    ///
    /// # Errors
    /// The system's, if the address is not ours or the port is taken.
    pub fn open(
        program: Program,
        listen: Option<SocketAddr>,
        control: Option<Control>,
    ) -> std::io::Result<Self> {
        let token = Token::random()?;
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let listen = listen.unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let listener = runtime.block_on(TcpListener::bind(listen))?;
        let local = listener.local_addr()?;
        let address = format!("http://{}/{token}/", reached_at(local));
        let (messages, receiver) = mpsc::channel(MESSAGES_MAX);
        let serve = move || {
            let state = State::new(program, control);
            runtime.block_on(server::serve(listener, token, state, receiver))
        };
        let thread = std::thread::Builder::new().name("page".to_owned()).spawn(serve)?;
        Ok(Self {
            address,
            is_open_to_others: !local.ip().is_loopback(),
            messages: Some(messages),
            thread: Some(thread),
            rounds_lost: 0,
        })
    }

    /// The address with the token in it, for a browser.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Whether other machines reach it. Nothing hides there what is sent, the token neither.
    #[must_use]
    pub fn is_open_to_others(&self) -> bool {
        self.is_open_to_others
    }

    /// Hands a round to all browsers, at once and without waiting. A round for which there is no
    /// room is lost, and counted.
    pub fn publish(&mut self, record: RoundRecord) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let published_ms = (now.as_secs_f64() * 1e4).round() / 10.0;
        self.tell(Message::Round { record: Box::new(record), published_ms });
    }

    /// Hands a round of a file over, as fast as it is taken.
    pub fn replay(&mut self, record: RoundRecord) {
        if let Some(messages) = &self.messages {
            let record = Box::new(record);
            // A thread that has ended takes no more.
            let _ = messages.blocking_send(Message::Round { record, published_ms: 0.0 });
        }
    }

    /// Tells all browsers how the program has ended.
    pub fn end(&mut self, how: &str) {
        self.tell(Message::End(how.to_owned()));
    }

    fn tell(&mut self, message: Message) {
        let told = self.messages.as_ref().map(|messages| messages.try_send(message));
        self.rounds_lost += u64::from(!matches!(told, Some(Ok(()))));
    }

    /// Ends the server, after browsers have heard of the end or half a second. Gives how many
    /// rounds a browser did not get because it read too slowly.
    pub fn close(mut self) -> u64 {
        self.join();
        self.rounds_lost
    }

    fn join(&mut self) {
        self.messages = None;
        if let Some(thread) = self.thread.take() {
            self.rounds_lost += thread.join().unwrap_or(0);
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.join();
    }
}

/// Where to listen, from what was typed: an address, a port, or both.
///
/// # Errors
/// One line that says what may be typed.
pub fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let both = text.parse().ok();
    let address = || text.parse::<IpAddr>().ok().map(|address| SocketAddr::new(address, 0));
    let port = || text.parse().ok().map(|port: u16| (Ipv4Addr::LOCALHOST, port).into());
    both.or_else(address).or_else(port).ok_or_else(|| {
        "an address of this machine is needed, such as 127.0.0.1, 127.0.0.1:8080, 0.0.0.0:8080 or \
         a port alone"
            .to_owned()
    })
}

/// How a browser names an address that is listened on. All of a machine's go by its name.
fn reached_at(local: SocketAddr) -> String {
    if !local.ip().is_unspecified() {
        return local.to_string();
    }
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = if name.trim().is_empty() { "localhost" } else { name.trim() };
    format!("{name}:{}", local.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_typed() {
        let read = |text| listen_address(text).map(|address| address.to_string());
        assert_eq!(read("8080").as_deref(), Ok("127.0.0.1:8080"));
        assert_eq!(read("0.0.0.0").as_deref(), Ok("0.0.0.0:0"));
        assert_eq!(read("127.0.0.1:80").as_deref(), Ok("127.0.0.1:80"));
        assert_eq!(read("[::1]:80").as_deref(), Ok("[::1]:80"));
        assert_eq!(read("::1").as_deref(), Ok("[::1]:0"));
        for wrong in ["", "host", "1.2.3", "70000", "127.0.0.1:"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
