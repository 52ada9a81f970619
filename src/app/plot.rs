//! What part of the run the charts of the Train screen show, and the cursor in them.

use super::{State, run::RunView, series::Series, slice::Slice};

/// Fewest updates that a chart is zoomed to.
const CLOSEST: u64 = 8;
/// Steps of the cursor from one end of a chart to the other.
const STEPS: u64 = 120;

/// The part of the run that is shown and the cursor in it. Both count updates, so that they stay where they are when
/// the x axis counts something else.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Plot {
    /// Whether the x axis is logarithmic.
    pub log_x: bool,
    /// Whether the marked runs lie over the loss.
    pub overlay: bool,
    /// The update that is read.
    pub cursor: Option<u64>,
    /// Updates shown; all of them without.
    span: Option<u64>,
    /// The last update shown; the newest without.
    end: Option<u64>,
}

impl Plot {
    /// The first and last update that are shown of a run that made those; nothing when it is shown whole.
    pub fn shown(&self, (first, last): (u64, u64)) -> Option<(u64, u64)> {
        let span = self.span?;
        if span >= last.saturating_sub(first) {
            return None;
        }
        let end = self.end.unwrap_or(last).clamp(first + span, last);
        Some((end - span, end))
    }

    /// Whether the newest update is always in sight.
    pub fn follows(&self) -> bool {
        self.end.is_none()
    }

    /// Half as many updates, or twice as many, round the cursor or else up to the last one shown.
    pub fn zoom(&mut self, closer: bool, made: (u64, u64)) {
        self.zoom_round(closer, self.cursor, made);
    }

    /// The same round that update, which stays where it is in the chart.
    pub fn zoom_round(&mut self, closer: bool, update: Option<u64>, made: (u64, u64)) {
        let (first, last) = self.shown(made).unwrap_or(made);
        let (span, whole) = (last - first, made.1.saturating_sub(made.0));
        let wanted = if closer { (span / 2).max(CLOSEST) } else { span.saturating_mul(2) };
        if wanted >= whole {
            return self.reset();
        }
        self.span = Some(wanted);
        if let Some(update) = update.filter(|update| (first..=last).contains(update)) {
            let after = (last - update) as f64 / span.max(1) as f64 * wanted as f64;
            self.end_at(update.saturating_add(after.round() as u64), made);
        }
    }

    /// Moves what is shown by a quarter of itself.
    pub fn scroll(&mut self, later: bool, made: (u64, u64)) {
        let Some((first, last)) = self.shown(made) else { return };
        let by = ((last - first) / 4).max(1);
        self.end_at(if later { last + by } else { last.saturating_sub(by) }, made);
    }

    /// Shows the whole run again.
    pub fn reset(&mut self) {
        (self.span, self.end) = (None, None);
    }

    /// Moves the cursor; it appears at the last update shown.
    pub fn step(&mut self, later: bool, made: (u64, u64)) {
        let (first, last) = self.shown(made).unwrap_or(made);
        let Some(cursor) = self.cursor else { return self.point(last, made) };
        let mut by = ((last - first) / STEPS).max(1);
        if self.log_x {
            by = by.min((cursor - cursor.min(made.0)) / 40).max(1);
        }
        self.point(if later { cursor.saturating_add(by) } else { cursor.saturating_sub(by) }, made);
    }

    /// Puts the cursor on that update and what is shown around it.
    pub fn point(&mut self, update: u64, made: (u64, u64)) {
        let cursor = update.clamp(made.0, made.1.max(made.0));
        self.cursor = Some(cursor);
        if let Some((first, last)) = self.shown(made) {
            if cursor < first {
                self.end_at(last - (first - cursor), made);
            } else if cursor > last {
                self.end_at(cursor, made);
            }
        }
    }

    fn end_at(&mut self, end: u64, made: (u64, u64)) {
        let least = made.0 + self.span.unwrap_or(0);
        self.end = (end < made.1).then_some(end.max(least));
    }
}

impl RunView {
    /// The first and the last update that the charts hold; nothing before the first.
    pub fn made(&self) -> Option<(u64, u64)> {
        Some((self.loss.first_update()?, self.loss.last_place()?.update))
    }
}

impl State {
    /// What the charts by update show of every series, at that many points across.
    pub fn slice(&self, columns: usize) -> Slice {
        let view = self.view();
        let shown = view.made().and_then(|made| self.plot.shown(made));
        let x = |update| view.loss.x_of(update, self.x_axis);
        let bounds = shown.and_then(|(first, last)| Some((x(first)?, x(last)?)));
        Slice { axis: self.x_axis, bounds, columns, log: self.plot.log_x }
    }

    /// The update under the cursor, as long as there is one and the run still holds it.
    pub fn cursor(&self) -> Option<u64> {
        let (first, last) = self.view().made()?;
        self.plot.cursor.map(|cursor| cursor.clamp(first, last.max(first)))
    }

    /// Changes what the charts show of a run that has made at least one update.
    pub(super) fn replot(&mut self, change: impl FnOnce(&mut Plot, (u64, u64))) {
        match self.view().made() {
            Some(made) => change(&mut self.plot, made),
            None => self.say("no update yet: there is nothing to show", false),
        }
    }

    /// Loss and validation loss of a run, as far as they are read. Those of the run on the screen are there anyway.
    pub fn curves_of(&self, id: &str) -> Option<(&Series, &Series)> {
        if self.is_followed(id) {
            return Some((&self.run.loss, &self.run.val));
        }
        self.runs.curves.get(id).map(|curves| (&curves.loss, &curves.val))
    }

    /// Whether everything that the run tells comes to the screen as it happens.
    pub(super) fn is_followed(&self, id: &str) -> bool {
        self.replay.is_none() && self.is_watched(id)
    }

    /// The runs that lie over the loss, with their place among the marked ones.
    pub fn overlaid(&self) -> impl Iterator<Item = (usize, &str, &Series, &Series)> {
        let own = self.watching.as_ref().map(|run| &*run.id);
        let marked = self.runs.marked.iter().enumerate().filter(move |(_, id)| Some(&***id) != own);
        marked.filter(|_| self.plot.overlay).filter_map(|(at, id)| {
            let (loss, val) = self.curves_of(id)?;
            let name = self.runs.rows.iter().find(|row| row.id == *id).map_or(&**id, |row| &row.name);
            Some((at, name, loss, val))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MADE: (u64, u64) = (1, 1001);

    #[test]
    fn a_zoomed_chart_follows_the_newest_update_until_it_is_moved() {
        let mut plot = Plot::default();
        assert_eq!(plot.shown(MADE), None);
        plot.zoom(true, MADE);
        assert_eq!(plot.shown(MADE), Some((501, 1001)));
        assert_eq!(plot.shown((1, 1201)), Some((701, 1201)), "it follows");
        plot.scroll(false, MADE);
        assert_eq!((plot.shown(MADE), plot.shown((1, 1201))), (Some((376, 876)), Some((376, 876))));
        (0..9).for_each(|_| plot.scroll(false, MADE));
        assert_eq!(plot.shown(MADE), Some((1, 501)), "not before the first");
        (0..9).for_each(|_| plot.scroll(true, MADE));
        assert!(plot.follows() && plot.shown(MADE) == Some((501, 1001)));
        plot.zoom(false, MADE);
        assert_eq!(plot.shown(MADE), None);
    }

    #[test]
    fn zooming_keeps_the_cursor_where_it_is_and_has_an_end() {
        let mut plot = Plot::default();
        plot.point(251, MADE);
        plot.zoom(true, MADE);
        assert_eq!(plot.shown(MADE), Some((126, 626)), "a quarter of it lies before the cursor, as before");
        for _ in 0..20 {
            plot.zoom(true, MADE);
        }
        let (first, last) = plot.shown(MADE).unwrap();
        assert!(last - first == CLOSEST && (first..=last).contains(&251));
        plot.zoom(true, (1, 3));
        assert_eq!(plot.shown((1, 3)), None, "nothing to zoom into");
    }

    #[test]
    fn zooming_round_an_update_needs_no_cursor_and_sets_none() {
        let mut plot = Plot::default();
        plot.zoom_round(true, Some(251), MADE);
        assert_eq!((plot.shown(MADE), plot.cursor), (Some((126, 626)), None));
        plot.zoom_round(false, Some(251), MADE);
        assert_eq!(plot.shown(MADE), None);
    }

    #[test]
    fn the_cursor_appears_at_the_end_and_takes_the_chart_along() {
        let mut plot = Plot::default();
        plot.step(false, MADE);
        assert_eq!(plot.cursor, Some(1001));
        plot.zoom(true, MADE);
        plot.point(100, MADE);
        let (first, last) = plot.shown(MADE).unwrap();
        assert_eq!((first, last), (100, 600));
        plot.step(false, MADE);
        assert_eq!((plot.cursor, plot.shown(MADE)), (Some(96), Some((96, 596))));
        plot.point(u64::MAX, MADE);
        assert!(plot.cursor == Some(1001) && plot.follows());
        plot.point(0, (0, 0));
        plot.step(true, (0, 0));
        assert_eq!(plot.cursor, Some(0));
    }
}
