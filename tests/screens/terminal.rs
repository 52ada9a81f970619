//! A pseudo-terminal with the binary in it, and what its screen shows.

use std::{
    io::{Read, Write},
    num::NonZeroU16,
    path::Path,
    sync::{Arc, Mutex},
};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use crate::support::{DEADLINE, SMALL, Sandbox, wait_for};

fn cells(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).unwrap()
}

pub(crate) struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    keys: Box<dyn Write + Send>,
    parser: Arc<Mutex<vt100::Parser>>,
    raw: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    /// Starts the binary with small settings and these on top, as environment variables.
    pub(crate) fn start(
        sandbox: &Sandbox,
        arguments: &[&str],
        settings: &[&str],
        rows: u16,
        cols: u16,
    ) -> Self {
        Self::start_with(sandbox, arguments, settings, &[], rows, cols)
    }

    /// The same with more variables.
    pub(super) fn start_with(
        sandbox: &Sandbox,
        arguments: &[&str],
        settings: &[&str],
        variables: &[(&str, &str)],
        rows: u16,
        cols: u16,
    ) -> Self {
        let settings: Vec<&str> = SMALL.iter().chain(settings).copied().collect();
        let program = env!("CARGO_BIN_EXE_tui-train").as_ref();
        Self::spawn(sandbox, program, arguments, &settings, variables, (rows, cols))
    }

    /// Starts that program with these settings.
    pub(crate) fn of(
        sandbox: &Sandbox,
        program: &Path,
        arguments: &[&str],
        settings: &[&str],
        size: (u16, u16),
    ) -> Self {
        Self::spawn(sandbox, program, arguments, settings, &[], size)
    }

    fn spawn(
        sandbox: &Sandbox,
        program: &Path,
        arguments: &[&str],
        settings: &[&str],
        variables: &[(&str, &str)],
        (rows, cols): (u16, u16),
    ) -> Self {
        let size = PtySize { rows, cols, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(program);
        command.args(arguments);
        command.env_clear();
        command.env("TERM", "xterm-256color");
        command.env("TUI_TRAIN_HOME", sandbox.home());
        command.env("TUI_TRAIN_TRAIN_DEVICE", crate::support::device_name());
        // Where libtorch's program is, and that its threads do not spin where several workers share the cores.
        for name in ["TUI_TRAIN_LIBTORCH", "OMP_WAIT_POLICY"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        for (name, value) in variables {
            command.env(name, value);
        }
        command.cwd(sandbox.path(""));
        for setting in settings {
            let (key, value) = setting.split_once('=').unwrap();
            command.env(format!("TUI_TRAIN_{}", key.replace('.', "_").to_uppercase()), value);
        }
        let child = pair.slave.spawn_command(command).unwrap();
        let mut output = pair.master.try_clone_reader().unwrap();
        let keys = pair.master.take_writer().unwrap();
        let parser = Arc::new(Mutex::new(vt100::Parser::new(cells(rows), cells(cols), 0)));
        let raw = Arc::new(Mutex::new(Vec::new()));
        let (parser_in, raw_in) = (Arc::clone(&parser), Arc::clone(&raw));
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut buffer) {
                parser_in.lock().unwrap().process(&buffer[..count]);
                raw_in.lock().unwrap().extend_from_slice(&buffer[..count]);
            }
        });
        Self { child, master: pair.master, keys, parser, raw }
    }

    pub(crate) fn screen(&self) -> String {
        self.parser.lock().unwrap().screen().contents()
    }

    /// The program's process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.process_id().unwrap()
    }

    /// Whether the alternate screen is shown.
    pub(crate) fn alternate(&self) -> bool {
        self.parser.lock().unwrap().screen().alternate_screen()
    }

    /// Everything that was sent so far.
    pub(super) fn raw(&self) -> Vec<u8> {
        self.raw.lock().unwrap().clone()
    }

    /// Waits until those bytes have been sent.
    pub(super) fn wait_raw(&self, bytes: &str) {
        wait_for(&format!("{bytes:?}"), || {
            let raw = self.raw();
            raw.windows(bytes.len()).any(|window| window == bytes.as_bytes()).then_some(())
        });
    }

    /// Where a text stands on the screen: column and line, counted from 1 as the mouse does.
    pub(super) fn find(&self, text: &str) -> (usize, usize) {
        let screen = self.wait_text(text);
        let (line, row) = screen.lines().enumerate().find(|(_, row)| row.contains(text)).unwrap();
        let before = row.split(text).next().unwrap();
        (before.chars().count() + 1, line + 1)
    }

    /// Presses and lets go of a button of the mouse, or turns the wheel: 0, or 64 and 65 for up and down.
    pub(super) fn mouse(&mut self, button: u8, (column, row): (usize, usize)) {
        let release = if button < 64 { format!("\x1b[<{button};{column};{row}m") } else { String::new() };
        self.press(&format!("\x1b[<{button};{column};{row}M{release}"));
    }

    /// Clicks on a text.
    pub(super) fn click(&mut self, text: &str) {
        let place = self.find(text);
        self.mouse(0, place);
    }

    /// Waits until the screen satisfies the condition, and returns it.
    pub(crate) fn wait(&self, what: &str, condition: impl Fn(&str) -> bool) -> String {
        let mut last = String::new();
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            wait_for(what, || {
                last = self.screen();
                condition(&last).then(|| last.clone())
            })
        }));
        found.unwrap_or_else(|_| panic!("waited {DEADLINE:?} for {what}; the screen shows\n{last}"))
    }

    /// Waits until the text is on the screen.
    pub(crate) fn wait_text(&self, text: &str) -> String {
        self.wait(text, |screen| screen.contains(text))
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    pub(crate) fn resize(&self, rows: u16, cols: u16) {
        self.parser.lock().unwrap().set_size(cells(rows), cells(cols));
        self.master.resize(PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }).unwrap();
    }

    /// Ends the process without a word, as a lost connection would.
    pub(crate) fn kill(self) {
        drop(self);
    }

    /// Waits for the end and returns the exit code; the terminal must have been given back.
    pub(crate) fn end(mut self) -> u32 {
        let status = wait_for("the program's end", || self.child.try_wait().unwrap());
        wait_for("the alternate screen to be left", || {
            (!self.parser.lock().unwrap().screen().alternate_screen()).then_some(())
        });
        let screen = self.parser.lock().unwrap().screen().clone();
        assert!(!screen.hide_cursor(), "the cursor is shown again");
        assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None, "the mouse is given back");
        let raw = String::from_utf8_lossy(&self.raw.lock().unwrap()).into_owned();
        assert!(!raw.contains("panicked"), "no panic is printed");
        status.exit_code()
    }
}

impl Drop for Terminal {
    /// No program outlives its test.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
