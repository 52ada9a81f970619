//! Keys over a screen: none does harm, and one leads out.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{Theme, render, states};
use crate::{
    app::{Msg, focus::Overlay},
    ui::keymap::lookup,
};

#[test]
fn every_key_over_a_screen_leaves_a_whole_frame_and_one_leads_out() {
    let theme = Theme::default();
    for (name, state) in states::overlays().into_iter().filter(|(_, state)| state.overlay != Overlay::None) {
        let context = state.context();
        let mut out = false;
        for key in theme.keys.rows().iter().flat_map(|row| &row.keys) {
            let Some(action) = lookup(&theme.keys, context, *key) else { continue };
            let mut after = state.clone();
            after.update(Msg::Action(action));
            out |= after.overlay == Overlay::None;
            for (width, height) in [(80, 24), (20, 5)] {
                let area = Rect::new(0, 0, width, height);
                let mut buffer = Buffer::empty(area);
                render(&after, &theme, area, &mut buffer);
                let blank = buffer.content.iter().all(|cell| cell.symbol() == " ");
                assert!(!blank, "{key} where {name} is shown leaves {width}x{height} empty");
            }
        }
        let mut after = state.clone();
        after.update(Msg::Cancel);
        out |= after.overlay == Overlay::None;
        assert!(out, "nothing leads out of {name}");
    }
}
