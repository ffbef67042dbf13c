//! The actions of keys.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::content::ViewContent;

/// Rows of a page.
const PAGE: usize = 10;

/// The process that shows the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Viewer {
    /// The process that runs the flows; they continue when the view is closed.
    Owner,
    /// Another process.
    Observer,
}

/// A window over the view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Overlay {
    #[default]
    Hidden,
    Help,
    /// Whether to leave the view or to stop the run.
    Question,
}

/// The action of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyAction {
    /// Draw the view again.
    Stay,
    Leave,
    /// The run is stopped; the view stays until it has.
    Stop,
    /// The view ends as by a signal.
    Interrupt,
}

/// The selected flow and job, and the open window.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    pub(super) viewer: Viewer,
    /// The index of the selected flow.
    pub(super) selected: usize,
    /// Whether the selected flow is open.
    pub(super) is_inside: bool,
    /// The index of the selected job of the open flow.
    pub(super) job: usize,
    pub(super) overlay: Overlay,
    /// Whether the run was asked to stop.
    pub(super) is_stopping: bool,
}

impl Selection {
    pub(super) fn new(viewer: Viewer) -> Self {
        Self { viewer, selected: 0, is_inside: false, job: 0, overlay: Overlay::Hidden, is_stopping: false }
    }

    /// Keeps the selection within the lists.
    pub(super) fn clamp(&mut self, content: &ViewContent) {
        self.selected = self.selected.min(content.flows.len().saturating_sub(1));
        let jobs = content.flows.get(self.selected).map_or(0, |flow| flow.jobs.len());
        self.is_inside &= jobs > 0;
        self.job = self.job.min(jobs.saturating_sub(1));
    }

    /// Handles a key.
    pub(super) fn press(&mut self, key: KeyEvent, content: &ViewContent) -> KeyAction {
        if key.kind == KeyEventKind::Release {
            return KeyAction::Stay;
        }
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if is_control && matches!(key.code, KeyCode::Char('c')) {
            return match self.viewer {
                Viewer::Owner => self.stop(),
                Viewer::Observer => KeyAction::Interrupt,
            };
        }
        let action = match self.overlay {
            Overlay::Help => {
                self.overlay = Overlay::Hidden;
                KeyAction::Stay
            }
            Overlay::Question => self.answer(key.code),
            Overlay::Hidden => self.move_selection(key.code),
        };
        self.clamp(content);
        action
    }

    fn stop(&mut self) -> KeyAction {
        self.overlay = Overlay::Hidden;
        self.is_stopping = true;
        KeyAction::Stop
    }

    fn answer(&mut self, code: KeyCode) -> KeyAction {
        match code {
            KeyCode::Char('l') => {
                self.overlay = Overlay::Hidden;
                KeyAction::Leave
            }
            KeyCode::Char('s') => self.stop(),
            KeyCode::Esc | KeyCode::Char('q' | 'n') => {
                self.overlay = Overlay::Hidden;
                KeyAction::Stay
            }
            _ => KeyAction::Stay,
        }
    }

    fn move_selection(&mut self, code: KeyCode) -> KeyAction {
        let at = if self.is_inside { &mut self.job } else { &mut self.selected };
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
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.overlay = Overlay::Help,
            KeyCode::Char('q') => match self.viewer {
                Viewer::Owner => self.overlay = Overlay::Question,
                Viewer::Observer => return KeyAction::Leave,
            },
            _ => {}
        }
        KeyAction::Stay
    }
}
