//! Rows of a classification as ids, and batches of them.

use rayon::prelude::*;

use super::{
    Batch, DataError, bpe,
    error::RowFault,
    labelled::{Classes, Examples},
    random,
    store::{self, Store},
    tokenizer::{EncodedRow, Encoder},
};
use crate::config::Task;

/// Encoded rows, one behind another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Rows {
    ids: Vec<u32>,
    /// Where each row ends.
    ends: Vec<usize>,
    classes: Vec<u32>,
}

/// The rows of both parts, and how many of them lost their end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) train: Rows,
    pub(super) validation: Rows,
    pub(super) truncated: u64,
}

impl Rows {
    /// How many rows there are.
    pub(super) fn len(&self) -> u64 {
        self.ends.len() as u64
    }

    /// Ids of all rows.
    pub(super) fn tokens(&self) -> u64 {
        self.ids.len() as u64
    }

    fn push(&mut self, ids: &[u32], class: u32) {
        self.ids.extend_from_slice(ids);
        self.ends.push(self.ids.len());
        self.classes.push(class);
    }

    /// Ids and class.
    fn row(&self, row: usize) -> Option<(&[u32], u32)> {
        let end = *self.ends.get(row)?;
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        Some((&self.ids[start..end], self.classes[row]))
    }

    /// The given rows in the given order, filled to the longest of them. Rows beyond the last are left out.
    pub(super) fn batch(&self, rows: impl Iterator<Item = u64>) -> Batch {
        let rows: Vec<(&[u32], u32)> = rows.filter_map(|row| self.row(row as usize)).collect();
        let lengths: Vec<usize> = rows.iter().map(|(ids, _)| ids.len()).collect();
        let seq_len = lengths.iter().copied().max().unwrap_or(0);
        let mut inputs = Vec::with_capacity(rows.len() * seq_len);
        for (number, (ids, _)) in rows.iter().enumerate() {
            inputs.extend(ids.iter().map(|id| *id as i32));
            inputs.resize((number + 1) * seq_len, 0);
        }
        Batch {
            rows: rows.len(),
            seq_len,
            inputs,
            targets: rows.iter().map(|(_, class)| *class as i32).collect(),
            target_count: rows.len() as u64,
            lengths,
            own: None,
        }
    }
}

impl Parts {
    /// Encodes all rows on all cores and holds some of them out.
    ///
    /// # Errors
    /// The tokenizer fails on a row or makes nothing of it; `longest` has no room for a row.
    pub(super) fn of(
        examples: &Examples,
        classes: &Classes,
        encoder: &Encoder,
        fraction: f64,
        longest: usize,
    ) -> Result<Self, DataError> {
        let encoded: Vec<Result<EncodedRow, DataError>> = examples
            .rows
            .par_iter()
            .map(|row| encoder.row(&row.first, row.second.as_deref(), longest))
            .collect();
        let held_out = held_out(examples.rows.len(), fraction);
        let mut parts = Self { train: Rows::default(), validation: Rows::default(), truncated: 0 };
        for (number, encoded) in encoded.into_iter().enumerate() {
            let EncodedRow { ids, truncated } = encoded?;
            if ids.is_empty() {
                return Err(examples.fault(number, RowFault::NoTokens));
            }
            parts.truncated += u64::from(truncated);
            let part = if held_out[number] { &mut parts.validation } else { &mut parts.train };
            part.push(&ids, classes.rows[number]);
        }
        Ok(parts)
    }
}

/// The tokenizer that is learnt from the rows that are trained on, or was learnt from the same ones before.
///
/// # Errors
/// Nothing can be learnt from them.
pub(super) fn learnt(
    size: usize,
    examples: &Examples,
    fraction: f64,
    store: Option<&Store>,
) -> Result<Encoder, DataError> {
    let held_out = held_out(examples.rows.len(), fraction);
    let trained_on = examples.rows.iter().zip(&held_out).filter(|(_, held_out)| !**held_out);
    let sentences: Vec<&str> = trained_on
        .flat_map(|(row, _)| [Some(&*row.first), row.second.as_deref()].into_iter().flatten())
        .collect();
    let size_text = size.to_string();
    let named = [b"rows", size_text.as_bytes()].into_iter();
    let key = store::key(named.chain(sentences.iter().map(|text| text.as_bytes())));
    bpe::kept_or_learnt(size, store, &key, || {
        bpe::learn(size, Task::Classification, |pupil| {
            for sentence in sentences {
                pupil.read(Some(sentence));
                pupil.read(None);
            }
            Ok(())
        })
    })
}

/// Which rows are held out: the fraction of them that comes first in the order of a hash of their number. With a
/// fraction above 0 both parts get a row at least.
fn held_out(rows: usize, fraction: f64) -> Vec<bool> {
    let mut held_out = vec![false; rows];
    if fraction > 0.0 {
        let wanted = ((rows as f64 * fraction).round() as usize).min(rows.saturating_sub(1)).max(1);
        let mut order: Vec<usize> = (0..rows).collect();
        order.sort_by_key(|row| random::mix(*row as u64));
        order.into_iter().take(wanted).for_each(|row| held_out[row] = true);
    }
    held_out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        config::{Config, Layers},
        data::{Cursor, Dataset, Windows},
    };

    #[test]
    fn a_batch_is_as_long_as_its_longest_row() {
        let mut rows = Rows::default();
        rows.push(&[5, 6, 7], 1);
        rows.push(&[8], 0);
        rows.push(&[9, 9, 9, 9, 9], 2);
        let batch = rows.batch([1, 0].into_iter());
        assert_eq!((batch.rows, batch.seq_len, batch.target_count), (2, 3, 2));
        assert_eq!(batch.inputs, [8, 0, 0, 5, 6, 7]);
        assert_eq!((&*batch.targets, &*batch.lengths), (&[0, 1][..], &[1, 3][..]));
        assert!(batch.has_padding());
        assert_eq!(batch.tokens(), 4);
        assert_eq!(batch.row(1), (&[5, 6, 7][..], &[1][..]));
        assert!(!rows.batch([2].into_iter()).has_padding());
        assert_eq!(rows.batch([2, 3].into_iter()).rows, 1);
        assert_eq!((rows.len(), rows.tokens()), (3, 9));
    }

    #[test]
    fn the_held_out_rows_are_spread_and_never_change() {
        let chosen = held_out(1000, 0.1);
        assert_eq!(chosen, held_out(1000, 0.1));
        assert_eq!(chosen.iter().filter(|held| **held).count(), 100);
        assert!(chosen[..100].iter().any(|held| *held) && chosen[900..].iter().any(|held| *held));
        assert!(held_out(1000, 0.0).iter().all(|held| !held));
    }

    fn classification(settings: &[&str]) -> Config {
        let layers = Layers::new().with_assignment("model.preset=distilbert-nano").unwrap();
        layers.with_assignments(settings).unwrap().resolve().unwrap().config
    }

    /// Opens a table of this name and text with these settings.
    fn table(name: &str, text: &str, settings: &[&str]) -> Result<Dataset, DataError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let path = format!("data.path={}", path.display());
        let settings: Vec<&str> = [&*path].into_iter().chain(settings.iter().copied()).collect();
        Dataset::open(&classification(&settings))
    }

    #[test]
    fn the_built_in_pairs_are_served_row_by_row() {
        let dataset = Dataset::open(&classification(&[])).unwrap();
        let report = dataset.report();
        assert_eq!((&*report.source, report.documents), ("sentence-pairs", 4000));
        assert_eq!(report.labels, ["does not fit", "fits"]);
        assert_eq!((dataset.train_sequences(), dataset.validation_sequences()), (3600, 400));
        assert!(report.left_out.is_empty());
        // Three marks a row.
        assert_eq!(report.bytes + 3 * 4000, report.train_tokens + report.validation_tokens);

        let all: Vec<u64> = (0..3600).collect();
        let train = dataset.batch(&all);
        assert_eq!((train.rows, train.target_count, train.targets.len()), (3600, 3600, 3600));
        assert_eq!(train.tokens(), report.train_tokens);
        assert!(train.seq_len < 110 && train.inputs.iter().all(|id| (0..258).contains(id)));
        let held: Vec<Batch> = dataset.validation_batches(64, 10).collect();
        assert_eq!(held.iter().map(|batch| batch.rows).sum::<usize>(), 400, "the limit is for texts");
        assert_eq!(held.iter().map(Batch::tokens).sum::<u64>(), report.validation_tokens);
        let share = |targets: &[i32]| targets.iter().sum::<i32>() as f64 / targets.len() as f64;
        assert!((0.48..0.52).contains(&share(&train.targets)), "{}", share(&train.targets));
        let held_targets: Vec<i32> = held.iter().flat_map(|batch| batch.targets.clone()).collect();
        assert!((0.4..0.6).contains(&share(&held_targets)), "{}", share(&held_targets));

        // No held-out row is trained on.
        let rows = |batch: &Batch| -> Vec<Vec<i32>> {
            (0..batch.rows).map(|row| batch.row(row).0[..batch.lengths[row]].to_vec()).collect()
        };
        let trained: std::collections::HashSet<Vec<i32>> = rows(&train).into_iter().collect();
        assert!(held.iter().flat_map(rows).all(|row| !trained.contains(&row)));
    }

    #[test]
    fn a_table_becomes_rows_of_marked_bytes() {
        let text = "sentence,label\nab,no\ncde,yes\nf,no\n";
        let dataset = table("t.csv", text, &["data.validation_fraction=0"]).unwrap();
        let batch = dataset.batch(&[2, 0, 1]);
        assert_eq!(batch.inputs, [256, 102, 257, 0, 0, 256, 97, 98, 257, 0, 256, 99, 100, 101, 257]);
        assert_eq!((&*batch.targets, batch.seq_len), (&[0, 0, 1][..], 5));
        assert_eq!(dataset.report().labels, ["no", "yes"]);
        assert_eq!((dataset.report().bytes, dataset.report().train_tokens), (6, 12));
    }

    #[test]
    fn rows_that_are_too_long_are_truncated_and_counted() {
        let text = "text_a,text_b,label\naaaa,bb,0\ncccccccc,d,1\ne,f,0\n";
        let settings = ["data.validation_fraction=0", "train.seq_len=8"];
        let dataset = table("t.csv", text, &settings).unwrap();
        let counted: Vec<(&str, u64)> =
            dataset.report().left_out.iter().map(|(why, times)| (&**why, *times)).collect();
        assert_eq!(counted, [("ends of rows truncated to train.seq_len = 8", 2)]);
        let batch = dataset.batch(&[0, 1, 2]);
        assert_eq!((batch.seq_len, &*batch.lengths), (8, &[8, 8, 5][..]));
        assert_eq!(batch.row(0).0, [256, 97, 97, 97, 257, 98, 98, 257]);
        assert_eq!(batch.row(1).0, [256, 99, 99, 99, 99, 257, 100, 257]);
    }

    #[test]
    fn faults_of_a_table_come_through() {
        let message =
            |name: &str, text: &str, settings: &[&str]| table(name, text, settings).unwrap_err().to_string();
        let three = message("t.csv", "text,label\na,x\nb,y\nc,z\n", &[]);
        assert!(three.contains("set model.num_labels = 3"), "{three}");
        let room = message("t.csv", "text,label\na,x\nb,y\n", &["train.seq_len=2"]);
        assert!(room.contains("train.seq_len = 2"), "{room}");
        let pairs = Dataset::open(&classification(&["model.num_labels=3"])).unwrap_err().to_string();
        assert!(
            pairs.contains("sentence-pairs has 2 labels") && pairs.contains("model.num_labels = 2"),
            "{pairs}"
        );
    }

    #[test]
    fn a_tokenizer_file_serves_both_tasks() {
        let (folder, _) = crate::data::tokenizer::tests::wordpiece();
        let tokenizer = format!("data.tokenizer={}", folder.path().join("tokenizer.json").display());
        let text = "text,label\nThe suns rise.,1\na moon,0\n";
        let settings = [&*tokenizer, "data.validation_fraction=0"];
        let batch = table("t.csv", text, &settings).unwrap().batch(&[0, 1]);
        assert_eq!(batch.inputs, [2, 4, 5, 6, 8, 10, 3, 2, 11, 7, 3, 0, 0, 0]);
        let small = table("t.csv", text, &[&*tokenizer, "model.vocab_size=12"]).unwrap_err().to_string();
        assert!(small.contains("13 tokens") && small.contains("model.vocab_size = 12"), "{small}");

        let path = folder.path().join("text.txt");
        std::fs::write(&path, "the sun rise . the moon set .").unwrap();
        let path = format!("data.path={}", path.display());
        let settings = [&*tokenizer, &path, "data.validation_fraction=0", "train.seq_len=4"];
        let config = Layers::new().with_assignments(settings).unwrap().resolve().unwrap().config;
        let dataset = Dataset::open(&config).unwrap();
        assert_eq!((dataset.report().train_tokens, dataset.report().train_sequences), (9, 2));
        let batch = dataset.batch(&[0, 1]);
        assert_eq!(batch.inputs, [4, 5, 8, 10, 4, 7, 9, 10]);
        assert_eq!(batch.targets, [5, 8, 10, 4, 7, 9, 10, 3]);
    }

    #[test]
    fn rows_can_teach_a_vocabulary() {
        let settings = ["data.tokenizer=bpe:300", "model.vocab_size=300", "data.validation_fraction=0"];
        let line = |row: usize| format!("the sun will rise {row},{}\n", row % 2);
        let text: String = ["text,label\n".to_owned()].into_iter().chain((0..40).map(line)).collect();
        let batch = table("t.csv", &text, &settings).unwrap().batch(&[0, 1]);
        assert_eq!(batch.rows, 2);
        // A mark, three to six tokens, a mark.
        assert!(batch.lengths.iter().all(|length| (4..9).contains(length)), "{:?}", batch.lengths);
        assert!(batch.inputs[0] > 0 && batch.inputs[0] < 300);
        let small = classification(&["data.tokenizer=bpe:259", "model.vocab_size=300"]);
        assert!(Dataset::open(&small).is_ok());
    }

    proptest! {
        #[test]
        fn both_parts_get_a_row(rows in 2usize..60, fraction in 1e-6f64..0.5) {
            let held = held_out(rows, fraction).iter().filter(|held| **held).count();
            prop_assert!((1..rows).contains(&held));
        }

        #[test]
        fn an_epoch_serves_every_row_once(rows in 4usize..40, micro in 1usize..6, accumulate in 1usize..4) {
            let line = |row: usize| format!("row {row},{}\n", row % 2);
            let text: String = ["text,label\n".to_owned()].into_iter().chain((0..rows).map(line)).collect();
            let dataset = table("t.csv", &text, &["data.validation_fraction=0.25"]).unwrap();
            let settings = [
                "train.epochs=1".to_owned(),
                "schedule.warmup_updates=0".to_owned(),
                format!("train.micro_batch={micro}"),
                format!("train.accumulate={accumulate}"),
            ];
            let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
            let windows = Windows::new(dataset.clone(), &classification(&settings), Cursor::default()).unwrap();
            let mut served: Vec<(Vec<i32>, i32)> = Vec::new();
            let mut serve = |batch: &Batch| {
                assert_eq!(batch.seq_len, batch.lengths.iter().copied().max().unwrap());
                for row in 0..batch.rows {
                    let (ids, targets) = batch.row(row);
                    served.push((ids[..batch.lengths[row]].to_vec(), targets[0]));
                }
            };
            for window in windows {
                assert_eq!(window.target_count, window.micro_batches.iter().map(|one| one.rows as u64).sum::<u64>());
                window.micro_batches.iter().for_each(&mut serve);
            }
            dataset.validation_batches(3, 1).for_each(|batch| serve(&batch));
            served.sort();
            let bytes = |row: usize| -> Vec<i32> {
                [256].into_iter().chain(format!("row {row}").bytes().map(i32::from)).chain([257]).collect()
            };
            let mut expected: Vec<(Vec<i32>, i32)> = (0..rows).map(|row| (bytes(row), row as i32 % 2)).collect();
            expected.sort();
            prop_assert_eq!(served, expected);
        }
    }
}
