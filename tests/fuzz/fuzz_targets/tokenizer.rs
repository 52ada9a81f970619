#![no_main]

#[path = "../../readers/entry.rs"]
#[allow(dead_code)]
mod entry;

// A panic of the library behind is caught and told: only one that leaves the reader is a find.
libfuzzer_sys::fuzz_target!(init: std::panic::set_hook(Box::new(|_| {})), |bytes: &[u8]| entry::tokenizer(bytes));
