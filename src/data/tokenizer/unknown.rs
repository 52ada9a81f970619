//! What a tokenizer does not know of a text: that is lost, or becomes one token for everything unknown.

use serde::Deserialize;

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

/// The token for what is unknown, if there is one.
pub(super) fn token(json: &[u8], tokenizer: &tokenizers::Tokenizer) -> Option<(u32, String)> {
    let Model { unk_token, unk_id } = serde_json::from_slice::<File>(json).ok()?.model;
    let id = unk_id.or_else(|| tokenizer.token_to_id(unk_token.as_ref()?))?;
    Some((id, tokenizer.id_to_token(id)?))
}

/// Says which characters at the beginning of a text the tokenizer does not know; nothing when it knows them all.
pub(in crate::data) fn note(encoder: &FileEncoder, text: &str) -> Option<String> {
    let text = &text[..text.floor_char_boundary(LOOKED_AT)];
    let (mut all, mut unknown, mut named) = (0_u64, 0_u64, Vec::new());
    for document in text.split(char::from(SEPARATOR)) {
        let known = encoder.known(document)?;
        for (at, sign) in
            document.char_indices().filter(|(_, sign)| !sign.is_whitespace() && !sign.is_control())
        {
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
