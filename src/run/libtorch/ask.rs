//! One question to the program that links libtorch, and its answer, however much is said beside it.

use std::{
    collections::VecDeque,
    io::Read,
    path::Path,
    process::{Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, sync_channel},
    time::{Duration, Instant},
};

use super::LibtorchError;

/// Longest that it may take to load libtorch and to answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(10);
/// How long the ends of its pipes are waited for once it is gone: a child of its own may hold them.
const REST: Duration = Duration::from_secs(1);
/// Pieces that are taken between two looks whether it has ended.
const AT_ONCE: u32 = 64;
/// Bytes at the end of what it says that are kept.
const KEPT: usize = 256 << 10;

/// What `PROGRAM probe` said.
#[derive(Debug)]
pub(super) struct Answer {
    /// Exit status in words.
    pub(super) status: String,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// Asks; the program is killed when it does not end in time.
pub(super) fn ask(program: &Path) -> Result<Answer, LibtorchError> {
    let broken = |said: String| LibtorchError::Broken { program: program.display().to_string(), said };
    let mut child = Command::new(program)
        .arg("probe")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| broken(error.to_string()))?;
    // A pipe that nobody reads is full after 64 KiB, and holds up who writes.
    let mut stdout = Heard::new(child.stdout.take()).map_err(|error| broken(error.to_string()))?;
    let mut stderr = Heard::new(child.stderr.take()).map_err(|error| broken(error.to_string()))?;
    let until = Instant::now() + PATIENCE;
    let status = loop {
        stdout.listen(None);
        stderr.listen(None);
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < until => std::thread::sleep(POLL),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(LibtorchError::Silent { program: program.display().to_string() });
            }
        }
    };
    let rest = Instant::now() + REST;
    stdout.listen(Some(rest));
    stderr.listen(Some(rest));
    Ok(Answer { status: status.to_string(), stdout: stdout.text(), stderr: stderr.text() })
}

/// What has come through a pipe, the end of it.
struct Heard {
    pieces: Receiver<Vec<u8>>,
    end: VecDeque<u8>,
}

impl Heard {
    /// Reads it on a thread of its own.
    fn new(pipe: Option<impl Read + Send + 'static>) -> std::io::Result<Self> {
        let (send, pieces) = sync_channel(16);
        std::thread::Builder::new().name("probe".into()).spawn(move || {
            let Some(mut pipe) = pipe else { return };
            let mut block = vec![0; 16 << 10];
            // Nobody listens any more, or there is no more.
            while let Ok(read @ 1..) = pipe.read(&mut block) {
                if send.send(block[..read].to_vec()).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { pieces, end: VecDeque::new() })
    }

    /// Takes what is there, or everything up to the end of the pipe, if that comes in time. What has no end is taken in
    /// pieces.
    fn listen(&mut self, until: Option<Instant>) {
        for taken in 0.. {
            let left = until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()));
            match self.pieces.recv_timeout(left) {
                Ok(piece) => self.end.extend(piece),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
            self.end.drain(..self.end.len().saturating_sub(KEPT));
            if left.is_zero() && taken >= AT_ONCE {
                break;
            }
        }
    }

    fn text(self) -> String {
        let bytes: Vec<u8> = self.end.into();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn asked(body: &str) -> Answer {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        ask(&path).unwrap()
    }

    #[test]
    fn whatever_is_said_beside_the_answer_does_not_hold_it_up() {
        let begun = Instant::now();
        let chatty = "i=0; while [ $i -lt 4000 ]; do echo 'a line of some fifty letters that nobody has asked for' >&2; \
                      i=$((i+1)); done; echo answer; echo last >&2";
        let Answer { status, stdout, stderr } = asked(chatty);
        assert_eq!((stdout.as_str(), status.as_str()), ("answer\n", "exit status: 0"));
        assert!(stderr.ends_with("last\n") && stderr.len() > 64 << 10, "{}", stderr.len());
        assert!(begun.elapsed() < PATIENCE, "it was not waited for in vain");
    }

    #[test]
    fn a_child_that_keeps_the_pipes_open_is_not_waited_for() {
        let begun = Instant::now();
        let Answer { stdout, .. } = asked("sleep 30 & echo answer");
        assert_eq!(stdout, "answer\n");
        assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
    }
}
