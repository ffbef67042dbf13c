//! The program with the policies, engines and formats of the library.

fn main() -> std::process::ExitCode {
    slackline_cli::main_with(slackline_cli::Tables::default())
}
