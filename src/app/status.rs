//! Where a run stands, in the words of the screens.

use crate::{protocol::Reason, run::queue::Waits};

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It waits in the queue: no worker is there to take commands.
    Queued,
    /// It was taken out of the queue before it started.
    TakenOut,
    /// The worker has not written its first line yet.
    Starting,
    Live,
    Paused,
    Ended(Reason),
    /// The worker is gone and wrote no end.
    Crashed,
}

impl Status {
    /// Whether a worker is there to take commands.
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Starting | Self::Live | Self::Paused)
    }

    /// The word on the screen.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::TakenOut => "taken out",
            Self::Starting => "starting",
            Self::Live => "live",
            Self::Paused => "paused",
            Self::Ended(reason) => reason.as_str(),
            Self::Crashed => "crashed",
        }
    }
}

/// Why a run that was made has no worker yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waiting {
    /// It waits in the queue, there and for that.
    InLine(Waits),
    /// It was taken out of the queue.
    TakenOut,
}

impl Waiting {
    /// Where a run stands that says so and has recorded nothing.
    pub const fn status(&self) -> Status {
        match self {
            Self::InLine(_) => Status::Queued,
            Self::TakenOut => Status::TakenOut,
        }
    }

    /// The place in the queue and what is waited for; of a run that does not wait any more, what can be done.
    pub fn sentence(&self) -> String {
        match self {
            Self::InLine(waits) => waits.sentence(),
            Self::TakenOut => {
                "taken out of the queue before it started: {key:resume-run} on screen {key:runs} starts it"
                    .to_owned()
            }
        }
    }
}
