//! Tests the view on terminals of several sizes, and the keys. Screens are approved:
//! `approved/NAME.approved`, which `SLACKLINE_BLESS=1` writes again.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use slackline_model::{Seed, random};

use super::content::{Event, Flow, Job, Mood, Task, ViewContent};
use super::draw::draw;
use super::keys::{KeyAction, Overlay, Selection, Viewer};

fn job(name: &str, after: &str, phases: [(usize, usize); 2], at_work: usize) -> Job {
    let took = if phases[0].0 > 0 { "12.5 s" } else { "" };
    Job { name: name.into(), after: after.into(), phases, at_work, failed: 0, took: took.into() }
}

/// A night in its middle: flows that are done, late, about to be late and to come; names that are long, wide
/// and odd.
fn night() -> ViewContent {
    let flow = |name: &str, done, total, verdict, mood| Flow {
        name: name.into(),
        done,
        total,
        deadline: "06:00".into(),
        completion: "05:41".into(),
        verdict,
        mood,
        jobs: vec![job("extract", "", [(done, total), (0, 0)], 0)],
        ..Flow::default()
    };
    let mut flows = vec![
        flow("billing", 40, 40, "on time", Mood::Good),
        flow("reindex-of-everything-that-was-ever-written", 77, 512, "about to be late", Mood::Warning),
        flow("クリック流れ", 3, 16, "running", Mood::Plain),
        flow("nightly \u{1b}[31mred\tname", 0, 8, "late already", Mood::Bad),
        flow("backup", 0, 0, "not released", Mood::Plain),
    ];
    flows[1].between = "05:30 to 06:20".into();
    flows[1].at_work = 5;
    flows[1].failed = 2;
    flows[1].jobs = vec![
        job("crawl", "", [(70, 70), (7, 32)], 5),
        job("rank", "crawl", [(0, 380), (0, 30)], 0),
        job("publish", "crawl, rank", [(0, 0), (0, 0)], 0),
    ];
    flows[4].deadline = "–".into();
    let name = &flows[1].name;
    let task = |k: usize| Task {
        flow: name.clone(),
        text: format!("{name}/crawl reduce {k}, slot {k}, for {k}.5 s"),
    };
    let event = |k: usize| Event {
        flow: k.is_multiple_of(2).then(|| name.clone()),
        text: format!("{k:>8} s  event {k}"),
    };
    ViewContent {
        headline: ".slackline/night: running for 1h 12m, under auto".into(),
        done: 120,
        total: 576,
        slots: 8,
        held: 5,
        failed: 2,
        at_work: (0..9).map(task).collect(),
        events: (0..30).map(event).collect(),
        flows,
    }
}

/// The screen on a terminal of that size.
fn screen(width: u16, height: u16, content: &ViewContent, selection: &Selection) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, content, selection)).unwrap();
    // A screen without size has no lines, which the backend does not support.
    if width == 0 || height == 0 { String::new() } else { terminal.backend().to_string() }
}

fn approve(name: &str, found: &str) {
    let path = format!("{}/src/terminal/watch/approved/{name}.approved", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("SLACKLINE_BLESS").is_some() {
        std::fs::write(&path, found).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "{name}: expected\n{expected}\nfound\n{found}");
}

#[test]
fn screens_are_as_approved() {
    let content = night();
    for (width, height) in [(80, 24), (120, 40), (200, 50)] {
        let mut selection = Selection::new(Viewer::Observer);
        selection.selected = 1;
        approve(&format!("flows-{width}x{height}"), &screen(width, height, &content, &selection));
        selection.is_inside = true;
        approve(&format!("inside-{width}x{height}"), &screen(width, height, &content, &selection));
    }
    let mut selection = Selection::new(Viewer::Owner);
    selection.overlay = Overlay::Question;
    approve("question-80x24", &screen(80, 24, &content, &selection));
    selection.overlay = Overlay::Help;
    approve("help-80x24", &screen(80, 24, &content, &selection));
}

#[test]
fn no_size_and_no_key_is_too_odd() {
    let many = {
        let mut content = night();
        content.flows = content.flows.iter().cycle().take(300).cloned().collect();
        content
    };
    let codes = [
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::PageDown,
        KeyCode::End,
        KeyCode::Home,
        KeyCode::Enter,
        KeyCode::Esc,
        KeyCode::Char('?'),
        KeyCode::Char('q'),
        KeyCode::Char('x'),
    ];
    for k in random::test_seeds(50) {
        let mut rng = random::rng(Seed(20), "screens", k);
        let content = match k % 4 {
            0 => ViewContent::default(),
            1 => many.clone(),
            _ => night(),
        };
        let mut selection =
            Selection::new(if k.is_multiple_of(3) { Viewer::Owner } else { Viewer::Observer });
        for _ in 0..12 {
            let code = codes[random::integer(&mut rng, 0, codes.len() as u64 - 1) as usize];
            let deed = selection.press(KeyEvent::new(code, KeyModifiers::NONE), &content);
            assert!(
                deed == KeyAction::Stay || selection.viewer == Viewer::Observer,
                "{code:?} ended a view of a run of one's own"
            );
            let most = if k.is_multiple_of(5) { 250 } else { 60 };
            let [width, height] = [0, 1].map(|_| random::integer(&mut rng, 0, most) as u16);
            screen(width, height, &content, &selection);
        }
    }
}

#[test]
fn the_run_is_neither_left_nor_stopped_without_a_question() {
    let content = night();
    let key = |code| KeyEvent::new(code, KeyModifiers::NONE);
    let mut selection = Selection::new(Viewer::Owner);
    assert_eq!(selection.press(key(KeyCode::Char('q')), &content), KeyAction::Stay);
    assert_eq!(selection.overlay, Overlay::Question);
    assert_eq!(selection.press(key(KeyCode::Enter), &content), KeyAction::Stay);
    assert_eq!(selection.press(key(KeyCode::Esc), &content), KeyAction::Stay);
    assert_eq!(selection.overlay, Overlay::Hidden);
    selection.press(key(KeyCode::Char('q')), &content);
    assert_eq!(selection.press(key(KeyCode::Char('l')), &content), KeyAction::Leave);
    selection.press(key(KeyCode::Char('q')), &content);
    assert_eq!(selection.press(key(KeyCode::Char('s')), &content), KeyAction::Stop);
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(Selection::new(Viewer::Owner).press(interrupt, &content), KeyAction::Stop);
    // An observer does not affect the run.
    assert_eq!(Selection::new(Viewer::Observer).press(key(KeyCode::Char('q')), &content), KeyAction::Leave);
    assert_eq!(Selection::new(Viewer::Observer).press(interrupt, &content), KeyAction::Interrupt);
}

#[test]
fn keys_lead_into_a_flow_and_back() {
    let content = night();
    let mut selection = Selection::new(Viewer::Observer);
    let mut press = |code| {
        selection.press(KeyEvent::new(code, KeyModifiers::NONE), &content);
        (selection.selected, selection.is_inside, selection.job)
    };
    assert_eq!(press(KeyCode::Up), (0, false, 0));
    assert_eq!(press(KeyCode::Down), (1, false, 0));
    assert_eq!(press(KeyCode::Enter), (1, true, 0));
    assert_eq!(press(KeyCode::End), (1, true, 2));
    assert_eq!(press(KeyCode::Esc), (1, false, 2));
    assert_eq!(press(KeyCode::PageDown), (4, false, 0));
    // Another run with fewer flows is shown.
    selection.clamp(&ViewContent::default());
    assert_eq!((selection.selected, selection.is_inside), (0, false));
}
