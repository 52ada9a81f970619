//! A check of accumulation in a process of its own: neither the screens nor the program that draws them wait for it.

use std::{
    io::{Read, Write},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, mpsc::SyncSender},
};

use crate::{app::Msg, config::own, protocol::AccumulationCheck, run::libtorch};

/// The running check; dropping it ends its process.
#[derive(Debug)]
pub struct Checking(Shared);

type Shared = Arc<Mutex<Slot>>;

#[derive(Debug)]
enum Slot {
    Starting,
    Running(Child),
    /// Nobody waits for the answer any more, or it has been given.
    Over,
}

impl Checking {
    /// Starts the check of this program with these settings, as TOML. The message carries the number.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(number: u64, settings: String, messages: SyncSender<(u64, Msg)>) -> std::io::Result<Self> {
        let mut command = Command::new(own::worker_program());
        command.args(["check", "accumulation", "--json", "/dev/stdin"]);
        // The settings say everything that was set by hand, the environment's part included.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("TUI_TRAIN_")
                && name != "TUI_TRAIN_HOME"
                && name != libtorch::VARIABLE
            {
                command.env_remove(name);
            }
        }
        Self::with(command, number, settings, messages)
    }

    fn with(
        mut command: Command,
        number: u64,
        settings: String,
        messages: SyncSender<(u64, Msg)>,
    ) -> std::io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let slot: Shared = Arc::new(Mutex::new(Slot::Starting));
        let shared = Arc::clone(&slot);
        std::thread::Builder::new().name("check".into()).spawn(move || {
            if let Some(answer) = answer(command, &settings, &shared) {
                // Nobody reads it any more when the UI is gone.
                let _ = messages.send((0, Msg::Checked { number, answer }));
            }
        })?;
        Ok(Self(slot))
    }
}

impl Drop for Checking {
    fn drop(&mut self) {
        if let Ok(mut slot) = self.0.lock()
            && let Slot::Running(mut child) = std::mem::replace(&mut *slot, Slot::Over)
        {
            // It may have ended by itself; waiting leaves no zombie.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

type Answer = Result<Box<AccumulationCheck>, String>;

/// Runs the process to its end; nothing when nobody waits for it any more.
fn answer(mut command: Command, settings: &str, shared: &Shared) -> Option<Answer> {
    let (stdin, stdout, stderr) = {
        let mut slot = shared.lock().ok()?;
        if matches!(*slot, Slot::Over) {
            return None;
        }
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => return Some(Err(format!("the check cannot be started: {error}"))),
        };
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        *slot = Slot::Running(child);
        pipes
    };
    // A process that ends before it has read all says why on its other pipes.
    if let Some(mut pipe) = stdin {
        let _ = pipe.write_all(settings.as_bytes());
    }
    let (mut found, mut said) = (String::new(), String::new());
    let read = stdout.map_or(Ok(0), |mut pipe| pipe.read_to_string(&mut found));
    let read = read.and(stderr.map_or(Ok(0), |mut pipe| pipe.read_to_string(&mut said)));
    let Slot::Running(mut child) = std::mem::replace(&mut *shared.lock().ok()?, Slot::Over) else {
        return None;
    };
    let ended = child.wait();
    if let Err(error) = read {
        return Some(Err(format!("the check's answer cannot be read: {error}")));
    }
    let answer = serde_json::from_str(&found).map_err(|_| {
        let sentence = said.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        match ended {
            _ if !sentence.is_empty() => sentence,
            Ok(status) => format!("the check ended without an answer ({status})"),
            Err(error) => format!("the check ended without an answer: {error}"),
        }
    });
    Some(answer)
}

#[cfg(test)]
mod tests {
    use std::{
        sync::mpsc::{Receiver, sync_channel},
        time::{Duration, Instant},
    };

    use super::*;

    const DEADLINE: Duration = Duration::from_secs(60);

    fn checking(script: &str, settings: &str) -> (Checking, Receiver<(u64, Msg)>) {
        let (sender, messages) = sync_channel(4);
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        (Checking::with(command, 3, settings.into(), sender).unwrap(), messages)
    }

    fn told(script: &str) -> Answer {
        let (_checking, messages) = checking(script, "train.seed = 3\n");
        let (_, msg) = messages.recv_timeout(DEADLINE).unwrap();
        let Msg::Checked { number: 3, answer } = msg else { panic!("{msg:?}") };
        answer
    }

    #[test]
    fn the_answer_is_read_also_from_a_check_that_does_not_hold() {
        let answer = r#"{"schema":1,"model":"m","device":"flex","rows":2,"targets":9,"loss":[1,1],"grad_norm":[1,2],
            "largest_difference":1,"largest_gradient":1,"terms":9,"tolerance":1e-6,"holds":false,
            "naive_largest_difference":"inf","worst":[]}"#;
        let found = told(&format!("cat > /dev/null; echo '{answer}'; exit 1")).unwrap();
        assert!(!found.holds && found.naive_differs());
        assert_eq!(found.grad_norm, [1.0, 2.0]);
    }

    #[test]
    fn a_check_that_fails_tells_why() {
        assert_eq!(told("cat >&2; exit 2").unwrap_err(), "train.seed = 3");
        assert_eq!(told("echo 'error: no text' >&2; exit 2").unwrap_err(), "no text");
        assert!(told("exit 3").unwrap_err().contains("exit status: 3"));
    }

    #[test]
    fn dropping_it_ends_its_process_and_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("started");
        let script = format!("echo $$ > '{0}.new'; mv '{0}.new' '{0}'; exec sleep 600", mark.display());
        let (checking, messages) = checking(&script, "");
        let begun = Instant::now();
        while !mark.exists() {
            assert!(begun.elapsed() < DEADLINE, "the process does not start");
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(checking);
        // The thread ends without a message, which closes the channel.
        assert!(messages.recv_timeout(DEADLINE).is_err());
        assert!(begun.elapsed() < DEADLINE, "it was waited for");
        let id = std::fs::read_to_string(&mark).unwrap();
        assert!(!std::path::Path::new("/proc").join(id.trim()).exists(), "the process is gone");
    }
}
