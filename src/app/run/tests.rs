use super::*;
use crate::app::recorded;

#[test]
fn folding_in_pieces_gives_what_folding_at_once_gives() {
    let lines: Vec<String> =
        recorded::demo(300).iter().map(|event| serde_json::to_string(event).unwrap()).collect();
    let read = |lines: &[String]| -> Vec<Event> {
        lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let mut whole = RunView::default();
    read(&lines).iter().for_each(|event| whole.apply(event));
    for piece in [1, 3, 17, 100] {
        let mut view = RunView::default();
        for chunk in lines.chunks(piece) {
            read(chunk).iter().for_each(|event| view.apply(event));
        }
        assert!(view.loss == whole.loss && view.grad_norm == whole.grad_norm, "in pieces of {piece}");
        assert_eq!(view.journal, whole.journal);
        assert_eq!(view.markers, whole.markers);
        assert_eq!(view.status(false), whole.status(false));
    }
}

#[test]
fn pause_and_resume_show_in_the_status() {
    let mut view = RunView::default();
    assert_eq!(view.status(false), Status::Starting);
    recorded::demo(10).iter().for_each(|event| view.apply(event));
    assert_eq!(view.status(false), Status::Live);
    view.apply(&recorded::command("pause", 10, None));
    assert_eq!(view.status(false), Status::Paused);
    view.apply(&recorded::command("resume", 10, None));
    assert_eq!(view.status(false), Status::Live);
    assert_eq!(view.status(true), Status::Crashed);
}

#[test]
fn a_rate_override_is_remembered_until_it_ends() {
    let mut view = RunView::default();
    view.apply(&recorded::command("learning_rate", 4, Some(1e-4)));
    assert_eq!(view.rate_override, Some(1e-4));
    view.apply(&recorded::command("learning_rate", 9, None));
    assert_eq!(view.rate_override, None);
    assert_eq!(view.markers.iter().filter(|m| m.kind == MarkerKind::Rate).count(), 2);
}

#[test]
fn of_all_that_happened_at_an_update_the_rate_by_hand_is_told_first() {
    let mut view = RunView::default();
    recorded::demo(50).iter().for_each(|event| view.apply(event));
    view.apply(&recorded::command("step", 40, None));
    view.apply(&recorded::command("learning_rate", 40, Some(1e-4)));
    let alert = crate::protocol::Alert {
        update: 40,
        time: 4.0,
        level: Level::Warning,
        message: "a gradient of 1e9".into(),
    };
    view.apply(&Event::Alert(alert));
    view.apply(&recorded::command("step", 41, None));
    let told = ["learning rate 1e-4: applied", "a gradient of 1e9", "step: applied"];
    assert_eq!(view.happened(40..=40), told);
    assert_eq!(view.happened(40..=41).len(), 4);
    assert!(view.happened(30..=39).is_empty());
}

#[test]
fn resuming_drops_what_came_after_the_checkpoint() {
    let mut view = RunView::default();
    recorded::demo(100).iter().for_each(|event| view.apply(event));
    view.apply(&recorded::ended(Reason::Stopped, 100));
    assert_eq!(view.status(false), Status::Ended(Reason::Stopped));
    view.apply(&Event::resumed(60));
    assert_eq!(view.status(false), Status::Live);
    assert_eq!(view.loss.last_place().map(|place| place.update), Some(60));
}

#[test]
fn the_peaks_of_a_run_that_has_ended_are_those_of_its_summary() {
    let mut view = RunView::default();
    let early = Host { host_rss: Some(30), allocator: Some(3), allocator_peak: Some(4), ..Host::default() };
    view.apply(&Event::Host(early));
    assert_eq!((view.peaks.allocator, view.peaks.host_rss), (Some(4), Some(30)));
    let Event::RunEnded(mut ended) = recorded::ended(Reason::Finished, 5) else { unreachable!() };
    ended.summary.measured.peak_allocator_bytes = Some(900);
    ended.summary.measured.peak_gpu_device_bytes = Some(7);
    view.apply(&Event::RunEnded(ended));
    let peaks = Peaks { allocator: Some(900), host_rss: Some(30), gpu_device: Some(7), ..Peaks::default() };
    assert_eq!(view.peaks, peaks, "what the summary does not say is what was read");
}

#[test]
fn the_time_left_follows_the_speed() {
    let mut view = RunView::default();
    recorded::demo(100).iter().for_each(|event| view.apply(event));
    let left = view.eta().unwrap();
    assert!(left > 1.0 && left < 600.0, "{left}");
}
