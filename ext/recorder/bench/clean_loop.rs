// SPDX-License-Identifier: MIT
//! Two real-time threads in Rust that break no rule: one runs each 2 ms, gives the other one a number, and
//! unparks it.
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

extern "C" {
    fn mlockall(flags: i32) -> i32;
}

static GIVEN: AtomicU64 = AtomicU64::new(0);

fn main() {
    assert_eq!(unsafe { mlockall(3) }, 0);
    let consumer = thread::spawn(|| {
        let mut last = 0;
        loop {
            while GIVEN.load(Ordering::Acquire) == last {
                thread::park();
            }
            last = GIVEN.load(Ordering::Acquire);
        }
    });
    let mut next = Instant::now();
    loop {
        next += Duration::from_millis(2);
        thread::sleep(next.saturating_duration_since(Instant::now()));
        GIVEN.fetch_add(1, Ordering::Release);
        consumer.thread().unpark();
    }
}
