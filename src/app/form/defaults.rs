//! What a field is when nobody sets it: the preset's value where the preset has one, else the default of the table.

use super::{Form, PRESET};
use crate::config::{Layers, fields::Field, printed::Key};

/// Every setting of a preset that nothing was changed of.
#[derive(Debug, Clone)]
pub(super) struct Defaults {
    preset: String,
    printed: Vec<(Key, String)>,
}

impl Defaults {
    /// Those of a preset; of one that is not there, none.
    pub(super) fn of(preset: &str) -> Self {
        let alone = Layers::new().with_assignment(&format!("{PRESET}={preset}"));
        let resolved = alone.and_then(|layers| layers.resolve());
        let printed = resolved.map_or_else(|_| Vec::new(), |resolved| resolved.config.entries());
        Self { preset: preset.to_owned(), printed }
    }

    /// The draft has that preset now.
    pub(super) fn follow(&mut self, preset: &str) {
        if self.preset != preset {
            *self = Self::of(preset);
        }
    }
}

/// The default of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultOf<'a> {
    /// It is absent.
    None,
    /// As in the table of fields.
    Common(&'a str),
    /// The chosen preset's own; nothing where the preset leaves out what others have.
    Preset(Option<&'a str>),
}

impl Form {
    /// What a field is with the chosen preset as long as nobody sets it.
    pub fn default_of(&self, field: &Field) -> DefaultOf<'_> {
        let common = field.default.trim_matches('"');
        let told = match common {
            "" => DefaultOf::None,
            common => DefaultOf::Common(common),
        };
        if field.key == PRESET || self.defaults.printed.is_empty() {
            return told;
        }
        let own = self.defaults.printed.iter().find(|(key, _)| key == field.key);
        match own.map(|(_, text)| text.as_str()) {
            Some(text) if same(text, common) => told,
            None if common.is_empty() => told,
            own => DefaultOf::Preset(own),
        }
    }
}

/// Whether two texts are the same value, however its numbers are written.
fn same(ours: &str, theirs: &str) -> bool {
    fn parts(text: &str) -> impl Iterator<Item = &str> {
        text.trim_matches(['[', ']']).split(',').map(|part| part.trim().trim_matches('"'))
    }
    let equal = |(ours, theirs): (&str, &str)| {
        let numbers = || Some((ours.parse::<f64>().ok()?, theirs.parse::<f64>().ok()?));
        ours == theirs || numbers().is_some_and(|(ours, theirs)| ours == theirs)
    };
    parts(ours).count() == parts(theirs).count() && parts(ours).zip(parts(theirs)).all(equal)
}

#[cfg(test)]
mod tests {
    use super::{super::Row, *};
    use crate::config::{fields, presets};

    #[test]
    fn a_preset_has_defaults_of_its_own_whatever_was_set_by_hand() {
        let mut form = Form::new(Layers::new()).unwrap();
        let field = |key| fields::find(key).unwrap();
        let batch = field("train.micro_batch");
        assert_eq!(form.default_of(batch), DefaultOf::Common("8"));
        form.assign("train.micro_batch", "3").unwrap();
        assert_eq!(form.default_of(batch), DefaultOf::Common("8"));
        form.assign(PRESET, "distilbert-nano").unwrap();
        assert_eq!(form.default_of(batch), DefaultOf::Preset(Some("16")));
        assert_eq!(form.default_of(field("train.epochs")), DefaultOf::Preset(Some("3")));
        assert_eq!(form.default_of(field(PRESET)), DefaultOf::None);
        assert_eq!(form.default_of(field("train.accumulate")), DefaultOf::Common("1"));
        form.assign(PRESET, "llama-nano").unwrap();
        assert_eq!(form.default_of(batch), DefaultOf::Common("8"));
    }

    /// What is said to be the default is what the field is when nobody has set it.
    #[test]
    fn an_untouched_field_is_its_default() {
        for preset in presets::all() {
            let mut form = Form::new(Layers::new()).unwrap();
            form.assign(PRESET, preset.name).unwrap();
            for row in form.rows() {
                let Row::Field(field) = row else { continue };
                if form.by_hand(field.key) {
                    continue;
                }
                let value = form.value(field.key);
                let told = match form.default_of(field) {
                    DefaultOf::None | DefaultOf::Preset(None) => "",
                    DefaultOf::Common(text) | DefaultOf::Preset(Some(text)) => text,
                };
                assert!(same(told, &value), "{}: {} is {value}, told {told}", preset.name, field.key);
            }
        }
    }

    #[test]
    fn values_are_the_same_however_they_are_written() {
        assert!(same("[1e-30, 0.001]", "[1e-30,1e-3]") && same("flex", "flex") && same("8", "8.0"));
        assert!(!same("[1, 2]", "[1]") && !same("flex", "auto") && !same("", "8"));
    }
}
