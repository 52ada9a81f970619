//! How well classes were found: accuracy and F1, by the conventions of scikit-learn.
//!
//! F1 of a class is the harmonic mean of its precision and its recall, `2 tp / (2 tp + fp + fn)`, and 0 where both are 0
//! or the class occurs neither among the labels nor among what was found. The macro average is the plain mean over the
//! classes that occur in one or the other (`f1_score(.., average="macro")`). With two classes "the" F1 is that of class
//! 1 (`average="binary"`), with more it is the macro average.

use std::collections::{BTreeMap, BTreeSet};

/// How often which class was found for rows of which label.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Confusion {
    /// By label and class found.
    counts: BTreeMap<(u32, u32), u64>,
}

/// What the counts come to, each from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scores {
    /// Share of rows whose class was found.
    pub accuracy: f64,
    pub f1: f64,
    pub f1_macro: f64,
}

impl Confusion {
    /// Counts rows by their labels and the classes found for them. A row whose label is negative has none and is left
    /// out, as it is of the loss.
    pub fn add(&mut self, labels: &[i32], found: &[u32]) {
        for (&label, &found) in labels.iter().zip(found) {
            if let Ok(label) = u32::try_from(label) {
                *self.counts.entry((label, found)).or_default() += 1;
            }
        }
    }

    /// The scores of a task with so many classes; nothing without a row.
    pub fn scores(&self, classes: usize) -> Option<Scores> {
        let right: u64 =
            self.counts.iter().filter(|((label, found), _)| label == found).map(|(_, n)| n).sum();
        let rows: u64 = self.counts.values().sum();
        let occurring: BTreeSet<u32> =
            self.counts.keys().flat_map(|&(label, found)| [label, found]).collect();
        if rows == 0 {
            return None;
        }
        let f1_macro = occurring.iter().map(|&class| self.f1(class)).sum::<f64>() / occurring.len() as f64;
        Some(Scores {
            accuracy: right as f64 / rows as f64,
            f1: if classes == 2 { self.f1(1) } else { f1_macro },
            f1_macro,
        })
    }

    fn f1(&self, class: u32) -> f64 {
        let (mut hits, mut all) = (0, 0);
        for (&(label, found), count) in &self.counts {
            let (label, found) = (label == class, found == class);
            hits += if label && found { 2 * count } else { 0 };
            all += (u64::from(label) + u64::from(found)) * count;
        }
        if all == 0 { 0.0 } else { hits as f64 / all as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_scores(classes: usize, labels: &[i32], found: &[u32], expected: [f64; 3]) {
        let mut confusion = Confusion::default();
        // In two parts, as batches come.
        let half = labels.len() / 2;
        confusion.add(&labels[..half], &found[..half]);
        confusion.add(&labels[half..], &found[half..]);
        let Scores { accuracy, f1, f1_macro } = confusion.scores(classes).unwrap();
        for (ours, theirs) in [accuracy, f1, f1_macro].into_iter().zip(expected) {
            assert!((ours - theirs).abs() < 1e-15, "{labels:?} {found:?}: {ours} and {theirs}");
        }
    }

    /// Each expectation is `accuracy_score(labels, found)`, `f1_score(labels, found)` and
    /// `f1_score(labels, found, average="macro")` of scikit-learn.
    #[test]
    fn two_classes_are_scored_as_scikit_learn_does() {
        let expected = [0.625, 0.6666666666666666, 0.6190476190476191];
        assert_scores(2, &[0, 1, 1, 0, 1, 0, 1, 1], &[0, 1, 0, 0, 1, 1, 1, 0], expected);
        // Class 1 is never found: no precision, and F1 is 0.
        assert_scores(2, &[0, 0, 0, 1], &[0, 0, 0, 0], [0.75, 0.0, 0.428_571_428_571_428_57]);
        // Class 1 does not occur at all: its F1 is 0, and the macro average is that of class 0 alone.
        assert_scores(2, &[0, 0, 0], &[0, 0, 0], [1.0, 0.0, 1.0]);
        assert_scores(2, &[1, 1], &[0, 0], [0.0, 0.0, 0.0]);
    }

    /// Each expectation is `accuracy_score(labels, found)` and twice `f1_score(labels, found, average="macro")`.
    #[test]
    fn more_classes_are_averaged_over_those_that_occur() {
        let expected = [0.7142857142857143, 0.5666666666666667, 0.5666666666666667];
        assert_scores(4, &[0, 1, 2, 2, 1, 0, 3], &[0, 2, 2, 2, 1, 0, 0], expected);
        // Class 4 is found and never right, classes 2 and 3 do not occur.
        let expected = [0.6666666666666666, 0.5555555555555555, 0.5555555555555555];
        assert_scores(5, &[0, 1, 1], &[0, 1, 4], expected);
    }

    #[test]
    fn rows_without_a_label_do_not_count_and_no_row_has_no_score() {
        let mut confusion = Confusion::default();
        confusion.add(&[crate::data::IGNORE], &[1]);
        assert_eq!(confusion.scores(2), None);
        confusion.add(&[1, crate::data::IGNORE], &[1, 0]);
        assert_eq!(confusion.scores(2), Some(Scores { accuracy: 1.0, f1: 1.0, f1_macro: 1.0 }));
    }
}
