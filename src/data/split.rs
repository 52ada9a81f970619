//! Which documents of a text are held out.

use super::random;

/// From this many documents on, whole documents are held out; with fewer, the end of the text is.
const SPLIT_BY_DOCUMENT: usize = 20;

/// What is held out of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Split {
    None,
    /// Everything from this byte on; where that lies inside a character, from its beginning.
    Tail(usize),
    /// These documents.
    Documents(Vec<bool>),
}

impl Split {
    /// The split of a text whose documents end there, behind their separators.
    pub(super) fn of(ends: &[usize], fraction: f64) -> Self {
        let length = ends.last().copied().unwrap_or(0);
        if fraction <= 0.0 {
            Self::None
        } else if ends.len() >= SPLIT_BY_DOCUMENT {
            Self::Documents(choose(ends, (length as f64 * fraction).round() as usize))
        } else {
            let wanted = ((length as f64 * fraction).round() as usize).max(2);
            Self::Tail(length.saturating_sub(wanted))
        }
    }
}

/// The text to train on and the text held out, which share no byte; documents end there, behind their separators.
pub(super) fn split(mut text: Vec<u8>, ends: &[usize], fraction: f64) -> (Vec<u8>, Vec<u8>) {
    let held_out = match Split::of(ends, fraction) {
        Split::None => Vec::new(),
        Split::Documents(chosen) => take_documents(&mut text, ends, &chosen),
        Split::Tail(mut cut) => {
            // Never inside a character.
            while cut > 0 && text.get(cut).is_some_and(|byte| byte & 0xC0 == 0x80) {
                cut -= 1;
            }
            text.split_off(cut)
        }
    };
    (text, held_out)
}

/// Whole documents whose bytes make up what is wanted: in the order of a hash of their number, passing over those that
/// would exceed it. At least one document is held out.
fn choose(ends: &[usize], wanted: usize) -> Vec<bool> {
    let size = |document: usize| ends[document] - if document == 0 { 0 } else { ends[document - 1] };
    let mut order: Vec<usize> = (0..ends.len()).collect();
    order.sort_by_key(|document| random::mix(*document as u64));
    let mut chosen = vec![false; ends.len()];
    let mut held = 0;
    for document in &order {
        if held + size(*document) <= wanted {
            held += size(*document);
            chosen[*document] = true;
        }
    }
    if held == 0
        && let Some(smallest) = order.iter().copied().min_by_key(|document| size(*document))
    {
        chosen[smallest] = true;
    }
    chosen
}

/// Moves the chosen documents out of the text.
fn take_documents(text: &mut Vec<u8>, ends: &[usize], chosen: &[bool]) -> Vec<u8> {
    let mut held_out = Vec::new();
    let (mut start, mut kept) = (0, 0);
    for (end, chosen) in ends.iter().zip(chosen) {
        if *chosen {
            held_out.extend_from_slice(&text[start..*end]);
        } else {
            text.copy_within(start..*end, kept);
            kept += end - start;
        }
        start = *end;
    }
    text.truncate(kept);
    held_out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Corpus;

    fn parts(documents: &[String], fraction: f64) -> (Vec<u8>, Vec<u8>) {
        let mut corpus = Corpus::new("test");
        documents.iter().for_each(|document| corpus.push(document.as_bytes()));
        split(corpus.text, &corpus.ends, fraction)
    }

    fn numbered(count: usize) -> Vec<String> {
        (0..count).map(|number| format!("document {number} {}", "x".repeat(number % 7))).collect()
    }

    /// The documents in a text.
    fn documents(text: Vec<u8>) -> Vec<String> {
        let text = String::from_utf8(text).unwrap();
        text.split_terminator('\0').map(str::to_owned).collect()
    }

    #[test]
    fn many_documents_are_split_whole_and_disjoint() {
        let all = numbered(200);
        let (train, validation) = parts(&all, 0.1);
        let (train, validation) = (documents(train), documents(validation));
        assert!(validation.iter().all(|document| !train.contains(document)));
        assert_eq!(train.len() + validation.len(), 200);
        assert!(all.iter().all(|document| train.contains(document) || validation.contains(document)));
        assert!((15..=25).contains(&validation.len()), "{}", validation.len());
        assert!(train.is_sorted_by_key(|document| all.iter().position(|one| one == document)));
        // Not simply the end of the text.
        assert!(train.contains(&all[199]) || train.contains(&all[198]) || train.contains(&all[197]));
    }

    #[test]
    fn a_document_larger_than_the_fraction_stays_in_training() {
        let mut all = numbered(20);
        all[3] = "y".repeat(100_000);
        let (train, validation) = parts(&all, 0.05);
        assert!(documents(train).contains(&all[3]));
        assert!(!documents(validation).is_empty());
    }

    #[test]
    fn one_document_is_held_out_even_when_the_fraction_is_tiny() {
        let (_, validation) = parts(&numbered(20), 1e-6);
        assert_eq!(documents(validation).len(), 1);
    }

    #[test]
    fn few_documents_hold_out_the_end_between_characters() {
        let text = "é".repeat(50);
        let (train, validation) = parts(std::slice::from_ref(&text), 0.1);
        assert_eq!(train.len() % 2, 0);
        assert_eq!(train.len() + validation.len(), 101);
        assert!((10..=12).contains(&validation.len()));
        assert_eq!([documents(train).concat(), documents(validation).concat()].concat(), text);
    }
}
