"""A WordPiece tokenizer as BERT's, trained on a few sentences, and what it makes of some texts.

`tokenizer.json` itself neither truncates nor pads. `expected.json` was made with truncation to 16 tokens, the longest
sequence first, so an entry that has 16 ids may have lost some.
"""

from __future__ import annotations

import json
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.decoders import WordPiece as WordPieceDecoder
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import WordPieceTrainer

VOCABULARY = 120
PLACES = 16
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SENTENCES = [
    "the old dog sleeps under the table.",
    "a small bird sings in the tall tree.",
    "she walks to the market every morning.",
    "he is walking home with a heavy basket.",
    "the children played near the river.",
    "a cold wind blows over the hills.",
    "we found three shells on the beach.",
    "the baker opens his shop before sunrise.",
    "do you hear the rain on the roof?",
    "the teacher reads a story to the class.",
    "my brother paints the fence, and i help.",
    "two boats are sailing across the lake.",
    "the cat jumped onto the warm window sill.",
    "they planted apples, pears and plums.",
    "a lantern was shining at the end of the road!",
    "the farmer's horses are resting in the barn.",
]
TEXTS: list[tuple[str, str | None]] = [
    ("The dog sleeps.", None),
    ("The CAT jumped, and the bird sings!", None),
    ("walking", "walked walks"),
    ("A small dog.", "The children played near the river."),
    ("the old dog sleeps under the table near the river with a heavy basket and two birds", None),
    ("the children played near the river with the old dog", "a small bird sings in the tall tree before sunrise"),
    ("the dog", "the baker opens his shop before sunrise and the teacher reads a story to the class"),
    ("the baker opens his shop before sunrise and the teacher reads a story to the class", "the dog"),
    ("Caf\u00e9 na\u00efve r\u00e9sum\u00e9", None),
    ("the \u6a39 tree", None),
    ("  tabs\tand\nlines   ", None),
    ("farmer's 'barn'?!...", "road-end"),
    ("[MASK] the [SEP] dog", None),
    ("", None),
    ("the dog", ""),
]


def write_tokenizer(folder: Path) -> None:
    """Writes `tokenizer.json` and `expected.json`."""
    folder.mkdir(parents=True)
    tokenizer = _train()
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(PLACES, strategy="longest_first")
    encodings = []
    for first, second in TEXTS:
        encoding = tokenizer.encode(first, second)
        assert len(encoding.ids) <= PLACES
        encodings.append({"first": first, "second": second, "ids": encoding.ids, "type_ids": encoding.type_ids})
    lines = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in encodings)
    (folder / "expected.json").write_text(f"[\n{lines}\n]\n")
    print(f"tokenizer: {tokenizer.get_vocab_size()} entries, {len(encodings)} encodings")


def _train() -> Tokenizer:
    tokenizer = Tokenizer(WordPiece(_vocabulary(), unk_token="[UNK]"))
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.decoder = WordPieceDecoder()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, SPECIAL.index(token)) for token in ("[CLS]", "[SEP]")],
    )
    assert tokenizer.get_vocab_size() == VOCABULARY
    return tokenizer


def _vocabulary() -> dict[str, int]:
    """The trained pieces and their numbers, the same in every run.

    The trainer numbers inner letters as a hash table yields them and breaks ties by number; so it is given these letters
    in order, as if they were special.
    """
    scratch = Tokenizer(WordPiece(unk_token="[UNK]"))
    scratch.pre_tokenizer = BertPreTokenizer()
    inner = {f"##{letter}" for sentence in SENTENCES for word in sentence.split() for letter in word[1:] if letter.isalpha()}
    trainer = WordPieceTrainer(vocab_size=VOCABULARY, special_tokens=[*SPECIAL, *sorted(inner)], show_progress=False)
    scratch.train_from_iterator(SENTENCES, trainer)
    vocabulary = scratch.get_vocab()
    return {piece: vocabulary[piece] for piece in sorted(vocabulary, key=vocabulary.__getitem__)}
