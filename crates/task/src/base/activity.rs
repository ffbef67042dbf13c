//! The current operations of the threads of this process, for a watchdog that names a blocked operation.
//!
//! A thread announces itself with [`announce`]. Around each operation that may block it calls [`during`]. A
//! thread with turns, such as a scheduler loop, also calls [`turn`] once a turn. The cost is a short lock for
//! each operation.

use std::cell::RefCell;
use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The role of a thread in the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    /// A loop: it takes a turn at least once a second, and everything waits for it.
    Loop,
    /// It waits for work. While one of its operations blocks, no work of its kind proceeds.
    Sole,
    /// It waits for work. While one of its operations blocks, other threads do the rest.
    Helper,
}

/// The threads that have announced themselves.
static ALL: Mutex<Vec<Arc<Activity>>> = Mutex::new(Vec::new());

thread_local! {
    static OWN: RefCell<Option<Registration>> = const { RefCell::new(None) };
}

/// The activity of one thread.
#[derive(Debug)]
pub struct Activity {
    name: String,
    duty: Duty,
    /// Grows with each turn, and with the start and end of each operation.
    steps: AtomicU64,
    /// The operations in progress, the innermost last.
    operations: Mutex<Vec<String>>,
}

/// Removes the thread when it ends.
struct Registration(Arc<Activity>);

impl Drop for Registration {
    fn drop(&mut self) {
        lock(&ALL).retain(|other| !Arc::ptr_eq(other, &self.0));
    }
}

impl Activity {
    /// The name of the thread.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The role of the thread in the process.
    pub fn duty(&self) -> Duty {
        self.duty
    }

    /// The number of steps of the thread. A blocked thread takes none.
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// The innermost operation in progress, as in `write to journal FILE`.
    pub fn operation(&self) -> Option<String> {
        lock(&self.operations).last().cloned()
    }
}

/// Announces this thread until it ends.
pub fn announce(name: impl Into<String>, duty: Duty) {
    let activity =
        Activity { name: name.into(), duty, steps: AtomicU64::new(0), operations: Mutex::new(Vec::new()) };
    let activity = Arc::new(activity);
    lock(&ALL).push(activity.clone());
    OWN.with(|own| *own.borrow_mut() = Some(Registration(activity)));
}

/// The announced threads.
pub fn all() -> Vec<Arc<Activity>> {
    lock(&ALL).clone()
}

/// Marks the start of another turn of this thread.
pub fn turn() {
    if let Some(own) = own() {
        own.steps.fetch_add(1, Ordering::Relaxed);
    }
}

/// Runs an operation that may block, such as `write to` some file. Costs nothing on threads that are not
/// announced.
pub fn during<T>(verb: &str, object: impl Display, work: impl FnOnce() -> T) -> T {
    let Some(own) = own() else { return work() };
    lock(&own.operations).push(format!("{verb} {object}"));
    let _ended = OperationGuard(&own);
    turn();
    work()
}

/// Removes an operation from its thread, also after a panic.
struct OperationGuard<'a>(&'a Activity);

impl Drop for OperationGuard<'_> {
    fn drop(&mut self) {
        lock(&self.0.operations).pop();
        self.0.steps.fetch_add(1, Ordering::Relaxed);
    }
}

fn own() -> Option<Arc<Activity>> {
    OWN.try_with(|own| own.borrow().as_ref().map(|own| own.0.clone())).ok().flatten()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> Option<Arc<Activity>> {
        all().into_iter().find(|activity| activity.name() == name)
    }

    #[test]
    fn a_thread_is_known_until_it_ends_with_its_innermost_operation() {
        assert_eq!(during("read", "a file", || 7), 7, "a thread that is not announced works too");
        let thread = std::thread::spawn(|| {
            announce("of a test", Duty::Helper);
            let steps = || of("of a test").unwrap().steps();
            let operation = || of("of a test").unwrap().operation();
            let before = steps();
            turn();
            assert_eq!((steps(), operation()), (before + 1, None));
            during("read", "a", || {
                assert_eq!(operation().as_deref(), Some("read a"));
                during("write to", "b", || assert_eq!(operation().as_deref(), Some("write to b")));
                assert_eq!(operation().as_deref(), Some("read a"));
            });
            assert_eq!((steps(), operation()), (before + 5, None));
        });
        thread.join().unwrap();
        assert!(of("of a test").is_none());
    }
}
