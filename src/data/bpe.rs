//! A vocabulary learnt from the text that is trained on: byte-level BPE, as GPT-2 has it, by the `tokenizers` crate.

use std::{
    sync::mpsc::{SyncSender, sync_channel},
    thread,
};

use tokenizers::{
    AddedToken, Tokenizer,
    decoders::byte_level::ByteLevel,
    models::{
        TrainerWrapper,
        bpe::{BPE, BpeTrainer},
    },
    processors::bert::BertProcessing,
};

use super::{
    DataError,
    encode::Pieces,
    store::Store,
    tokenizer::{Encoder, TokenizerText},
};
use crate::config::Task;

/// Ends a document; its id is 0.
const END: &str = "<|endoftext|>";
/// Stand before and behind the sentences of a row.
const MARKS: [&str; 2] = ["[CLS]", "[SEP]"];
/// Pieces that wait to be counted.
const AHEAD: usize = 64;

/// Takes the text to learn from: pieces of documents, and nothing where one ends.
#[derive(Debug)]
pub(super) struct Pupil {
    pieces: Pieces,
    sender: SyncSender<String>,
}

impl Pupil {
    /// More of the text, or the end of a document. Nothing happens once learning has failed: that is told at its end.
    pub(super) fn read(&mut self, text: Option<&str>) {
        match text {
            Some(text) => {
                let sender = &self.sender;
                let _ =
                    self.pieces.push(text, &mut |piece: &str| sender.send(piece.to_owned()).map_err(drop));
            }
            None => {
                let rest = self.pieces.end();
                if !rest.is_empty() {
                    let _ = self.sender.send(rest);
                }
            }
        }
    }
}

/// The vocabulary that is kept under that key, if there is one.
pub(super) fn kept(size: usize, store: &Store, key: &str) -> Option<Encoder> {
    TokenizerText::learnt(size, store.get("vocabularies", key)?).load().ok()
}

/// The same, or else the vocabulary that is learnt now, which is then kept.
///
/// # Errors
/// What `learn` says, and a vocabulary that is none.
pub(super) fn kept_or_learnt(
    size: usize,
    store: Option<&Store>,
    key: &str,
    learn: impl FnOnce() -> Result<String, DataError>,
) -> Result<Encoder, DataError> {
    if let Some(kept) = store.and_then(|store| kept(size, store, key)) {
        return Ok(kept);
    }
    let text = learn()?;
    if let Some(store) = store {
        store.keep("vocabularies", key, &text);
    }
    TokenizerText::learnt(size, text).load()
}

/// Learns a vocabulary of at most `size` tokens from what `teach` gives to the pupil. The same text gives the same
/// `tokenizer.json`, whose text this is, on every machine and with any number of threads.
///
/// # Errors
/// What `teach` says, and a text from which nothing can be learnt.
pub(super) fn learn(
    size: usize,
    task: Task,
    teach: impl FnOnce(&mut Pupil) -> Result<(), DataError>,
) -> Result<String, DataError> {
    let failed = |problem: String| DataError::Learn { size, problem };
    let (sender, receiver) = sync_channel(AHEAD);
    thread::scope(|scope| {
        let learner = thread::Builder::new()
            .name("vocabulary".to_owned())
            .spawn_scoped(scope, move || trained(size, task, receiver.into_iter()))
            .map_err(|error| failed(format!("no thread for it: {error}")))?;
        let mut pupil = Pupil { pieces: Pieces::default(), sender };
        let taught = teach(&mut pupil);
        pupil.read(None);
        drop(pupil);
        let learnt = learner.join().map_err(|_| failed("it panicked".to_owned()))?;
        taught?;
        learnt.map_err(|error| failed(error.to_string()))
    })
}

fn trained(
    size: usize,
    task: Task,
    texts: impl Iterator<Item = String> + Send,
) -> Result<String, tokenizers::Error> {
    let special = |token: &&str| AddedToken::from(*token, true);
    let mut tokens = vec![END];
    if task == Task::Classification {
        tokens.extend(MARKS);
    }
    let trainer = BpeTrainer::builder()
        .vocab_size(size)
        .min_frequency(2)
        .show_progress(false)
        .special_tokens(tokens.iter().map(special).collect())
        .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
        .build();
    let mut tokenizer = Tokenizer::new(BPE::default());
    tokenizer.with_pre_tokenizer(Some(ByteLevel::new(false, true, true)));
    tokenizer.with_decoder(Some(ByteLevel::default()));
    tokenizer.train(&mut TrainerWrapper::BpeTrainer(trainer), texts)?;
    if task == Task::Classification {
        let mark = |at: usize| (MARKS[at].to_owned(), tokenizer.token_to_id(MARKS[at]).unwrap_or(0));
        let marks = BertProcessing::new(mark(1), mark(0));
        tokenizer.with_post_processor(Some(marks));
    }
    tokenizer.to_string(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::stories;

    fn learnt(size: usize, task: Task, texts: &[String]) -> Tokenizer {
        let text = learn(size, task, |pupil| {
            for text in texts {
                pupil.read(Some(text));
                pupil.read(None);
            }
            Ok(())
        });
        Tokenizer::from_bytes(text.unwrap()).unwrap()
    }

    fn some_stories() -> Vec<String> {
        let mut all = Vec::new();
        stories::tell_all(|story| all.push(story.to_owned())).unwrap();
        all.truncate(300);
        all
    }

    #[test]
    fn the_same_text_gives_the_same_vocabulary_with_any_number_of_threads() {
        let texts = some_stories();
        let learn = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| trained(400, Task::LanguageModel, texts.clone().into_iter())).unwrap()
        };
        let first = learn(1);
        assert_eq!(first, learn(7));
        assert_eq!(first, learnt(400, Task::LanguageModel, &texts).to_string(false).unwrap());
    }

    #[test]
    fn every_text_comes_back() {
        let tokenizer = learnt(400, Task::LanguageModel, &some_stories());
        assert_eq!(tokenizer.get_vocab_size(true), 400);
        assert_eq!(tokenizer.token_to_id(END), Some(0));
        for text in ["Once upon a time", " two  spaces\n\n", "naïve 😀 \u{1}"] {
            let ids = tokenizer.encode_fast(text, false).unwrap().get_ids().to_vec();
            assert_eq!(tokenizer.decode(&ids, false).unwrap(), text);
        }
        let story = &some_stories()[7];
        let ids = tokenizer.encode_fast(&**story, false).unwrap();
        assert!(ids.len() * 3 < story.len() * 2, "{} ids for {} bytes", ids.len(), story.len());
    }

    #[test]
    fn rows_get_marks() {
        let tokenizer = learnt(300, Task::Classification, &some_stories());
        let [cls, sep] = MARKS.map(|mark| tokenizer.token_to_id(mark).unwrap());
        let ids = tokenizer.encode_fast(("a", "b"), true).unwrap().get_ids().to_vec();
        assert_eq!((ids[0], ids[2], ids[4], ids.len()), (cls, sep, sep, 5));
        assert!(cls < 259 && sep < 259);
    }

    #[test]
    fn what_the_teacher_says_comes_through() {
        let error = learn(300, Task::LanguageModel, |_| Err(DataError::Empty { path: "a.txt".into() }));
        assert!(error.unwrap_err().to_string().contains("a.txt is empty"));
    }
}
