//! The command line: parse, dispatch, exit code.

#[global_allocator]
static ALLOCATOR: tui_train::backend::allocator::Counting = tui_train::backend::allocator::Counting;

fn main() -> std::process::ExitCode {
    tui_train::cli::exit_code(tui_train::cli::main())
}
