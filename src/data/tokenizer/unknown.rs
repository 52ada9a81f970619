//! What a tokenizer does not know of a text: that is lost, or becomes one token for everything unknown.

use serde::Deserialize;
use unicode_width::UnicodeWidthChar;

use super::{FileEncoder, unborne};
use crate::data::tokens::SEPARATOR;

/// So many bytes at the beginning of a text are looked at: enough to see that the tokenizer is one for another language.
pub(in crate::data) const LOOKED_AT: usize = 64 << 10;
/// Of the characters that are not known, so many are named.
const NAMED: usize = 3;

/// The only part of a `tokenizer.json` that tells what becomes of the unknown.
#[derive(Deserialize)]
struct File {
    model: Model,
}

#[derive(Deserialize)]
struct Model {
    unk_token: Option<String>,
    unk_id: Option<u32>,
}

/// The beginning of a text without the word that it breaks off in, if it was cut.
fn whole_words(beginning: &[u8]) -> &[u8] {
    if beginning.len() < LOOKED_AT {
        return beginning;
    }
    let between = |byte: &u8| byte.is_ascii_whitespace() || *byte == SEPARATOR;
    // A text without any is cut between two characters.
    let valid = || beginning.utf8_chunks().next().map_or(0, |chunk| chunk.valid().len());
    &beginning[..beginning.iter().rposition(between).unwrap_or_else(valid)]
}

/// The token for what is unknown, if there is one.
pub(super) fn token(json: &[u8], tokenizer: &tokenizers::Tokenizer) -> Option<(u32, String)> {
    let Model { unk_token, unk_id } = serde_json::from_slice::<File>(json).ok()?.model;
    let id = unk_id.or_else(|| tokenizer.token_to_id(unk_token.as_ref()?))?;
    Some((id, tokenizer.id_to_token(id)?))
}

/// Says which characters at the beginning of a text the tokenizer does not know; nothing when it knows them all.
pub(in crate::data) fn note(encoder: &FileEncoder, beginning: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(whole_words(beginning));
    let (mut all, mut unknown, mut named) = (0_u64, 0_u64, Vec::new());
    for document in text.split(char::from(SEPARATOR)) {
        let known = encoder.known(document)?;
        for (at, sign) in document.char_indices().filter(|(_, sign)| counts(*sign)) {
            all += 1;
            if known[at] {
                continue;
            }
            unknown += 1;
            if named.len() < NAMED && !named.contains(&sign) {
                named.push(sign);
            }
        }
    }
    let such: Vec<String> = named.iter().map(|sign| format!("`{sign}`")).collect();
    let become_what =
        encoder.unknown.as_ref().map_or("are lost".to_owned(), |(_, token)| format!("become `{token}`"));
    (unknown > 0).then(|| {
        format!(
            "the tokenizer {} does not know {} of the {} characters at the beginning of the text, such as {}: they {become_what}",
            encoder.path,
            unknown,
            all,
            such.join(", ")
        )
    })
}

/// Whether something is lost with it: spaces and signs without a width are what normalizers remove.
fn counts(sign: char) -> bool {
    !sign.is_whitespace() && sign != '\u{ad}' && sign.width().is_some_and(|columns| columns > 0)
}

impl FileEncoder {
    /// For each byte of a text whether it is in a token of its own; nothing where the tokenizer fails on the text.
    fn known(&self, text: &str) -> Option<Vec<bool>> {
        let encoding = unborne::held(|| self.tokenizer.encode(text, false)).ok()?;
        let mut known = vec![false; text.len()];
        for (id, &(from, to)) in encoding.get_ids().iter().zip(encoding.get_offsets()) {
            if self.unknown.as_ref().is_none_or(|(unknown, _)| unknown != id)
                && let Some(bytes) = known.get_mut(from..to)
            {
                bytes.fill(true);
            }
        }
        Some(known)
    }
}
