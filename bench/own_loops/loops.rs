// SPDX-License-Identifier: MIT
//! A loop as people write it in Rust: it sleeps for the time that is left. Its account has the form of
//! cycle_log.h, and is written at SIGTERM.
//!
//!     rust-sleep --log FILE --period-us N --work-us N [--fifo N] [--cpu N]

use std::collections::HashMap;
use std::ffi::{c_int, c_long, c_ulong};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[repr(C)]
struct Timespec {
    seconds: c_long,
    nanoseconds: c_long,
}

unsafe extern "C" {
    fn clock_gettime(clock: c_int, time: *mut Timespec) -> c_int;
    fn signal(number: c_int, handler: extern "C" fn(c_int)) -> usize;
    fn sched_setscheduler(pid: c_int, policy: c_int, priority: *const c_int) -> c_int;
    fn sched_setaffinity(pid: c_int, size: usize, mask: *const c_ulong) -> c_int;
}

static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn stop(_: c_int) {
    STOP.store(true, Ordering::Relaxed);
}

/// CLOCK_MONOTONIC, which Instant does not show.
fn now() -> i64 {
    let mut time = Timespec { seconds: 0, nanoseconds: 0 };
    unsafe { clock_gettime(1, &mut time) };
    time.seconds * 1_000_000_000 + time.nanoseconds
}

fn be_real_time(priority: c_int, cpu: i64) {
    let mask: c_ulong = 1 << cpu.max(0);
    unsafe {
        assert!(priority == 0 || sched_setscheduler(0, 1, &priority) == 0, "SCHED_FIFO");
        assert!(cpu < 0 || sched_setaffinity(0, 8, &mask) == 0, "affinity");
    }
}

fn run(options: &HashMap<String, i64>) -> Vec<i64> {
    be_real_time(
        options.get("--fifo").copied().unwrap_or(0) as c_int,
        options.get("--cpu").copied().unwrap_or(-1),
    );
    let (period, work) = (options["--period-us"] * 1000, options["--work-us"] * 1000);
    let mut log = Vec::with_capacity(1_600_000);
    let mut due = now();
    while !STOP.load(Ordering::Relaxed) {
        due += period;
        let left = due - now();
        if left > 0 {
            std::thread::sleep(Duration::from_nanos(left as u64));
        }
        let start = now();
        while now() < start + work {}
        log.extend([due, start, now(), i64::from(left <= 0)]);
    }
    log
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let mut options = HashMap::new();
    let mut path = String::new();
    for pair in words[2..].chunks(2) {
        match pair[0].as_str() {
            "--log" => path = pair[1].clone(),
            name => _ = options.insert(name.to_string(), pair[1].parse().unwrap()),
        }
    }
    unsafe { signal(15, stop) };
    let thread = std::thread::Builder::new().name("rust-sleep".into());
    let running = thread.spawn(move || run(&options)).unwrap();
    println!("ready");
    let log = running.join().unwrap();
    let bytes: Vec<u8> = log.iter().flat_map(|number| number.to_le_bytes()).collect();
    std::fs::write(path, bytes).unwrap();
}
