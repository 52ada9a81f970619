//! The learning rate of every update, as a pure function.

use super::{Config, ScheduleConfig, ScheduleName, validate};

/// The rate that update `update` (the first is 1) of `total` uses under the schedule, from base rate `lr`.
///
/// The warm-up rises linearly from `start_factor * lr`; afterwards the rate decays to `min_lr`, which it keeps
/// beyond the end. A constant schedule stays at `lr`.
pub fn rate(schedule: &ScheduleConfig, lr: f64, total: u64, update: u64) -> f64 {
    let (warmup, done) = (schedule.warmup_updates, update.saturating_sub(1));
    if done < warmup {
        let share = done as f64 / warmup as f64;
        return lr * (schedule.start_factor + (1.0 - schedule.start_factor) * share);
    }
    if schedule.name == ScheduleName::Constant {
        return lr;
    }
    if done >= total {
        return schedule.min_lr;
    }
    let share = (done - warmup) as f64 / (total - warmup) as f64;
    let left = match schedule.name {
        ScheduleName::Cosine => 0.5 * (1.0 + (std::f64::consts::PI * share).cos()),
        ScheduleName::Linear | ScheduleName::Constant => 1.0 - share,
    };
    schedule.min_lr + (lr - schedule.min_lr) * left
}

/// The rate Adafactor sets itself under `relative_step`, before it is scaled by the parameter's RMS.
pub fn relative_rate(warmup_init: bool, update: u64) -> f64 {
    let step = update.max(1) as f64;
    let ceiling = if warmup_init { 1e-6 * step } else { 1e-2 };
    ceiling.min(1.0 / step.sqrt())
}

/// The rate that update `update` of a run of `total` updates uses with this configuration.
pub fn of(config: &Config, total: u64, update: u64) -> f64 {
    if validate::relative_step(config) {
        relative_rate(config.optimizer.adafactor.warmup_init, update)
    } else {
        rate(&config.schedule, config.optimizer.lr(), total, update)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(name: ScheduleName, warmup_updates: u64, start_factor: f64, min_lr: f64) -> ScheduleConfig {
        ScheduleConfig { name, warmup_updates, start_factor, min_lr }
    }

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-12, "{a} is not {b}");
    }

    #[test]
    fn without_a_warm_up_the_first_update_uses_the_base_rate() {
        for name in [ScheduleName::Cosine, ScheduleName::Linear, ScheduleName::Constant] {
            close(rate(&schedule(name, 0, 0.0, 0.0), 1e-3, 10, 1), 1e-3);
        }
    }

    #[test]
    fn the_warm_up_rises_linearly_from_its_start_factor() {
        let zero = schedule(ScheduleName::Cosine, 4, 0.0, 0.0);
        for (update, expected) in [(1, 0.0), (2, 0.25), (3, 0.5), (4, 0.75), (5, 1.0)] {
            close(rate(&zero, 1.0, 12, update), expected);
        }
        let half = schedule(ScheduleName::Linear, 2, 0.5, 0.0);
        close(rate(&half, 2.0, 10, 1), 1.0);
        close(rate(&half, 2.0, 10, 2), 1.5);
        close(rate(&half, 2.0, 10, 3), 2.0);
    }

    #[test]
    fn decay_is_halfway_in_the_middle_and_ends_at_the_minimum() {
        for name in [ScheduleName::Cosine, ScheduleName::Linear] {
            let decay = schedule(name, 2, 0.0, 0.2);
            close(rate(&decay, 1.0, 10, 7), 0.6);
            close(rate(&decay, 1.0, 10, 11), 0.2);
            close(rate(&decay, 1.0, 10, 1000), 0.2);
            let last = rate(&decay, 1.0, 10, 10);
            assert!(last > 0.2 && last < 0.35, "{last}");
        }
    }

    #[test]
    fn constant_stays_beyond_the_end() {
        close(rate(&schedule(ScheduleName::Constant, 3, 0.0, 0.0), 0.5, 10, 400), 0.5);
    }

    #[test]
    fn adafactor_sets_its_own_rate_when_told_so() {
        close(relative_rate(false, 1), 1e-2);
        close(relative_rate(false, 40_000), 5e-3);
        close(relative_rate(true, 10), 1e-5);
        let resolved = crate::config::Layers::new()
            .with_assignments(["optimizer.name=adafactor", "optimizer.adafactor.relative_step=true"])
            .and_then(|layers| layers.resolve())
            .unwrap();
        close(of(&resolved.config, 600, 300), 1e-2);
    }
}
