//! Text that a language model writes after a validation: how it goes on with the beginning of the held-out text, taking
//! the likeliest token each time, and drawing tokens by their probability.
//!
//! All texts are rows of one batch. The prompt goes through the model once, and then a pass over one place makes the next
//! token of each: the model keeps what it has seen ([`crate::model::Seen`]), and only the last place makes logits. What is
//! drawn depends on (`train.seed`, update) alone, and training draws nothing from it: its numbers are the same with texts
//! and without.

use std::time::Instant;

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

use super::engine::Engine;
use crate::{
    config::Task,
    data::{Batch, IGNORE, random},
    protocol::{Continuation, Event, TextSample},
    run::text,
};

/// What is to be gone on with, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Ids, at least one.
    pub prompt: Vec<i32>,
    /// Tokens to write behind it.
    pub tokens: usize,
    /// One text for each; 0 takes the likeliest token.
    pub temperatures: Vec<f64>,
    pub seed: u64,
    pub update: u64,
}

/// The ids behind the prompt, one row a temperature. `logits` is given the places that it has not seen yet and returns
/// those of the token after each row, row after row; nothing when the model writes no text.
pub fn write(request: &Request, mut logits: impl FnMut(&Batch) -> Option<Vec<f32>>) -> Option<Vec<Vec<i32>>> {
    let mut random = random::generator(request.seed, "text sample", request.update);
    let mut rows = vec![request.prompt.clone(); request.temperatures.len()];
    let mut seen = 0;
    for _ in 0..request.tokens {
        let logits = logits(&batch(&rows, seen))?;
        seen = rows.first().map_or(0, Vec::len);
        let vocabulary = logits.len() / rows.len().max(1);
        if vocabulary == 0 {
            return None;
        }
        for ((row, of), &temperature) in
            rows.iter_mut().zip(logits.chunks_exact(vocabulary)).zip(&request.temperatures)
        {
            row.push(choose(of, temperature, &mut random) as i32);
        }
    }
    Some(rows.into_iter().map(|row| row[request.prompt.len()..].to_vec()).collect())
}

/// What is new of rows of one length, with nothing to learn from.
fn batch(rows: &[Vec<i32>], seen: usize) -> Batch {
    let seq_len = rows.first().map_or(0, |row| row.len() - seen);
    Batch {
        rows: rows.len(),
        seq_len,
        inputs: rows.iter().flat_map(|row| &row[seen..]).copied().collect(),
        targets: vec![IGNORE; rows.len() * seq_len],
        lengths: vec![seq_len; rows.len()],
        target_count: 0,
        own: None,
    }
}

/// The id of one token: the first of the likeliest, or one drawn by `softmax(logits / temperature)`. Logits that are no
/// numbers are never taken.
fn choose(logits: &[f32], temperature: f64, random: &mut ChaCha8Rng) -> usize {
    let known = || logits.iter().enumerate().filter(|(_, logit)| !logit.is_nan());
    let best = known().reduce(|best, other| if other.1 > best.1 { other } else { best });
    let Some((likeliest, &most)) = best else { return 0 };
    if temperature <= 0.0 || !most.is_finite() {
        return likeliest;
    }
    let weight = |logit: f32| (f64::from(logit - most) / temperature).exp();
    let all: f64 = known().map(|(_, &logit)| weight(logit)).sum();
    // 53 bits: every value below 1 that an f64 has at this spacing.
    let mut left = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64 * all;
    for (id, &logit) in known() {
        left -= weight(logit);
        if left < 0.0 {
            return id;
        }
    }
    likeliest
}

/// What stands behind the prompt in the text of both together: some tokens are written otherwise at the beginning of a
/// text.
fn behind(prompt: &str, both: &str, alone: impl FnOnce() -> String) -> String {
    both.strip_prefix(prompt).map_or_else(alone, str::to_owned)
}

impl Engine<'_> {
    /// Lets a language model write, where there is a held-out text to begin with.
    pub(super) fn write_text(&self) {
        let (config, dataset) = (&self.around.config, &self.around.dataset);
        let log = &config.log;
        if log.sample_tokens == 0 || config.model.arch.task() != Task::LanguageModel {
            return;
        }
        let Some(first) = dataset.validation_batches(1, 1).next() else { return };
        // The model knows no more places than a sequence has: at most half of them are the prompt's.
        let known = first.lengths.first().copied().unwrap_or(0);
        let prompt = log.sample_prompt.min(known).min(config.train.seq_len / 2);
        let Some(prompt) = first.inputs.get(..prompt).filter(|prompt| !prompt.is_empty()) else { return };
        let request = Request {
            prompt: prompt.to_vec(),
            tokens: log.sample_tokens.min(config.train.seq_len - prompt.len()),
            temperatures: if log.sample_temperature > 0.0 {
                vec![0.0, log.sample_temperature]
            } else {
                vec![0.0]
            },
            seed: config.train.seed,
            update: self.done.updates,
        };
        let start = Instant::now();
        let Some(rows) = self.training.write_text(&request) else { return };
        let seconds = start.elapsed().as_secs_f64();
        let given = text::plain_lines(&dataset.decode(prompt));
        let texts = request.temperatures.iter().zip(rows).map(|(&temperature, row)| {
            let both = text::plain_lines(&dataset.decode(&[prompt, &row].concat()));
            let alone = || text::plain_lines(&dataset.decode(&row));
            Continuation { temperature, tokens: row.len() as u64, text: behind(&given, &both, alone) }
        });
        let texts = texts.collect();
        self.send(Event::Sample(TextSample {
            update: self.done.updates,
            time: self.time(),
            seconds,
            prompt: given,
            texts,
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(temperatures: &[f64], seed: u64, update: u64) -> Request {
        Request { prompt: vec![7, 8], tokens: 200, temperatures: temperatures.to_vec(), seed, update }
    }

    /// Ids 0 to 3 with a quarter, a half, an eighth and an eighth of the probability, whatever came before.
    fn fixed(batch: &Batch) -> Option<Vec<f32>> {
        let row = [0.25_f32, 0.5, 0.125, 0.125].map(f32::ln);
        Some(row.repeat(batch.rows))
    }

    #[test]
    fn rows_grow_by_a_token_a_pass_behind_the_prompt() {
        let mut lengths = Vec::new();
        let rows = write(&Request { tokens: 3, ..request(&[0.0, 1.0], 1, 1) }, |batch| {
            let expected = if lengths.is_empty() { &[7, 8][..] } else { &[1] };
            assert_eq!((batch.row(0).0, batch.rows), (expected, 2));
            assert_eq!((batch.target_count, batch.has_padding()), (0, false));
            lengths.push(batch.seq_len);
            fixed(batch)
        });
        assert_eq!(lengths, [2, 1, 1]);
        assert_eq!(rows.unwrap()[0], [1, 1, 1], "the likeliest");
        assert_eq!(write(&request(&[0.0], 1, 1), |_| None), None);
    }

    #[test]
    fn tokens_are_drawn_by_their_probability_and_by_seed_and_update_alone() {
        let drawn = |temperature, seed, update| {
            write(&request(&[0.0, temperature], seed, update), fixed).unwrap().remove(1)
        };
        assert_eq!(drawn(1.0, 1, 5), drawn(1.0, 1, 5));
        assert_ne!(drawn(1.0, 1, 5), drawn(1.0, 2, 5));
        assert_ne!(drawn(1.0, 1, 5), drawn(1.0, 1, 6));
        let share = |ids: &[i32], id| ids.iter().filter(|other| **other == id).count() as f64 / 200.0;
        let ids = drawn(1.0, 1, 5);
        for (id, expected) in [(0, 0.25), (1, 0.5), (2, 0.125), (3, 0.125)] {
            assert!((share(&ids, id) - expected).abs() < 0.1, "{id}: {}", share(&ids, id));
        }
        // A low temperature takes the likeliest nearly always, a high one all alike.
        assert!(share(&drawn(0.1, 1, 5), 1) > 0.98);
        assert!(share(&drawn(100.0, 1, 5), 2) > 0.15);
    }

    #[test]
    fn logits_that_are_no_numbers_are_not_taken() {
        let mut random = random::generator(1, "test", 0);
        for temperature in [0.0, 1.0] {
            assert_eq!(choose(&[f32::NAN, 1.0, f32::NAN], temperature, &mut random), 1);
            assert_eq!(choose(&[f32::NAN; 3], temperature, &mut random), 0);
            assert_eq!(choose(&[0.0, f32::INFINITY], temperature, &mut random), 1);
            assert_eq!(choose(&[f32::NEG_INFINITY, 0.0], temperature, &mut random), 1);
        }
    }

    #[test]
    fn a_text_is_what_stands_behind_its_prompt() {
        assert_eq!(behind("the su", "the sun", || unreachable!()), "n");
        // The last sign of the prompt was only half there.
        assert_eq!(behind("caf\u{fffd}", "café", || "\u{fffd}".into()), "\u{fffd}");
    }
}
