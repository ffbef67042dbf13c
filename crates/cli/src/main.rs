//! The program with the policies of the library.

fn main() -> std::process::ExitCode {
    slackline_cli::main_with(slackline::Registry::standard())
}
