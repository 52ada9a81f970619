//! How far the preparation of a text is.

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The files are checked and counted.
    Reading,
    /// A vocabulary is learnt from the text.
    Learning,
    /// Text becomes ids.
    Tokenizing,
}

impl Stage {
    /// As it is shown: `reading`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reading => "reading",
            Self::Learning => "learning a vocabulary",
            Self::Tokenizing => "tokenizing",
        }
    }
}

/// How far it is, in bytes of the files as they lie on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub stage: Stage,
    pub done: u64,
    pub total: u64,
}

impl Progress {
    /// From 0 to 100.
    pub fn percent(&self) -> u8 {
        let share = u128::from(self.done) * 100 / u128::from(self.total.max(1));
        share.min(100) as u8
    }
}

impl std::fmt::Display for Progress {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {} %", self.stage.as_str(), self.percent())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_reads_like_a_sentence() {
        let progress = |done, total| Progress { stage: Stage::Tokenizing, done, total }.to_string();
        assert_eq!(progress(43, 100), "tokenizing 43 %");
        assert_eq!(progress(u64::MAX, u64::MAX), "tokenizing 100 %");
        assert_eq!(progress(0, 0), "tokenizing 0 %");
        // A file that grew.
        assert_eq!(progress(9, 3), "tokenizing 100 %");
    }
}
