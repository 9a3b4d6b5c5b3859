//! What this process has cost the machine, other than time on the wall.
#![allow(unsafe_code)] // One call of the C library.

/// CPU seconds of all threads of this process so far; 0 where the system does not tell.
pub fn cpu_seconds() -> f64 {
    let mut spent = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes one timespec, which lives until it returns.
    let answer = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut spent) };
    if answer != 0 {
        return 0.0;
    }
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_on_a_thread_that_has_ended_counts() {
        let busy = || {
            let begun = std::time::Instant::now();
            while begun.elapsed().as_millis() < 50 {
                std::hint::spin_loop();
            }
        };
        let before = cpu_seconds();
        std::thread::spawn(busy).join().unwrap();
        let worked = cpu_seconds() - before;
        assert!(worked > 0.01, "{worked}");
    }
}
