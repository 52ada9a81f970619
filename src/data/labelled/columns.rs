//! Which columns hold the sentences and the label.

use super::{super::error::RowFault, DataError, Example};

/// Usual names of two sentences.
const PAIRS: [[&str; 2]; 5] = [
    ["sentence1", "sentence2"],
    ["premise", "hypothesis"],
    ["question1", "question2"],
    ["text_a", "text_b"],
    ["question", "sentence"],
];
/// Usual names of a single sentence.
const SINGLES: [&str; 3] = ["sentence", "text", "review"];
/// Usual names of a label.
const LABELS: [&str; 5] = ["label", "labels", "class", "target", "category"];

/// One column of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) at: usize,
    pub(super) name: String,
}

/// The columns that are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Columns {
    first: Column,
    second: Option<Column>,
    label: Column,
}

impl Columns {
    /// Finds the wanted columns, or those with the usual names, in upper or lower case.
    ///
    /// # Errors
    /// A column that is missing or stands there twice; the message names those there are.
    pub(super) fn choose(path: &str, header: &[String], wanted: &[String]) -> Result<Self, DataError> {
        let named = |name: &str| -> Result<Column, DataError> {
            let mut places = (0..header.len()).filter(|at| header[*at] == name);
            let columns = listed(header);
            match (places.next(), places.next()) {
                (Some(at), None) => Ok(Column { at, name: name.to_owned() }),
                (Some(_), Some(_)) => {
                    Err(DataError::ColumnTwice { path: path.to_owned(), column: name.to_owned(), columns })
                }
                (None, _) => {
                    Err(DataError::NoColumn { path: path.to_owned(), column: name.to_owned(), columns })
                }
            }
        };
        match wanted {
            [first, label] => Ok(Self { first: named(first)?, second: None, label: named(label)? }),
            [first, second, label] => {
                Ok(Self { first: named(first)?, second: Some(named(second)?), label: named(label)? })
            }
            _ => {
                let find = |usual: &str| header.iter().find(|name| name.eq_ignore_ascii_case(usual));
                let no = |what: &'static str, usual: &'static str| DataError::NoUsualColumn {
                    path: path.to_owned(),
                    what,
                    usual,
                    columns: listed(header),
                };
                let pair = PAIRS.iter().find_map(|[first, second]| Some((find(first)?, Some(find(second)?))));
                let single = || Some((SINGLES.iter().find_map(|usual| find(usual))?, None));
                let (first, second) = pair
                    .or_else(single)
                    .ok_or_else(|| no("a sentence", "sentence, text or sentence1 and sentence2"))?;
                let label = LABELS
                    .iter()
                    .find_map(|usual| find(usual))
                    .ok_or_else(|| no("a label", "label, class or target"))?;
                Ok(Self {
                    first: named(first)?,
                    second: second.map(|second| named(second)).transpose()?,
                    label: named(label)?,
                })
            }
        }
    }

    /// Those of the sentences.
    #[cfg(feature = "parquet")]
    pub(super) fn sentences(&self) -> impl Iterator<Item = &Column> {
        [Some(&self.first), self.second.as_ref()].into_iter().flatten()
    }

    /// That of the label.
    #[cfg(feature = "parquet")]
    pub(super) const fn label(&self) -> &Column {
        &self.label
    }

    /// One row, whose texts `text` and `label` look up.
    ///
    /// # Errors
    /// What they say, and a sentence or a label without text.
    pub(super) fn example(
        &self,
        line: usize,
        text: impl Fn(&Column) -> Result<String, RowFault>,
        label: impl Fn(&Column) -> Result<String, RowFault>,
    ) -> Result<Example, RowFault> {
        let sentence = |column: &Column| {
            let text = text(column)?;
            if text.trim().is_empty() {
                return Err(RowFault::Empty { column: column.name.clone() });
            }
            Ok(text)
        };
        let first = sentence(&self.first)?;
        let second = self.second.as_ref().map(sentence).transpose()?;
        let label = label(&self.label)?.trim().to_owned();
        if label.is_empty() {
            return Err(RowFault::Empty { column: self.label.name.clone() });
        }
        Ok(Example { first, second, label, line })
    }
}

fn listed(header: &[String]) -> String {
    if header.is_empty() { "none".to_owned() } else { header.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(header: &str, wanted: &[&str]) -> Result<Vec<usize>, String> {
        let words = |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
        let header = words(&header.split(' ').collect::<Vec<_>>());
        let columns =
            Columns::choose("file.csv", &header, &words(wanted)).map_err(|error| error.to_string())?;
        let places = [Some(columns.first), columns.second, Some(columns.label)];
        Ok(places.into_iter().flatten().map(|column| column.at).collect())
    }

    #[test]
    fn usual_names_are_found_in_any_order() {
        assert_eq!(choose("label sentence", &[]), Ok(vec![1, 0]));
        assert_eq!(choose("idx Premise Hypothesis Label", &[]), Ok(vec![1, 2, 3]));
        assert_eq!(choose("question1 question2 target", &[]), Ok(vec![0, 1, 2]));
        assert_eq!(choose("question sentence label", &[]), Ok(vec![0, 1, 2]));
        assert_eq!(choose("text_a text_b class", &[]), Ok(vec![0, 1, 2]));
        assert_eq!(choose("category review", &[]), Ok(vec![1, 0]));
        // Two sentences go before one.
        assert_eq!(choose("text sentence1 sentence2 labels", &[]), Ok(vec![1, 2, 3]));
    }

    #[test]
    fn names_that_are_set_win() {
        assert_eq!(choose("label sentence text grade", &["text", "grade"]), Ok(vec![2, 3]));
        assert_eq!(choose("a b c", &["c", "a", "b"]), Ok(vec![2, 0, 1]));
    }

    #[test]
    fn another_separator_is_told() {
        let told = choose("text;label", &[]).unwrap_err();
        assert!(told.contains("parted by semicolons") && told.contains("with commas"), "{told}");
        let told = choose("text\tlabel", &["text", "label"]).unwrap_err();
        assert!(told.contains("parted by tabs"), "{told}");
        let told = choose("a b;c", &[]).unwrap_err();
        assert!(!told.contains("parted by"), "{told}");
    }

    #[test]
    fn what_is_missing_is_named_with_what_there_is() {
        let missing = choose("a b c", &["a", "mark"]).unwrap_err();
        assert!(missing.contains("file.csv has no column `mark`"), "{missing}");
        assert!(missing.contains("a, b, c"), "{missing}");
        let sentence = choose("a label", &[]).unwrap_err();
        assert!(sentence.contains("usual name of a sentence") && sentence.contains("a, label"), "{sentence}");
        assert!(sentence.contains("data.columns"), "{sentence}");
        let label = choose("text grade", &[]).unwrap_err();
        assert!(label.contains("usual name of a label") && label.contains("text, grade"), "{label}");
        let twice = choose("text label text", &["text", "label"]).unwrap_err();
        assert!(twice.contains("`text` more than once"), "{twice}");
    }
}
