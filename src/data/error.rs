//! What can be wrong with the text, each told in one sentence: what, where, what to do.

use thiserror::Error;

/// Text that cannot be trained on.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DataError {
    #[error("data.path = {path} does not exist: give a UTF-8 text file or a folder of them")]
    Missing { path: String },
    #[error("{path} cannot be read: {problem}")]
    Unreadable { path: String, problem: String },
    #[error("{path} is neither a file nor a folder: give a UTF-8 text file or a folder of them")]
    NotAFile { path: String },
    #[error("{path} is empty: give a file with text in it")]
    Empty { path: String },
    #[error(
        "{path} is not UTF-8 at byte {offset} (line {line}): convert it, for example with `iconv -f LATIN1 -t UTF-8`"
    )]
    NotUtf8 { path: String, offset: usize, line: usize },
    #[error(
        "{path} contains a NUL byte at byte {offset} (line {line}), so it is no plain text (UTF-16 or binary): convert it to UTF-8 text"
    )]
    Binary { path: String, offset: usize, line: usize },
    #[error(
        "{path} ends early: {bytes} bytes of {packing} give {text} bytes of text, and then it breaks off; copy or download it again"
    )]
    EndsEarly { path: String, packing: &'static str, bytes: u64, text: u64 },
    #[error(
        "{path} is damaged, or no {packing}, within its first {bytes} bytes ({problem}): copy or download it again, or give it the name of what it is"
    )]
    Damaged { path: String, packing: &'static str, bytes: u64, problem: String },
    #[error(
        "{path} is a Parquet file, and this program was built without its reader: build it with `cargo install --path . --features parquet`, or write the table as .jsonl, for example with `python -c \"import pandas; pandas.read_parquet('in.parquet').to_json('out.jsonl', orient='records', lines=True)\"`"
    )]
    Parquet { path: String },
    #[error(
        "{path} is a packed Parquet file, and its columns lie at places that packing hides: unpack it first (its pages are packed as they are)"
    )]
    PackedTable { path: String },
    #[error(
        "{path} is a Parquet file, which cannot be trained on as it is: name the column that holds its text with data.field"
    )]
    NoPlainText { path: String },
    #[error(
        "{path} ends early: its {bytes} bytes begin as a Parquet file, and the list of its columns, which comes last, is missing; copy or download it again"
    )]
    TableEndsEarly { path: String, bytes: u64 },
    #[error(
        "{path} is damaged, or no Parquet file that can be read ({problem}): copy or download it again, or give it the name of what it is"
    )]
    DamagedTable { path: String, problem: String },
    #[error(
        "{path} has no column `{field}` (those with text are: {columns}): name what holds the text with data.field"
    )]
    NoTextColumn { path: String, field: String, columns: String },
    #[error("the column `{column}` of {path} holds {kind}: expected {expected}; name another one with {key}")]
    ColumnKind { path: String, column: String, kind: &'static str, expected: &'static str, key: &'static str },
    #[error("{path}, row {row}: {fault}")]
    TableRow { path: String, row: usize, fault: RowFault },
    #[error(
        "{path} has no `{field}` (it has {columns}): {}name what holds the text with data.field, or set data.field = \"\" to train on the file as it is",
        separator(.columns)
    )]
    NoField { path: String, field: String, columns: String },
    #[error(
        "no row of {path} has text in `{field}`: give rows with text, or name what holds it with data.field"
    )]
    NoRows { path: String, field: String },
    #[error("{path} changed while it was read: start again when nobody writes to it")]
    Changed { path: String },
    #[error(
        "the tokens cannot be kept in {path} ({problem}): free some space, or choose another place with TUI_TRAIN_HOME"
    )]
    Unwritable { path: String, problem: String },
    #[error(
        "{path} is too long to stay in memory, and no folder is known to keep its tokens in: set TUI_TRAIN_HOME"
    )]
    NoStore { path: String },
    #[error(
        "the tokens of {path} can no longer be read ({problem}): start or resume the run again, and they are made anew"
    )]
    Tokens { path: String, problem: String },
    #[error("{path} holds more than {limit} bytes of text, and a table stays in memory: give a part of it")]
    TooLarge { path: String, limit: u64 },
    #[error(
        "no text to train on in {path}: {}; text is recognised by extension, such as .txt or .md, and a single file is read whatever its name",
        left_out_in_words(.left_out)
    )]
    NoText { path: String, left_out: Vec<(String, u64)> },
    #[error(
        "{source_name} has {tokens} tokens to train on ({held_out} more are held out), and one sequence needs train.seq_len + 1 = {needed}: give more text, lower train.seq_len, or lower data.validation_fraction"
    )]
    TooShort { source_name: String, tokens: u64, held_out: u64, needed: u64 },
    #[error("data.source = \"{given}\" does not suit this model: use {instead}, or data.path")]
    WrongSource { given: &'static str, instead: &'static str },

    #[error(
        "data.path = {path} does not exist: to classify, give a .csv, .tsv or .jsonl file, or a folder of them"
    )]
    MissingTable { path: String },
    #[error(
        "no rows to classify in {path}: {}; to classify, give a .csv, .tsv or .jsonl file, or a folder of them",
        left_out_in_words(.left_out)
    )]
    NoTables { path: String, left_out: Vec<(String, u64)> },
    #[error(
        "data.path = {path} holds no labels that can be read: to classify, give a .csv, .tsv or .jsonl file"
    )]
    NotATable { path: String },
    #[error(
        "{path} has {rows} row{}, and a classification needs at least two: give more rows",
        plural(.rows)
    )]
    TooFewRows { path: String, rows: usize },
    #[error(
        "{path} has no column `{column}`: its columns are {columns}; {}correct data.columns",
        separator(.columns)
    )]
    NoColumn { path: String, column: String, columns: String },
    #[error(
        "no column of {path} has a usual name of {what} ({usual}): its columns are {columns}; {}name one or two sentences and then the label with data.columns",
        separator(.columns)
    )]
    NoUsualColumn { path: String, what: &'static str, usual: &'static str, columns: String },
    #[error(
        "{path} has the column `{column}` more than once (its columns are {columns}): rename one of them"
    )]
    ColumnTwice { path: String, column: String, columns: String },
    #[error("{path}, line {line}: {fault}")]
    Row { path: String, line: usize, fault: RowFault },
    #[error(
        "{path} has one class only, `{label}` in every row: a classification needs two or more, give rows of another class or name another label column with data.columns"
    )]
    OneClass { path: String, label: String },
    #[error(
        "{path} has {found} labels ({labels}), and model.num_labels = {wanted}: set model.num_labels = {found}, or name another label column with data.columns"
    )]
    LabelCount { path: String, found: usize, labels: String, wanted: usize },

    #[error(
        "data.tokenizer = {path} does not exist: give the path of a Hugging Face tokenizer.json, \"bytes\", or \"bpe:4096\" to learn one of that many tokens from the data"
    )]
    TokenizerMissing { path: String },
    #[error("data.tokenizer = {path} is {what}, not a tokenizer.json of Hugging Face: {remedy}")]
    OtherLibrary { path: String, what: &'static str, remedy: &'static str },
    #[error(
        "data.tokenizer = {path} has no token that ends a document, and there are {documents} documents: add one of {known} to its added_tokens, or choose another tokenizer"
    )]
    NoEnd { path: String, documents: u64, known: String },
    #[error(
        "data.tokenizer = {path} puts no marks round a row, and a classification is read off the first one: give a tokenizer.json with a post_processor that adds them (such as [CLS] and [SEP])"
    )]
    NoMarks { path: String },
    #[error("data.tokenizer = bpe:{size} cannot be learnt from the text: {problem}")]
    Learn { size: usize, problem: String },
    #[error("data.tokenizer = {path} is a folder: give the path of the tokenizer.json in it")]
    TokenizerFolder { path: String },
    #[error(
        "data.tokenizer = {path} is not a tokenizer.json of Hugging Face ({problem}): give one, or \"bytes\""
    )]
    NotATokenizer { path: String, problem: String },
    #[error(
        "data.tokenizer = {tokenizer} has {needed} tokens, and model.vocab_size = {vocab_size}: set model.vocab_size = {needed}, or choose another tokenizer"
    )]
    Vocabulary { tokenizer: String, needed: usize, vocab_size: usize },
    #[error("data.tokenizer = {path} fails on the text: {problem}")]
    Tokenize { path: String, problem: String },
    #[error(
        "train.seq_len = {seq_len} has no room for the {marks} marks of a row and a token of each sentence: set train.seq_len to at least {needed}"
    )]
    NoRoom { seq_len: usize, marks: usize, needed: usize },

    #[error(
        "the run stopped at sequence {position} of an epoch, but the training text now has {sequences} sequences: put the text back as it was, or start a new run"
    )]
    Cursor { position: u64, sequences: u64 },
    #[error(
        "the text holds the token id {id}, and model.vocab_size = {vocabulary} ends before it: set model.vocab_size to what the tokenizer has, or choose another tokenizer"
    )]
    TokenId { id: i32, vocabulary: usize },
    #[error("the data of the task `{task}` cannot be used: {problem}")]
    Own { task: String, problem: String },
    #[error("the built-in stories are damaged ({0}): give a text of your own with data.path")]
    Stories(String),
    #[error("preparing the batches failed: {0}")]
    Prefetch(String),
}

/// What is wrong with one row of a file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RowFault {
    #[error(
        "{fields} field{} where the header has {header}: complete the row, or quote a field that holds the separator",
        plural(.fields)
    )]
    Ragged { fields: usize, header: usize },
    #[error(
        "the quote that opens here is never closed: close it, and double every quote inside a quoted field"
    )]
    OpenQuote,
    #[error("text behind a closing quote: quote the whole field, and double every quote inside it")]
    StrayQuote,
    #[error("not valid JSON ({problem}, column {column}): write one object a line")]
    Json { problem: String, column: usize },
    #[error("{kind} and not an object: write one object a line")]
    NoObject { kind: &'static str },
    #[error("no `{column}` (it has {columns}): every row needs one")]
    NoKey { column: String, columns: String },
    #[error("no `{field}` (it has {columns}): every row needs one; name what holds the text with data.field")]
    NoField { field: String, columns: String },
    #[error("it is longer than {limit} bytes: write one object a line")]
    TooLong { limit: usize },
    #[error("`{column}` is {kind}: expected {expected}")]
    Kind { column: String, kind: &'static str, expected: &'static str },
    #[error("`{column}` is empty: fill it in, or remove the row")]
    Empty { column: String },
    #[error("`{column}` contains a NUL character: remove it")]
    Nul { column: String },
    #[error("`{column}` is not UTF-8 at its byte {offset}: convert the column, or name another one")]
    NotUtf8 { column: String, offset: usize },
    #[error(
        "label `{label}` is not one of 0 to {last} (the labels there are: {labels}): correct or remove the row, or set model.num_labels to the number of labels"
    )]
    Label { label: String, last: usize, labels: String },
    #[error("the tokenizer makes no token of it: correct or remove the row")]
    NoTokens,
}

fn left_out_in_words(left_out: &[(String, u64)]) -> String {
    if left_out.is_empty() {
        return "the folder is empty".to_owned();
    }
    let parts: Vec<String> = left_out.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    format!("left out {}", parts.join(", "))
}

impl DataError {
    /// What seems to part the columns of a table whose names are looked for in vain, if that is not what it is read with.
    pub(super) fn other_separator(&self) -> Option<&'static str> {
        match self {
            Self::NoField { columns, .. }
            | Self::NoColumn { columns, .. }
            | Self::NoUsualColumn { columns, .. } => parted_by(columns),
            _ => None,
        }
    }
}

/// What parts that which stands as one name of a column and looks like several.
fn parted_by(columns: &str) -> Option<&'static str> {
    let mut signs = [(';', "semicolons"), ('\t', "tabs"), ('|', "bars")].into_iter();
    signs.find(|(sign, _)| !columns.contains(", ") && columns.contains(*sign)).map(|(_, signs)| signs)
}

/// A hint where one name of a column looks like several that another separator parts; else nothing.
fn separator(columns: &str) -> String {
    parted_by(columns).map_or_else(String::new, |signs| {
        format!(
            "its columns look parted by {signs}, and a .csv is read with commas and a .tsv with tabs: write it so, or "
        )
    })
}

const fn plural(count: &usize) -> &'static str {
    if *count == 1 { "" } else { "s" }
}
