//! `tui-train stop RUN`: finish the update, write a checkpoint, end.

use std::time::{Duration, Instant};

use anyhow::bail;

use super::{FAILED, output, progress::Waiting};
use crate::{
    config::Arch,
    protocol::{Answer, Command, Reason},
    run::{
        Client, Home, Queue, RunDir, RunEntry, RunError, State, goes_on, is_live, list::Lister, text::count,
    },
};

/// Which run.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Id, unique prefix, name, path, or `latest`
    #[arg(value_name = "RUN")]
    run: String,
    /// Seconds to wait for the run to end
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    timeout: u64,
}

/// Time between two looks whether the worker has gone.
const POLL: Duration = Duration::from_millis(20);

/// Stops the run and waits until its worker has written everything.
///
/// # Errors
/// The run cannot be found or does not answer.
pub fn run(args: Args) -> anyhow::Result<i32> {
    let home = Home::from_env()?;
    let run = RunDir::resolve(&home, &args.run)?;
    if Queue::of(&home).remove(&run)? {
        output::line(&format!("run {}: taken out of the queue, it will not start", run.id()))?;
        return Ok(0);
    }
    stop(&run, Instant::now() + Duration::from_secs(args.timeout))
}

fn stop(run: &RunDir, until: Instant) -> anyhow::Result<i32> {
    let entry = Lister::default().entry(run);
    if !is_live(run) {
        let state = match entry.state {
            State::Queued => "has not started",
            State::Crashed => "has crashed",
            _ => "has already ended",
        };
        output::message(&format!(
            "error: run {} is not live, it {state}: there is nothing to stop",
            run.id()
        ));
        return Ok(FAILED);
    }
    let mut client = connect(run, until)?;
    let told = || output::message("the run stops after the update that is under way");
    match client.ask_and_tell(Command::Stop, left(until), told) {
        Ok(Answer::Rejected { why }) => bail!("run {} does not stop: {why}", run.id()),
        // A worker that ends before it answers has ended all the same.
        Ok(_) | Err(RunError::Closed(_)) => {}
        Err(error) => return Err(error.into()),
    }
    let waiting = Waiting::on("the run ends its update and writes down what it has");
    while is_live(run) {
        if left(until).is_zero() {
            bail!("run {} was told to stop, but its worker has not ended yet", run.id());
        }
        std::thread::sleep(POLL);
    }
    drop(waiting);
    ended(run, &Lister::default().entry(run))
}

/// A worker that has just been started listens in a moment.
fn connect(run: &RunDir, until: Instant) -> anyhow::Result<Client> {
    loop {
        match Client::connect(run) {
            Err(RunError::NotLive(_)) if is_live(run) && !left(until).is_zero() => std::thread::sleep(POLL),
            outcome => return Ok(outcome?),
        }
    }
}

fn ended(run: &RunDir, entry: &RunEntry) -> anyhow::Result<i32> {
    match entry.state {
        State::Crashed => {
            bail!("run {} crashed while it stopped: `tui-train show {0}` tells more", entry.run)
        }
        state => {
            output::line(&format!("run {}: {state} at update {}", entry.run, count(entry.update)))?;
            // A loop of its own is started again by whoever wrote it.
            let ours = run.config().is_ok_and(|config| config.model.arch != Arch::Loop);
            if ours && !entry.reason.is_some_and(Reason::is_complete) {
                output::message(&format!("go on with it: {}", goes_on::resumed(run)));
            }
        }
    }
    Ok(0)
}

fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};

    use super::*;
    use crate::{
        protocol::{Reply, Request},
        run::{EventWriter, RunLock, sample, socket},
    };

    #[test]
    fn a_run_that_is_not_live_cannot_be_stopped() {
        let (_folder, run) = sample::run("idle");
        assert_eq!(stop(&run, Instant::now() + Duration::from_secs(20)).unwrap(), FAILED);
    }

    #[test]
    fn a_live_run_is_told_and_waited_for() {
        let (_folder, run) = sample::run("live");
        let lock = RunLock::acquire(&run).unwrap();
        let mut writer = EventWriter::create(&run, &sample::header(&run)).unwrap();
        writer.append(&sample::update(3, 2.0)).unwrap();
        let listener = socket::bind(&run).unwrap();
        let worker = {
            let run = run.clone();
            std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut line = String::new();
                BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
                let request: Request = serde_json::from_str(&line).unwrap();
                for answer in [Answer::Queued, Answer::Applied { at_update: 3 }] {
                    let reply = serde_json::to_string(&Reply { id: request.id, answer }).unwrap();
                    stream.write_all((reply + "\n").as_bytes()).unwrap();
                }
                writer.append(&sample::run_ended(&run)).unwrap();
                drop(lock);
                request.command
            })
        };
        assert_eq!(stop(&run, Instant::now() + Duration::from_secs(20)).unwrap(), 0);
        assert_eq!(worker.join().unwrap(), Command::Stop);
    }
}
