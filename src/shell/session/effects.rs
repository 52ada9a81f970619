//! What the state asks for, done: at once what takes no time, else on a thread that answers by a message.

use super::{
    super::{apart, check::Checking, draft, load::Job, picture, room},
    Session,
};
use crate::{
    app::{Effect, Msg},
    config::own,
    run::{RunDir, launch, text::shell_word},
};

impl Session {
    pub(super) fn effect(&mut self, effect: Effect) {
        match effect {
            Effect::Quit { code } => self.code = Some(code),
            Effect::PauseReplay { paused } => {
                if let Some(replay) = &self.replay {
                    replay.pause(paused);
                }
            }
            Effect::Suspend => self.suspend = true,
            Effect::Send { id, command } => {
                if let Some(watch) = &self.watch {
                    watch.send(id, command);
                }
            }
            Effect::Start { resolved, name } => {
                let home = self.home.clone();
                self.apart("start", move || match launch::start(&home, &resolved, &name) {
                    Ok(run) => Msg::Started { run: run.path().display().to_string(), notes: Vec::new() },
                    Err(error) => Msg::Failed(format!("{error:#}")),
                });
            }
            Effect::Queue { drafts } => {
                let home = self.home.clone();
                self.apart("queue", move || match launch::queue(&home, &drafts) {
                    Ok(runs) => Msg::Queued(Ok(runs.iter().map(RunDir::name).collect())),
                    Err(error) => Msg::Queued(Err(format!("{error:#}"))),
                });
            }
            Effect::Unqueue { run } => {
                let home = self.home.clone();
                self.apart("queue", move || apart::unqueue(&home, &run));
            }
            Effect::Fork { run, update, set, name, queued } => {
                let home = self.home.clone();
                self.apart("fork", move || apart::fork(&home, &run, update, &set, &name, queued));
            }
            Effect::LoadCheckpoints { run } => self.loader.ask(Job::Checkpoints { run }),
            Effect::LoadFork { run, update } => self.loader.ask(Job::ForkBase { run, update }),
            Effect::Relabel { run, label } => self.loader.ask(Job::Relabel { run, label }),
            Effect::StopRun { run } => self.apart("stop", move || apart::stop(&run)),
            Effect::LookAlive { runs } => self.loader.ask(Job::Alive { runs }),
            Effect::Watch { run } => match RunDir::resolve(&self.home, &run) {
                Ok(run) => self.follow(run),
                Err(error) => self.state.say(error.to_string(), true),
            },
            Effect::Unwatch => {
                self.watches += 1;
                (self.watch, self.replay, self.watched) = (None, None, None);
            }
            Effect::Check { number, settings } => {
                match Checking::start(number, settings, self.sender.clone()) {
                    Ok(checking) => self.checking = Some(checking),
                    Err(error) => {
                        let answer = Err(format!("the check cannot be started: {error}"));
                        self.update(Msg::Checked { number, answer });
                    }
                }
            }
            Effect::StopCheck => self.checking = None,
            Effect::LoadRoom { asked, device } => {
                let gpu = self.gpu;
                self.apart("room", move || {
                    let (device, room) = room::of(device, gpu);
                    Msg::Room { asked, device, room }
                });
            }
            Effect::LoadDraft { run } => {
                let home = self.home.clone();
                self.apart("draft", move || {
                    let settings = RunDir::resolve(&home, &run).and_then(|run| run.explicit());
                    Msg::Draft { run, settings: settings.map_err(|error| error.to_string()) }
                });
            }
            Effect::SaveDraft { path, text } => {
                self.apart("draft", move || match draft::save(&path, &text) {
                    Ok(path) => Msg::Done(format!("written: {path}")),
                    Err(error) => Msg::Failed(format!("{error:#}")),
                });
            }
            Effect::Resume { run, set } => {
                let home = self.home.clone();
                self.apart("resume", move || apart::resume(&home, &run, &set));
            }
            Effect::Delete { run } => self.loader.ask(Job::Delete { run }),
            Effect::LoadRuns => self.loader.ask(Job::Runs),
            Effect::LoadCurves { run } => self.loader.ask(Job::Curves { run }),
            Effect::Compare { runs } => self.loader.ask(Job::Compare { runs }),
            Effect::LoadState { run } => self.loader.ask(Job::State { run }),
            Effect::LoadDetail { run, tensor, width } => {
                self.loader.ask(Job::Detail { run, tensor, width });
            }
            Effect::LoadHistory { run, tensor } => self.loader.ask(Job::History { run, tensor }),
            Effect::Export { run, format } => self.loader.ask(Job::Export { run, format }),
            Effect::Picture { path } => {
                let written = picture::write(&self.state, &self.theme(), self.state.size(), path.as_ref());
                let msg = written.map_or_else(
                    |error| Msg::Failed(format!("{error:#}")),
                    |path| Msg::Done(format!("written: {}", path.display())),
                );
                self.update(msg);
            }
            Effect::Copy { what, text } => {
                let (told, error) = self.outside.copy(&what, &text);
                self.state.say(told, error);
            }
            Effect::CopyAgain { run } => match RunDir::resolve(&self.home, &run) {
                Ok(run) => {
                    let (file, name) = (run.run_toml().display().to_string(), run.name());
                    let text =
                        format!("{} run {} --name {}", own::program(), shell_word(&file), shell_word(&name));
                    self.effect(Effect::Copy { what: "the command that trains it again".into(), text });
                }
                Err(error) => self.state.say(error.to_string(), true),
            },
            Effect::Call { text } => self.outside.call(&text),
        }
    }

    /// Does on a thread of its own what may take longer than a frame.
    fn apart(&mut self, name: &str, work: impl FnOnce() -> Msg + Send + 'static) {
        let sender = self.sender.clone();
        let thread = std::thread::Builder::new().name(name.into());
        // Nobody waits for the answer any more when the UI is gone.
        let spawned = thread.spawn(move || _ = sender.send((0, work())));
        if let Err(error) = spawned {
            self.update(Msg::Failed(format!("no thread can be started: {error}")));
        }
    }
}
