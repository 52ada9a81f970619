//! What takes longer than a frame and changes something: done on a thread of its own, answered by one message.

use std::{sync::atomic::AtomicUsize, time::Duration};

use crate::{
    app::{Msg, RunRef},
    protocol::{Answer, Command},
    run::{Client, Home, Queue, RunDir, RunError, fork, launch},
};

/// Longest wait for the answer of a run that is to stop: an update may be under way.
const STOP: Duration = Duration::from_secs(600);

/// Tells a run that nobody watches to stop. How it ends shows where it is looked at.
pub fn stop(run: &RunRef) -> Msg {
    let told = RunDir::open(&run.path).and_then(|dir| {
        let mut client = Client::connect(&dir)?;
        client.ask(Command::Stop, STOP)
    });
    match told {
        // A worker that ends before it answers has ended all the same.
        Ok(Answer::Applied { .. } | Answer::Queued) | Err(RunError::Closed(_) | RunError::NotLive(_)) => {
            Msg::Done(format!("{} stops", run.name))
        }
        Ok(Answer::Rejected { why }) => Msg::Failed(format!("{} does not stop: {why}", run.name)),
        Ok(_) => Msg::Done(format!("{} was told to stop", run.name)),
        Err(error) => Msg::Failed(format!("{} does not stop: {error}", run.name)),
    }
}

/// Takes a run out of the queue.
pub fn unqueue(home: &Home, id: &str) -> Msg {
    let removed = RunDir::resolve(home, id).and_then(|run| Ok((Queue::of(home).remove(&run)?, run.name())));
    match removed {
        Ok((true, name)) => Msg::Done(format!("{name} is out of the queue")),
        Ok((false, name)) => Msg::Done(format!("{name} does not wait any more: it has been started")),
        Err(error) => Msg::Failed(error.to_string()),
    }
}

/// Goes on with a run that is not live, these settings changed.
pub fn resume(home: &Home, id: &str, set: &[String]) -> Msg {
    let resumed = RunDir::resolve(home, id).map_err(anyhow::Error::from).and_then(|run| {
        let (_, notes) = launch::resume(&run, set, &AtomicUsize::new(0))?;
        Ok(Msg::Started { run: run.path().display().to_string(), notes })
    });
    resumed.unwrap_or_else(|error| Msg::Failed(format!("{error:#}")))
}

/// Starts a fork from that checkpoint of a run, or queues it.
pub fn fork(home: &Home, id: &str, update: u64, set: &[String], name: &str, queued: bool) -> Msg {
    let begin = || -> anyhow::Result<RunDir> {
        let plan = fork::plan(&RunDir::resolve(home, id)?, Some(update), set)?;
        // How many updates epochs make is known once the data is read: the run says it then.
        if let Some(total) = plan.resolved.config.train.max_updates {
            plan.leaves_something_to_do(total)?;
        }
        if queued { fork::queue(home, plan, Some(name)) } else { fork::start(home, plan, Some(name)) }
    };
    match (begin(), queued) {
        (Ok(run), true) => Msg::Queued(Ok(vec![run.name()])),
        (Ok(run), false) => Msg::Started { run: run.path().display().to_string(), notes: Vec::new() },
        (Err(error), true) => Msg::Queued(Err(format!("{error:#}"))),
        (Err(error), false) => Msg::Failed(format!("{error:#}")),
    }
}
