//! What a person relies on in the form: every field is there, mistakes are told, nothing else is set.

use super::*;
use crate::app::input::Input;

fn form() -> Form {
    Form::new(Layers::new()).unwrap()
}

fn edit(form: &mut Form, key: &'static str, text: &str) -> bool {
    form.focused = key;
    form.edit();
    form.editing = Some(TextLine::new(text));
    form.submit()
}

#[test]
fn the_form_holds_every_field_of_the_chosen_optimizer_and_no_other() {
    for (optimizer, preset) in
        OptimizerName::ALL.into_iter().flat_map(|name| [(name, "llama-nano"), (name, "distilbert-nano")])
    {
        let mut form = form();
        form.assign("model.preset", preset).unwrap();
        form.assign("optimizer.name", optimizer.as_str()).unwrap();
        let keys = form.keys();
        let own = format!("optimizer.{optimizer}.");
        for field in FIELDS {
            let others = field.key.matches('.').count() > 1 && !field.key.starts_with(&own);
            let wanted = !others && fields::applies(field.key, form.resolved.config.model.arch);
            assert_eq!(keys.contains(&field.key), wanted, "{} with {preset} and {optimizer}", field.key);
        }
    }
}

#[test]
fn another_preset_brings_the_keys_of_its_architecture() {
    let mut form = form();
    assert!(form.keys().contains(&"model.rope_theta") && !form.keys().contains(&"model.num_labels"));
    form.focused = PRESET;
    while form.value(PRESET) != "distilbert-nano" {
        assert!(form.cycle(true));
    }
    assert!(form.error.is_none() && form.start().is_ok());
    assert!(!form.keys().contains(&"model.rope_theta") && form.keys().contains(&"model.num_labels"));
    assert_eq!(form.value("data.source"), "sentence-pairs");
    // A key of the other architecture that was set by hand keeps the draft from starting, and can be reset.
    form.assign("model.preset", "llama-nano").unwrap();
    form.assign("model.rope_theta", "5000").unwrap();
    assert!(form.assign("model.preset", "distilbert-nano").unwrap_err().contains("model.rope_theta"));
    form.focused = "model.rope_theta";
    assert!(form.keys().contains(&form.focused), "it can still be reached");
    form.reset();
    assert!(form.start().is_ok());
}

#[test]
fn single_keys_change_optimizer_and_accumulation() {
    let mut form = form();
    for expected in OptimizerName::ALL.into_iter().skip(1).chain([OptimizerName::AdamW]) {
        form.next_optimizer();
        assert_eq!(form.optimizer(), expected);
    }
    for expected in [2, 4, 8] {
        form.accumulate(true);
        assert_eq!(form.resolved.config.train.accumulate, expected);
    }
    form.accumulate(false);
    assert_eq!(form.resolved.config.train.effective_batch(), 8 * 4);
    assert!(edit(&mut form, "train.accumulate", "6"));
    form.accumulate(false);
    assert_eq!(form.resolved.config.train.accumulate, 4);
    (0..20).for_each(|_| form.accumulate(true));
    assert_eq!(form.resolved.config.train.accumulate, 4096);
    (0..20).for_each(|_| form.accumulate(false));
    assert_eq!(form.resolved.config.train.accumulate, 1);
}

#[test]
fn a_wrong_value_stays_open_with_the_reason_beside_it() {
    let mut form = form();
    assert!(!edit(&mut form, "train.micro_batch", "0"));
    assert!(form.editing.is_some());
    assert_eq!(form.error.as_ref().unwrap().text, "expected a whole number from 1 to 65536");
    form.editing.as_mut().unwrap().input(Input::Clear);
    form.editing.as_mut().unwrap().input(Input::Char('4'));
    assert!(form.submit());
    assert_eq!((form.resolved.config.train.micro_batch, form.error.clone()), (4, None));
}

#[test]
fn the_plan_follows_what_is_typed_and_comes_back_when_that_is_dropped() {
    let mut form = form();
    form.assign("train.accumulate", "2").unwrap();
    let totals = |form: &Form| -> Vec<u64> {
        form.ledgers.iter().map(|(_, ledger)| ledger.total_bytes_estimated).collect()
    };
    let before = totals(&form);
    form.focused = "train.micro_batch";
    form.edit();
    for (input, batch) in
        [(Input::Clear, 8), (Input::Char('1'), 1), (Input::Char('6'), 16), (Input::Char('x'), 16)]
    {
        form.editing.as_mut().unwrap().input(input);
        form.preview();
        assert_eq!(form.resolved.config.train.micro_batch, batch);
        assert_eq!(totals(&form) == before, batch == 8);
    }
    form.cancel();
    assert_eq!((totals(&form), form.by_hand("train.micro_batch")), (before, false));
    form.edit();
    form.editing = Some(TextLine::new("4"));
    form.preview();
    assert!(form.submit() && form.by_hand("train.micro_batch"));
    // What was dropped is not what a later mistake leaves behind.
    form.focused = "model.num_attention_heads";
    form.edit();
    form.editing = Some(TextLine::new("2"));
    form.preview();
    form.editing = Some(TextLine::new("6"));
    form.preview();
    form.submit();
    assert_eq!(form.resolved.config.model.num_attention_heads, 4, "as it was last valid");
}

#[test]
fn a_conflict_is_shown_and_keeps_the_draft_from_starting_until_it_is_solved() {
    let mut form = form();
    assert!(edit(&mut form, "model.num_attention_heads", "6"));
    assert!(form.start().unwrap_err().contains("num_attention_heads"));
    assert!(edit(&mut form, "model.hidden_size", "96"));
    assert!(form.start().is_ok(), "{:?}", form.error);
}

#[test]
fn an_empty_field_goes_back_to_its_default() {
    let mut form = form();
    edit(&mut form, "train.seed", "7");
    assert!(form.by_hand("train.seed"));
    edit(&mut form, "train.seed", "");
    assert_eq!((form.value("train.seed"), form.by_hand("train.seed")), ("1".into(), false));
}

#[test]
fn it_says_what_differs_from_the_last_run() {
    let mut form = form();
    form.last = Some(Earlier::new("", "before", &form.resolved.config));
    assert!(form.differences().is_empty());
    form.accumulate(true);
    assert_eq!(form.differences(), vec![("train.accumulate".into(), "2".into(), "1".into())]);
}

#[test]
fn settings_can_be_typed_by_their_short_key() {
    let mut form = form();
    form.assign("optimizer.lr", "5e-4").unwrap();
    assert_eq!(form.resolved.config.optimizer.adamw.lr, 5e-4);
    assert!(form.assign("train.acumulate", "2").unwrap_err().contains("train.accumulate"));
}
