//! A program with a loop of its own, which reports what it does: a line through points, by gradient descent with momentum.

use tui_train::{Loop, Progress, Reason, Result, Screens};

/// Whether that word is among the arguments.
fn asked(word: &str) -> bool {
    std::env::args().any(|argument| argument == word)
}

fn main() -> Result<()> {
    let rate = 0.05_f32;
    let updates = if asked("--slow") { 100_000 } else { 200 };
    let mut run = Loop::new("line")
        .updates(updates)
        .setting("rate", f64::from(rate))
        .setting("momentum", 0.9)
        .parameter("slope", &[1])
        .parameter("offset", &[1])
        .stop_on_signals()
        .start()?;
    let screens = asked("--screens").then(|| Screens::open(&run)).transpose()?;

    let points: Vec<(f32, f32)> =
        (0..32).map(|at| at as f32 / 16.0 - 1.0).map(|x| (x, 3.0 * x - 2.0)).collect();
    let (mut parameters, mut momentum) = ([0.0_f32; 2], [0.0_f32; 2]);
    let mut stopped = false;
    while run.updates() < updates {
        stopped = run.should_stop();
        if stopped {
            break;
        }
        if asked("--slow") {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        assert!(!(asked("--panic") && run.updates() == 7), "a division by zero");
        let (mut loss, mut gradient) = (0.0, [0.0_f32; 2]);
        for &(x, y) in &points {
            let off = parameters[0] * x + parameters[1] - y;
            loss += f64::from(off * off) / points.len() as f64;
            gradient[0] += 2.0 * off * x / points.len() as f32;
            gradient[1] += 2.0 * off / points.len() as f32;
        }
        for at in 0..2 {
            momentum[at] = 0.9 * momentum[at] + gradient[at];
            parameters[at] -= rate * momentum[at];
        }
        let grad_norm = f64::from(gradient[0].hypot(gradient[1]));
        run.update(Progress {
            loss,
            learning_rate: f64::from(rate),
            grad_norm,
            tokens: points.len() as u64,
        })?;
        if run.updates().is_multiple_of(20) {
            run.state("slope", &[1], &[("momentum_buffer", &[1], &momentum[..1])])?;
            run.state("offset", &[1], &[("momentum_buffer", &[1], &momentum[1..])])?;
            run.validation(loss, points.len() as u64)?;
        }
    }
    run.finish(if stopped { Reason::Stopped } else { Reason::Finished })?;
    screens.map_or(Ok(()), Screens::wait)
}
