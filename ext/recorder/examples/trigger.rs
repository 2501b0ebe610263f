// SPDX-License-Identifier: MIT
// Pulls a recorder's trigger: trigger PATH TEXT, with a socket or with trace_marker as PATH.
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::net::UnixDatagram;

enum Trigger {
    Socket(UnixDatagram),
    Marker(File),
}

impl Trigger {
    /// Once, before the loop. It fails if no recorder runs.
    fn open(path: &str) -> std::io::Result<Self> {
        if path.ends_with("trace_marker") {
            return Ok(Self::Marker(OpenOptions::new().write(true).open(path)?));
        }
        let said = UnixDatagram::unbound()?;
        said.set_nonblocking(true)?;
        said.connect(path)?;
        Ok(Self::Socket(said))
    }

    /// In the loop: it does not block.
    fn pull(&mut self, text: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Socket(said) => said.send(text),
            Self::Marker(marker) => marker.write(text),
        }
    }
}

fn main() -> std::io::Result<()> {
    let words: Vec<String> = std::env::args().collect();
    Trigger::open(&words[1])?.pull(words[2].as_bytes())?;
    Ok(())
}
