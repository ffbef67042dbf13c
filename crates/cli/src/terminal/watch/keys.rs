//! What keys do.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::shown::Shown;

/// Rows that a page has.
const PAGE: usize = 10;

/// What the view is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seat {
    /// A run of this process, which goes on when the view is left.
    Driver,
    /// A run of somebody else.
    Onlooker,
}

/// What lies over the view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Over {
    #[default]
    Nothing,
    Help,
    /// Whether to leave the view or to stop the run.
    Question,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// Nothing but to draw again.
    Stay,
    Leave,
    /// The run is stopped; the view stays until it has.
    Stop,
    /// The view ends as by a signal.
    Interrupt,
}

/// What the person at the terminal looks at.
#[derive(Clone, Debug)]
pub(super) struct Gaze {
    pub(super) seat: Seat,
    /// The flow that is marked, by its place.
    pub(super) marked: usize,
    /// Whether the marked flow is looked into.
    pub(super) is_inside: bool,
    /// The job that is marked inside.
    pub(super) job: usize,
    pub(super) over: Over,
    /// Whether the run was asked to stop.
    pub(super) is_stopping: bool,
}

impl Gaze {
    pub(super) fn new(seat: Seat) -> Self {
        Self { seat, marked: 0, is_inside: false, job: 0, over: Over::Nothing, is_stopping: false }
    }

    /// Marks what there is.
    pub(super) fn clamp(&mut self, shown: &Shown) {
        self.marked = self.marked.min(shown.flows.len().saturating_sub(1));
        let jobs = shown.flows.get(self.marked).map_or(0, |flow| flow.jobs.len());
        self.is_inside &= jobs > 0;
        self.job = self.job.min(jobs.saturating_sub(1));
    }

    /// Takes in a key.
    pub(super) fn press(&mut self, key: KeyEvent, shown: &Shown) -> Deed {
        if key.kind == KeyEventKind::Release {
            return Deed::Stay;
        }
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && matches!(key.code, KeyCode::Char('c')) {
            return match self.seat {
                Seat::Driver => self.stop(),
                Seat::Onlooker => Deed::Interrupt,
            };
        }
        let deed = match self.over {
            Over::Help => {
                self.over = Over::Nothing;
                Deed::Stay
            }
            Over::Question => self.answer(key.code),
            Over::Nothing => self.look(key.code),
        };
        self.clamp(shown);
        deed
    }

    fn stop(&mut self) -> Deed {
        self.over = Over::Nothing;
        self.is_stopping = true;
        Deed::Stop
    }

    fn answer(&mut self, code: KeyCode) -> Deed {
        match code {
            KeyCode::Char('l') => {
                self.over = Over::Nothing;
                Deed::Leave
            }
            KeyCode::Char('s') => self.stop(),
            KeyCode::Esc | KeyCode::Char('q' | 'n') => {
                self.over = Over::Nothing;
                Deed::Stay
            }
            _ => Deed::Stay,
        }
    }

    fn look(&mut self, code: KeyCode) -> Deed {
        let at = if self.is_inside { &mut self.job } else { &mut self.marked };
        match code {
            KeyCode::Up | KeyCode::Char('k') => *at = at.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => *at = at.saturating_add(1),
            KeyCode::PageUp => *at = at.saturating_sub(PAGE),
            KeyCode::PageDown => *at = at.saturating_add(PAGE),
            KeyCode::Home | KeyCode::Char('g') => *at = 0,
            KeyCode::End | KeyCode::Char('G') => *at = usize::MAX,
            KeyCode::Enter | KeyCode::Right if !self.is_inside => {
                self.is_inside = true;
                self.job = 0;
            }
            KeyCode::Esc | KeyCode::Left | KeyCode::Backspace => self.is_inside = false,
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.over = Over::Help,
            KeyCode::Char('q') => match self.seat {
                Seat::Driver => self.over = Over::Question,
                Seat::Onlooker => return Deed::Leave,
            },
            _ => {}
        }
        Deed::Stay
    }
}
