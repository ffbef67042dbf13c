//! The program with the policies, engines and formats of the library.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    slackline_cli::main_with(slackline_cli::Tables::default())
}
