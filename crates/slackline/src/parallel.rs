//! Runs independent pieces of work on several threads, with results in order.
//!
//! A work-stealing library would bring a thread pool for the whole process, but here the caller chooses the
//! number of threads. The pieces are whole simulations, so one shared counter suffices for scheduling.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

/// The number of processors.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
}

/// Calls `work(0)`, …, `work(n - 1)` on at most `threads` threads. Returns the results in this order. After a
/// failure no further piece starts.
///
/// # Errors
/// The first failure in this order among the pieces that started.
///
/// # Panics
/// If `work` panics.
pub fn map<T: Send, E: Send>(
    n: usize,
    threads: usize,
    work: impl Fn(usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    const HELD: &str = "invariant: no worker panics while it holds the lock";
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<Result<T, E>>>> = (0..n).map(|_| Mutex::new(None)).collect();
    let worker = || {
        loop {
            let k = next.fetch_add(1, Ordering::Relaxed);
            if k >= n {
                return;
            }
            let result = work(k);
            if result.is_err() {
                next.store(n, Ordering::Relaxed);
            }
            *results[k].lock().expect(HELD) = Some(result);
        }
    };
    std::thread::scope(|scope| {
        // This thread works too. If the system refuses a thread, the others take its pieces.
        for _ in 1..threads.clamp(1, n.max(1)) {
            if Builder::new().spawn_scoped(scope, worker).is_err() {
                break;
            }
        }
        worker();
    });
    results.into_iter().filter_map(|slot| slot.into_inner().expect(HELD)).collect()
}

/// Runs two pieces of work in parallel: the first one on a new thread, or before the second one if the system
/// refuses a thread.
///
/// # Panics
/// If one of them panics.
pub fn both<A: Send, B>(first: impl FnOnce() -> A + Send, second: impl FnOnce() -> B) -> (A, B) {
    // If the thread cannot be created, this thread runs the first piece.
    let first = Mutex::new(Some(first));
    let run_first = || {
        let first = first.lock().unwrap_or_else(PoisonError::into_inner).take();
        first.expect("invariant: it is run once")()
    };
    std::thread::scope(|scope| match Builder::new().spawn_scoped(scope, run_first) {
        Ok(thread) => {
            let second = second();
            (thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), second)
        }
        Err(_) => (run_first(), second()),
    })
}

#[cfg(test)]
mod tests {
    use super::{both, map};

    #[test]
    fn two_pieces_are_answered_by_the_first_and_the_second() {
        assert_eq!(both(|| 1, || "two"), (1, "two"));
    }

    #[test]
    fn results_come_in_order_and_errors_end_the_work() {
        let squares: Result<Vec<usize>, ()> = map(100, 3, |k| Ok(k * k));
        assert_eq!(squares.unwrap(), (0..100).map(|k| k * k).collect::<Vec<_>>());
        let failed: Result<Vec<usize>, usize> = map(100, 3, |k| if k == 7 { Err(k) } else { Ok(k) });
        assert_eq!(failed, Err(7));
        assert_eq!(map(0, 3, |_| Ok::<_, ()>(())), Ok(vec![]));
    }
}
