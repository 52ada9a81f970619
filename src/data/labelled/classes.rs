//! Labels become class ids.

use std::collections::BTreeSet;

use super::{super::error::RowFault, DataError, Examples};

/// Labels that a message lists at most.
const LISTED: usize = 12;

/// The classes of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Classes {
    /// What each class is called, by its id.
    pub(crate) names: Vec<String>,
    /// The class of each row.
    pub(crate) rows: Vec<u32>,
}

impl Classes {
    /// Integers from 0 to `wanted - 1` are class ids as they are. Other labels get their place among all labels of
    /// the source: integers in the order of their values, text in the order of its bytes.
    ///
    /// # Errors
    /// One class only, another number of classes than `wanted`, an integer that is out of place.
    pub(crate) fn of(examples: &Examples, wanted: usize) -> Result<Self, DataError> {
        let rows = &examples.rows;
        match rows.iter().map(|row| row.label.parse::<i64>().ok()).collect::<Option<Vec<i64>>>() {
            Some(labels) => integers(examples, &labels, wanted),
            None => {
                let labels: Vec<&str> = rows.iter().map(|row| &*row.label).collect();
                let all: BTreeSet<&str> = labels.iter().copied().collect();
                count(examples, &all, wanted)?;
                Ok(ranked(&labels, &all))
            }
        }
    }
}

fn integers(examples: &Examples, labels: &[i64], wanted: usize) -> Result<Classes, DataError> {
    let all: BTreeSet<i64> = labels.iter().copied().collect();
    let inside = |label: &i64| u32::try_from(*label).is_ok_and(|label| (label as usize) < wanted);
    if all.len() > 1 && all.iter().all(inside) {
        let names = (0..wanted).map(|class| class.to_string()).collect();
        return Ok(Classes { names, rows: labels.iter().map(|label| *label as u32).collect() });
    }
    // Some mark rows without a label by -1. And with fewer labels than classes, one of them is a mistake.
    let unlabelled = all.len() > wanted
        && all.iter().filter(|label| inside(label)).count() == wanted
        && all.iter().all(|label| inside(label) || *label < 0);
    let misplaced = all.len() > 1 && all.len() < wanted || unlabelled;
    if let Some((row, label)) = labels.iter().enumerate().find(|(_, label)| misplaced && !inside(label)) {
        let (label, last, labels) = (label.to_string(), wanted.saturating_sub(1), listed(&all));
        return Err(examples.fault(row, RowFault::Label { label, last, labels }));
    }
    count(examples, &all, wanted)?;
    Ok(ranked(labels, &all))
}

/// Whether there are as many labels as the model has classes.
fn count<T: ToString>(examples: &Examples, all: &BTreeSet<T>, wanted: usize) -> Result<(), DataError> {
    let path = examples.source.clone();
    match all.len() {
        1 => Err(DataError::OneClass { path, label: listed(all) }),
        found if found == wanted => Ok(()),
        found => Err(DataError::LabelCount { path, found, labels: listed(all), wanted }),
    }
}

fn ranked<T: Ord + ToString>(labels: &[T], all: &BTreeSet<T>) -> Classes {
    let sorted: Vec<&T> = all.iter().collect();
    let rank = |label: &T| sorted.partition_point(|one| *one < label) as u32;
    Classes { names: all.iter().map(T::to_string).collect(), rows: labels.iter().map(rank).collect() }
}

fn listed<T: ToString>(all: &BTreeSet<T>) -> String {
    let mut text = all.iter().take(LISTED).map(T::to_string).collect::<Vec<_>>().join(", ");
    if all.len() > LISTED {
        text += &format!(" and {} more", all.len() - LISTED);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{super::Example, *};

    fn classes(labels: &str, wanted: usize) -> Result<(Vec<String>, Vec<u32>), String> {
        let example = |(row, label): (usize, &str)| Example {
            first: "x".into(),
            second: None,
            label: label.into(),
            line: row + 2,
        };
        let rows = labels.split(' ').enumerate().map(example).collect();
        let examples = Examples { rows, ..Examples::none("file.csv".into()) };
        Classes::of(&examples, wanted)
            .map(|classes| (classes.names, classes.rows))
            .map_err(|error| error.to_string())
    }

    fn found(labels: &str, wanted: usize, names: &str, rows: &[u32]) {
        let names: Vec<String> = names.split(' ').map(str::to_owned).collect();
        assert_eq!(classes(labels, wanted), Ok((names, rows.to_vec())));
    }

    fn refused(labels: &str, wanted: usize, words: &[&str]) {
        let message = classes(labels, wanted).unwrap_err();
        for word in words.iter().chain(&["file.csv"]) {
            assert!(message.contains(word), "`{word}` is not in: {message}");
        }
    }

    #[test]
    fn labels_are_ranked() {
        found("pos neg pos", 2, "neg pos", &[1, 0, 1]);
        found("10 9 100 9", 3, "9 10 100", &[1, 0, 2, 0]);
        found("1 2 1", 2, "1 2", &[0, 1, 0]);
        found("-1 1 1", 2, "-1 1", &[0, 1, 1]);
        // Text as soon as one of them is none.
        found("10 9 x", 3, "10 9 x", &[0, 1, 2]);
    }

    #[test]
    fn integers_below_the_number_of_classes_are_class_ids() {
        found("1 0 1", 2, "0 1", &[1, 0, 1]);
        found("2 0 2", 3, "0 1 2", &[2, 0, 2]);
        found("2 1 2", 3, "0 1 2", &[2, 1, 2]);
    }

    #[test]
    fn another_number_of_classes_says_what_to_set() {
        refused("a b c", 2, &["3 labels (a, b, c)", "model.num_labels = 2", "set model.num_labels = 3"]);
        refused("0 1 2", 2, &["3 labels (0, 1, 2)", "set model.num_labels = 3"]);
        refused("a b", 3, &["2 labels (a, b)", "set model.num_labels = 2"]);
        let many: Vec<String> = (10..40).map(|number| format!("t{number}")).collect();
        refused(&many.join(" "), 2, &["30 labels", "t21 and 18 more", "data.columns"]);
    }

    #[test]
    fn a_single_class_is_an_error_of_its_own() {
        refused("a a a", 2, &["one class only", "`a`"]);
        refused("1 1", 2, &["one class only", "`1`"]);
        refused("1 1", 3, &["one class only", "`1`"]);
        refused("7 7", 3, &["one class only", "`7`"]);
    }

    #[test]
    fn an_integer_out_of_place_names_its_line() {
        refused("0 1 -1 -1", 2, &["line 4", "label `-1`", "0 to 1", "-1, 0, 1"]);
        refused("0 1 7", 4, &["line 4", "label `7`", "0 to 3", "0, 1, 7"]);
    }
}
