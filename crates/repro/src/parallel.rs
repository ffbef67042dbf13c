//! Cells of a figure on several threads, in order.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::Context;

/// `work(0)`, …, `work(n - 1)`, computed on the context's threads; in this order, whoever was first.
/// A failed cell keeps those after it from being begun.
///
/// # Errors
/// That of the first cell that failed.
pub(crate) fn cells<T: Send, E: Send>(
    n: usize,
    context: &Context<'_>,
    work: impl Fn(usize) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
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
            *results[k].lock().expect("invariant: no worker panics while it holds the lock") = Some(result);
            (context.progress)(done.fetch_add(1, Ordering::Relaxed) + 1, n);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..context.threads.clamp(1, n.max(1)) {
            scope.spawn(worker);
        }
    });
    let taken = results
        .into_iter()
        .filter_map(|slot| slot.into_inner().expect("invariant: no worker panics while it holds the lock"));
    taken.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_and_errors_end_the_work() {
        let context = Context { seeds: None, threads: 3, progress: &|_, _| {} };
        let squares: Result<Vec<usize>, ()> = cells(100, &context, |k| Ok(k * k));
        assert_eq!(squares.unwrap(), (0..100).map(|k| k * k).collect::<Vec<_>>());
        let failed: Result<Vec<usize>, usize> = cells(100, &context, |k| if k == 7 { Err(k) } else { Ok(k) });
        assert_eq!(failed, Err(7));
    }
}
