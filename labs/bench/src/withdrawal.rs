//! A command that is ended by a signal leaves no file of a visible network.
//!
//! Belongs to commands that do not take signals over themselves. A thread waits for them, removes
//! the files, and lets the signal end the process as it would have.

use std::sync::Once;
use std::time::Duration;

use sapwood::VisibleNetwork;
use sapwood_transport::{Interest, Poller};

use sapwood_hosts::signals::Signals;

/// Between two looks where the system gives no poller.
const PAUSE: Duration = Duration::from_millis(100);

/// From now on; further calls change nothing. Where the system refuses it, the files are left for
/// the next command that looks.
pub(crate) fn before_signals_end_us() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let Ok(signals) = Signals::take_over() else { return };
        let waiting = std::thread::Builder::new().name("signals".to_string());
        // Without the thread the signals would be swallowed.
        if waiting.spawn(move || wait(signals)).is_err() {
            eprintln!("sapwood: no thread is left to wait for signals");
            std::process::exit(i32::from(sapwood_command_line::exit::OWN_FAILURE));
        }
    });
}

fn wait(mut signals: Signals) {
    let mut poller = Poller::new().ok();
    for (number, descriptor) in (0..).zip(signals.descriptors()) {
        poller.take_if(|poller| poller.add(descriptor, number, Interest::READ).is_err());
    }
    let mut events = Vec::new();
    loop {
        poller.take_if(|poller| poller.wait(&mut events, None).is_err());
        if poller.is_none() {
            std::thread::sleep(PAUSE);
        }
        for signal in signals.take() {
            VisibleNetwork::withdraw_own();
            let _ = signal_hook::low_level::emulate_default_handler(signal.as_raw());
        }
    }
}
