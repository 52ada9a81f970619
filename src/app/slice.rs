//! What a chart shows of a series: a part of it, at as many points as can be seen, and what it holds at one update.

use super::series::{Bucket, Place, Series, XAxis};

/// What of a series a chart shows.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Slice {
    pub axis: XAxis,
    /// The lowest and highest x; everything without.
    pub bounds: Option<(f64, f64)>,
    /// Values that fall into one of that many columns are one point; 0: every bucket is a point.
    pub columns: usize,
    /// Whether the columns are equally wide on a logarithmic axis.
    pub log: bool,
}

/// What a series holds of one update.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// The first and last update of the values that were merged.
    pub first: u64,
    pub place: Place,
    /// Values merged, and those of them that are numbers.
    pub count: u64,
    pub finite: u64,
    /// Of the numbers; NaN without one.
    pub mean: f64,
    pub min: f64,
    pub max: f64,
}

/// Tells in which column of a slice an x lies; asked for one after the other, from the left.
struct Columns {
    low: f64,
    per_unit: f64,
    log: bool,
    /// The last answer, and from where to where it holds: a logarithm is taken once a column.
    last: (i64, f64, f64),
}

impl Columns {
    fn of(slice: &Slice, (low, high): (f64, f64)) -> Self {
        let log = slice.log && low > 0.0;
        let (low, high) = if log { (low.log2(), high.log2()) } else { (low, high) };
        Self { low, per_unit: slice.columns as f64 / (high - low), log, last: (0, f64::NAN, f64::NAN) }
    }

    /// Nothing where every value is a point of its own.
    fn at(&mut self, x: f64) -> Option<i64> {
        let (last, from, until) = self.last;
        if from <= x && x < until {
            return Some(last);
        }
        let column = ((if self.log { x.log2() } else { x }) - self.low) * self.per_unit;
        if !(self.per_unit > 0.0 && column.is_finite()) {
            return None;
        }
        let next = self.low + (column.floor() + 1.0) / self.per_unit;
        self.last = (column as i64, x, if self.log { next.exp2() } else { next });
        Some(column as i64)
    }
}

impl Series {
    /// The points of what a slice shows of the line: smallest and largest value of each column, and its gaps.
    pub fn points_in(&self, slice: &Slice) -> Vec<(f64, f64)> {
        let mut columns = self.columns(slice);
        let mut points = Vec::with_capacity(2 * self.buckets.len().min(slice.columns.max(1) * 2));
        let mut add = |bucket: &Bucket| {
            let x = bucket.place.on(slice.axis);
            if bucket.finite > 0 {
                let (a, b) = if bucket.rising { (bucket.min, bucket.max) } else { (bucket.max, bucket.min) };
                points.push((x, a));
                if a != b {
                    points.push((x, b));
                }
            }
            if bucket.has_gap() {
                points.push((x, f64::NAN));
            }
        };
        let mut merged: Option<(Option<i64>, Bucket)> = None;
        for bucket in &self.buckets {
            let x = bucket.place.on(slice.axis);
            if slice.bounds.is_some_and(|(low, high)| x < low || x > high) {
                continue;
            }
            let column = columns.at(x);
            match &mut merged {
                Some((last, whole)) if column.is_some() && *last == column => whole.join(bucket),
                _ => {
                    if let Some((_, whole)) = merged.replace((column, *bucket)) {
                        add(&whole);
                    }
                }
            }
        }
        if let Some((_, whole)) = merged {
            add(&whole);
        }
        points
    }

    fn columns(&self, slice: &Slice) -> Columns {
        let end = |bucket: Option<&Bucket>| bucket.map_or(0.0, |bucket| bucket.place.on(slice.axis));
        let whole = || (end(self.buckets.first()), end(self.buckets.last()));
        Columns::of(slice, slice.bounds.unwrap_or_else(whole))
    }

    /// What a slice shows of the smoothed line: the last value of each column, and the gaps.
    pub fn smoothed_in(&self, slice: &Slice, beta: f64) -> Vec<(f64, f64)> {
        let mut columns = self.columns(slice);
        let mut points: Vec<(f64, f64)> =
            Vec::with_capacity(self.buckets.len().min(slice.columns.max(1) * 2));
        let mut last = None;
        for (bucket, smooth) in self.averages(beta) {
            let x = bucket.place.on(slice.axis);
            if slice.bounds.is_some_and(|(low, high)| x < low || x > high) {
                continue;
            }
            if let Some(smooth) = smooth {
                let column = columns.at(x);
                match points.last_mut() {
                    Some(point) if column.is_some() && last == column && !point.1.is_nan() => {
                        *point = (x, smooth);
                    }
                    _ => points.push((x, smooth)),
                }
                last = column;
            }
            if bucket.has_gap() {
                points.push((x, f64::NAN));
            }
        }
        points
    }

    /// What was measured at that update, or last before it.
    pub fn reading(&self, update: u64) -> Option<Reading> {
        let after = self.buckets.partition_point(|bucket| bucket.first_update <= update);
        let (last, before) = self.buckets[..after].split_last()?;
        // An update that was tried more than once has a value of each time.
        let mut bucket = *last;
        for tried in before.iter().rev().take_while(|tried| tried.place.update >= last.first_update) {
            let later = std::mem::replace(&mut bucket, *tried);
            bucket.join(&later);
        }
        let number = bucket.finite > 0;
        Some(Reading {
            first: bucket.first_update,
            place: bucket.place,
            count: bucket.count,
            finite: bucket.finite,
            mean: bucket.mean().unwrap_or(f64::NAN),
            min: if number { bucket.min } else { f64::NAN },
            max: if number { bucket.max } else { f64::NAN },
        })
    }

    /// Where an update lies on an axis; between two values that are known, on the line between them.
    pub fn x_of(&self, update: u64, axis: XAxis) -> Option<f64> {
        if axis == XAxis::Update {
            return Some(update as f64);
        }
        let at = self.buckets.partition_point(|bucket| bucket.place.update < update);
        let next = self.buckets.get(at).or(self.buckets.last())?.place;
        let Some(before) = at.checked_sub(1).and_then(|at| self.buckets.get(at)) else {
            return Some(next.on(axis));
        };
        let before = before.place;
        let share = match next.update.checked_sub(before.update) {
            Some(apart @ 1..) => (update.min(next.update) - before.update) as f64 / apart as f64,
            _ => 1.0,
        };
        Some(before.on(axis) + share * (next.on(axis) - before.on(axis)))
    }

    /// The update nearest to an x.
    pub fn update_at(&self, x: f64, axis: XAxis) -> Option<u64> {
        let (first, last) = (self.first_update()?, self.last_place()?.update);
        if axis == XAxis::Update {
            return Some((x.max(0.0).round() as u64).clamp(first, last.max(first)));
        }
        let at = self.buckets.partition_point(|bucket| bucket.place.on(axis) < x);
        let near = [at.checked_sub(1), Some(at)].into_iter().flatten().filter_map(|at| self.buckets.get(at));
        let away = |bucket: &&Bucket| (bucket.place.on(axis) - x).abs();
        near.min_by(|a, b| away(a).total_cmp(&away(b))).map(|bucket| bucket.place.update)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(update: u64) -> Place {
        Place { update, tokens: update * 512, time: update as f64 * 0.1 }
    }

    #[test]
    fn an_update_that_was_tried_again_is_read_with_every_time() {
        let mut series = Series::default();
        for (update, value) in [(1, 3.0), (2, f64::NAN), (2, f64::NAN), (2, 2.0), (3, 1.0)] {
            series.push(at(update), value);
        }
        let read =
            |update| series.reading(update).map(|read| (read.first, read.count, read.finite, read.mean));
        assert_eq!(read(1), Some((1, 1, 1, 3.0)));
        assert_eq!(read(2), Some((2, 3, 1, 2.0)));
        assert_eq!(read(3), Some((3, 1, 1, 1.0)));
        assert_eq!(read(0), None);
    }

    #[test]
    fn a_slice_holds_what_is_in_its_bounds_and_no_more_points_than_can_be_seen() {
        let mut series = Series::default();
        for update in 1..=100_000 {
            let value = match update {
                54_321 => 900.0,
                60_000 => f64::NAN,
                _ => 1.0,
            };
            series.push(at(update), value);
        }
        for log in [false, true] {
            let slice = Slice { columns: 200, log, ..Slice::default() };
            let points = series.points_in(&slice);
            assert!(points.len() < 500, "{}", points.len());
            assert!(points.iter().any(|p| p.1 == 900.0) && points.iter().any(|p| p.1.is_nan()));
            assert!(points.windows(2).all(|pair| pair[0].0 <= pair[1].0));
            let smooth = series.smoothed_in(&slice, 0.9);
            assert!(smooth.len() < 300 && smooth.iter().any(|p| p.1.is_nan()));
        }
        let bounds = Some((50_000.0, 55_000.0));
        let part = series.points_in(&Slice { bounds, ..Slice::default() });
        assert!(part.iter().all(|p| (50_000.0..=55_000.0).contains(&p.0)) && part.len() > 100);
        assert!(part.iter().any(|p| p.1 == 900.0) && !part.iter().any(|p| p.1.is_nan()));
    }

    #[test]
    fn a_reading_is_of_the_update_or_of_the_last_one_before_it() {
        let mut series = Series::default();
        assert_eq!(series.reading(3), None);
        for update in [10, 20, 30] {
            series.push(at(update), if update == 20 { f64::NAN } else { update as f64 });
        }
        assert_eq!(series.reading(9), None);
        let read = |update| series.reading(update).map(|read| (read.place.update, read.mean, read.count));
        assert_eq!((read(10), read(35)), (Some((10, 10.0, 1)), Some((30, 30.0, 1))));
        assert!(series.reading(25).is_some_and(|read| read.mean.is_nan() && read.finite == 0));
        assert_eq!(series.smoothed_at(10, 0.9), Some(10.0));
    }

    #[test]
    fn an_update_is_found_on_every_axis_and_back() {
        let mut series = Series::default();
        (1..=20_000).for_each(|update| series.push(at(update), 1.0));
        for axis in [XAxis::Update, XAxis::Tokens, XAxis::Time] {
            let x = series.x_of(7_777, axis).unwrap();
            assert!((x - at(7_777).on(axis)).abs() <= at(1).on(axis) * 1e-6, "{x}");
            assert!(series.update_at(x, axis).unwrap().abs_diff(7_777) <= 8);
            assert_eq!(series.update_at(1e12, axis), Some(20_000));
        }
    }
}
