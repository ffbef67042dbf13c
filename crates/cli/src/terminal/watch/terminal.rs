//! Takes the terminal over, and restores it in any case, also after a panic.

use std::io::{self, IsTerminal, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicU8, Ordering};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::layout::Rect;
use ratatui::{Frame, Terminal, TerminalOptions, Viewport};

use crate::terminal::out;

/// The stream that is a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Out,
    Err,
}

/// Which stream is taken over: 0 for none. A panic in any thread has to give it back, and knows nothing else.
static TAKEN: AtomicU8 = AtomicU8::new(0);

impl Stream {
    /// Whether a view may be drawn there and keys be read.
    pub(crate) fn is_interactive(self) -> bool {
        self.is_terminal()
            && io::stdin().is_terminal()
            && std::env::var("TERM").is_ok_and(|term| term != "dumb")
    }

    /// Whether it is a terminal; a closed terminal is none.
    pub(super) fn is_terminal(self) -> bool {
        match self {
            Self::Out => io::stdout().is_terminal(),
            Self::Err => io::stderr().is_terminal(),
        }
    }

    fn writer(self) -> Box<dyn Write + Send> {
        match self {
            Self::Out => Box::new(io::stdout()),
            Self::Err => Box::new(io::stderr()),
        }
    }

    /// Columns and lines, as they are now: asked of the stream itself, since others may be redirected.
    fn size(self) -> Rect {
        let size = match self {
            Self::Out => terminal_size::terminal_size_of(io::stdout()),
            Self::Err => terminal_size::terminal_size_of(io::stderr()),
        };
        size.map_or(Rect::new(0, 0, 80, 24), |(width, height)| {
            Rect::new(0, 0, width.0.max(1), height.0.max(1))
        })
    }
}

/// A terminal that is ours until this is dropped.
pub(super) struct Screen {
    stream: Stream,
    terminal: Terminal<CrosstermBackend<Box<dyn Write + Send>>>,
}

impl Screen {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// Those of the terminal; then it is as it was.
    pub(super) fn open(stream: Stream) -> io::Result<Self> {
        restore_after_panics();
        TAKEN.store(if stream == Stream::Out { 1 } else { 2 }, Ordering::SeqCst);
        let opened = enable_raw_mode().and_then(|()| {
            let mut writer = stream.writer();
            execute!(writer, EnterAlternateScreen)?;
            let viewport = Viewport::Fixed(stream.size());
            Terminal::with_options(CrosstermBackend::new(writer), TerminalOptions { viewport })
        });
        opened.map(|terminal| Self { stream, terminal }).inspect_err(|_| restore())
    }

    /// Draws, on as much room as there is now. Nothing if the terminal was given back meanwhile.
    ///
    /// # Errors
    /// Those of the terminal.
    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        if TAKEN.load(Ordering::SeqCst) == 0 {
            return Ok(());
        }
        let size = self.stream.size();
        if size != self.terminal.get_frame().area() {
            // It clears the terminal, too.
            self.terminal.resize(size)?;
        }
        self.terminal.draw(draw).map(drop)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the terminal, if it is taken over.
fn restore() {
    let stream = match TAKEN.swap(0, Ordering::SeqCst) {
        0 => return,
        1 => Stream::Out,
        _ => Stream::Err,
    };
    // An error could not be shown anywhere.
    let _ = execute!(stream.writer(), LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}

/// From now on a panic in any thread restores the terminal before its message is printed.
fn restore_after_panics() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            out::release_held();
            before(panic);
        }));
    });
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::process::{Command, Stdio};

    use rustix::fs::OFlags;
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::{LocalModes, tcgetattr};

    use super::*;

    /// Tells this test, run as a program, to panic.
    const IS_CHILD: &str = "SLACKLINE_TEST_PANICS_ON_TERMINAL";

    #[test]
    fn a_panic_in_another_thread_gives_the_terminal_back() {
        if std::env::var_os(IS_CHILD).is_some() {
            let mut screen = Screen::open(Stream::Err).unwrap();
            screen.draw(|_| {}).unwrap();
            let _ = std::thread::spawn(|| panic!("something is wrong")).join();
            // It ends as a program does that does not unwind.
            std::process::exit(101);
        }
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let slave = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, rustix::fs::Mode::empty()).unwrap();
        let (mut master, slave) = (File::from(master), File::from(slave));
        let before = tcgetattr(&slave).unwrap().local_modes;
        assert!(before.contains(LocalModes::ICANON | LocalModes::ECHO));
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "--nocapture",
                "terminal::watch::terminal::tests::a_panic_in_another_thread_gives_the_terminal_back",
            ])
            .env(IS_CHILD, "1")
            .stdin(slave.try_clone().unwrap())
            .stdout(Stdio::null())
            .stderr(slave.try_clone().unwrap())
            .spawn()
            .unwrap();
        let seen = std::thread::spawn(move || {
            let (mut text, mut piece) = (Vec::new(), [0; 4096]);
            while let Ok(bytes @ 1..) = master.read(&mut piece) {
                text.extend_from_slice(&piece[..bytes]);
            }
            String::from_utf8(text).unwrap()
        });
        assert_eq!(child.wait().unwrap().code(), Some(101));
        assert_eq!(tcgetattr(&slave).unwrap().local_modes, before);
        drop(slave);
        let seen = seen.join().unwrap();
        let (taken, rest) = seen.split_once("\x1b[?1049h").unwrap_or_else(|| panic!("never taken: {seen:?}"));
        let (_, after) =
            rest.split_once("\x1b[?1049l").unwrap_or_else(|| panic!("never given back: {seen:?}"));
        assert!(!taken.contains("something is wrong") && after.contains("\x1b[?25h"), "{seen:?}");
        assert!(after.contains("something is wrong"), "{seen:?}");
    }
}
