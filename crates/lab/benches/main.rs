//! `cargo xtask bench [suite …]`: runs the named suites, or all of them, at their large size.

use slackline_lab::bench::{SUITES, Size};

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    for (name, run) in SUITES {
        if asked.is_empty() || asked.iter().any(|a| a == name) {
            run(Size::Large);
        }
    }
}
