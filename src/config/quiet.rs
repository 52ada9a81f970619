//! Panics that are awaited: of code that is not ours, and told in a sentence by whoever catches them.

use std::{cell::Cell, sync::Once};

thread_local! {
    /// Whether a panic of this thread is awaited, and told in a sentence where it is caught.
    static AWAITED: Cell<bool> = const { Cell::new(false) };
    /// Where the last one that was awaited happened.
    static WHERE: Cell<Option<String>> = const { Cell::new(None) };
}

/// Runs code that is not ours: what it says while it panics is not printed, for whoever catches it tells it.
pub fn quietly<T>(work: impl FnOnce() -> T) -> T {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if is_awaited() {
                WHERE.set(panic.location().map(|at| format!("{}:{}", at.file(), at.line())));
            } else {
                before(panic);
            }
        }));
    });
    struct Reset(bool);
    impl Drop for Reset {
        fn drop(&mut self) {
            AWAITED.set(self.0);
        }
    }
    let _reset = Reset(AWAITED.replace(true));
    work()
}

/// File and line of the panic that [`quietly`] last kept quiet on this thread.
pub fn place_of_panic() -> Option<String> {
    WHERE.take()
}

/// Whether a panic of this thread is awaited.
pub fn is_awaited() -> bool {
    AWAITED.get()
}
