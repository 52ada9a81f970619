//! Themes, and terminals that have fewer signs.

use super::{Theme, drawn, kept, snapshot, states, styles};
use crate::{
    app::{action::Screen, look::ThemeName, recorded},
    ui::theme::Colours,
};

#[test]
fn themes() {
    let state = recorded::watching(Screen::Train, "adamw");
    let keep = |name: &str, theme: &Theme| {
        kept("styles", &format!("theme_{name}_80x24"), &styles::themed(&state, theme, (80, 24)));
    };
    for name in ThemeName::ALL {
        keep(name.as_str(), &Theme { colours: Colours::True, ..Theme::default() }.named(name));
    }
    keep("light_sixteen", &Theme { colours: Colours::Sixteen, ..Theme::default() }.named(ThemeName::Light));
}

#[test]
fn blocks_only() {
    let theme = Theme { blocks: true, ..Theme::default() };
    snapshot("blocks_train", &recorded::watching(Screen::Train, "adamw"), &theme, (80, 24));
    for (name, state) in states::all() {
        let text = drawn(&state, &theme, 120, 40);
        let odd: Vec<char> = text.chars().filter(|c| ('\u{2800}'..='\u{28ff}').contains(c)).collect();
        assert!(odd.is_empty(), "{name}: {odd:?}");
    }
}

#[test]
fn ascii_only() {
    let theme = Theme { colours: Colours::None, ascii: true, ..Theme::default() };
    snapshot("ascii_train", &recorded::watching(Screen::Train, "adamw"), &theme, (80, 24));
    for (name, state) in states::all() {
        for (width, height) in [(120, 40), (20, 5)] {
            let text = drawn(&state, &theme, width, height);
            let odd: Vec<char> = text.chars().filter(|c| !c.is_ascii()).collect();
            assert!(odd.is_empty(), "{name}: {odd:?}");
        }
    }
}
