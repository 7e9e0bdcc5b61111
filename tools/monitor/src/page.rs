//! The page of a run: opened before the program starts, told of each round, closed at the end.

use std::net::SocketAddr;

use sapwood_command_line::exit::{Failure, complain};
use sapwood_report::RoundRecord;
use sapwood_web::{Control, Page, Program};

use super::control::{ControlChannel, ControlRequest};
use super::desk::Reply;

/// What is asked of a page.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct PageArguments {
    /// Serve a web page of the run to browsers on this machine; its address is printed.
    #[arg(long)]
    page: bool,
    /// Serve the page at this address or port instead of a free port of the loopback interface.
    #[arg(long, value_name = "ADDRESS", value_parser = sapwood_web::listen_address)]
    page_listen: Option<SocketAddr>,
}

impl PageArguments {
    /// Whether a page is wanted.
    pub(crate) fn is_wanted(&self) -> bool {
        self.page || self.page_listen.is_some()
    }

    /// Opens the page. Its address is to be told.
    ///
    /// # Errors
    /// [`Failure`] that names the address that cannot be listened on.
    pub(crate) fn open(&self, program: Program, control: Option<Control>) -> Result<Page, Failure> {
        Page::open(program, self.page_listen, control).map_err(|error| {
            let place = self.page_listen.map(|place| format!(" at {place}")).unwrap_or_default();
            Failure::usage(format!(
                "the page cannot be served{place}: {error}; name another address by --page-listen"
            ))
        })
    }
}

/// Prints the address of a page.
pub(crate) fn tell(page: &Page, what: &str) {
    complain(format_args!("the page of {what} is at {}", page.address()));
    if page.is_open_to_others() {
        complain(format_args!(
            "other machines can reach this page, and it is not encrypted; 'ssh -L' to a page \
             at the loopback interface is safer"
        ));
    }
}

/// What the page's browsers ask of a run.
fn orders(channel: ControlChannel) -> Control {
    Box::new(move |order| {
        let request = ControlRequest::parse(&order.to_string())?;
        let reply = channel.ask(request).ok_or_else(|| "the run has ended".to_owned())?;
        let reply: Reply = serde_json::from_str(&reply).map_err(|error| error.to_string())?;
        if reply.error.is_empty() { Ok(()) } else { Err(reply.error) }
    })
}

/// The page of a run, if one is wanted.
pub(crate) struct RunPage(Option<Page>);

impl RunPage {
    /// Opens it.
    ///
    /// # Errors
    /// As [`PageArguments::open`].
    pub(crate) fn open(
        arguments: &PageArguments,
        command: &[std::ffi::OsString],
        control: Option<ControlChannel>,
    ) -> Result<Self, Failure> {
        if !arguments.is_wanted() {
            return Ok(Self(None));
        }
        let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
        let program = Program { command: words.join(" "), is_replay: false };
        let page = arguments.open(program, control.map(orders))?;
        tell(&page, "this run");
        Ok(Self(Some(page)))
    }

    /// Hands a round on.
    pub(crate) fn publish(&mut self, record: impl FnOnce() -> RoundRecord) {
        if let Some(page) = &mut self.0 {
            page.publish(record());
        }
    }

    /// Tells how the program has ended; the page ends with it.
    pub(crate) fn end(mut self, how: &str) {
        if let Some(mut page) = self.0.take() {
            page.end(how);
            page.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_that_the_run_refuses_is_refused_with_its_reason() {
        let (channel, mut queue) = ControlChannel::open().expect("a pipe");
        let run = std::thread::spawn(move || {
            let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
            for error in ["-3.0 s is no interval", ""] {
                let waiting = loop {
                    assert!(std::time::Instant::now() < deadline, "no request came");
                    if let Some(waiting) = queue.next() {
                        break waiting;
                    }
                    std::thread::yield_now();
                };
                let reply = Reply { error: error.into(), ..Reply::default() };
                let reply = serde_json::to_string(&reply).expect("JSON");
                waiting.answer.send(reply).expect("it waits");
            }
        });
        let order = orders(channel);
        let refused = order(serde_json::json!({ "interval_s": -3 }));
        assert_eq!(refused, Err("-3.0 s is no interval".to_owned()));
        assert_eq!(order(serde_json::json!({ "interval_s": 1 })), Ok(()));
        run.join().expect("it answers");
        assert!(
            order(serde_json::json!([])).is_err_and(|error| error.contains("no control request"))
        );
    }
}
