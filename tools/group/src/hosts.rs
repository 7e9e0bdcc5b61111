//! Hosts of the test bed, between which its emulator delays and limits what is sent.
//!
//! `testbed/with-hosts` makes them, runs a command with them, and removes them, however that ends.
//! A host is a network namespace: its processes share this machine's clock and files.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use sapwood_command_line::exit::Failure;
use sapwood_launch::{Order, replace_process};
use sapwood_layout::Emulation;

/// The hosts, by the folder of the test bed in Sapwood's source.
#[derive(Clone, Debug)]
pub struct TestBed {
    folder: PathBuf,
}

impl TestBed {
    /// The test bed of a folder.
    ///
    /// # Errors
    /// [`Failure`] if it is not there.
    pub fn new(folder: &Path) -> Result<Self, Failure> {
        if folder.join("with-hosts").is_file() {
            return Ok(Self { folder: folder.to_path_buf() });
        }
        Err(Failure::usage(format!(
            "there is no test bed in '{}': run this in the top folder of Sapwood's source, or name \
             its folder with --testbed",
            folder.display()
        )))
    }

    /// Runs a command in the place of this process while the hosts of a network are there; the
    /// command gets one more word, the name of a folder for files. Comes back only with an error.
    #[must_use]
    pub fn raise(&self, emulation: &Emulation, command: &[String]) -> Failure {
        let starter = self.folder.join("with-hosts");
        let mut words = vec![emulation.host_of.len().to_string(), emulation.text.clone()];
        words.extend_from_slice(command);
        let words: Vec<OsString> = words.into_iter().map(Into::into).collect();
        let error = replace_process(&starter, &words);
        Failure::own(&format!("cannot run {}: {error}", starter.display()))
    }

    /// What starts a command on a host.
    #[must_use]
    pub fn order(&self, host: u32, command: &[String]) -> Order<'static> {
        let mut order = Order::new(self.folder.join("testbed"));
        let mut words: Vec<OsString> = vec!["exec".into(), format!("node{host:02}").into()];
        words.extend(command.iter().map(Into::into));
        order.arguments = words;
        order
    }

    /// The address of a host.
    #[must_use]
    pub fn address_of(host: u32) -> String {
        format!("10.77.{}.{}", host / 250 + 1, host % 250 + 1)
    }
}
